// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/assessment"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/dump"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/recording"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// Replays updates of a dev cluster to another patch and another minor version, recorded every 15 seconds by
// "make recordings". No screen may be stuck or require user action, whether judged on its own or after the
// previous one.
func TestStatus_of_recorded_updates(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 8
	}
	for name, release := range map[string]string{"patch": "4.20.6", "minor": "4.21.0"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := os.Open(filepath.Join("testdata", "recordings", name+".json.gz"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			dir, samples, codes := t.TempDir(), 0, map[session.ExitCode]int{}
			published := filepath.Join(dir, "updatestatus.json")
			var last *updatev1beta1.UpdateStatus
			for moment, err := range recording.Play(file) {
				if err != nil {
					t.Fatal(err)
				}
				if samples++; samples%every != 0 {
					continue
				}
				for _, list := range moment.Lists() {
					writeJSON(t, filepath.Join(dir, list.GetKind()+".json"), list)
				}
				for _, before := range []*updatev1beta1.UpdateStatus{nil, last} {
					if before != nil {
						before.APIVersion, before.Kind = updatev1beta1.GroupVersion.String(), "UpdateStatus"
						writeJSON(t, published, before)
					}
					var code session.ExitCode
					last, code = replayed(t, dir, moment.Time)
					codes[code]++
				}
				if err := os.Remove(published); err != nil && !os.IsNotExist(err) {
					t.Fatal(err)
				}
			}
			if samples < 100 || codes[session.ExitProgressing] < 10 || codes[session.ExitDone] == 0 || last.Status.Assessment.Release != release {
				t.Errorf("%d samples with exit codes %v, the last one is at %s", samples, codes, last.Status.Assessment.Release)
			}
		})
	}
}

