// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"strconv"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func newTestDriver() *driver {
	d := newDriver(1, &Report{})
	d.world = simulation.New(simulation.WorldOptions{})
	d.leaders = []*simulation.Process{{}}
	return d
}

// A fleet is not at rest while a cluster that has come back is about to be selected again.
func TestFleetIsNotAtRestBeforeItsPlacementIsDecided(t *testing.T) {
	t.Parallel()
	f := &fleet{driver: newTestDriver(), placements: &placements{pending: true}}
	if newFleetChecker(f).unrest() == "" {
		t.Error("it is at rest")
	}
}

// The status does not show at once that a canary was refused. Its failure may be forgotten before that.
func TestFailureOfARefusedCanaryMayBeForgotten(t *testing.T) {
	t.Parallel()
	f := &fleet{driver: newTestDriver()}
	c := newFleetChecker(f)
	u := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{UID: "u", Annotations: map[string]string{fleetv1beta1.ForgetFailureAnnotation: "canary=repaired"}}}
	u.Spec.UpgradeStrategy.CanaryClusters = &fleetv1beta1.CanaryClusters{}
	u.Status.Canaries = admission.Canaries(u, nil)
	canary, other := &fleetv1alpha1.ClusterUpgradeRun{}, &fleetv1alpha1.ClusterUpgradeRun{}
	for name, run := range map[string]*fleetv1alpha1.ClusterUpgradeRun{"canary": canary, "other": other} {
		run.Namespace, run.Spec.Attempt, run.Spec.AdmissionTime = name, 1, metav1.NewTime(f.world.Now())
		run.Spec.ManagedClustersUpgrade.UID = string(u.UID)
	}
	canary.Spec.Canary, canary.Spec.Outcome = true, &fleetv1alpha1.Outcome{State: fleetv1alpha1.StateFailed}
	c.runs[client.ObjectKeyFromObject(canary)] = canary
	c.canariesFirst(f.world.Now().Add(time.Hour), u, other)
	if len(f.report.Violations) > 0 {
		t.Errorf("%q", f.report.Violations)
	}
	u.Annotations = nil
	c.canariesFirst(f.world.Now().Add(time.Hour), u, other)
	if len(f.report.Violations) != 1 {
		t.Errorf("a failure that is not forgotten: %q", f.report.Violations)
	}
}

// A hub may create a run again that another one has deleted, with its upgrade, before the request was served.
func TestClusterMayBeginForAnUpgradeThatIsBeingDeleted(t *testing.T) {
	t.Parallel()
	for interleaved, want := range map[time.Duration]int{0: 1, time.Minute: 0} {
		f := &fleet{driver: newTestDriver()}
		now := f.world.Now()
		f.interleavedUntil = now.Add(interleaved - maxStall)
		c := newFleetChecker(f)
		c.upgrades["u"] = &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{UID: "u", DeletionTimestamp: &metav1.Time{Time: now}}}
		c.limits["u"] = 1
		run := &fleetv1alpha1.ClusterUpgradeRun{}
		run.Namespace, run.Spec.Attempt, run.Spec.AdmissionTime, run.Spec.ManagedClustersUpgrade.UID = "a", 1, metav1.NewTime(now), "u"
		c.admitted(now, run)
		c.admitted(now, run)
		if len(f.report.Violations) != want {
			t.Errorf("interleaved until %s: %q", interleaved, f.report.Violations)
		}
	}
}

// An upgrade that goes on may be deleted before its record replaces the one before.
func TestUpgradeThatContinuesMayHaveNoRecord(t *testing.T) {
	t.Parallel()
	h := &runner{driver: newTestDriver()}
	key := client.ObjectKey{Namespace: "a", Name: "upgrade"}
	cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u"}}
	cfg.Status.History = []record.Record{{Version: "4.20.6", Phase: record.PhaseUpgraded}}
	c := &checker{
		h: h, configs: map[client.ObjectKey]*upgradev1alpha1.UpgradeConfig{key: cfg}, events: map[string]bool{},
		version: &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.20.7"}}}},
	}
	for message, want := range map[string]int{
		"the upgrade to 4.20.7 had commenced; it continues without this UpgradeConfig": 0,
		"the upgrade to 4.20.6 had commenced; it continues without this UpgradeConfig": 1,
	} {
		h.report.Violations = nil
		c.event(simulation.Change{Actor: operatorActor, Time: h.world.Now()}, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: message}, Reason: "UpgradeContinues", Message: message,
			InvolvedObject: corev1.ObjectReference{Kind: "UpgradeConfig", Namespace: key.Namespace, Name: key.Name, UID: cfg.UID},
		})
		if len(h.report.Violations) != want {
			t.Errorf("%s: %q", message, h.report.Violations)
		}
	}
}

