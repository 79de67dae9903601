// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// Outcomes of slots in the year, by slot number. All other slots upgrade the cluster.
const (
	suspendedBefore = 2  // by a window, before the version is pinned
	withdrawn       = 5  // after the version is pinned
	unhealthy       = 8  // when the window opens
	updateless      = 11 // no update is available
	outageFirst     = 13 // the operator is down during this slot
	outageLast      = 14 // and during this one
	expired         = 18 // the operator is down from the pinning until startBefore
	suspendedAfter  = 20 // by a window, after the version is pinned
	suspendedField  = 22 // by schedule.suspend, before the version is pinned
)

// killedAtEveryWrite lists the slots with a crash before and after each change that the operator
// makes: the slot before the clocks go forward, the slot after they go back, and the slot of week
// 53.
var killedAtEveryWrite = []string{"2026-03-24", "2026-11-03", "2026-12-29"}

const (
	yearNamespace = "managed-upgrade-operator"
	pin           = 4 * time.Hour
)

// oddTuesdays returns 22:00 in Zurich on each Tuesday of an odd ISO week. It checks every day.
func oddTuesdays(t *testing.T, from, to time.Time) []time.Time {
	t.Helper()
	zurich, err := time.LoadLocation("Europe/Zurich")
	if err != nil {
		t.Fatal(err)
	}
	var slots []time.Time
	for day := from; day.Before(to); day = day.AddDate(0, 0, 1) {
		slot := time.Date(day.Year(), day.Month(), day.Day(), 22, 0, 0, 0, zurich)
		if _, week := slot.ISOWeek(); slot.Weekday() == time.Tuesday && week%2 == 1 {
			slots = append(slots, slot.UTC())
		}
	}
	return slots
}

// year simulates a cluster with the operator for a year.
type year struct {
	*simulation.Harness
	cluster *openshift.Script
	down    bool // the operator does not run

	slots   []time.Time
	created map[string]int            // by slot
	ends    map[string]history.Record // by slot
	commits map[string]int            // by version

	requested aftermath.Requests // by the operator

	random        *rand.Rand
	progress      int // changes that the operator has stored, other than of the Lease
	leases        int // requests to write the Lease while the operator is killed at every write
	before, after int // progress at the last crash before and after a write
}

func newYear(t *testing.T, seed uint64) *year {
	t.Helper()
	y := &year{
		Harness: simulation.NewHarness(t, simulation.WorldOptions{Definitions: simulation.DefinitionsIn(t, "../../../deploy/crds")}),
		created: map[string]int{}, ends: map[string]history.Record{}, commits: map[string]int{},
		random: rand.New(rand.NewPCG(seed, 0)), before: -1, after: -1,
	}
	y.slots = oddTuesdays(t, y.Now(), y.Now().AddDate(1, 0, 0))
	for _, name := range []string{yearNamespace, "default"} {
		y.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	var err error
	y.cluster, err = openshift.NewScript(y.World, "4.4.5", "stable-4.4")
	y.Must(err)
	y.cluster.ReportHealthy()
	y.Create(&maintenancev1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: yearNamespace, Name: "fortnightly"},
		Spec: maintenancev1beta1.UpgradeConfigSpec{
			Schedule:         maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", ISOWeek: new("@odd"), Location: "Europe/Zurich"},
			PinVersionWindow: new(maintenancev1beta1.Duration("4h")),
		},
	})
	y.Observe(y.observe)
	y.Writes, y.Program.OnCrash = y.crash, y.start
	y.Run(func(env simulation.Env) ([]manager.Controller, error) { return controllers(env, y.Registry) })
	return y
}

// start begins a life of the operator, unless it is down.
func (y *year) start() {
	if !y.down {
		y.Begin()
	}
}

// controllers returns the operator's controllers.
func controllers(env simulation.Env, registry *prometheus.Registry) ([]manager.Controller, error) {
	settings := config.Default()
	settings.Alerts.URL, settings.Alertmanager.URL = "", ""
	register := func(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
		return map[string]upgraders.ClusterUpgrader{"OSD": upgraders.OSD{Deps: deps}}, nil
	}
	return operator.NewControllers(
		manager.Options{Namespace: yearNamespace}, settings, manager.Clients{Client: env.Client, Live: env.Live}, env.Clock, register,
		operator.Externals{Registry: registry},
	)
}

