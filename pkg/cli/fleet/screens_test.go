// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
)

// stores is a fleet of three canaries and groups of clusters, as API objects.
type stores struct {
	t        *testing.T
	now      time.Time
	upgrade  *fleetv1beta1.ManagedClustersUpgrade
	clusters []*clusterv1.ManagedCluster
	runs     map[string]*fleetv1alpha1.ClusterUpgradeRun
	objects  []client.Object
	// unchecked is the number of clusters that a dry run has not checked.
	unchecked int
}

// newStores returns a fleet whose clusters are numbered from 1: canaries first, followed by each group.
func newStores(t *testing.T, clock string, canaries int, groups ...int) *stores {
	t.Helper()
	at, err := time.Parse("15:04", clock)
	if err != nil {
		t.Fatal(err)
	}
	f := &stores{t: t, now: time.Date(2026, 11, 23, at.Hour(), at.Minute(), 0, 0, time.UTC), runs: map[string]*fleetv1alpha1.ClusterUpgradeRun{}}
	f.upgrade = &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "stores", UID: "u1", Generation: 1}}
	f.upgrade.Spec.Placement = []fleetv1beta1.PlacementReference{{Name: "all"}}
	f.upgrade.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}
	f.upgrade.Spec.UpgradeStrategy.RolloutType = fleetv1beta1.RolloutProgressivePerGroup
	f.upgrade.Spec.UpgradeStrategy.MaxConcurrency = new(intstr.FromInt32(40))
	f.upgrade.Spec.UpgradeStrategy.MaxFailures = new(intstr.FromInt32(14))
	if canaries > 0 {
		f.upgrade.Spec.UpgradeStrategy.CanaryClusters = &fleetv1beta1.CanaryClusters{ClusterSelector: fleetv1beta1.LabelSelector{MatchLabels: map[string]string{"canary": "yes"}}}
	}
	number, total := 0, 0
	for group, size := range groups {
		if group == 0 {
			size += canaries
		}
		decision := &ocmv1beta1.PlacementDecision{ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: fmt.Sprintf("all-%d", group),
			Labels: map[string]string{ocmv1beta1.PlacementLabel: "all", ocmv1beta1.DecisionGroupIndexLabel: strconv.Itoa(group)},
		}}
		for range size {
			number++
			cluster := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("store-%04d", number), Labels: map[string]string{}}}
			cluster.Spec.HubAcceptsClient = true
			cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}
			if number <= canaries {
				cluster.Labels["canary"] = "yes"
			}
			f.clusters = append(f.clusters, cluster)
			decision.Status.Decisions = append(decision.Status.Decisions, ocmv1beta1.ClusterDecision{ClusterName: cluster.Name})
		}
		total += size
		f.objects = append(f.objects, decision)
	}
	placement := &ocmv1beta1.Placement{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "all"}}
	placement.Status.NumberOfSelectedClusters = int32(total)
	f.objects = append(f.objects, placement)
	return f
}

// run sets the runs of clusters by number.
func (f *stores) run(state fleetv1alpha1.ClusterUpgradeState, reason, message string, numbers ...int) {
	for _, n := range numbers {
		name := fmt.Sprintf("store-%04d", n)
		run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: admission.RunName(f.upgrade), Labels: map[string]string{fleetv1beta1.UpgradeLabel: "u1"}}}
		run.Spec.ManagedClustersUpgrade = fleetv1alpha1.UpgradeReference{Namespace: "fleet", Name: "stores", UID: "u1"}
		run.Spec.Attempt, run.Status.Attempt = 1, 1
		run.Spec.AdmissionTime = metav1.NewTime(f.now.Add(-10 * time.Hour))
		run.Status.State, run.Status.Reason, run.Status.Message = state, reason, message
		if state == fleetv1alpha1.StateComplete {
			took := []time.Duration{51 * time.Minute, 52 * time.Minute, 60 * time.Minute}[n%3]
			run.Status.CompletionTime = &metav1.Time{Time: run.Spec.AdmissionTime.Add(took)}
		}
		f.runs[name] = run
	}
}

