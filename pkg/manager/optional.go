// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// definitionKind is the kind of CustomResourceDefinitions.
var definitionKind = schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"}

// definitions declares the CustomResourceDefinitions. Only their metadata is cached.
func definitions() Kind {
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(definitionKind)
	return Kind{Object: partial, ClusterScoped: true, Transform: stripDefinition}
}

// stripDefinition removes everything that is not needed to identify a revision of a
// CustomResourceDefinition.
func stripDefinition(obj any) (any, error) {
	if partial, ok := obj.(*metav1.PartialObjectMetadata); ok {
		partial.ObjectMeta = metav1.ObjectMeta{
			Name: partial.Name, UID: partial.UID, ResourceVersion: partial.ResourceVersion, Generation: partial.Generation,
		}
	}
	return obj, nil
}

// optionalKinds watches the kinds that the API server may not serve. A kind is watched from the
// time when the API server serves it until its CustomResourceDefinition is deleted or serves only
// other versions. Apart from the watches, this costs one discovery request per change of a
// CustomResourceDefinition, because the metadata does not contain the versions.
type optionalKinds struct {
	cache  cache.Cache
	scheme *runtime.Scheme
	log    logr.Logger
	// serves asks the API server whether it serves a version of a kind.
	serves func(context.Context, schema.GroupVersionKind) (bool, error)
	queue  workqueue.TypedRateLimitingInterface[string] // names of CustomResourceDefinitions

	mu    sync.Mutex
	kinds []*optionalKind
	// observed reports whether the existing CustomResourceDefinitions have been observed. It is nil
	// before the watch starts.
	observed toolscache.InformerSynced
}

// optionalKind is a kind that the API server may not serve.
type optionalKind struct {
	Kind

	gvk        schema.GroupVersionKind
	definition string // name of its CustomResourceDefinition
	revision   string // of its CustomResourceDefinition; empty if it does not exist
	answered   string // the last revision for which the API server was asked
	served     bool
	observers  []func(served bool)
}

// optionalWatch is one controller's watch of an optional kind.
type optionalWatch struct {
	kinds *optionalKinds
	kind  Kind
}

// newOptionalKinds returns the optional kinds among kinds, or nil if there are none.
func newOptionalKinds(scheme *runtime.Scheme, kinds []Kind) (*optionalKinds, error) {
	o := &optionalKinds{scheme: scheme, queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, longestRetry))}
	for _, kind := range kinds {
		if !kind.Optional {
			continue
		}
		gvk, err := apiutil.GVKForObject(kind.Object, scheme)
		if err != nil {
			return nil, fmt.Errorf("declaring an optional kind: %w", err)
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		o.kinds = append(o.kinds, &optionalKind{Kind: kind, gvk: gvk, definition: plural.Resource + "." + gvk.Group})
	}
	if len(o.kinds) == 0 {
		return nil, nil
	}
	return o, nil
}

// A CustomResourceDefinition is served shortly after its creation, so discovery is retried. After
// two minutes of retries, only a change of the definition can help.
const (
	firstRetry   = 100 * time.Millisecond
	longestRetry = time.Minute
	retries      = 10
)

// Start watches the CustomResourceDefinitions until the context ends.
func (o *optionalKinds) Start(ctx context.Context) error {
	defer context.AfterFunc(ctx, o.queue.ShutDown)()
	informer, err := o.cache.GetInformer(ctx, definitions().Object)
	if err != nil {
		return fmt.Errorf("watching the CustomResourceDefinitions: %w", err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { o.observe(obj, true) },
		// It may have been deleted and recreated between two events.
		UpdateFunc: func(_, obj any) { o.observe(obj, true) },
		DeleteFunc: func(obj any) { o.observe(obj, false) },
	})
	if err != nil {
		return fmt.Errorf("watching the CustomResourceDefinitions: %w", err)
	}
	o.mu.Lock()
	o.observed = registration.HasSynced
	o.mu.Unlock()
	for o.next(ctx) {
	}
	return nil
}

// synced reports whether it is known that the kind is not served, or its cache is synced.
func (o *optionalKinds) synced(ctx context.Context, kind Kind) bool {
	err := o.check(ctx, kind.Object)
	_, otherVersion := errors.AsType[*otherVersionError](err)
	return err == nil || otherVersion || meta.IsNoMatchError(err)
}

