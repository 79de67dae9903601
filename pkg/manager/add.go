// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Scheme returns a scheme with the kinds that the controllers read and write.
func Scheme(controllers ...Controller) (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, c := range controllers {
		adds := slices.Clone(c.AddToScheme)
		for _, kind := range c.Reads {
			if kind.AddToScheme != nil {
				adds = append(adds, kind.AddToScheme)
			}
		}
		for _, add := range adds {
			if err := add(scheme); err != nil {
				return nil, fmt.Errorf("registering the kinds of controller %s: %w", c.Name, err)
			}
		}
	}
	return scheme, nil
}

// Kinds returns the kinds that the controllers read from the cache, without duplicates. It is an
// error if two controllers declare different selections or transforms for the same kind.
func Kinds(controllers ...Controller) ([]Kind, error) {
	var kinds []Kind
	var errs []error
	for _, c := range controllers {
		for _, kind := range c.Reads {
			same := func(k Kind) bool { return sameObject(k.Object, kind.Object) }
			i := slices.IndexFunc(kinds, same)
			switch {
			case i < 0:
				kinds = append(kinds, kind)
			case !sameCache(kinds[i], kind):
				errs = append(errs, fmt.Errorf("controller %s declares another selection or transform of %T than the one before", c.Name, kind.Object))
			}
		}
	}
	if slices.ContainsFunc(kinds, func(k Kind) bool { return k.Optional }) {
		kinds = append(kinds, definitions())
	}
	return kinds, errors.Join(errs...)
}

// sameObject reports whether two objects have the same kind and Go type. Objects without a specific
// Go type contain their kind.
func sameObject(a, b client.Object) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) &&
		a.GetObjectKind().GroupVersionKind() == b.GetObjectKind().GroupVersionKind()
}

func sameCache(a, b Kind) bool {
	return a.Optional == b.Optional && a.ClusterScoped == b.ClusterScoped && a.Name == b.Name && maps.Equal(a.Labels, b.Labels) && a.HasLabel == b.HasLabel && slices.Equal(a.Namespaces, b.Namespaces) &&
		reflect.ValueOf(a.Transform).Pointer() == reflect.ValueOf(b.Transform).Pointer()
}

// CacheOptions returns options for a cache that holds exactly the declared kinds. Reading any other
// kind fails.
func CacheOptions(kinds []Kind) cache.Options {
	byObject := map[client.Object]cache.ByObject{}
	for _, kind := range kinds {
		var by cache.ByObject
		by.Transform = kind.Transform
		if kind.Name != "" {
			by.Field = fields.OneTermEqualSelector("metadata.name", kind.Name)
		}
		if selector := kind.Selector(); selector != nil {
			by.Label = selector
		}
		for _, namespace := range kind.Namespaces {
			if by.Namespaces == nil {
				by.Namespaces = map[string]cache.Config{}
			}
			by.Namespaces[namespace] = cache.Config{}
		}
		byObject[kind.Object] = by
	}
	return cache.Options{
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            cache.TransformStripManagedFields(),
		ByObject:                    byObject,
	}
}

// mapperProvider returns the provider of a RESTMapper that knows the declared kinds and their lists
// without discovery. A cache of several namespaces maps the list kind on every read.
func mapperProvider(scheme *runtime.Scheme, kinds []Kind) func(*rest.Config, *http.Client) (meta.RESTMapper, error) {
	return func(config *rest.Config, httpClient *http.Client) (meta.RESTMapper, error) {
		declared := meta.NewDefaultRESTMapper(scheme.PrioritizedVersionsAllGroups())
		for _, kind := range kinds {
			gvk, err := apiutil.GVKForObject(kind.Object, scheme)
			if err != nil {
				return nil, err
			}
			scope := meta.RESTScopeNamespace
			if kind.ClusterScoped {
				scope = meta.RESTScopeRoot
			}
			declared.Add(gvk, scope)
			declared.Add(gvk.GroupVersion().WithKind(gvk.Kind+"List"), scope)
		}
		discovered, err := apiutil.NewDynamicRESTMapper(config, httpClient)
		if err != nil {
			return nil, err
		}
		return meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{declared, &oneAtATimeMapper{RESTMapper: discovered}}}, nil
	}
}

// oneAtATimeMapper maps one kind at a time. The mapper of controller-runtime discovers all APIs in
// two requests for the first kind, but kinds that are mapped meanwhile do not wait for the result:
// each makes a request of its own.
type oneAtATimeMapper struct {
	meta.RESTMapper
	mu sync.Mutex
}

func (m *oneAtATimeMapper) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.RESTMapper.RESTMapping(kind, versions...)
}

// Add adds the controller to a manager whose scheme and cache support its declarations.
func Add(mgr ctrl.Manager, c Controller) error {
	return add(mgr, c, nil)
}

// add is Add for a controller that may read optional kinds.
func add(mgr ctrl.Manager, c Controller, optional *optionalKinds) error {
	if c.Bind != nil {
		if err := c.Bind(Clients{Client: optional.client(mgr.GetClient()), Live: mgr.GetAPIReader()}); err != nil {
			return fmt.Errorf("setting up controller %s: %w", c.Name, err)
		}
	}
	options := controller.Options{Reconciler: c.Reconciler, MaxConcurrentReconciles: c.MaxConcurrentReconciles, Logger: mgr.GetLogger()}
	if c.RateLimiter != nil {
		options.RateLimiter = c.RateLimiter()
	}
	added, err := controller.New(c.Name, mgr, options)
	if err != nil {
		return fmt.Errorf("setting up controller %s: %w", c.Name, err)
	}
	for _, s := range c.sources(mgr.GetCache(), optional) {
		if err := added.Watch(s); err != nil {
			return fmt.Errorf("watching for controller %s: %w", c.Name, err)
		}
	}
	return nil
}

func (c Controller) sources(from cache.Cache, optional *optionalKinds) []source.Source {
	var sources []source.Source
	for _, kind := range c.Reads {
		if kind.Optional {
			sources = append(sources, &optionalWatch{kinds: optional, kind: kind})
			continue
		}
		sources = append(sources, source.Kind(from, kind.Object, kind.handler(), kind.Predicates...))
	}
	for _, channel := range c.Channels {
		sources = append(sources, source.Channel(channel.Events, handler.EnqueueRequestsFromMapFunc(channel.Requests)))
	}
	return sources
}