// stall marks a step of runs as stalled for two minutes, as the hub does.
func (f *stores) stall(step, message string, numbers ...int) {
	for _, n := range numbers {
		run := f.runs[fmt.Sprintf("store-%04d", n)]
		run.Status.Message = message
		run.Status.History = []history.Record{{Attempt: 1, Conditions: []history.StepCondition{{
			Type: step, Status: metav1.ConditionFalse, Reason: "Upgrading", Message: message,
		}}}}
		run.Status.Conditions = append(run.Status.Conditions, metav1.Condition{
			Type: fleetv1alpha1.ConditionSlow, Status: metav1.ConditionTrue, Reason: step,
			LastTransitionTime: metav1.NewTime(f.now.Add(-2 * time.Minute)),
			Message:            fmt.Sprintf("%s started at 2026-11-23T13:%02d:00Z and is slow: %s", step, n%60, message),
		})
	}
}

func numbers(from, to int) []int {
	var list []int
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

func (f *stores) reader() client.Client {
	f.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme, clusterv1.Install, ocmv1beta1.Install} {
		if err := add(scheme); err != nil {
			f.t.Fatal(err)
		}
	}
	objects := append(slices.Clone(f.objects), f.upgrade)
	for _, cluster := range f.clusters {
		objects = append(objects, cluster)
	}
	for _, run := range f.runs {
		objects = append(objects, run)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
}

func (f *stores) read() *Snapshot {
	f.t.Helper()
	s, err := Read(f.t.Context(), f.reader(), client.ObjectKeyFromObject(f.upgrade), f.now)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// publish publishes the status as the hub does. Obstacles come from a dry run, by cluster.
func (f *stores) publish(obstacles map[string]admissionStop) {
	f.t.Helper()
	s := f.read()
	for i := range s.Members {
		m := &s.Members[i]
		m.Checked = i >= f.unchecked
		if o, blocked := obstacles[m.Name]; blocked {
			m.Obstacle.Reason, m.Obstacle.Message = o.reason, o.message
		}
	}
	f.upgrade.Status = admission.ComputeStatus(&admission.Fleet{Upgrade: s.Upgrade, Now: f.now}, s.Members, admission.Admit(s.Plan, s.Members, f.now))
}

type admissionStop struct{ reason, message string }

func printer() *Printer {
	return &Printer{Width: 80, Command: func(verb string) string { return "oc update fleet " + verb + " stores" }}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	want, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("screen (-want +got):\n%s\n%s", diff, got)
	}
}

func TestStatus_in_progress(t *testing.T) {
	t.Parallel()
	f := newStores(t, "14:32", 3, 120, 400, 800)
	f.run(fleetv1alpha1.StateComplete, "Upgraded", "", numbers(1, 184)...)
	f.run(fleetv1alpha1.StateFailed, fleetv1alpha1.ReasonClusterVersionFailing, "etcd is degraded", 388)
	f.run(fleetv1alpha1.StatePartialUpgrade, "ClusterUpgraded", "", append(numbers(348, 385), 402, 417)...)
	f.stall(fleetv1alpha1.StepClusterUpgraded, "Working towards 4.20.6: 780 of 900 done (86% complete), waiting on machine-config", 402, 417)
	f.publish(nil)
	s := f.read()
	golden(t, "progress", printer().Status(s))
	if v := s.Verdict(); v.State != Progressing {
		t.Errorf("verdict %+v", v)
	}
}

// An undelivered action requires user action although nothing has failed.
func TestStatus_of_an_action_that_is_not_delivered(t *testing.T) {
	t.Parallel()
	f := newStores(t, "14:32", 0, 3)
	f.run(fleetv1alpha1.StateInitialized, "ReplicaSetIgnored", "", 1, 2)
	f.stall(fleetv1alpha1.StepPreUpgradeActionAvailable, "not delivered by ManifestWorkReplicaSet mcu-1-pre within 1m0s: see the feature gate", 1, 2)
	f.publish(nil)
	s := f.read()
	golden(t, "undelivered", printer().Status(s))
	if v := s.Verdict(); v.State != ActionRequired {
		t.Errorf("verdict %+v", v)
	}
}

func TestRoughly(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{0: "<1m", 29 * time.Second: "<1m", 30 * time.Second: "1m", 119 * time.Minute: "119m", 2 * time.Hour: "2h", 72 * time.Hour: "3d"} {
		if got := roughly(d, false); got != want {
			t.Errorf("%s: got %s, want %s", d, got, want)
		}
	}
}

func TestStatus_stopped(t *testing.T) {
	t.Parallel()
	f := newStores(t, "09:12", 3, 120)
	f.run(fleetv1alpha1.StateComplete, "Upgraded", "", 1, 3)
	f.run(fleetv1alpha1.StateFailed, fleetv1alpha1.ReasonPreActionDegraded, "Job backup failed", 2)
	f.publish(nil)
	s := f.read()
	golden(t, "stopped", printer().Status(s))
	if v := s.Verdict(); v.State != ActionRequired {
		t.Errorf("verdict %+v", v)
	}
}

func TestStatus_names_failures_of_clusters_that_are_gone_or_forgotten(t *testing.T) {
	t.Parallel()
	f := newStores(t, "09:12", 3, 120)
	f.run(fleetv1alpha1.StateComplete, "Upgraded", "", 1, 3)
	f.publish(nil)
	f.upgrade.Status.Departed = []fleetv1beta1.DepartedClusters{{Index: 1, Failed: 2, Canaries: 1}, {Index: 2, Failed: 1}}
	f.upgrade.Status.ForgottenFailures = []fleetv1beta1.ForgottenFailure{{Cluster: "store-0007", Reason: "its disk is broken"}}
	screen := printer().Status(f.read())
	for _, want := range []string{
		"  GONE    3  left the hub before the end (canaries: 1)\n",
		"  IGNORED 1  its failure does not count: its disk is broken",
		"store-0007\n",
	} {
		if !strings.Contains(screen, want) {
			t.Errorf("the screen lacks %q:\n%s", want, screen)
		}
	}
}

func TestPlan_of_a_dry_run(t *testing.T) {
	t.Parallel()
	f := newStores(t, "09:12", 3, 120, 400, 800)
	f.upgrade.Spec.DryRun = true
	for _, n := range numbers(1200, 1211) {
		f.clusters[n-1].Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "version.openshift.io", Value: "4.20.6"}}
	}
	blocked := map[string]admissionStop{}
	block := func(reason, message string, numbers ...int) {
		for _, n := range numbers {
			blocked[fmt.Sprintf("store-%04d", n)] = admissionStop{reason, message}
		}
	}
	block("NotUpgradeable", "Upgradeable=False: AdminAckRequired", numbers(101, 114)...)
	block("NotOffered", "not offered in stable-4.20", numbers(560, 564)...)
	block("Unreachable", "unreachable", 777, 901)
	f.publish(blocked)
	s := f.read()
	golden(t, "plan", printer().Plan(s))
	forecast := s.Forecast()
	if forecast.State(s) != ActionRequired {
		t.Errorf("forecast %+v", forecast)
	}
}