// observe records the current revision of a CustomResourceDefinition.
func (o *optionalKinds) observe(obj any, exists bool) {
	if deleted, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
		obj = deleted.Obj
	}
	definition, ok := obj.(client.Object)
	if !ok {
		return
	}
	revision := ""
	if exists {
		revision = fmt.Sprintf("%s/%d", definition.GetUID(), definition.GetGeneration())
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, kind := range o.kinds {
		if kind.definition == definition.GetName() && (kind.revision != revision || !kind.served) {
			kind.revision = revision
			o.queue.Add(kind.definition)
		}
	}
}

// next handles the next change of a CustomResourceDefinition. It returns false when the queue has
// been shut down.
func (o *optionalKinds) next(ctx context.Context) bool {
	definition, ended := o.queue.Get()
	if ended {
		return false
	}
	defer o.queue.Done(definition)
	o.mu.Lock()
	kinds := slices.Clone(o.kinds)
	o.mu.Unlock()
	again := false
	for _, kind := range kinds {
		if kind.definition != definition {
			continue
		}
		settled, err := o.follow(ctx, kind)
		if err != nil && ctx.Err() == nil {
			o.log.Error(err, "asking whether an optional kind is served", "kind", kind.gvk.String())
		}
		last := o.queue.NumRequeues(definition) >= retries
		if err == nil && !settled && last {
			o.log.Info("the CustomResourceDefinition of an optional kind does not serve its version", "kind", kind.gvk.String())
		}
		again = again || err != nil || !settled && !last
	}
	if again {
		o.queue.AddRateLimited(definition)
	} else {
		o.queue.Forget(definition)
	}
	return true
}

// follow starts or stops watching a kind, depending on whether the API server serves it. It reports
// whether the result is consistent with the CustomResourceDefinition.
func (o *optionalKinds) follow(ctx context.Context, kind *optionalKind) (settled bool, err error) {
	o.mu.Lock()
	revision := kind.revision
	o.mu.Unlock()
	served := false
	if revision != "" {
		if served, err = o.serves(ctx, kind.gvk); err != nil {
			return false, err
		}
	}
	for _, notify := range o.change(ctx, kind, revision, served) {
		notify(served) // without the lock, because it may read a kind
	}
	return served || revision == "", nil
}

// change starts or stops watching a kind. It returns the functions to notify if there was a change.
func (o *optionalKinds) change(ctx context.Context, kind *optionalKind, revision string, served bool) []func(served bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kind.answered = revision
	if kind.served == served {
		return nil
	}
	kind.served = served
	o.log.Info("an optional kind changed", "kind", kind.gvk.String(), "served", served)
	if served {
		o.startKind(ctx, kind)
	} else if err := o.cache.RemoveInformer(ctx, kind.Object); err != nil {
		o.log.Error(err, "ending the watch of an optional kind", "kind", kind.gvk.String())
	}
	return slices.Clone(kind.observers)
}

// discoverKinds returns a function that asks the API server whether it serves a version of a kind.
func discoverKinds(mgr ctrl.Manager) (func(context.Context, schema.GroupVersionKind) (bool, error), error) {
	api, err := discovery.NewDiscoveryClientForConfigAndClient(mgr.GetConfig(), mgr.GetHTTPClient())
	if err != nil {
		return nil, fmt.Errorf("setting up discovery: %w", err)
	}
	return func(ctx context.Context, gvk schema.GroupVersionKind) (bool, error) {
		ctx, cancel := context.WithTimeout(ctx, connectionTimeout)
		defer cancel()
		var list metav1.APIResourceList
		err := api.RESTClient().Get().AbsPath("/apis", gvk.Group, gvk.Version).Do(ctx).Into(&list)
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Kind == gvk.Kind }), err
	}, nil
}

// startKind starts watching a kind, even if no controller needs its events.
func (o *optionalKinds) startKind(ctx context.Context, kind *optionalKind) {
	if _, err := o.cache.GetInformer(ctx, kind.Object, cache.BlockUntilSynced(false)); err != nil {
		o.log.Error(err, "watching an optional kind", "kind", kind.gvk.String())
	}
}

