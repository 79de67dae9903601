// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

const (
	// debounce is the shortest time between two evaluations of a plan that changes of the cluster
	// cause.
	debounce = 5 * time.Second
	// followInterval is the longest time between two evaluations of a plan that is followed.
	followInterval = time.Minute
	// gatherInterval is how long facts are used that are not cached, while the update may be
	// started. Otherwise, they are read in each pass that followInterval causes: an administrator
	// or an upgrade waits for what they report to be fixed.
	gatherInterval = 10 * time.Minute
	// suggestInterval is the shortest time between two suggestions to the update informers that
	// they check for updates of their own software.
	suggestInterval = time.Hour
	// maxRequeue is the longest time between two passes over a plan, so a clock that was set back
	// delays nothing for longer.
	maxRequeue = 24 * time.Hour
	// conflictRequeue is when a plan is reconciled again whose cached object is outdated.
	conflictRequeue = time.Second
	// passTimeout bounds a pass over a plan.
	passTimeout = 2 * time.Minute
)

// Informers requests the insights of the update informers for plans.
type Informers interface {
	// AskPlan requests the insights of each enabled informer. Another call for a plan starts again.
	AskPlan(plan types.NamespacedName, request hooksv1alpha.UpdatePlanInsightsRequest)
	// PlanAnswers returns the answers of the informers that have finished, and whether they were
	// requested in this process.
	PlanAnswers(plan types.NamespacedName) ([]insight.Answer, bool)
	// ForgetPlan drops the request of a plan and its answers.
	ForgetPlan(plan types.NamespacedName)
}

// Reconciler keeps the status of UpdatePlans.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Prometheus is the source of alerts, and Metrics the source of the requests of pods; nil if none is
	// configured.
	Prometheus checks.AlertSource
	Metrics    checks.Metrics
	// LockNamespace is the namespace of the upgrade lock.
	LockNamespace string
	// Informers requests the insights of the update informers, and Changed receives an event when
	// one has answered.
	Informers Informers
	Changed   <-chan event.GenericEvent
	Events    notify.ObjectPublisher

	limits *checks.Sources // of what is read from the API server and Prometheus for all plans together
	mu     sync.Mutex
	states map[string]*state // by the name of the plan
	// suggestedAt is when an analysis last suggested that the informers check for updates of their
	// own software; zero means never.
	suggestedAt time.Time
}

// state holds what a process knows of a plan, beside its status.
type state struct {
	uid types.UID
	// round identifies the analysis that this process has begun; nil means none.
	round *round
	// insights are the insights of the plan; zero if the plan is not followed.
	insights insight.State
	// lastPass is when the plan was last evaluated.
	lastPass time.Time
	// notOfferedSince is since when the release is not offered; zero if it is.
	notOfferedSince time.Time
	// replaced is the version that the last write replaced.
	replaced manager.Replaced
}

// round is an analysis. The status reflects it as soon as it can be written.
type round struct {
	// fromRelease is the release of the cluster, and token the value of the annotation that requested the analysis.
	fromRelease, token string
	// requestedAt is when a user requested the analysis; zero if something else did.
	requestedAt time.Time
	// releaseChanged reports that the analysis is the first one for this release, and generation is the generation of
	// the spec then.
	releaseChanged bool
	generation     int64
	// asked reports that the update informers were asked.
	asked bool
	// facts are those that are not cached, and gatheredAt is when they were read; zero means never.
	facts      checks.PlanFacts
	gatheredAt time.Time
	// completedAt is when each informer had answered; zero if some have not.
	completedAt time.Time
}

func (r *round) complete() bool { return !r.completedAt.IsZero() }

