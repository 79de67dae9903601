// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

func TestRejectedStatusEndsTheAttempt(t *testing.T) {
	t.Parallel()
	for often, times := range map[string]int{"once": 1, "always": 1 << 30} {
		for _, step := range []string{"VersionPinned", "ControlPlaneUpgraded"} {
			invalid := apierrors.NewInvalid(upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig").GroupKind(), upgrade.Name,
				field.ErrorList{field.Invalid(field.NewPath("status"), "x", "by this test")})
			t.Run(step+" "+often, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, upgradeConfig(upgrade))
				abandoned := 0
				w.snapshot.Upgraders = map[string]upgraders.ClusterUpgrader{"OSD": abandoningUpgrader{upgrader: w.snapshot.Upgraders["OSD"], abandon: func(context.Context) error {
					abandoned++
					return nil
				}}}
				w.runUntilStep(step)
				rejected := 0
				w.Writes = func(r simulation.Request) simulation.Fault {
					if nameOf(r) == "patch UpgradeConfig/status" && rejected < times {
						rejected++
						return simulation.Fault{Outcome: simulation.Refuse, Err: invalid}
					}
					return simulation.Fault{}
				}
				w.pause()
				w.RunFor(20 * time.Minute)
				if w.holder() != "" || len(w.get(upgrade).Finalizers) > 0 || abandoned == 0 {
					t.Errorf("abandoned %d times; %s", abandoned, w.describe())
				}
				if times == 1 {
					w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False StatusInvalid", message: "rejected the status", finished: true})
				}
			})
		}
	}
}

// errTooLarge is the answer of the API server to an object that etcd does not store.
var errTooLarge = &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusInternalServerError, Message: "etcdserver: request is too large"}}

// A status that becomes too large loses its oldest records, and the upgrade continues.
func TestStatus_that_is_too_large_loses_its_oldest_records(t *testing.T) {
	t.Parallel()
	cfg := upgradeConfig(upgrade)
	for i := range 8 {
		at := metav1.NewTime(noon.Add(-time.Duration(i+1) * 24 * time.Hour).Truncate(time.Second).Local())
		cfg.Status.History = append(cfg.Status.History, history.Record{
			Version: fmt.Sprintf("4.3.%d", 20-i), Phase: history.PhaseUpgraded, Attempt: 1, UpgradeAt: &at, StartTime: &at, CompleteTime: &at,
		})
	}
	w := newWorld(t, cfg)
	w.runUntilStep("VersionPinned")
	rejected := 0
	w.Writes = func(r simulation.Request) simulation.Fault {
		if nameOf(r) == "patch UpgradeConfig/status" && rejected < 2 {
			rejected++
			return simulation.Fault{Outcome: simulation.Refuse, Err: errTooLarge}
		}
		return simulation.Fault{}
	}
	w.runToCompletion()
	var versions []string
	for _, r := range w.get(upgrade).Status.History {
		versions = append(versions, r.Version)
	}
	if diff := cmp.Diff([]string{desired, "4.3.20"}, versions); diff != "" || w.record().Phase != history.PhaseUpgraded {
		t.Errorf("the records are (-want +got):\n%s\n%s", diff, w.describe())
	}
}

// An object that is too large for any addition of the operator does not hold the lock.
func TestObject_that_is_too_large_does_not_hold_the_lock(t *testing.T) {
	t.Parallel()
	for name, requests := range map[string][]string{
		"for the finalizer":            {"patch UpgradeConfig"},
		"for the status":               {"patch UpgradeConfig/status"},
		"for the finalizer and status": {"patch UpgradeConfig", "patch UpgradeConfig/status"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.runTo(-time.Minute)
			w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: errTooLarge}.If(func(r simulation.Request) bool {
				return r.Key == upgrade && slices.Contains(requests, nameOf(r)) && !r.Time.Before(tenPast)
			})
			w.RunFor(20 * time.Minute)
			if w.holder() != "" || w.requested() != "" {
				t.Errorf("the lock is held by %q, and %q is requested; %s", w.holder(), w.requested(), w.describe())
			}
		})
	}
}

// Another client may have made the object invalid for a while: the finalizer is added once it is valid.
func TestObject_that_is_invalid_for_a_while_is_upgraded_afterwards(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig").GroupKind(), upgrade.Name,
		field.ErrorList{field.Invalid(field.NewPath("spec"), "x", "by this test")})
	w := newWorld(t, upgradeConfig(upgrade))
	w.runTo(-time.Minute)
	rejected := 0
	w.Writes = func(r simulation.Request) simulation.Fault {
		if r.Key == upgrade && nameOf(r) == "patch UpgradeConfig" && rejected < 3 {
			rejected++
			return simulation.Fault{Outcome: simulation.Refuse, Err: invalid}
		}
		return simulation.Fault{}
	}
	w.RunFor(20 * time.Minute)
	if rejected != 3 || w.requested() == "" {
		t.Errorf("%d writes were rejected, and %q is requested; %s", rejected, w.requested(), w.describe())
	}
}

// A rejected save in the middle of a pass ends the attempt, and the pass stops.
func TestRejectedStatus_stops_the_pass(t *testing.T) {
	t.Parallel()
	invalid := apierrors.NewInvalid(upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig").GroupKind(), upgrade.Name,
		field.ErrorList{field.Invalid(field.NewPath("status"), "x", "by this test")})
	for save := 2; save <= 12; save++ { // the first one starts the attempt
		t.Run(fmt.Sprintf("save %d", save), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			saves, requests := 0, 0
			w.Writes = func(r simulation.Request) simulation.Fault {
				switch nameOf(r) {
				case "patch UpgradeConfig/status":
					if saves++; saves == save {
						return simulation.Fault{Outcome: simulation.Refuse, Err: invalid}
					}
				case "patch ClusterVersion":
					if saves >= save && w.requested() == "" { // a withdrawal is no request
						requests++
					}
				}
				return simulation.Fault{}
			}
			w.RunFor(20 * time.Minute)
			if requests > 0 {
				t.Errorf("the ClusterVersion was patched %d times after the end; %s", requests, w.describe())
			}
			if w.requested() != "" && w.cluster.ClusterVersion().Status.History[0].Version != desired {
				t.Errorf("%s is still requested; %s", w.requested(), w.describe())
			}
			w.expect(outcome{phase: history.PhaseFailed, condition: "Succeeded=False StatusInvalid", message: "rejected the status", finished: true})
		})
	}
}