// Start watches the kind with a controller's queue while the kind is served. When it is no longer
// served, Start adds the requests that deletions of the objects would cause, because a watch that
// ends does not report deletions.
func (w *optionalWatch) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.kinds.mu.Lock()
	defer w.kinds.mu.Unlock()
	i := slices.IndexFunc(w.kinds.kinds, func(k *optionalKind) bool { return sameObject(k.Object, w.kind.Object) })
	if i < 0 || w.kind.Requests == nil {
		return nil
	}
	observe := func(served bool) {
		if !served {
			for _, request := range w.kind.Requests(ctx, w.kind.Object) {
				queue.Add(request)
			}
			return
		}
		watch := source.Kind(w.kinds.cache, w.kind.Object, w.kind.handler(), w.kind.Predicates...)
		if err := watch.Start(ctx, queue); err != nil {
			w.kinds.log.Error(err, "watching an optional kind", "kind", w.kinds.kinds[i].gvk.String())
		}
	}
	w.kinds.kinds[i].observers = append(w.kinds.kinds[i].observers, observe)
	if w.kinds.kinds[i].served {
		observe(true)
	}
	return nil
}

// syncTimeout limits how long the start of a controller waits for an optional kind. If its cache
// cannot sync, for example because of a missing permission, the controller starts anyway.
const syncTimeout = 30 * time.Second

// WaitForSync waits until the cache of the kind is synced, if the kind is served. A controller that
// starts earlier would conclude that the kind is not served.
func (w *optionalWatch) WaitForSync(ctx context.Context) error {
	const interval = 50 * time.Millisecond
	err := wait.PollUntilContextTimeout(ctx, interval, syncTimeout, true, func(ctx context.Context) (bool, error) {
		return w.kinds.synced(ctx, w.kind), nil
	})
	if err != nil && ctx.Err() == nil {
		w.kinds.log.Info("starting without an optional kind, whose cache is not synced", "kind", fmt.Sprintf("%T", w.kind.Object))
		return nil
	}
	return err
}

// known reports whether the existing CustomResourceDefinitions have been observed.
func (o *optionalKinds) known() bool {
	o.mu.Lock()
	observed := o.observed
	o.mu.Unlock()
	return observed != nil && observed()
}

// check returns an error if objects of an optional kind currently cannot be read from the cache,
// since reading from a cache that does not sync would block. The error is a meta.NoKindMatchError
// only if the kind is known not to exist.
func (o *optionalKinds) check(ctx context.Context, obj runtime.Object) error {
	gvk, err := apiutil.GVKForObject(obj, o.scheme)
	if err != nil {
		return err
	}
	if _, ok := obj.(client.ObjectList); ok {
		gvk.Kind = gvk.Kind[:max(0, len(gvk.Kind)-len("List"))]
	}
	known := o.known()
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.kinds, func(k *optionalKind) bool { return k.gvk == gvk })
	if i < 0 {
		return nil
	}
	kind := o.kinds[i]
	switch {
	case !kind.served && !known:
		return fmt.Errorf("not known yet whether %s is served: the watch of CustomResourceDefinitions has not synced", gvk.Kind)
	case !kind.served && kind.revision == "":
		return &meta.NoKindMatchError{GroupKind: gvk.GroupKind(), SearchedVersions: []string{gvk.Version}}
	case !kind.served && kind.answered != kind.revision:
		return fmt.Errorf("not known yet whether %s is served: the API server has not answered", gvk.Kind)
	case !kind.served:
		return &otherVersionError{kind.definition, gvk.Version}
	}
	informer, err := o.cache.GetInformer(ctx, kind.Object, cache.BlockUntilSynced(false))
	if err == nil && !informer.HasSynced() {
		err = fmt.Errorf("the cache of %s is not synced yet", gvk.Kind)
	}
	return err
}

// otherVersionError is returned if a kind is defined, and may have objects, but not in the version
// that is read.
type otherVersionError struct {
	definition, version string
}

// Error names the CustomResourceDefinition and the version.
func (e *otherVersionError) Error() string {
	return fmt.Sprintf("CustomResourceDefinition %s does not serve version %s: install a release of its owner or of this program that has a version in common", e.definition, e.version)
}

// client returns a client whose lists are complete and whose reads of optional kinds fail while the
// kinds are not served.
func (o *optionalKinds) client(c client.Client) client.Client {
	c = WholeLists(c)
	if o == nil {
		return c
	}
	return &optionalClient{Client: c, kinds: o}
}

// optionalClient is a client that also reads optional kinds.
type optionalClient struct {
	client.Client

	kinds *optionalKinds
}

// Get reads an object from the cache.
func (c *optionalClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	if err := c.kinds.check(ctx, obj); err != nil {
		return err
	}
	return c.Client.Get(ctx, key, obj, opts...)
}

// List reads objects from the cache.
func (c *optionalClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := c.kinds.check(ctx, list); err != nil {
		return err
	}
	return c.Client.List(ctx, list, opts...)
}