// +kubebuilder:rbac:groups=config.openshift.io,resources=updateplans,verbs=list;watch;delete
// +kubebuilder:rbac:groups=config.openshift.io,resources=updateplans/status,verbs=patch
// +kubebuilder:rbac:groups=config.openshift.io,resources=updateinformers,verbs=list;watch
// +kubebuilder:rbac:groups=apiserver.openshift.io,resources=apirequestcounts,verbs=list
// +kubebuilder:rbac:groups=operator.openshift.io,resources=etcds,resourceNames=cluster,verbs=get
// +kubebuilder:rbac:groups=operators.coreos.com,resources=clusterserviceversions,verbs=list
// +kubebuilder:rbac:groups="",resources=configmaps,namespace=openshift-config-managed,resourceNames=admin-gates,verbs=get
// +kubebuilder:rbac:groups="",resources=configmaps,namespace=openshift-config,resourceNames=admin-acks,verbs=get
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=cluster-upgrade,verbs=get

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	plans := facts.UpdatePlans()
	plans.Requests = r.requestsOfPlan
	plans.Predicates = []predicate.Predicate{predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{})}
	reads := append([]manager.Kind{plans, facts.UpdateInformers()}, facts.Updates()...)
	for i := 1; i < len(reads); i++ {
		reads[i].Requests = r.requestsOfFollowed
		if gvk := reads[i].Object.GetObjectKind().GroupVersionKind(); gvk.Kind == "ClusterVersion" {
			reads[i].Requests = r.requestsOfAll
		}
		if _, is := reads[i].Object.(*updatev1beta1.UpdateInformer); is {
			reads[i].Predicates = []predicate.Predicate{predicate.GenerationChangedPredicate{}}
		}
	}
	return manager.Controller{
		Name: "updateplan",
		AddToScheme: []func(*runtime.Scheme) error{
			updatev1beta1.AddToScheme, apiserverv1.Install, operatorv1.Install, coordinationv1.AddToScheme, corev1.AddToScheme,
		},
		Reads:    reads,
		Channels: []manager.Channel{{Events: r.Changed, Requests: r.requestsOfFollowed}},
		Bind: func(c manager.Clients) error {
			r.limits = checks.NewSources(r.Clock)
			r.Client, r.Live = c.Client, c.Live
			return nil
		},
		Reconciler: r,
	}
}

// requestsOfPlan requests the reconcile of a plan, and of all others if it is a new one: there may
// be too many now.
func (r *Reconciler) requestsOfPlan(ctx context.Context, plan client.Object) []reconcile.Request {
	if r.peek(plan.GetName()) == nil {
		return r.requestsOfAll(ctx, plan)
	}
	return manager.Self(ctx, plan)
}

// requestsOfAll requests the reconcile of all plans.
func (r *Reconciler) requestsOfAll(ctx context.Context, _ client.Object) []reconcile.Request {
	return manager.Requests[*updatev1beta1.UpdatePlan](ctx, r.Client, &updatev1beta1.UpdatePlanList{}, nil)
}

// requestsOfFollowed requests the reconcile of the plans that are followed.
func (r *Reconciler) requestsOfFollowed(ctx context.Context, _ client.Object) []reconcile.Request {
	return manager.Requests(ctx, r.Client, &updatev1beta1.UpdatePlanList{}, func(plan *updatev1beta1.UpdatePlan) bool {
		s := r.peek(plan.Name)
		return s == nil || !s.insights.IsZero()
	})
}

// peek returns what is known of a plan; nil means nothing.
func (r *Reconciler) peek(name string) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[name]; s != nil {
		found := *s
		return &found
	}
	return nil
}

// stateOf returns what is known of a plan. A plan that was deleted and created is another one.
func (r *Reconciler) stateOf(plan *updatev1beta1.UpdatePlan) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.states == nil {
		r.states = map[string]*state{}
	}
	s := r.states[plan.Name]
	if s == nil || s.uid != plan.UID {
		s = &state{uid: plan.UID}
		r.states[plan.Name] = s
	}
	return s
}

func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	delete(r.states, name)
	r.mu.Unlock()
	r.Informers.ForgetPlan(types.NamespacedName{Name: name})
}

// Reconcile makes one pass over one plan. A pass over a plan that is dormant makes no request
// unless its spec has changed.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	var plan updatev1beta1.UpdatePlan
	err := r.Client.Get(ctx, req.NamespacedName, &plan)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("getting UpdatePlan %s: %w", req.Name, err)
	}
	if err != nil || plan.DeletionTimestamp != nil {
		r.forget(req.Name)
		return reconcile.Result{}, nil
	}
	if refused, err := manager.RefuseUndecodable(ctx, r.Client, r.Clock.Now(), &plan); refused || err != nil {
		return reconcile.Result{}, err
	}
	p := &pass{Reconciler: r, plan: &plan, published: plan.Status.DeepCopy(), state: r.stateOf(&plan), now: r.Clock.Now()}
	next, err := p.run(ctx)
	switch {
	case errors.Is(err, errOutdated), apierrors.IsConflict(err), apierrors.IsNotFound(err): // the cache is behind
		return reconcile.Result{RequeueAfter: conflictRequeue}, nil
	case err != nil:
		return reconcile.Result{}, err
	case next.IsZero():
		return reconcile.Result{RequeueAfter: maxRequeue}, nil
	}
	return reconcile.Result{RequeueAfter: min(max(next.Sub(p.now), time.Millisecond), maxRequeue)}, nil
}