// The hub also publishes holds and clusters with newer releases. Each cluster counts once.
func TestPlan_counts_each_cluster_once(t *testing.T) {
	t.Parallel()
	f := newStores(t, "09:12", 0, 9)
	f.upgrade.Spec.DryRun = true
	f.clusters[1].Annotations = map[string]string{"upgrade.managed.openshift.io/hold": "disk"}
	newer := []clusterv1.ManagedClusterClaim{{Name: "version.openshift.io", Value: "4.21.0"}}
	f.clusters[2].Status.ClusterClaims = newer
	const reason = fleetv1alpha1.ReasonNewerVersionInstalled
	f.publish(map[string]admissionStop{
		"store-0002": {fleetv1beta1.ReasonHeld, "held"}, "store-0003": {reason, "newer"}, "store-0004": {reason, "newer"}, // from its feedback
	})
	s := f.read()
	if got := s.Forecast(); got.Ready != 6 || got.Blocked != 3 || got.Done != 0 {
		t.Errorf("%d ready, %d blocked, %d done:\n%s", got.Ready, got.Blocked, got.Done, printer().Plan(s))
	}
}

// A plan that is not checked or could not start is never printed as ready to run.
func TestPlan_that_cannot_be_run(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit  func(*stores)
		want  string
		state VerdictState
	}{
		"nothing published": {func(*stores) {}, "UNKNOWN  the hub has not checked the clusters yet", Waiting},
		"not checked": {func(f *stores) {
			f.publish(nil)
			c := &f.upgrade.Status.Conditions[len(f.upgrade.Status.Conditions)-1]
			c.Status, c.Message = metav1.ConditionUnknown, "7 clusters are not checked yet"
		}, "UNKNOWN  7 clusters are not checked yet", Waiting},
		"not checked, but for one that is blocked": {func(f *stores) {
			f.unchecked = 3
			f.publish(map[string]admissionStop{"store-0005": {"Unreachable", "unreachable"}})
		}, "UNKNOWN  3 clusters are not checked yet; an obstacle was found", ActionRequired},
		"only claims": {func(f *stores) {
			f.upgrade.Spec.ClaimsOnly = true
			f.publish(map[string]admissionStop{"store-0005": {"VersionUnknown", "it does not claim its release"}})
		}, "UNKNOWN  only the claims of the clusters were read", ActionRequired},
		"no canary": {func(f *stores) {
			f.clusters[0].Labels = nil
			f.publish(nil)
		}, "STOPPED  spec.upgradeStrategy.canaryClusters selects none of the selected clusters", ActionRequired},
		"a hold": {func(f *stores) {
			f.clusters[1].Annotations = map[string]string{"upgrade.managed.openshift.io/hold": "disk"}
			f.publish(nil)
		}, "BLOCKED      1  1  the annotation upgrade.managed.openshift.io/hol… store-0002", ActionRequired},
		"a canary has left the hub": {func(f *stores) {
			f.upgrade.Status.Canaries = admission.Canaries(f.upgrade, nil)
			f.upgrade.Status.Canaries.Departed = 1
		}, "STOPPED  1 canary was not complete when the ManagedCluster or the ClusterUpgradeRun was deleted", ActionRequired},
		"no dry run": {func(f *stores) { f.upgrade.Spec.DryRun = false }, "UNKNOWN  the clusters are checked only while spec.dryRun is true", Done},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newStores(t, "09:12", 1, 7)
			f.upgrade.Spec.DryRun = true
			tc.edit(f)
			s := f.read()
			screen := printer().Plan(s)
			forecast := s.Forecast()
			runnable := strings.Contains(screen, "To run it")
			if !strings.Contains(screen, tc.want) || forecast.State(s) != tc.state || runnable && name != "a hold" {
				t.Errorf("state %d, want %d with %q:\n%s", forecast.State(s), tc.state, tc.want, screen)
			}
		})
	}
}

