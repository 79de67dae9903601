// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

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
)

// watches tells of each state of objects, for all that want to know of their kind, through one watch of the kind.
type watches struct {
	factory dynamicinformer.DynamicSharedInformerFactory
	mapper  meta.RESTMapper
	kinds   map[schema.GroupVersionKind]cache.SharedIndexInformer

	pollFuncs map[string]pollFunc // of the kinds that are not the API server's
	pollers   map[string]*poller
	polling   sync.WaitGroup
}

// handler is called with each state of an object; with its last one when it is deleted.
type handler func(object *unstructured.Unstructured, deleted bool)

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

// subscribe has a function called, from one goroutine of its own, for all objects that are named. It is called before start.
func (w *watches) subscribe(of Object, call handler) error {
	if of.isExternal() {
		w.poll(of, call)
		return nil
	}
	informer, err := w.informer(of.gvk())
	if err != nil {
		return err
	}
	handle := func(object any, deleted bool) {
		if tombstone, is := object.(cache.DeletedFinalStateUnknown); is {
			object = tombstone.Obj
		}
		if found, is := object.(*unstructured.Unstructured); is && of.matches(found) {
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

// poll is on for what is not the API server's.
func (w *watches) poll(of Object, call handler) {
	if w.pollers[of.Kind] == nil {
		w.pollers[of.Kind] = &poller{poll: w.pollFuncs[of.Kind]}
	}
	p := w.pollers[of.Kind]
	p.handlers = append(p.handlers, func(object *unstructured.Unstructured, deleted bool) {
		if of.matches(object) {
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

// start begins watching, until running ends, and returns once all that exists has been seen.
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

// wait returns when all watches have ended.
func (w *watches) wait() {
	if w != nil {
		w.factory.Shutdown()
		w.polling.Wait()
	}
}

// objects returns the objects that are named, as they were seen last; and what is not the API server's as it is now.
func (w *watches) objects(ctx context.Context, of Object) ([]*unstructured.Unstructured, error) {
	var all []*unstructured.Unstructured
	if of.isExternal() {
		var err error
		if all, err = w.pollFuncs[of.Kind](ctx); err != nil {
			return nil, err
		}
	} else if informer := w.kinds[of.gvk()]; informer != nil {
		for _, object := range informer.GetStore().List() {
			if known, is := object.(*unstructured.Unstructured); is {
				all = append(all, known)
			}
		}
	}
	return slices.DeleteFunc(all, func(object *unstructured.Unstructured) bool { return !of.matches(object) }), nil
}
