// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// fieldOwner is the field manager that applies the parameters.
const fieldOwner = client.FieldOwner("managed-upgrade-operator-clusterversion")

// maxRequeue is the longest time between two passes. It limits the delay of an overlay if the clock
// is set back.
const maxRequeue = time.Hour

// Reconciler syncs the ClusterVersion of OpenShift.
type Reconciler struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// Namespace is the namespace of the cluster's upgrade lock.
	Namespace string
	// WatchNamespaces lists the namespaces whose ClusterVersion is reconciled. Defaults to all.
	WatchNamespaces []string
	Events          notify.EventPublisher
	Metrics         *metrics.ClusterVersions

	mu     sync.Mutex
	states map[types.UID]*state
}

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=clusterversions,namespace=managed-upgrade-operator,verbs=list;watch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=clusterversions/status,namespace=managed-upgrade-operator,verbs=patch
// +kubebuilder:rbac:groups=config.openshift.io,resources=clusterversions,resourceNames=version,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,namespace=managed-upgrade-operator,resourceNames=cluster-upgrade,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=events,verbs=create

// Controller declares the controller. A request without a namespace is for OpenShift's object.
func (r *Reconciler) Controller() manager.Controller {
	return manager.Controller{
		Name:        "clusterversion",
		AddToScheme: []func(*runtime.Scheme) error{maintenancev1beta1.AddToScheme, configv1.Install, coordinationv1.AddToScheme, corev1.AddToScheme},
		Reads: []manager.Kind{
			{
				Object: &maintenancev1beta1.ClusterVersion{}, Namespaces: r.WatchNamespaces, Name: maintenancev1beta1.ClusterVersionName,
				Transform: facts.StripMaintenance, Requests: r.requestsAll,
			},
			{
				Object: &configv1.ClusterVersion{}, ClusterScoped: true, Name: clusterstate.VersionKey.Name,
				Transform: clusterstate.StripClusterVersion, Requests: r.requestsAll,
			},
			{Object: &coordinationv1.Lease{}, Namespaces: []string{r.Namespace}, Name: lock.Name, Requests: r.requestsAll},
		},
		Bind: func(c manager.Clients) error {
			r.Client, r.Live = c.Client, c.Live
			return nil
		},
		Reconciler: r,
		RateLimiter: func() workqueue.TypedRateLimiter[reconcile.Request] {
			return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](200*time.Millisecond, maxBackoff)
		},
	}
}

// requestsAll returns requests for all ClusterVersions, for the changed object (even if it was
// deleted), and for OpenShift's object.
func (r *Reconciler) requestsAll(ctx context.Context, changed client.Object) []reconcile.Request {
	requests := []reconcile.Request{{NamespacedName: clusterstate.VersionKey}}
	if _, is := changed.(*maintenancev1beta1.ClusterVersion); is {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(changed)})
	}
	all, err := r.list(ctx)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing what a change may concern")
		return requests
	}
	for i := range all {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all[i])}
		if !slices.Contains(requests, request) {
			requests = append(requests, request)
		}
	}
	return requests
}

// list returns the ClusterVersions, oldest first. The oldest one applies.
func (r *Reconciler) list(ctx context.Context) ([]maintenancev1beta1.ClusterVersion, error) {
	var list maintenancev1beta1.ClusterVersionList
	if err := r.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing the ClusterVersions: %w", err)
	}
	slices.SortFunc(list.Items, func(a, b maintenancev1beta1.ClusterVersion) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace))
	})
	return list.Items, nil
}

// Reconcile syncs OpenShift's object with one ClusterVersion. It makes no request unless one of the
// two has changed or an overlay is due.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	current, err := r.openShift(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	if req.Namespace == "" {
		r.observeUpgrading(current)
		return reconcile.Result{}, nil
	}
	all, err := r.list(ctx)
	if err != nil {
		return reconcile.Result{}, err
	}
	r.forgetOthers(all)
	i := slices.IndexFunc(all, func(v maintenancev1beta1.ClusterVersion) bool {
		return client.ObjectKeyFromObject(&v) == req.NamespacedName
	})
	if i < 0 || all[i].DeletionTimestamp != nil {
		return reconcile.Result{}, nil
	}
	now := r.Clock.Now()
	if refused, err := manager.RefuseUndecodable(ctx, r.Client, now, &all[i]); refused || err != nil {
		return reconcile.Result{}, err
	}
	s := &scope{Reconciler: r, object: &all[i], first: &all[0], current: current, now: now, state: r.stateOf(&all[i], now)}
	next, err := s.reconcile(ctx)
	switch {
	case apierrors.IsConflict(err): // the cache will soon have the change of the other client
		return reconcile.Result{RequeueAfter: time.Second}, nil
	case err != nil:
		return reconcile.Result{}, err
	case next.IsZero():
		return reconcile.Result{}, nil
	}
	return reconcile.Result{RequeueAfter: min(max(next.Sub(now), time.Millisecond), maxRequeue)}, nil
}

// openShift returns OpenShift's object from the cache, or nil if there is none.
func (r *Reconciler) openShift(ctx context.Context) (*configv1.ClusterVersion, error) {
	var version configv1.ClusterVersion
	if err := r.Client.Get(ctx, clusterstate.VersionKey, &version); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("getting the ClusterVersion of OpenShift: %w", err)
	}
	return &version, nil
}

func (r *Reconciler) observeUpgrading(current *configv1.ClusterVersion) {
	if current == nil {
		r.Metrics.ClearUpgrading()
		return
	}
	_, updating := clusterstate.VersionOf(current).UpdatingTo()
	r.Metrics.SetUpgrading(updating)
}

// stateOf returns the state of a ClusterVersion. After a restart, it restores the backoff of the
// corrections from the status.
func (r *Reconciler) stateOf(object *maintenancev1beta1.ClusterVersion, now time.Time) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.states == nil {
		r.states = map[types.UID]*state{}
	}
	s := r.states[object.UID]
	switch {
	case s == nil:
		s = &state{generation: object.Generation}
		if isContested(object) {
			s.corrections = corrections{count: maxCorrections, last: now}
		}
		r.states[object.UID] = s
	case s.generation != object.Generation: // the user changed it, perhaps to resolve the conflict
		s.generation, s.corrections, s.failures = object.Generation, corrections{}, failures{}
	}
	s.corrections.settle(now)
	return s
}

// forgetOthers drops the state of ClusterVersions that no longer exist.
func (r *Reconciler) forgetOthers(all []maintenancev1beta1.ClusterVersion) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for uid := range r.states {
		if !slices.ContainsFunc(all, func(v maintenancev1beta1.ClusterVersion) bool { return v.UID == uid }) {
			delete(r.states, uid)
			r.Events.Reset(string(uid))
		}
	}
}
