// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// recordTimeout limits how long this operator may take to record why it exits. It tries again after
// a restart.
const recordTimeout = 10 * time.Second

// formerWatch makes this operator exit when the former operator is installed. It costs only a
// single watch.
type formerWatch struct {
	former formerOperator
	cache  cache.Cache // contains the former operator's Deployment
}

func newFormerWatch(former formerOperator, restConfig *rest.Config) (*formerWatch, error) {
	scheme, err := formerScheme()
	if err != nil {
		return nil, err
	}
	c, err := cache.New(restConfig, cache.Options{Scheme: scheme, Mapper: formerMapper(scheme), ByObject: map[client.Object]cache.ByObject{
		&appsv1.Deployment{}: {
			Namespaces: map[string]cache.Config{formerNamespace: {}}, Field: fields.OneTermEqualSelector("metadata.name", formerName),
			Transform: cache.TransformStripManagedFields(),
		},
	}})
	if err != nil {
		return nil, fmt.Errorf("looking for another operator: %w", err)
	}
	return &formerWatch{former: former, cache: c}, nil
}

// NeedLeaderElection returns false: standby replicas exit as well, so that none of them becomes the
// leader while the former operator is running.
func (w *formerWatch) NeedLeaderElection() bool { return false }

// Start watches the former operator's Deployment until the context ends. It returns an error if
// that operator is running.
func (w *formerWatch) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	informer, err := w.cache.GetInformer(ctx, &appsv1.Deployment{}, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("looking for another operator: %w", err)
	}
	found := make(chan struct{}, 1)
	if _, err := informer.AddEventHandler(observeFormer(found)); err != nil {
		return fmt.Errorf("looking for another operator: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- w.cache.Start(ctx) }()
	select {
	case <-found:
		ctx, cancel := context.WithTimeout(ctx, recordTimeout)
		defer cancel()
		return w.former.refusal(ctx)
	case err := <-ended:
		return err
	}
}

// observeFormer returns a handler that sends to the channel when the former operator is running.
// The channel must have a buffer of one element.
func observeFormer(found chan<- struct{}) toolscache.ResourceEventHandler {
	observe := func(obj any) {
		if deployment, ok := obj.(*appsv1.Deployment); ok && isFormer(deployment) {
			select {
			case found <- struct{}{}:
			default: // one is already pending
			}
		}
	}
	return toolscache.ResourceEventHandlerFuncs{AddFunc: observe, UpdateFunc: func(_, obj any) { observe(obj) }}
}