// replayed returns the status of a dump at a given time. It fails if the status is stuck or unknown or
// requires user action.
func replayed(t *testing.T, dir string, at time.Time) (*updatev1beta1.UpdateStatus, session.ExitCode) {
	t.Helper()
	d, err := dump.Read(dir, scheme.Shared(), dump.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	cluster := &session.Cluster{Reader: d, Clock: session.FixedClock(at), Dump: d, Prometheus: d}
	of, err := readStatus(t.Context(), cluster, session.ControllerNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	code := verdict(of)
	if code == session.ExitActionRequired || code == session.ExitUnknown || of.object.Status.Assessment.State == updatev1beta1.StateStuck {
		t.Fatalf("exit code %d at %s:\n%s", code, at, runStatus(t, cluster, statusOptions{details: true}, "").Out)
	}
	return of.object, code
}

func writeJSON(t *testing.T, path string, value any) {
	t.Helper()
	content, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// reasonsOf returns the reasons in the first column of the table below a heading.
func reasonsOf(t *testing.T, page, heading string) []string {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(content), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	var reasons []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)`").FindAllStringSubmatch(section, -1) {
		reasons = append(reasons, row[1])
	}
	return reasons
}

// Every situation that requires user action must appear on the first screen, with the upgrade and the object
// to fix, as named in its message.
func TestFirst_screen_of_situations(t *testing.T) {
	t.Parallel()
	reasons := reasonsOf(t, "../../../docs/troubleshooting.md", "A person must act")
	if len(reasons) < 50 {
		t.Fatalf("%d situations", len(reasons))
	}
	ended, started := metav1.NewTime(clitest.Now.Add(-20*time.Minute)), metav1.NewTime(clitest.Now.Add(-time.Hour))
	for _, reason := range reasons {
		message := reason + ": object shop/culprit is to be fixed"
		step := history.StepCondition{Type: "ControlPlaneUpgraded", Status: metav1.ConditionFalse, Reason: reason, Message: message, StartTime: &started}
		for name, status := range map[string]upgradev1alpha1.UpgradeConfigStatus{
			"failed": {History: []history.Record{{
				Version: "4.20.7", Phase: history.PhaseFailed, StartTime: &started, CompleteTime: &ended, Reason: reason, Message: message,
			}}},
			"slow": {
				History:    []history.Record{{Version: "4.20.7", Phase: history.PhaseUpgrading, StartTime: &started, Conditions: []history.StepCondition{step}}},
				Conditions: []metav1.Condition{{Type: history.ConditionSlow, Status: metav1.ConditionTrue, Reason: reason, LastTransitionTime: started}},
			},
			"not accepted": {Conditions: []metav1.Condition{{Type: history.ConditionAccepted, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: started}}},
		} {
			t.Run(reason+", "+name, func(t *testing.T) {
				t.Parallel()
				upgrade := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "ops", Name: "weekly"}, Status: status}
				upgrade.Spec.Type, upgrade.Spec.UpgradeAt, upgrade.Spec.Desired.Version = "OSD", started.UTC().Format(time.RFC3339), "4.20.7"
				reader := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(append(standard().objects(), upgrade)...).Build()
				got := runStatus(t, &session.Cluster{Reader: notInstalled(reader), Clock: session.FixedClock(clitest.Now)}, statusOptions{}, "")
				words := strings.Join(strings.Fields(got.Out), " ")
				for _, want := range []string{"ops/weekly", "shop/culprit"} {
					if !strings.Contains(words, want) {
						t.Errorf("the first screen lacks %q:\n%s", want, got.Out)
					}
				}
				if name == "failed" && strings.Contains(words, "Do Nothing.") {
					t.Errorf("nothing is to be done beside an error:\n%s", got.Out)
				}
			})
		}
	}
}

// Bad news must appear on the first screen even if the cluster is idle or the update is progressing. If there
// is an error, the screen must not say that nothing needs to be done.
func TestFirst_screen_has_bad_news_in_each_state(t *testing.T) {
	t.Parallel()
	since := metav1.NewTime(clitest.Now.Add(-5 * time.Hour))
	down := func(names ...string) func(*topology) {
		return func(c *topology) {
			for _, name := range names {
				c.nodes[name].Status.Conditions[0] = corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, LastTransitionTime: since}
			}
		}
	}
	failing := func(c *topology) {
		c.version.Status.Conditions[2] = configv1.ClusterOperatorStatusCondition{
			Type: "Failing", Status: configv1.ConditionTrue, Reason: "ClusterOperatorDegraded", Message: "network is degraded", LastTransitionTime: since,
		}
		c.operators["network"].Status.Conditions[1] = configv1.ClusterOperatorStatusCondition{
			Type: configv1.OperatorDegraded, Status: configv1.ConditionTrue, Reason: "RolloutHung", Message: "a DaemonSet is not updated", LastTransitionTime: since,
		}
	}
	for name, tc := range map[string]struct {
		cluster *topology
		code    session.ExitCode
		want    []string
		error   bool
	}{
		"idle": {
			standard().change(failing).change(down("w1")), session.ExitDone,
			[]string{"UP TO DATE 4.20.6", "ClusterVersion has been failing", "operator network is degraded", "node w1 is not ready"},
			true,
		},
		"all workers are down": {
			standard().update().reboot("m1").change(down("w0", "w1", "w2")), session.ExitProgressing,
			[]string{"UPDATING 4.20.6 to 4.20.7", "nodes w0, w1, w2 are not ready"},
			false,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.cluster.objects()...).Build()
			got := runStatus(t, &session.Cluster{Reader: notInstalled(reader), Clock: session.FixedClock(clitest.Now)}, statusOptions{}, "")
			words := strings.Join(strings.Fields(got.Out), " ")
			for _, want := range tc.want {
				if got.Code != tc.code || !strings.Contains(words, want) {
					t.Errorf("exit code %d, want %d and %q:\n%s", got.Code, tc.code, want, got.Out)
				}
			}
			if tc.error && strings.Contains(words, "Do Nothing.") {
				t.Errorf("nothing is to be done beside an error:\n%s", got.Out)
			}
		})
	}
}

// bases returns clusters before, during, and after the update of the control plane, and one with a paused
// pool.
func bases(t *testing.T) []checks.Facts {
	t.Helper()
	var all []checks.Facts
	for _, cluster := range []*topology{
		standard(), standard().update().reboot("m1"), standard().update().updated("m0", "m1", "m2", "w0").reboot("w1"),
		standard().update().updated("m0", "m1", "m2").change(func(c *topology) { c.pools["worker"].Spec.Paused = true }),
	} {
		reader := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster.objects()...).Build()
		all = append(all, checks.Gather(t.Context(), checks.Update, readers((&session.Cluster{Reader: notInstalled(reader), Clock: session.FixedClock(clitest.Now)}), clitest.Now)))
	}
	return all
}

// firstScreen returns the first screen of a cluster with added insights, joined into one line.
func firstScreen(facts checks.Facts, add func(sections []*updatev1beta1.Section)) string {
	status := updatestatus.Compute(updatestatus.Input{Facts: facts})
	sections := []*updatev1beta1.Section{&status.ControlPlane.Section}
	for i := range status.WorkerPools {
		sections = append(sections, &status.WorkerPools[i].Section)
	}
	add(sections)
	judged := assessment.Assess(status, assessment.Input{Facts: facts, Now: clitest.Now})
	status.Assessment = &judged
	s := &statusScreen{Layout: screen.Layout{Width: screen.DefaultWidth}, status: status, assessment: judged, now: clitest.Now, name: "oc update"}
	return strings.Join(strings.Fields(s.render()), " ")
}

// Each reason about an object names it on the first screen, in any state of the cluster.
func TestFirst_screen_of_reasons(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/concepts/update-troubleshooting.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{
		"ClusterOperator": "ClusterOperator", "node": "Node", "pod": "Pod", "pool": "MachineConfigPool", "alert": "Alert", "upgrade": "UpgradeConfig",
		"informer": "UpdateInformer", "PodDisruptionBudget": "PodDisruptionBudget",
	}
	reasons, clusters := 0, bases(t)
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\| (?:[a-z ]+ )?([A-Za-z]+) NAME[^|]*\\|").FindAllStringSubmatch(string(page), -1) {
		kind, known := kinds[row[2]]
		if !known {
			continue
		}
		reasons++
		for i, base := range clusters {
			printed := firstScreen(base, func(sections []*updatev1beta1.Section) {
				of := updatev1beta1.Insight{UID: "uid", UUID: "uuid", FirstObservedTime: metav1.NewTime(clitest.Now.Add(-time.Hour))}
				of.Impact.Level, of.Impact.Reason, of.Impact.Summary = updatev1beta1.LevelError, row[1], "a summary"
				of.Scope.Resources = []updatev1beta1.ResourceReference{{Kind: kind, Name: "culprit"}}
				sections[0].UpdateInformers = append(sections[0].UpdateInformers, updatev1beta1.InformerInsights{Name: checks.InformerNodes, Insights: []updatev1beta1.Insight{of}})
			})
			if !strings.Contains(printed, "culprit") || strings.Contains(printed, "Do Nothing") {
				t.Errorf("%s of %s, cluster %d: %s", row[1], kind, i, printed)
			}
		}
	}
	if reasons < 40 {
		t.Errorf("%d reasons", reasons)
	}
}

// In 64 clusters with facts of all levels, each error appears on the first screen, and "Nothing." never appears
// together with an error.
func TestFirst_screen_has_each_error(t *testing.T) {
	t.Parallel()
	kinds := []updatev1beta1.ResourceReference{
		{Kind: "Node", Name: "w2"},
		{Kind: "Node", Name: "m2"},
		{Kind: "Pod", Namespace: "shop", Name: "api"},
		{Kind: "ClusterOperator", Name: "network"},
		{Kind: "MachineConfigPool", Name: "worker"},
		{Kind: "PodDisruptionBudget", Namespace: "shop", Name: "api"},
		{Kind: "Disk", Name: "sda"},
		{},
	}
	found, clusters := 0, bases(t)
	for seed := range int64(64) {
		r := rand.New(rand.NewSource(seed))
		var severe []string
		printed := firstScreen(clusters[r.Intn(len(clusters))], func(sections []*updatev1beta1.Section) {
			for i := range 1 + r.Intn(12) {
				of := updatev1beta1.Insight{UID: fmt.Sprint("uid-", i), UUID: fmt.Sprint("uuid-", i), FirstObservedTime: metav1.NewTime(clitest.Now.Add(-time.Duration(r.Intn(300)) * time.Minute))}
				of.Impact.Level = []updatev1beta1.Level{"status", "info", "warning", "error", "critical"}[r.Intn(5)]
				of.Impact.Reason = []string{"NodeNotReady", "OperatorDegraded", "PoolDegraded", "AlertFiring", "Odd", ""}[r.Intn(6)]
				of.Impact.Summary = fmt.Sprint("summary-", i)
				name := of.Impact.Summary
				if about := kinds[r.Intn(len(kinds))]; about.Kind != "" {
					about.Name = fmt.Sprint(about.Name, "-", i)
					of.Scope.Resources, name = []updatev1beta1.ResourceReference{about}, about.Name
				}
				informer := []string{checks.InformerNodes, checks.InformerControlPlane, checks.InformerAlerts, "stranger"}[r.Intn(4)]
				section := sections[r.Intn(len(sections))]
				section.UpdateInformers = append(section.UpdateInformers, updatev1beta1.InformerInsights{Name: informer, Insights: []updatev1beta1.Insight{of}})
				if of.Impact.Level == updatev1beta1.LevelError || of.Impact.Level == updatev1beta1.LevelCritical {
					severe = append(severe, name+" "+of.Impact.Summary)
				}
			}
		})
		found += len(severe)
		for _, fact := range severe {
			name, summary, _ := strings.Cut(fact, " ")
			if !strings.Contains(printed, name) && !strings.Contains(printed, summary) {
				t.Errorf("cluster %d lacks the error about %s: %s", seed, fact, printed)
			}
		}
		if len(severe) > 0 && strings.Contains(printed, "Do Nothing") {
			t.Errorf("cluster %d: nothing is to be done beside an error: %s", seed, printed)
		}
	}
	if found < 64 {
		t.Errorf("%d errors", found)
	}
}
