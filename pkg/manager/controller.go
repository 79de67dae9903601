// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Controller declares a controller. Both the binary and the tests run it solely on the basis of
// this declaration: reading a kind from the cache fails unless Reads lists it. RBAC markers stay
// next to the code that needs the permissions.
type Controller struct {
	// Name identifies the controller in logs and metrics. It must be unique within a binary.
	Name string
	// AddToScheme registers the kinds that the controller reads and writes.
	AddToScheme []func(*runtime.Scheme) error
	// Reads lists the kinds that the controller reads from the cache. All of them are watched.
	Reads []Kind
	// Channels lists additional sources of reconcile requests.
	Channels []Channel
	// Bind passes the clients to the controller. It is called once, before the first reconcile.
	Bind func(Clients) error
	// Reconciler reconciles one object.
	Reconciler reconcile.Reconciler
	// MaxConcurrentReconciles is the number of objects that are reconciled concurrently. It defaults
	// to 1.
	MaxConcurrentReconciles int
	// RateLimiter returns the backoff after errors. It defaults to controller-runtime's rate limiter.
	RateLimiter func() workqueue.TypedRateLimiter[reconcile.Request]
}

// Clients are the clients of the API server.
type Clients struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads directly from the API server.
	Live client.Reader
}

// Kind declares a kind of objects that a controller reads from the cache. The controllers of a
// binary share the cache, so they must declare the same selection and transform for the same kind.
type Kind struct {
	// Object is an empty object of the kind.
	Object client.Object
	// AddToScheme registers the kind. It may be nil if a controller's AddToScheme does so.
	AddToScheme func(*runtime.Scheme) error
	// ClusterScoped declares that the objects have no namespace. Because it is declared rather than
	// discovered, a binary can start, and report that it is not ready, while the API server does not
	// serve the kind.
	ClusterScoped bool
	// Optional declares that the API server may not serve the kind, whose CustomResourceDefinition may
	// be missing. Until it is known whether the kind is served, reads fail; if it is not served, they
	// fail with meta.NoKindMatchError. This does not affect the readiness of the binary, and the kind
	// is watched as soon as it is served.
	Optional bool
	// Namespaces lists the namespaces of the objects to read. If it is empty, objects in all
	// namespaces are read.
	Namespaces []string
	// Name is the name of the objects to read. If it is empty, objects with any name are read.
	Name string
	// Labels selects the objects to read by labels. If it is empty, all objects are selected.
	Labels labels.Set
	// HasLabel selects the objects to read that have a label with this key and any value. If it is
	// empty, all objects are selected.
	HasLabel string
	// Transform removes unused fields from an object before it is cached. By default, the managed
	// fields are removed.
	Transform toolscache.TransformFunc
	// Requests returns the reconcile requests for a changed object. If it is nil, changes do not
	// trigger reconciles.
	Requests handler.MapFunc
	// IsUrgent reports whether requests for the object are handled before all others in the queue. If
	// it is nil, no request is urgent.
	IsUrgent func(client.Object) bool
	// Predicates select the changes that trigger requests. All of them must return true.
	Predicates []predicate.Predicate
}

// Selector returns the label selector of the objects to read, or nil for all objects. If the key is
// not a valid label, no objects are selected.
func (k *Kind) Selector() labels.Selector {
	if len(k.Labels) == 0 && k.HasLabel == "" {
		return nil
	}
	if k.HasLabel == "" {
		return k.Labels.AsSelector()
	}
	exists, err := labels.NewRequirement(k.HasLabel, selection.Exists, nil)
	if err != nil {
		return labels.Nothing()
	}
	return k.Labels.AsSelector().Add(*exists)
}

// Channel declares a source of reconcile requests other than the objects of the cluster.
type Channel struct {
	Events   <-chan event.GenericEvent
	Requests handler.MapFunc
}