// crash ends the operator before and after each change during some slots, and at random else.
func (y *year) crash(r simulation.Request) simulation.Fault {
	if !y.isKilledAtEveryWrite() {
		switch y.random.IntN(100) {
		case 0, 1:
			return simulation.Fault{Outcome: simulation.CrashBefore}
		case 2, 3:
			return simulation.Fault{Outcome: simulation.CrashAfter}
		}
		return simulation.Fault{}
	}
	if r.Kind == "Lease" { // a process that dies before the next write loses this one, so it is no progress
		if y.leases++; y.leases%8 == 0 {
			return simulation.Fault{Outcome: simulation.CrashBefore}
		} else if y.leases%8 == 4 {
			return simulation.Fault{Outcome: simulation.CrashAfter}
		}
		return simulation.Fault{}
	}
	switch {
	case y.before < y.progress:
		y.before = y.progress
		return simulation.Fault{Outcome: simulation.CrashBefore}
	case y.after < y.progress:
		y.after = y.progress
		return simulation.Fault{Outcome: simulation.CrashAfter}
	}
	return simulation.Fault{}
}

func (y *year) isKilledAtEveryWrite() bool {
	now := y.Now()
	return slices.ContainsFunc(y.slots, func(slot time.Time) bool {
		return slices.Contains(killedAtEveryWrite, slot.Format(time.DateOnly)) && now.After(slot.Add(-pin-time.Hour)) && now.Before(slot.Add(12*time.Hour))
	})
}

func (y *year) observe(change simulation.Change) {
	y.requested.Observe(change.Old, change.New, change.Actor == "operator")
	if change.Actor == "operator" && change.Kind.Kind != "Lease" {
		y.progress++
	}
	switch after := change.New.(type) {
	case *maintenancev1beta1.UpgradeJob:
		slot := after.Labels[maintenancev1beta1.SlotLabel]
		if change.Old == nil {
			y.created[slot]++
		}
		if records := after.Status.History; len(records) > 0 && records[0].CompleteTime != nil {
			y.ends[slot] = records[0]
		}
	case *configv1.ClusterVersion:
		before, _ := change.Old.(*configv1.ClusterVersion)
		desired := after.Spec.DesiredUpdate
		if change.Actor == "operator" && desired != nil && (before.Spec.DesiredUpdate == nil || before.Spec.DesiredUpdate.Version != desired.Version) {
			y.commits[desired.Version]++
		}
	}
}

// at calls a function at a point in time.
func (y *year) at(at time.Time, do func()) { y.After(at.Sub(y.Now()), do) }

// stop stops the operator for a period.
func (y *year) stop(from, to time.Time) {
	y.at(from, func() { y.down = true; y.Process.Kill() })
	y.at(to, func() { y.down = false; y.start() })
}

// suspend creates a window around a slot.
func (y *year) suspend(slot time.Time) {
	y.Create(&maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: yearNamespace, Name: "window-" + strconv.FormatInt(slot.Unix(), 10)},
		Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
			Start: maintenance.Timestamp(slot), End: maintenance.Timestamp(slot.Add(time.Second)), ConfigSelector: &maintenancev1beta1.LabelSelector{},
		},
	})
}

func (y *year) setSuspend(value bool) {
	cfg := &maintenancev1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: yearNamespace, Name: "fortnightly"}}
	simulation.Edit(y.Harness, cfg, func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.Schedule.Suspend = &value })
}

func (y *year) setDegraded(status configv1.ConditionStatus) {
	y.cluster.ChangeOperator(func(operator *configv1.ClusterOperator) {
		for i := range operator.Status.Conditions {
			if c := &operator.Status.Conditions[i]; c.Type == configv1.OperatorDegraded {
				c.Status, c.Reason, c.Message = status, "Broken", "broken"
			}
		}
	})
}

func version(i int) string { return fmt.Sprintf("4.4.%d", 10+i) }

