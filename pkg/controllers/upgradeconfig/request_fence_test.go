// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// isNoted reports whether the Lease notes that the target was requested.
func (w *world) isNoted() bool {
	return w.getLease().Annotations["upgrade.managed.openshift.io/requested"] == "true"
}

// requestOf reports whether a write requests the target, and which life of the operator made it.
func (w *world) isRequest(r simulation.Request) bool {
	return nameOf(r) == "patch ClusterVersion" && w.isNoted() && w.cluster.ClusterVersion().Spec.DesiredUpdate == nil
}

// Two leaders save that they request the target. The request of one is served, and the other one gets a
// conflict: that proves nothing about the first, so the note stays and a pause withdraws the request.
func TestConflictIsNoEvidenceThatNothingIsRequested(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = 6 * time.Hour
	first := w.Process
	suspended, served := 0, 0 // the lives of the processes
	w.Writes = func(r simulation.Request) simulation.Fault {
		switch {
		case suspended == 0 && w.isRequest(r):
			suspended = r.Life
			return simulation.Fault{Outcome: simulation.Stall, For: 40 * time.Second}
		case suspended != 0 && served == 0 && r.Life != suspended && w.isRequest(r):
			served = r.Life
		case served == r.Life && served != 0 && nameOf(r) == "patch UpgradeConfig/status":
			return simulation.Fault{Outcome: simulation.Stall, For: time.Hour}
		}
		return simulation.Fault{}
	}
	w.Begin()
	w.runTo(2 * time.Minute)
	if served == 0 || w.cluster.ClusterVersion().Spec.DesiredUpdate == nil {
		t.Fatalf("nothing is requested; %s", w.describe())
	}
	if !w.isNoted() && w.record().RequestTime == nil {
		t.Error("neither the Lease nor the record notes the request")
	}
	first.Kill()
	w.Writes = nil
	w.Restart()
	w.pause()
	w.RunFor(20 * time.Second)
	if update := w.cluster.ClusterVersion().Spec.DesiredUpdate; update != nil {
		t.Errorf("paused, and %s is still requested; %s", update.Version, w.describe())
	}
}

// A process that is suspended before its request must not make it after another process has withdrawn it: the
// note is removed only behind a fence.
func TestSuspendedRequestDoesNotPassTheFence(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*world){
		"paused":            (*world).pause,
		"deleted":           func(w *world) { w.remove(upgrade) },
		"the window closes": func(w *world) { w.runTo(30*time.Minute + time.Second) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.cluster.AcceptDelay = 6 * time.Hour
			suspended := 0
			w.Writes = func(r simulation.Request) simulation.Fault {
				switch {
				case suspended == 0 && w.isRequest(r):
					suspended = r.Life
					return simulation.Fault{Outcome: simulation.Stall, For: time.Hour}
				case suspended != 0 && w.isRequest(r) && w.Now().Before(tenPast.Add(20*time.Second)):
					return simulation.Fault{Outcome: simulation.Refuse} // the cluster stays as it was
				}
				return simulation.Fault{}
			}
			w.Begin()
			w.runTo(10 * time.Second)
			if suspended == 0 {
				t.Fatal("no process is suspended at its request")
			}
			end(w)
			w.runTo(2 * time.Hour)
			if update := w.cluster.ClusterVersion().Spec.DesiredUpdate; update != nil {
				t.Errorf("%s is requested by a process that was suspended", update.Version)
			}
			if name == "paused" && w.record().Phase == history.PhaseUpgraded {
				t.Error("it is upgraded although it is paused")
			}
		})
	}
}

// A process that reads the ClusterVersion after the fence of another one, and before that one has taken the note back,
// makes a request that no fence stops: it notes it again, and the note stays.
func TestRequestThatWasReadAfterTheFenceIsNoted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.AcceptDelay = 6 * time.Hour
	first, conflicts, fenced, unnoting, requesting := w.Process, 0, false, false, false
	w.Writes = func(r simulation.Request) simulation.Fault {
		switch {
		case r.Life == 1 && !fenced && w.isRequest(r):
			conflicts++
			return simulation.Fault{Outcome: simulation.Conflict}
		case r.Life == 1 && fenced && !requesting && w.isRequest(r):
			requesting = true
			return simulation.Fault{Outcome: simulation.Stall, For: 20 * time.Second}
		case r.Life != 1 && nameOf(r) == "patch ClusterVersion":
			fenced = true
		case r.Life != 1 && fenced && !unnoting && nameOf(r) == "patch Lease":
			unnoting = true
			return simulation.Fault{Outcome: simulation.Stall, For: 5 * time.Second}
		}
		return simulation.Fault{}
	}
	w.runTo(5 * time.Second)
	first.Lag("UpgradeConfig", time.Minute) // it does not see the pause
	w.pause()
	w.Begin()
	w.runTo(2 * time.Hour)
	if conflicts == 0 || !unnoting || !requesting {
		t.Fatalf("%d conflicts, the note is taken back: %t, the request comes meanwhile: %t", conflicts, unnoting, requesting)
	}
	if update := w.cluster.ClusterVersion().Spec.DesiredUpdate; update != nil {
		t.Errorf("paused, and %s is requested; %s", update.Version, w.describe())
	}
}
