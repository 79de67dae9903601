// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package binary

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

// watches passes objects to handlers as they change, using one watch per kind.
type watches struct {
	factory dynamicinformer.DynamicSharedInformerFactory
	mapper  meta.RESTMapper
	kinds   map[schema.GroupVersionKind]cache.SharedIndexInformer

	pollFuncs map[string]pollFunc // for kinds that the API server does not serve
	pollers   map[string]*poller
	polling   sync.WaitGroup
}

func newWatches(config *rest.Config, mapper meta.RESTMapper, pollFuncs map[string]pollFunc) (*watches, error) {
	clients, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return &watches{
		factory:   dynamicinformer.NewDynamicSharedInformerFactory(clients, 0),
		mapper:    mapper,
		kinds:     map[schema.GroupVersionKind]cache.SharedIndexInformer{},
		pollFuncs: pollFuncs,
		pollers:   map[string]*poller{},
	}, nil
}

// subscribe registers a handler. It is called in a separate goroutine. Call subscribe before start.
func (w *watches) subscribe(of scenario.Object, call scenario.Handler) error {
	if of.IsExternal() {
		w.pollFor(of, call)
		return nil
	}
	informer, err := w.informer(of.GVK())
	if err != nil {
		return err
	}
	handle := func(object any, deleted bool) {
		if tombstone, is := object.(cache.DeletedFinalStateUnknown); is {
			object = tombstone.Obj
		}
		if found, is := object.(*unstructured.Unstructured); is && of.Matches(found) {
			call(found, deleted)
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { handle(object, false) },
		UpdateFunc: func(_, object any) { handle(object, false) },
		DeleteFunc: func(object any) { handle(object, true) },
	})
	return err
}

// pollFor registers a handler for objects that the API server does not serve.
func (w *watches) pollFor(of scenario.Object, call scenario.Handler) {
	if w.pollers[of.Kind] == nil {
		w.pollers[of.Kind] = &poller{poll: w.pollFuncs[of.Kind]}
	}
	p := w.pollers[of.Kind]
	p.handlers = append(p.handlers, func(object *unstructured.Unstructured, deleted bool) {
		if of.Matches(object) {
			call(object, deleted)
		}
	})
}

func (w *watches) informer(gvk schema.GroupVersionKind) (cache.SharedIndexInformer, error) {
	if known := w.kinds[gvk]; known != nil {
		return known, nil
	}
	mapping, err := w.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", gvk.Kind, err)
	}
	w.kinds[gvk] = w.factory.ForResource(mapping.Resource).Informer()
	return w.kinds[gvk], nil
}

// start runs the watches until running ends. It returns when all existing objects have been
// received.
func (w *watches) start(ctx, running context.Context) error {
	w.factory.Start(running.Done())
	for _, p := range w.pollers {
		w.polling.Go(func() { p.run(running) })
	}
	for _, synced := range w.factory.WaitForCacheSync(ctx.Done()) {
		if !synced {
			return errors.New("watching the cluster: the start was interrupted")
		}
	}
	return nil
}

// wait waits until all watches have ended.
func (w *watches) wait() {
	if w != nil {
		w.factory.Shutdown()
		w.polling.Wait()
	}
}

// objects returns the named objects: objects of the API server as last received, external ones as
// they are now.
func (w *watches) objects(ctx context.Context, of scenario.Object) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	if of.IsExternal() {
		var err error
		if all, err = w.pollFuncs[of.Kind](ctx); err != nil {
			return nil, err
		}
	} else if informer := w.kinds[of.GVK()]; informer != nil {
		for _, object := range informer.GetStore().List() {
			if known, is := object.(*unstructured.Unstructured); is {
				all = append(all, known)
			}
		}
	}
	return slices.DeleteFunc(all, func(object *unstructured.Unstructured) bool { return !of.Matches(object) }), nil
}