// prepare sets up a slot and returns its expected outcome.
func (y *year) prepare(i int) string {
	slot, eve := y.slots[i], y.slots[i].Add(-pin-2*time.Hour)
	y.at(eve, func() { y.cluster.Offer(version(i)) })
	switch i {
	case suspendedBefore:
		y.at(eve, func() { y.suspend(slot) })
		return ""
	case suspendedField:
		y.at(eve, func() { y.setSuspend(true) })
		y.at(slot.Add(2*time.Hour), func() { y.setSuspend(false) })
		return ""
	case updateless:
		y.at(eve.Add(time.Minute), func() { y.cluster.Offer() })
		return ""
	case outageFirst:
		y.stop(eve, y.slots[outageLast].Add(3*time.Hour))
		return ""
	case outageLast:
		return ""
	case withdrawn:
		y.at(slot.Add(-time.Hour), func() { y.cluster.Offer() })
		return "Skipped: UpgradeWithdrawn"
	case unhealthy:
		y.at(slot.Add(-time.Hour), func() { y.setDegraded(configv1.ConditionTrue) })
		y.at(slot.Add(6*time.Hour), func() { y.setDegraded(configv1.ConditionFalse) })
		return "Skipped: ClusterUnhealthy"
	case expired:
		y.stop(slot.Add(-time.Hour), slot.Add(time.Hour))
		return "Skipped: Expired"
	case suspendedAfter:
		y.at(slot.Add(-time.Hour), func() { y.suspend(slot) })
		return "Skipped: Suspended"
	}
	return "Upgraded: Upgraded"
}

func TestYear(t *testing.T) {
	if testing.Short() {
		t.Skip("the lives of a year differ in their times only")
	}
	t.Parallel()
	y := newYear(t, 1)
	if n := len(y.slots); n != 26 || y.slots[21].Format(time.DateOnly) != "2026-12-29" {
		t.Fatalf("%d slots, the 22nd on %s", n, y.slots[21])
	}
	want := map[string]string{}
	for i, slot := range y.slots {
		if outcome := y.prepare(i); outcome != "" {
			want[slot.Format(time.DateOnly)] = outcome
		}
	}
	y.RunFor(365 * 24 * time.Hour)

	got := map[string]string{}
	for _, slot := range y.slots {
		key := strconv.FormatInt(slot.Unix(), 10)
		if n := y.created[key]; n > 1 {
			t.Errorf("the slot on %s has %d UpgradeJobs", slot, n)
		} else if n == 1 {
			end := y.ends[key]
			got[slot.Format(time.DateOnly)] = fmt.Sprintf("%s: %s", end.Phase, end.Reason)
		}
		delete(y.created, key)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("UpgradeJobs by slot (-want +got):\n%s", diff)
	}
	if len(y.created) > 0 {
		t.Errorf("UpgradeJobs outside of the slots: %v", y.created)
	}
	for i, slot := range y.slots {
		n := 0
		if want[slot.Format(time.DateOnly)] == "Upgraded: Upgraded" {
			n = 1
		}
		if y.commits[version(i)] != n {
			t.Errorf("%s, offered on %s, was requested %d times, want %d", version(i), slot, y.commits[version(i)], n)
		}
	}
	t.Logf("%d lives of the operator, %d changes", y.Lives, y.progress)
	if y.Lives < 200 {
		t.Errorf("the operator had %d lives: it was not killed at every write", y.Lives)
	}
	y.expectReleased()
}

// expectReleased checks the state after the year.
func (y *year) expectReleased() {
	y.TB.Helper()
	families, err := y.Registry.Gather()
	y.Must(err)
	scene := aftermath.Scene{Objects: y.User, Namespace: yearNamespace, Now: y.Now(), Series: families, Requests: &y.requested}
	if err := scene.Check(y.TB.Context()); err != nil {
		y.TB.Error(err)
	}
	jobs := simulation.List(y.Harness, &maintenancev1beta1.UpgradeJobList{})
	if len(jobs.Items) != 3 {
		y.TB.Errorf("%d UpgradeJobs, want as many as the history limit", len(jobs.Items))
	}
	events := simulation.List(y.Harness, &corev1.EventList{})
	counts := map[string]int{}
	for i := range events.Items {
		if events.Items[i].InvolvedObject.Kind == "UpgradeConfig" {
			counts[events.Items[i].Reason]++
		}
	}
	if diff := cmp.Diff(map[string]int{"JobCreated": 21, "SlotSkipped": 1, "SlotSuspended": 2, "SlotsMissed": 1}, counts); diff != "" {
		y.TB.Errorf("Events about the UpgradeConfig (-want +got):\n%s", diff)
	}
	cfg := simulation.Get(y.Harness, client.ObjectKey{Namespace: yearNamespace, Name: "fortnightly"}, &maintenancev1beta1.UpgradeConfig{})
	if last := y.slots[len(y.slots)-1]; !cfg.Status.HandledUntil.Equal(new(metav1.NewTime(last))) {
		y.TB.Errorf("handled until %s, want %s", cfg.Status.HandledUntil, last)
	}
}
