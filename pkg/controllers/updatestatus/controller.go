// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// Intervals between passes. A pass without a change makes no request.
const (
	debounce        = time.Second      // between two passes
	activeInterval  = 15 * time.Second // while an update is in progress
	idleInterval    = time.Minute      // otherwise, because conditions that persist become findings
	passTimeout     = 30 * time.Second
	conflictRequeue = time.Second
)

// Metrics observes the UpdateStatus.
type Metrics interface {
	// SetStatus replaces the state of the UpdateStatus.
	SetStatus(status updatev1beta1.UpdateStatusStatus)
	// SetStatusTime sets the time at which the published UpdateStatus was last current.
	SetStatusTime(at time.Time)
	// SetPlans replaces the state of the UpdatePlans.
	SetPlans(plans []metrics.PlanSnapshot)
	// ObserveStatusWrite counts a write and its bytes.
	ObserveStatusWrite(bytes int)
}

// Reconciler maintains the UpdateStatus.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Prometheus is the source of alerts. Optional.
	Prometheus checks.AlertSource
	// Answers returns the latest answers of the update informers. Changed receives an event when
	// there is a new answer.
	Answers func() []insight.Answer
	Changed <-chan event.GenericEvent
	Events  notify.ObjectPublisher
	Metrics Metrics

	limits   *checks.Sources
	insights insight.Store
	// restoredFrom is the resource version of the UpdateStatus that the insights were restored
	// from. written reports that this process has written the status since, so its own state is the
	// latest. replaced is the version that the last write replaced.
	restoredFrom string
	written      bool
	replaced     manager.Replaced
	lastPass     time.Time
	budget       budget

	mu      sync.Mutex
	request *hooksv1alpha.RequestSpec // from the last pass; nil before that
}

// +kubebuilder:rbac:groups=config.openshift.io,resources=updatestatuses,verbs=create;list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=updatestatuses/status,verbs=patch
// +kubebuilder:rbac:groups=config.openshift.io,resources=updateinformers;updateplans,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusteroperators,verbs=list;watch
// +kubebuilder:rbac:groups=machineconfiguration.openshift.io,resources=machineconfigpools;machineconfigs;machineosbuilds,verbs=list;watch
// +kubebuilder:rbac:groups=machine.openshift.io,resources=machinesets,verbs=list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets;machinedeployments,verbs=list;watch
// +kubebuilder:rbac:groups=hypershift.openshift.io,resources=nodepools,verbs=list;watch
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,verbs=list;watch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradeconfigs;upgradejobs,verbs=list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=nodes,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups=apps,resources=deployments,resourceNames=machine-config-operator,verbs=get
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=list;watch

// Controller declares the controller. It only reconciles the UpdateStatus.
func (r *Reconciler) Controller() manager.Controller {
	reads := append(facts.Updates(), facts.UpdateInformers(), facts.UpdateStatus(), facts.UpdatePlans())
	for i := range reads {
		reads[i].Requests = requestStatus
		if _, ok := reads[i].Object.(*updatev1beta1.UpdateStatus); ok {
			reads[i].Predicates = []predicate.Predicate{statusChangedPredicate{}}
		}
		if _, ok := reads[i].Object.(*updatev1beta1.UpdateInformer); ok {
			reads[i].Predicates = []predicate.Predicate{predicate.GenerationChangedPredicate{}}
		}
	}
	return manager.Controller{
		Name:     "updatestatus",
		Reads:    reads,
		Channels: []manager.Channel{{Events: r.Changed, Requests: requestStatus}},
		Bind: func(c manager.Clients) error {
			r.limits = checks.NewSources(r.Clock)
			r.Client, r.Live = c.Client, c.Live
			return nil
		},
		Reconciler: r,
	}
}

// requestStatus returns a request for the UpdateStatus.
func requestStatus(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: client.ObjectKey{Name: updatev1beta1.UpdateStatusName}}}
}

// statusChangedPredicate passes changes of the UpdateStatus by other clients: a re-creation, and
// acknowledgments of users.
type statusChangedPredicate struct{ predicate.Funcs }

// Update compares two states of the UpdateStatus.
func (statusChangedPredicate) Update(e event.UpdateEvent) bool {
	return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() ||
		e.ObjectOld.GetAnnotations()[updatev1beta1.AcknowledgedAnnotation] != e.ObjectNew.GetAnnotations()[updatev1beta1.AcknowledgedAnnotation]
}

// Request returns the description of the update for update informers, as of the last pass.
func (r *Reconciler) Request(context.Context) (hooksv1alpha.RequestSpec, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.request == nil {
		return hooksv1alpha.RequestSpec{}, errors.New("the state of the cluster was not observed yet")
	}
	return *r.request, nil
}

