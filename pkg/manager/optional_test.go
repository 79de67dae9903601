// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// lockedInformers are FakeInformers that several goroutines may use.
type lockedInformers struct {
	mu sync.Mutex
	informertest.FakeInformers
}

func (l *lockedInformers) GetInformer(ctx context.Context, obj client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.FakeInformers.GetInformer(ctx, obj, options...)
}

func (l *lockedInformers) RemoveInformer(ctx context.Context, obj client.Object) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.FakeInformers.RemoveInformer(ctx, obj)
}

// TestOptionalKind_that_is_removed has a controller read the kind to find out what to reconcile once the
// kind is not served any more.
func TestOptionalKind_that_is_removed(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var kinds *optionalKinds
	read := make(chan error, 1)
	kind := Kind{Object: &corev1.Node{}, Optional: true, Requests: func(ctx context.Context, _ client.Object) []reconcile.Request {
		read <- kinds.check(ctx, &corev1.Node{})
		return nil
	}}
	kinds, err := newOptionalKinds(scheme, []Kind{kind})
	if err != nil {
		t.Fatal(err)
	}
	kinds.cache, kinds.log = &lockedInformers{FakeInformers: informertest.FakeInformers{Scheme: scheme}}, logr.Discard()
	kinds.observed = func() bool { return true }
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := (&optionalWatch{kinds: kinds, kind: kind}).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	definition := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: kinds.kinds[0].definition}}
	go func() {
		kinds.observe(t.Context(), definition, true)
		kinds.observe(t.Context(), definition, false)
	}()
	select {
	case err := <-read:
		if !meta.IsNoMatchError(err) {
			t.Errorf("a read of a kind that is not served returns %v", err)
		}
	case <-clock.RealClock{}.After(20 * time.Second):
		t.Fatal("the read does not end")
	}
}

// TestOptionalKind_that_is_not_known_to_be_served reads the kind while its CustomResourceDefinition was not
// observed: a missing kind is not one that is not known yet.
func TestOptionalKind_that_is_not_known_to_be_served(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kind := Kind{Object: &corev1.Node{}, Optional: true}
	for name, tc := range map[string]struct {
		observed  toolscache.InformerSynced
		notServed bool
	}{
		"the definitions are not watched":    {nil, false},
		"their watch has not synced":         {func() bool { return false }, false},
		"their watch has synced without one": {func() bool { return true }, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds, err := newOptionalKinds(scheme, []Kind{kind})
			if err != nil {
				t.Fatal(err)
			}
			kinds.observed = tc.observed
			err = kinds.client(nil).List(t.Context(), &corev1.NodeList{})
			if err == nil || meta.IsNoMatchError(err) != tc.notServed {
				t.Errorf("a read returns %v, want NoKindMatch: %t", err, tc.notServed)
			}
			if got := kinds.synced(t.Context(), kind); got != tc.notServed {
				t.Errorf("synced: %t, want %t", got, tc.notServed)
			}
		})
	}
}
