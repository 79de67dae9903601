// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
	simulatedolm "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/olm"
)

// A Subscription's state AtLatestKnown proves nothing while OLM cannot resolve.
func TestOperatorAtLatestKnownThatOLMCannotResolve(t *testing.T) {
	t.Parallel()
	for _, condition := range []string{"ResolutionFailed", "CatalogSourcesUnhealthy", "BundleUnpackFailed", "BundleUnpacking"} {
		for _, status := range []string{"True", "Unknown"} {
			t.Run(condition+"="+status, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, manual("a", "gitops", "g.v1"))
				report := func(status string) {
					w.set(w.get(simulatedolm.Subscriptions, "gitops"), []any{map[string]any{"type": condition, "status": status, "message": "no answer"}}, "status", "conditions")
				}
				report(status)
				options := olm.Options{Timeout: 2 * time.Minute}
				_, err := w.run(t.Context(), options)
				if want := "waiting for OLM to report what follows g.v1; " + condition + ": no answer"; !errors.Is(err, olm.ErrNotUpgraded) || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
				report("False")
				if printed, err := w.run(t.Context(), options); err != nil {
					t.Errorf("after the problem is over: %v\n%s", err, printed)
				}
			})
		}
	}
}

// A new platform release brings new catalogs. OLM offers their releases only after reading them.
func TestReleaseThatIsOfferedLater(t *testing.T) {
	t.Parallel()
	for name, offered := range map[string]time.Duration{"within the quiet period": 55 * time.Second, "soon": 5 * time.Second} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, manual("a", "gitops", "g.v1"))
			w.onTick = func(elapsed time.Duration) {
				if elapsed >= offered && elapsed < offered+5*time.Second {
					w.set(w.get(simulatedolm.Subscriptions, "gitops"), "g.v1 g.v2", "metadata", "annotations", simulatedolm.AnnotationReleases)
				}
			}
			if printed, err := w.run(t.Context(), timeout); err != nil {
				t.Errorf("%v\n%s", err, printed)
			}
			if diff := cmp.Diff([]string{"a/install-g-v2"}, w.approvals); diff != "" {
				t.Errorf("approvals (-want +got):\n%s", diff)
			}
		})
	}
}

// While OLM's reports are older than the platform release, the wait only ends with the timeout.
func TestReportsFromBeforeThePlatformWasUpgraded(t *testing.T) {
	t.Parallel()
	later := startTime.Add(time.Second).Format(time.RFC3339)
	for name, tc := range map[string]struct {
		change  func(w *world)
		after   time.Duration
		printed string
	}{
		"Subscription and catalog": {change: func(*world) {}, after: 10 * time.Minute, printed: "waiting for OLM to look at Subscription a/gitops since"},
		"catalog": {
			change: func(w *world) {
				w.set(w.get(simulatedolm.Subscriptions, "gitops"), later, "status", "lastUpdated")
			},
			after: 10 * time.Minute, printed: "waiting for OLM to connect to CatalogSource openshift-marketplace/redhat-operators since",
		},
		"neither": {change: func(w *world) {
			w.set(w.get(simulatedolm.Subscriptions, "gitops"), later, "status", "lastUpdated")
			w.set(w.catalog(), later, "status", "connectionState", "lastConnect")
		}, after: time.Minute},
		"platform that is still being upgraded": {
			change:  func(w *world) { w.setPlatform(configv1.PartialUpdate, startTime.Add(-time.Hour)) },
			after:   10 * time.Minute,
			printed: "waiting until the platform is upgraded to 4.20.5",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, manual("a", "gitops", "g.v1"))
			w.setPlatform(configv1.CompletedUpdate, startTime)
			tc.change(w)
			printed, err := w.run(t.Context(), timeout)
			if err != nil || w.Since(startTime) != tc.after || !strings.Contains(printed, tc.printed) {
				t.Errorf("got %v after %s, want success after %s and %q in\n%s", err, w.Since(startTime), tc.after, tc.printed, printed)
			}
		})
	}
}

// OLM cannot resolve a Subscription without its catalog.
func TestCatalogThatIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, manual("a", "gitops", "g.v1"))
	if err := w.client.Delete(t.Context(), w.catalog()); err != nil {
		t.Fatal(err)
	}
	_, err := w.run(t.Context(), timeout)
	if want := "waiting for OLM to report what follows g.v1; ResolutionFailed"; !errors.Is(err, olm.ErrNotUpgraded) || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// setPlatform replaces the platform's newest update.
func (w *world) setPlatform(state configv1.UpdateState, end time.Time) {
	w.tb.Helper()
	version := &configv1.ClusterVersion{}
	if err := w.client.Get(w.tb.Context(), client.ObjectKey{Name: "version"}, version); err != nil {
		w.tb.Fatal(err)
	}
	version.Status = platform(state, end).Status
	if err := w.client.Status().Update(w.tb.Context(), version); err != nil {
		w.tb.Fatal(err)
	}
}

// catalog returns the catalog used by all Subscriptions.
func (w *world) catalog() *unstructured.Unstructured {
	w.tb.Helper()
	object := catalog()
	if err := w.client.Get(w.tb.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		w.tb.Fatal(err)
	}
	return object
}
