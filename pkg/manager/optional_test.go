// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache/informertest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// lockedInformers are FakeInformers that are safe for concurrent use.
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

// optionalNodes returns optional kinds that contain only Node. serves provides the result of
// discovery; if it is nil, every kind is served.
func optionalNodes(t *testing.T, kind Kind, serves func() (bool, error)) *optionalKinds {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	kinds, err := newOptionalKinds(scheme, []Kind{kind})
	if err != nil {
		t.Fatal(err)
	}
	kinds.cache, kinds.log = &lockedInformers{FakeInformers: informertest.FakeInformers{Scheme: scheme}}, logr.Discard()
	kinds.observed = func() bool { return true }
	kinds.serves = func(context.Context, schema.GroupVersionKind) (bool, error) {
		if serves == nil {
			return true, nil
		}
		return serves()
	}
	t.Cleanup(kinds.queue.ShutDown)
	return kinds
}

// define makes the optional kinds observe a revision of Node's definition.
func (o *optionalKinds) define(generation int64, exists bool) {
	o.observe(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: o.kinds[0].definition, UID: "uid", Generation: generation}}, exists)
}

// TestOptionalKind_that_is_removed checks a controller that reads the kind to determine its
// requests when the kind is no longer served.
func TestOptionalKind_that_is_removed(t *testing.T) {
	t.Parallel()
	var kinds *optionalKinds
	read := make(chan error, 1)
	kind := Kind{Object: &corev1.Node{}, Optional: true, Requests: func(ctx context.Context, _ client.Object) []reconcile.Request {
		read <- kinds.check(ctx, &corev1.Node{})
		return nil
	}}
	kinds = optionalNodes(t, kind, nil)
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := (&optionalWatch{kinds: kinds, kind: kind}).Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	go func() {
		kinds.define(1, true)
		kinds.next(t.Context())
		kinds.define(1, false)
		kinds.next(t.Context())
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

// TestOptionalKind_that_is_not_known_to_be_served reads the kind before its
// CustomResourceDefinition has been observed. An unknown kind must not be treated as a missing one.
func TestOptionalKind_that_is_not_known_to_be_served(t *testing.T) {
	t.Parallel()
	kind := Kind{Object: &corev1.Node{}, Optional: true}
	for name, tc := range map[string]struct {
		observed  toolscache.InformerSynced
		defined   bool
		notServed bool
	}{
		"the definitions are not watched":    {nil, false, false},
		"their watch has not synced":         {func() bool { return false }, false, false},
		"their watch has synced without one": {func() bool { return true }, false, true},
		"the API server was not asked":       {func() bool { return true }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kinds := optionalNodes(t, kind, nil)
			kinds.observed = tc.observed
			if tc.defined {
				kinds.define(1, true)
			}
			err := kinds.client(nil).List(t.Context(), &corev1.NodeList{})
			if err == nil || meta.IsNoMatchError(err) != tc.notServed {
				t.Errorf("a read returns %v, want NoKindMatch: %t", err, tc.notServed)
			}
			if got := kinds.synced(t.Context(), kind); got != tc.notServed {
				t.Errorf("synced: %t, want %t", got, tc.notServed)
			}
		})
	}
}

// A CustomResourceDefinition that serves only another version does not delay the start, and its
// objects are not reported as missing. The kind is watched for as long as the right version is
// served.
func TestOptionalKind_whose_definition_serves_another_version(t *testing.T) {
	t.Parallel()
	var changes []bool
	served, asked := false, 0
	kind := Kind{Object: &corev1.Node{}, Optional: true, Requests: func(context.Context, client.Object) []reconcile.Request { return nil }}
	kinds := optionalNodes(t, kind, func() (bool, error) { asked++; return served, nil })
	informers, ok := kinds.cache.(*lockedInformers)
	if !ok {
		t.Fatal("the cache is not the one of the test")
	}
	kinds.kinds[0].observers = append(kinds.kinds[0].observers, func(served bool) { changes = append(changes, served) })
	kinds.define(1, true)
	kinds.next(t.Context())
	if len(informers.InformersByGVK) > 0 {
		t.Error("the other version is watched")
	}
	ctx, cancel := context.WithTimeout(t.Context(), syncTimeout/2)
	defer cancel()
	if err := (&optionalWatch{kinds: kinds, kind: kind}).WaitForSync(ctx); err != nil {
		t.Errorf("the start of a controller waits for the version: %v", err)
	}
	err := kinds.client(nil).List(t.Context(), &corev1.NodeList{})
	if err == nil || meta.IsNoMatchError(err) || !strings.Contains(err.Error(), kinds.kinds[0].definition+" does not serve version v1") {
		t.Errorf("a read returns %v", err)
	}

	served = true
	kinds.define(2, true)
	kinds.next(t.Context())
	before := asked
	kinds.define(2, true)
	if len(informers.InformersByGVK) != 1 || kinds.queue.Len() > 0 || asked != before {
		t.Errorf("%d kinds are watched; %d definitions are queued", len(informers.InformersByGVK), kinds.queue.Len())
	}
	served = false
	kinds.define(3, true)
	kinds.next(t.Context())
	if _, otherVersion := errors.AsType[*otherVersionError](kinds.check(t.Context(), &corev1.Node{})); !otherVersion {
		t.Errorf("a read after the version is gone returns %v", kinds.check(t.Context(), &corev1.Node{}))
	}
	if !slices.Equal(changes, []bool{true, false}) {
		t.Errorf("the kind was reported as served: %v", changes)
	}
}

// A kind may be served some time after its definition is observed, and discovery may fail.
func TestOptionalKind_that_is_served_late(t *testing.T) {
	t.Parallel()
	asked := 0
	kinds := optionalNodes(t, Kind{Object: &corev1.Node{}, Optional: true}, func() (bool, error) {
		asked++
		if asked == 1 {
			return false, errors.New("no answer")
		}
		return asked == 3, nil
	})
	kinds.define(1, true)
	for range 3 {
		kinds.next(t.Context()) // blocks until the next retry is due
	}
	if asked != 3 || !kinds.kinds[0].served {
		t.Errorf("asked %d times; served: %t", asked, kinds.kinds[0].served)
	}
	if n := kinds.queue.NumRequeues(kinds.kinds[0].definition); n != 0 {
		t.Errorf("%d retries are counted", n)
	}
}

// The manager stops asking discovery for a kind that no retry has found.
func TestOptionalKind_that_is_never_served(t *testing.T) {
	t.Parallel()
	asked := 0
	kinds := optionalNodes(t, Kind{Object: &corev1.Node{}, Optional: true}, func() (bool, error) { asked++; return false, nil })
	kinds.queue = workqueue.NewTypedRateLimitingQueue(workqueue.NewTypedItemExponentialFailureRateLimiter[string](0, 0))
	kinds.define(1, true)
	for range 1 + retries {
		kinds.next(t.Context())
	}
	if asked != 1+retries || kinds.queue.Len() > 0 {
		t.Errorf("asked %d times; %d more are due", asked, kinds.queue.Len())
	}
}