// A request may be stored after the window if it was sent within it.
func TestRequestCountsWhenItIsSent(t *testing.T) {
	t.Parallel()
	h := &runner{driver: newTestDriver()}
	at := h.world.Now()
	version := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.20.5", State: configv1.CompletedUpdate}}}}
	for name, test := range map[string]struct {
		sent   time.Duration
		stored time.Duration
		want   int
	}{
		"within the window":       {time.Minute, time.Minute, 0},
		"late":                    {window - time.Second, window + time.Minute, 0},
		"after the window":        {window, window, 1},
		"before the window":       {-time.Second, -time.Second, 1},
		"before the window, late": {-time.Second, time.Minute, 1},
	} {
		h.report.Violations = nil
		c := &checker{h: h, version: version, asked: map[string][]schedule{"4.20.6": {{at: at, until: at.Add(window)}}}}
		c.requested(simulation.Change{Sent: at.Add(test.sent), Time: at.Add(test.stored)}, version, "4.20.6")
		if len(h.report.Violations) != test.want {
			t.Errorf("%s: %q", name, h.report.Violations)
		}
	}
}

// A delayed pool may be unpaused early only if its nodes have nothing to update.
func TestDelayedPoolIsNotUnpausedEarly(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		mark, config string
		state        configv1.UpdateState
		want         int
	}{
		"in its window":                 {"u/1/2026-03-01T11:00:00Z/2026-03-01T13:00:00Z", "new", configv1.CompletedUpdate, 0},
		"early, with nothing to update": {"u/1/2026-03-01T13:00:00Z/2026-03-01T14:00:00Z", "old", configv1.CompletedUpdate, 0},
		"early, with a configuration":   {"u/1/2026-03-01T13:00:00Z/2026-03-01T14:00:00Z", "new", configv1.CompletedUpdate, 1},
		"early, during the update":      {"u/1/2026-03-01T13:00:00Z/2026-03-01T14:00:00Z", "old", configv1.PartialUpdate, 1},
		"never":                         {"u/1/never/2026-03-01T11:00:00Z", "old", configv1.CompletedUpdate, 1},
		"paused by a user":              {"", "old", configv1.CompletedUpdate, 1},
	} {
		h := &runner{driver: newTestDriver()}
		before := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker", Annotations: map[string]string{"managedupgrade.appuio.io/paused-by": test.mark}}}
		before.Spec.Paused, before.Spec.Configuration.Name, before.Status.Configuration.Name = true, test.config, "old"
		after := before.DeepCopy()
		after.Spec.Paused = false
		version := &configv1.ClusterVersion{Status: configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.20.6", State: test.state}}}}
		c := &checker{h: h, version: version, pools: map[string]*mcfgv1.MachineConfigPool{"worker": before}, commencedAt: at.Add(-time.Minute)}
		c.pool(simulation.Change{Actor: operatorActor, Sent: at, Time: at}, after)
		if len(h.report.Violations) != test.want {
			t.Errorf("%s: %q", name, h.report.Violations)
		}
	}
}

// A slot gets one UpgradeJob, even if that is deleted.
func TestSlotGetsOneUpgradeJob(t *testing.T) {
	t.Parallel()
	h := &runner{driver: newTestDriver()}
	c := &jobChecker{checker: &checker{h: h}, slots: map[string]types.UID{}}
	for i, slot := range []string{"1", "2", "1"} {
		job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{
			UID: types.UID(strconv.Itoa(i)), Labels: map[string]string{maintenancev1beta1.ConfigLabel: "c", maintenancev1beta1.SlotLabel: slot},
		}}
		c.slot(simulation.Change{Actor: operatorActor}, job)
		if want := i / 2; len(h.report.Violations) != want {
			t.Errorf("after UpgradeJob %d: %q", i, h.report.Violations)
		}
	}
}

// Nothing is at rest before a process has had its first look, or while one has something to do.
func TestHistoryIsNotAtRestBeforeAProcessHasLooked(t *testing.T) {
	t.Parallel()
	h := &driver{report: &Report{}, world: simulation.New(simulation.WorldOptions{})}
	looked := false
	h.program = &simulation.Program{Name: "operator", Controllers: func(simulation.Env) ([]manager.Controller, error) {
		return []manager.Controller{{Name: "operator", Reads: []manager.Kind{{Object: &corev1.ConfigMap{}, Requests: manager.Self}}, Reconciler: reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
			looked = true
			return reconcile.Result{}, nil
		})}}, nil
	}}
	if err := h.world.Client("administrator").Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "upgrade"}}); err != nil {
		t.Fatal(err)
	}
	h.restartAfter(time.Minute)
	rested := false
	h.settle(time.Hour, func() string {
		if !rested && !looked {
			t.Error("it is at rest too early")
		}
		rested = true
		return ""
	})
	if len(h.report.Violations) > 0 || !rested {
		t.Errorf("at rest %t: %q", rested, h.report.Violations)
	}
}