// The CLI makes the same decisions as the hub about slots and the next clusters.
func TestRead_decides_as_the_hub(t *testing.T) {
	t.Parallel()
	f := newStores(t, "09:12", 1, 3, 5)
	f.run(fleetv1alpha1.StateComplete, "Upgraded", "", 1)
	f.run(fleetv1alpha1.StatePartialUpgrade, "ClusterUpgraded", "", 2)
	f.upgrade.Spec.UpgradeStrategy.MaxConcurrency = new(intstr.FromInt32(2))
	s := f.read()
	if diff := cmp.Diff([]string{"store-0003"}, s.Decision.Admit); diff != "" || s.Decision.InUse != 1 {
		t.Errorf("admits (-want +got), %d slots in use:\n%s", s.Decision.InUse, diff)
	}
	if e, known := s.estimate(); known {
		t.Errorf("estimate %+v of one sample", e)
	}
}

func TestVerdict_of_a_status_that_is_behind(t *testing.T) {
	t.Parallel()
	f := newStores(t, "09:12", 0, 3)
	if v := f.read().Verdict(); v.State != Unknown {
		t.Errorf("without a status: %+v", v)
	}
	f.run(fleetv1alpha1.StateComplete, "Upgraded", "", 1, 2, 3)
	f.publish(nil)
	if v := f.read().Verdict(); v.State != Done || v.Text != "complete" {
		t.Errorf("complete: %+v", v)
	}
	f.upgrade.Generation++
	if v := f.read().Verdict(); v.State != Unknown {
		t.Errorf("a status of the earlier spec: %+v", v)
	}
}

