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
	// debounce is the minimum time between two evaluations of a plan caused by changes of the
	// cluster.
	debounce = 5 * time.Second
	// followInterval is the maximum time between two evaluations of a followed plan.
	followInterval = time.Minute
	// gatherInterval is how long uncached facts stay valid while the update is startable. While it
	// is not, they are read again after followInterval, because an administrator or an upgrade is
	// waiting for a fix to take effect.
	gatherInterval = 10 * time.Minute
	// suggestInterval is the minimum time between two suggestions that the update informers check
	// for updates of their own software.
	suggestInterval = time.Hour
	// maxRequeue is the maximum time between two passes over a plan. It limits delays if the clock
	// is set back.
	maxRequeue = 24 * time.Hour
	// conflictRequeue is the delay before a plan is reconciled again if its cached object is stale.
	conflictRequeue = time.Second
	// passTimeout limits a pass over a plan.
	passTimeout = 2 * time.Minute
)

// Informers requests the insights of the update informers for plans.
type Informers interface {
	// AskPlan requests the insights of each enabled informer. A second call for the same plan
	// starts over.
	AskPlan(plan types.NamespacedName, request hooksv1alpha.UpdatePlanInsightsRequest)
	// PlanAnswers returns the answers of the informers that have finished, and whether this process
	// has requested them.
	PlanAnswers(plan types.NamespacedName) ([]insight.Answer, bool)
	// ForgetPlan drops the request of a plan and its answers.
	ForgetPlan(plan types.NamespacedName)
}

// Reconciler maintains the status of UpdatePlans.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Prometheus is the source of alerts, and Metrics is the source of the resource requests of
	// pods. Both are optional.
	Prometheus checks.AlertSource
	Metrics    checks.MetricsQuerier
	// LockNamespace is the namespace of the upgrade lock.
	LockNamespace string
	// Informers requests the insights of the update informers. Changed receives an event when one
	// of them has answered.
	Informers Informers
	Changed   <-chan event.GenericEvent
	Events    notify.ObjectPublisher

	limits *checks.Sources // on reads from the API server and Prometheus, for all plans together
	mu     sync.Mutex
	states map[string]*state // by the name of the plan
	// suggestedAt is when an analysis last suggested that the informers check for updates of their
	// own software; zero if none has.
	suggestedAt time.Time
}

// state holds what this process knows about a plan beyond its status.
type state struct {
	uid types.UID
	// round identifies the analysis that this process has started; nil if it has not started one.
	round *round
	// insights holds the insights of the plan; zero if the plan is not being followed.
	insights insight.Store
	// lastPass is when the plan was last evaluated.
	lastPass time.Time
	// notOfferedSince is when the release ceased to be offered; zero if it is offered.
	notOfferedSince time.Time
	// replaced is the object version that the last write replaced.
	replaced manager.Replaced
}

// round is an analysis. The status shows it once it can be written.
type round struct {
	// fromRelease is the release of the cluster. token is the value of the annotation that
	// requested the analysis.
	fromRelease, token string
	// requestedAt is when a user requested the analysis; zero if no user did.
	requestedAt time.Time
	// releaseChanged reports that this is the first analysis for the release. generation is the
	// generation of the spec at the start of the analysis.
	releaseChanged bool
	generation     int64
	// asked reports that the update informers were asked.
	asked bool
	// facts holds the uncached facts, and gatheredAt when they were read; zero if they were not.
	facts      checks.PlanFacts
	gatheredAt time.Time
	// completedAt is when the last informer answered; zero if some have not answered.
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

// requestsOfPlan returns a request for a plan. For a new plan, it returns requests for all plans,
// because there may now be too many.
func (r *Reconciler) requestsOfPlan(ctx context.Context, plan client.Object) []reconcile.Request {
	if r.peek(plan.GetName()) == nil {
		return r.requestsOfAll(ctx, plan)
	}
	return manager.Self(ctx, plan)
}

// requestsOfAll returns requests for all plans.
func (r *Reconciler) requestsOfAll(ctx context.Context, _ client.Object) []reconcile.Request {
	return manager.Requests[*updatev1beta1.UpdatePlan](ctx, r.Client, &updatev1beta1.UpdatePlanList{}, nil)
}

// requestsOfFollowed returns requests for the plans that are being followed.
func (r *Reconciler) requestsOfFollowed(ctx context.Context, _ client.Object) []reconcile.Request {
	return manager.Requests(ctx, r.Client, &updatev1beta1.UpdatePlanList{}, func(plan *updatev1beta1.UpdatePlan) bool {
		s := r.peek(plan.Name)
		return s == nil || !s.insights.IsZero()
	})
}

// peek returns a copy of the state of a plan; nil if there is none.
func (r *Reconciler) peek(name string) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.states[name]; s != nil {
		found := *s
		return &found
	}
	return nil
}

// stateOf returns the state of a plan. A re-created plan gets a new state.
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

// Reconcile makes one pass over one plan. For a dormant plan, it makes no request unless the spec
// has changed.
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
	case errors.Is(err, errOutdated), apierrors.IsConflict(err), apierrors.IsNotFound(err): // the cache is stale
		return reconcile.Result{RequeueAfter: conflictRequeue}, nil
	case err != nil:
		return reconcile.Result{}, err
	case next.IsZero():
		return reconcile.Result{RequeueAfter: maxRequeue}, nil
	}
	return reconcile.Result{RequeueAfter: min(max(next.Sub(p.now), time.Millisecond), maxRequeue)}, nil
}
