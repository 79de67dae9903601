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

// Controller declares a controller. The binary and the tests run it by this declaration alone:
// a read from the cache of a kind that is not in Reads fails. The RBAC markers stay beside the
// code that needs the permissions.
type Controller struct {
	// Name identifies the controller in logs and metrics. It is unique within a binary.
	Name string
	// AddToScheme registers the kinds that the controller reads and writes.
	AddToScheme []func(*runtime.Scheme) error
	// Reads lists the kinds that the controller reads from the cache. Each of them is watched.
	Reads []Kind
	// Channels lists sources of reconcile requests beside the watched objects.
	Channels []Channel
	// Bind hands the clients to the controller. It is called once, before anything is reconciled.
	Bind func(Clients) error
	// Reconciler reconciles one object.
	Reconciler reconcile.Reconciler
	// MaxConcurrentReconciles is the number of objects that are reconciled at a time; 0 means 1.
	MaxConcurrentReconciles int
	// RateLimiter returns the backoff after errors; nil means the default of controller-runtime.
	RateLimiter func() workqueue.TypedRateLimiter[reconcile.Request]
}

// Clients are the ways to the API server.
type Clients struct {
	// Client reads from the cache and writes to the API server.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
}

// Kind declares a kind of object that a controller reads from the cache. Controllers of one binary
// share the cache: those that read the same kind declare the same selection and transform.
type Kind struct {
	// Object is an empty object of the kind.
	Object client.Object
	// AddToScheme registers the kind; nil means the AddToScheme of a controller does.
	AddToScheme func(*runtime.Scheme) error
	// ClusterScoped declares that the objects have no namespace. It is declared, not discovered, so a
	// binary starts, and reports that it is not ready, while the API server does not serve the kind.
	ClusterScoped bool
	// Optional declares that the API server may not serve the kind, which a CustomResourceDefinition
	// defines. While it does not, reads of the kind fail with meta.NoKindMatchError, and with another
	// error until it is known whether it does. The binary is ready all the same, and watches the kind as
	// soon as it is served.
	Optional bool
	// Namespaces lists the namespaces whose objects are read; empty means all of them.
	Namespaces []string
	// Name is the name of the objects that are read; empty means any.
	Name string
	// Labels are labels that the objects that are read have; empty means any object.
	Labels labels.Set
	// HasLabel is the key of a label that the objects that are read have, whatever its value; empty means
	// any object.
	HasLabel string
	// Transform drops what is not read from an object before it is cached; nil drops the managed
	// fields.
	Transform toolscache.TransformFunc
	// Requests returns the requests that a change of an object causes, or nil if its changes cause
	// none.
	Requests handler.MapFunc
	// IsUrgent reports whether the requests that an object causes are served before all others that wait; nil means
	// no request is urgent.
	IsUrgent func(client.Object) bool
	// Predicates select the changes that cause requests. All of them must agree.
	Predicates []predicate.Predicate
}

// Selector returns the selector of the labels of the objects that are read; nil means any object.
// A key that is not a valid label selects none.
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

// Channel declares a source of reconcile requests that is not an object of the cluster.
type Channel struct {
	Events   <-chan event.GenericEvent
	Requests handler.MapFunc
}