// A hub that only publishes why it stopped leaves the rest of the status unchanged.
func TestVerdict_of_a_hub_that_publishes_only_why_it_stopped(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]Verdict{
		fleetv1beta1.ReasonDeleting:      {State: Waiting, Text: "is being deleted", Detail: "because of a test"},
		fleetv1beta1.ReasonCannotObserve: {State: Unknown, Text: "the hub cannot read its objects", Detail: "because of a test"},
	} {
		t.Run(reason, func(t *testing.T) {
			t.Parallel()
			f := newStores(t, "09:12", 0, 3)
			set := func() {
				f.upgrade.Generation++
				apimeta.SetStatusCondition(&f.upgrade.Status.Conditions, metav1.Condition{
					Type: fleetv1beta1.ConditionAdmitting, Status: metav1.ConditionFalse, Reason: reason, Message: "because of a test",
					ObservedGeneration: f.upgrade.Generation,
				})
			}
			set()
			if diff := cmp.Diff(want, f.read().Verdict()); diff != "" {
				t.Errorf("without counters (-want +got):\n%s", diff)
			}
			f.run(fleetv1alpha1.StateComplete, "Upgraded", "", 1)
			f.publish(nil)
			set()
			if diff := cmp.Diff(want, f.read().Verdict()); diff != "" {
				t.Errorf("with outdated counters (-want +got):\n%s", diff)
			}
			f.upgrade.Generation++
			if v := f.read().Verdict(); !strings.Contains(v.Text, "has not observed") {
				t.Errorf("after another change: %+v", v)
			}
		})
	}
}

// A retry does not help a refused cluster.
func TestVerdict_of_refused_clusters(t *testing.T) {
	t.Parallel()
	f := newStores(t, "09:12", 0, 3)
	f.run(fleetv1alpha1.StateComplete, "Upgraded", "", 1)
	f.run(fleetv1alpha1.StateFailed, fleetv1alpha1.ReasonNewerVersionInstalled, "it has 4.21.0", 2)
	f.run(fleetv1alpha1.StateFailed, fleetv1alpha1.ReasonHostedControlPlane, "hosted", 3)
	for _, name := range []string{"store-0002", "store-0003"} {
		f.runs[name].Spec.Outcome = &fleetv1alpha1.Outcome{State: fleetv1alpha1.StateFailed, Reason: f.runs[name].Status.Reason}
	}
	f.publish(nil)
	if v := f.read().Verdict(); v.Verb != "" || !strings.Contains(v.Detail, "Deselect") {
		t.Errorf("all are refused: %+v", v)
	}
	f.run(fleetv1alpha1.StateFailed, fleetv1alpha1.ReasonClusterVersionFailing, "etcd is degraded", 1)
	f.publish(nil)
	if v := f.read().Verdict(); v.Verb != "retry" {
		t.Errorf("one has failed: %+v", v)
	}
}