// Reconcile makes one pass.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	now := r.Clock.Now()
	if age := now.Sub(r.lastPass); !r.lastPass.IsZero() && age >= 0 && age < debounce {
		return reconcile.Result{RequeueAfter: debounce - age}, nil
	}
	r.lastPass = now
	var object updatev1beta1.UpdateStatus
	switch err := r.Client.Get(ctx, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, &object); {
	case apierrors.IsNotFound(err):
		return reconcile.Result{}, r.create(ctx)
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("getting the UpdateStatus: %w", err)
	}
	status, err := r.compute(ctx, &object)
	if err != nil {
		return reconcile.Result{}, err
	}
	return r.write(ctx, &object, status)
}

// create creates the UpdateStatus. This triggers the next pass.
func (r *Reconciler) create(ctx context.Context) error {
	object := &updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}, Spec: &updatev1beta1.UpdateStatusSpec{}}
	if err := r.Client.Create(ctx, object); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the UpdateStatus: %w", err)
	}
	return nil
}

// compute returns the current status. It continues from the status of the object, unless the cache
// does not yet have the last write.
func (r *Reconciler) compute(ctx context.Context, object *updatev1beta1.UpdateStatus) (updatev1beta1.UpdateStatusStatus, error) {
	r.restore(object)
	gathered := checks.Gather(ctx, checks.Update, checks.Readers{
		Reader: r.Client, Cached: true, Live: r.Live, Prometheus: r.Prometheus, Clock: r.Clock, Sources: r.limits,
	})
	r.setRequest(gathered)
	answers := r.Answers() // before the list, so any informer missing from the list was deleted
	var list updatev1beta1.UpdateInformerList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return updatev1beta1.UpdateStatusStatus{}, fmt.Errorf("listing the UpdateInformers: %w", err)
	}
	for _, answer := range answers {
		r.insights.Apply(answer, gathered.Now)
	}
	existing := make([]string, 0, len(list.Items))
	for i := range list.Items {
		existing = append(existing, list.Items[i].Name)
	}
	r.insights.KeepOnly(existing, gathered.Now) // some may have been deleted while no controller was running
	status := updatestatus.Compute(updatestatus.Input{
		Facts: gathered, Insights: r.insights, Previous: object.Status,
		Acknowledged: object.Annotations[updatev1beta1.AcknowledgedAnnotation], Sources: sources(list.Items, answers, updatestatus.IsActive(object.Status), gathered.Now),
	})
	var err error
	status.StartableReleases, err = r.startable(ctx, gathered)
	return status, err
}

// restore continues from the published status. Until this process has written the status itself,
// its cache may lack the last write of another leader, so each new version of the object is
// restored again.
func (r *Reconciler) restore(object *updatev1beta1.UpdateStatus) {
	if r.written || !r.insights.IsZero() && r.restoredFrom == object.ResourceVersion {
		return
	}
	r.insights, r.restoredFrom = insight.NewStore(), object.ResourceVersion
	r.insights.Restore(object.Status)
}

// startable returns the releases that the cluster may be updated to now. It returns none if the
// release of the cluster is unknown.
func (r *Reconciler) startable(ctx context.Context, gathered checks.Facts) ([]updatev1beta1.StartableRelease, error) {
	var plans updatev1beta1.UpdatePlanList
	if err := r.Client.List(ctx, &plans, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the UpdatePlans: %w", err)
	}
	startable := updateplan.StartableReleases(plans.Items, gathered.Version.Current.Version, gathered.Now)
	r.Metrics.SetPlans(observedPlans(plans.Items, startable))
	return startable, nil
}

// observedPlans returns the plans for metrics. It omits invalid plans, because they have no
// release.
func observedPlans(plans []updatev1beta1.UpdatePlan, startable []updatev1beta1.StartableRelease) []metrics.PlanSnapshot {
	var observed []metrics.PlanSnapshot
	for i := range plans {
		plan := &plans[i]
		if updateplan.Validate(plan) != nil {
			continue
		}
		release := plan.Spec.TargetRelease
		o := metrics.PlanSnapshot{Release: release, Startable: slices.ContainsFunc(startable, func(s updatev1beta1.StartableRelease) bool { return s.Version == release })}
		if counts := plan.Status.Counts; counts != nil {
			o.Accepted, o.Unaccepted = counts.Accepted, counts.Unaccepted
		}
		if at := plan.Status.LastAnalysisTime; at != nil {
			o.Analyzed = at.Time
		}
		observed = append(observed, o)
	}
	return observed
}

// untilWithdrawal returns the time until the first startable release must be withdrawn, at most
// next.
func untilWithdrawal(releases []updatev1beta1.StartableRelease, now time.Time, next time.Duration) time.Duration {
	for i := range releases {
		next = min(next, max(releases[i].ExpirationTime.Sub(now), time.Millisecond))
	}
	return next
}

// setRequest stores the description of the update for requests to informers.
func (r *Reconciler) setRequest(gathered checks.Facts) {
	if !gathered.Has(checks.SourceClusterVersion) {
		return
	}
	version := gathered.Version
	spec := hooksv1alpha.RequestSpec{ClusterID: gathered.ClusterID, ControlPlaneVersion: version.Installed, TargetControlPlaneVersion: version.Current.Version}
	if requested, pending := version.PendingRequest(); pending {
		spec.TargetControlPlaneVersion = requested.Version
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.request = &spec
}
