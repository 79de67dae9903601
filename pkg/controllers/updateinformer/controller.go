// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/facts"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

const (
	// workers is the maximum number of informers that are queried concurrently. There cannot be
	// more informers, so one that hangs does not delay the others.
	workers = 64
	// passTimeout limits a pass over one informer.
	passTimeout = 45 * time.Second
)

// Metrics observes the requests to informers.
type Metrics interface {
	// ObserveInformerRequest counts a request to an informer.
	ObserveInformerRequest(informer, handler, outcome string)
	// SetInformerReachable records whether an informer is usable.
	SetInformerReachable(informer string, reachable bool)
	// DeleteInformer removes the series of an informer.
	DeleteInformer(informer string)
}

// Reconciler queries update informers.
type Reconciler struct {
	*Exchange

	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live  client.Reader
	Clock clock.PassiveClock
	// ServiceAccount is the ServiceAccount of the program.
	ServiceAccount types.NamespacedName
	// Token returns a token for the audience of an informer.
	Token func(ctx context.Context, audience string) (string, error)
	// ServiceCA returns the bundle of OpenShift's service CA, in PEM; empty if there is none.
	ServiceCA func() ([]byte, error)
	// Request returns the description of the update in progress. It reads from the cache.
	Request func(ctx context.Context) (hooksv1alpha.RequestSpec, error)
	Events  notify.ObjectPublisher
	Metrics Metrics

	mu     sync.Mutex
	states map[string]*state // by informer
}

// +kubebuilder:rbac:groups=config.openshift.io,resources=updateinformers,verbs=list;watch
// +kubebuilder:rbac:groups=config.openshift.io,resources=updateinformers/status,verbs=patch
// +kubebuilder:rbac:groups=config.openshift.io,resources=updatestatuses,verbs=list;watch
// +kubebuilder:rbac:groups="",resources=services,verbs=list;watch

// Controller declares the controller.
func (r *Reconciler) Controller() manager.Controller {
	informers, status := facts.UpdateInformers(), facts.UpdateStatus()
	informers.Requests = manager.Self
	status.Requests, status.Predicates = r.mapToAll, []predicate.Predicate{demandChangedPredicate{clock: r.Clock}}
	return manager.Controller{
		Name: "updateinformer",
		Reads: []manager.Kind{
			informers, status,
			{Object: &corev1.Service{}, AddToScheme: corev1.AddToScheme, Transform: stripService, Requests: r.mapService, Predicates: []predicate.Predicate{serviceChangedPredicate{}}},
		},
		Channels: []manager.Channel{{Events: r.asked, Requests: r.mapToAll}},
		Bind: func(c manager.Clients) error {
			r.Client, r.Live = c.Client, c.Live
			return nil
		},
		Reconciler: r, MaxConcurrentReconciles: workers,
	}
}

// mapToAll returns requests for all informers.
func (r *Reconciler) mapToAll(ctx context.Context, _ client.Object) []reconcile.Request {
	return manager.Requests[*updatev1beta1.UpdateInformer](ctx, r.Client, &updatev1beta1.UpdateInformerList{}, nil)
}

// mapService returns requests for the informers behind a Service.
func (r *Reconciler) mapService(ctx context.Context, service client.Object) []reconcile.Request {
	all := client.ObjectKeyFromObject(service) == apiServerService
	return manager.Requests(ctx, r.Client, &updatev1beta1.UpdateInformerList{}, func(informer *updatev1beta1.UpdateInformer) bool {
		ref := informer.Spec.ClientConfig.Service
		return all || ref.Namespace == service.GetNamespace() && ref.Name == service.GetName()
	})
}

// demandChangedPredicate passes changes of the UpdateStatus that affect how often informers are
// queried.
type demandChangedPredicate struct {
	predicate.Funcs

	clock clock.PassiveClock
}

// Update compares two states of the UpdateStatus.
func (p demandChangedPredicate) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*updatev1beta1.UpdateStatus)
	after, okAfter := e.ObjectNew.(*updatev1beta1.UpdateStatus)
	if !ok || !okAfter {
		return true
	}
	now := p.clock.Now()
	demand := func(s *updatev1beta1.UpdateStatus) map[string]time.Duration {
		all := map[string]time.Duration{"": pollInterval(s.Status, "", now)}
		for _, retained := range s.Status.AfterUpdate {
			all[retained.UpdateInformer] = pollInterval(s.Status, retained.UpdateInformer, now)
		}
		return all
	}
	return !equality.Semantic.DeepEqual(demand(before), demand(after))
}

// serviceChangedPredicate passes changes of a Service that affect how its informer is reached.
type serviceChangedPredicate struct{ predicate.Funcs }

// Update compares two stripped Services.
func (serviceChangedPredicate) Update(e event.UpdateEvent) bool {
	before, ok := e.ObjectOld.(*corev1.Service)
	after, okAfter := e.ObjectNew.(*corev1.Service)
	return !ok || !okAfter || !equality.Semantic.DeepEqual(before.Spec, after.Spec)
}

// Reconcile makes one pass over one informer.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passTimeout)
	defer cancel()
	var informer updatev1beta1.UpdateInformer
	switch err := r.Client.Get(ctx, req.NamespacedName, &informer); {
	case apierrors.IsNotFound(err):
		r.forget(req.Name)
		return reconcile.Result{}, nil
	case err != nil:
		return reconcile.Result{}, fmt.Errorf("getting UpdateInformer %s: %w", req.Name, err)
	}
	if insight.IsBuiltIn(informer.Name) { // validation rejects the name, but the object may be older than the rule
		return reconcile.Result{}, nil
	}
	if refused, err := manager.RefuseUndecodable(ctx, r.Client, r.Clock.Now(), &informer); refused || err != nil {
		return reconcile.Result{}, err
	}
	p := &pass{Reconciler: r, informer: &informer, state: r.stateOf(&informer), now: r.Clock.Now()}
	if !informer.IsEnabled() {
		return reconcile.Result{}, p.disable(ctx)
	}
	if err := p.query(ctx); err != nil {
		return reconcile.Result{}, err
	}
	if err := p.publish(ctx); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: p.requeueAfter()}, nil
}

// stateOf returns the state of an informer. A re-created informer gets a new state.
func (r *Reconciler) stateOf(informer *updatev1beta1.UpdateInformer) *state {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.states == nil {
		r.states = map[string]*state{}
	}
	s := r.states[informer.Name]
	if s == nil || s.uid != informer.UID {
		s.close()
		s = newState(informer)
		r.states[informer.Name] = s
	}
	return s
}

// forget drops everything about a deleted informer.
func (r *Reconciler) forget(name string) {
	r.mu.Lock()
	s, known := r.states[name]
	delete(r.states, name)
	r.mu.Unlock()
	s.close()
	r.dropInformer(name)
	r.Metrics.DeleteInformer(name)
	if known {
		r.setAnswer(insight.Answer{Informer: name, Result: insight.Deleted, Message: "the UpdateInformer was deleted", At: r.Clock.Now()})
	}
}