// Properties of the estimate: its bounds are ordered, more work never takes less time, and more slots never
// take more time.
func TestEstimate_properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 1))
		took := make([]time.Duration, minSamples+r.IntN(40))
		for i := range took {
			took[i] = time.Duration(1+r.IntN(300)) * time.Minute
		}
		var stages []load
		for range r.IntN(5) {
			stages = append(stages, load{inFlight: r.IntN(50), pending: r.IntN(500)})
		}
		slots := 1 + r.IntN(60)
		e, known := NewEstimate(took, stages, slots)
		if !known || e.Low > e.High || e.Median < slices.Min(took) || e.Median > slices.Max(took) {
			t.Fatalf("seed %d: %+v, %t", seed, e, known)
		}
		more := append(slices.Clone(stages), load{pending: 1})
		if longer, _ := NewEstimate(took, more, slots); longer.Low <= e.Low || longer.High <= e.High {
			t.Fatalf("seed %d: more work takes %+v, and less %+v", seed, longer, e)
		}
		if faster, _ := NewEstimate(took, stages, slots+1); faster.Low > e.Low || faster.High > e.High {
			t.Fatalf("seed %d: one slot more takes %+v, and fewer %+v", seed, faster, e)
		}
		r.Shuffle(len(took), func(i, j int) { took[i], took[j] = took[j], took[i] })
		if again, _ := NewEstimate(took, stages, slots); again != e {
			t.Fatalf("seed %d: %+v in another order: %+v", seed, e, again)
		}
		for n := range minSamples {
			if _, known := NewEstimate(took[:n], stages, slots); known {
				t.Fatalf("seed %d: %d samples are enough", seed, n)
			}
		}
	}
}

// What a screen advises has an effect.
func TestVerdict_advises_what_has_an_effect(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		edit   func(*stores)
		want   Verdict
		refuse string // why a retry is refused
	}{
		"a cluster that failed has left the hub": {func(f *stores) {
			f.upgrade.Status.Departed = []fleetv1beta1.DepartedClusters{{Index: 1, Failed: 1}}
		}, Verdict{State: ActionRequired, Text: "finished, 1 failed", Verb: "retry", Advice: afterFixing}, ""},
		"a canary has left the hub before the retry": {func(f *stores) {
			admitting := apimeta.FindStatusCondition(f.upgrade.Status.Conditions, fleetv1beta1.ConditionAdmitting)
			admitting.Reason, admitting.Message = fleetv1beta1.ReasonCanaryNotAvailable, "set the annotation"
		}, Verdict{State: ActionRequired, Text: "STOPPED: a canary cannot begin", Stopped: true, Detail: "set the annotation"}, "no cluster failed"},
		"a canary cannot begin": {func(f *stores) {
			admitting := apimeta.FindStatusCondition(f.upgrade.Status.Conditions, fleetv1beta1.ConditionAdmitting)
			admitting.Reason, admitting.Message = fleetv1beta1.ReasonCanaryNotAvailable, "raise spec.attempt, or set the annotation"
			f.upgrade.Status.Stop = &fleetv1beta1.StopStatus{Reason: admitting.Reason}
		}, Verdict{State: ActionRequired, Text: "STOPPED: a canary cannot begin", Stopped: true, Detail: "raise spec.attempt, or set the annotation", Verb: "retry", Advice: stopAdvice}, ""},
		"cancelled with failures": {func(f *stores) {
			f.upgrade.Spec.Cancelled = true
			f.upgrade.Status.ClustersSummery.Complete, f.upgrade.Status.ClustersSummery.Failed = 2, 1
		}, Verdict{State: Done, Text: "cancelled", Detail: "No further clusters will be started."}, "it is cancelled"},
		"cancelled, with a cluster in flight": {func(f *stores) {
			f.upgrade.Spec.Cancelled = true
			f.upgrade.Status.ClustersSummery.Complete, f.upgrade.Status.ClustersSummery.PartialUpgrade = 2, 1
		}, Verdict{State: Progressing, Text: "cancelled", Detail: "No further clusters will be started."}, "it is cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newStores(t, "09:12", 0, 3)
			f.run(fleetv1alpha1.StateComplete, "Upgraded", "", 1, 2, 3)
			f.publish(nil)
			complete := apimeta.FindStatusCondition(f.upgrade.Status.Conditions, fleetv1beta1.ConditionComplete)
			complete.Status, complete.Reason = metav1.ConditionFalse, fleetv1beta1.ReasonClustersFailed
			tc.edit(f)
			if diff := cmp.Diff(tc.want, f.read().Verdict()); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
			if _, err := retryFleet(f.upgrade); (err == nil) != (tc.refuse == "") || err != nil && !strings.Contains(err.Error(), tc.refuse) {
				t.Errorf("retry: %v, want %q", err, tc.refuse)
			}
		})
	}
}
