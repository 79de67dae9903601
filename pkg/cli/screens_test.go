// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

var update = flag.Bool("update", false, "write the golden files, except those that the design prints")

// now is the time of all screens.
var now = time.Date(2026, 11, 23, 1, 0, 0, 0, time.UTC)

func ago(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(-d)} }

func in(d time.Duration) *metav1.Time { return &metav1.Time{Time: now.Add(d)} }

func at(value string) metav1.Time {
	parsed, err := time.Parse("2006-01-02 15:04", value)
	if err != nil {
		panic(err)
	}
	return metav1.NewTime(parsed)
}

// screenCase is a status and where it is from.
type screenCase struct {
	assessment updatev1beta1.Assessment
	observed   *metav1.Time
	origin     origin
}

func currentSources(names ...string) []updatev1beta1.Source {
	var sources []updatev1beta1.Source
	for _, name := range names {
		sources = append(sources, updatev1beta1.Source{Name: name, Current: true})
	}
	return sources
}

var allSources = []string{"ClusterVersion", "operators", "nodes", "pools", "Update Status Controller", "informer mco-update-informer"}

func publishedOrigin(seen time.Duration) origin {
	return origin{published: true, installed: true, controllerSeen: now.Add(-seen)}
}

// designScreens are the six screens of the design.
func designScreens() map[string]screenCase {
	return map[string]screenCase{
		"idle":           idleScreen(),
		"progressing":    progressingScreen(),
		"waiting":        waitingScreen(),
		"stuck-drain":    stuckDrainScreen(),
		"stuck-operator": stuckOperatorScreen(),
		"unknown":        unknownScreen(),
	}
}

func idleScreen() screenCase {
	installed := at("2026-11-14 03:12")
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateIdle, Release: "4.20.6", InstalledTime: &installed,
			Next: &updatev1beta1.ScheduledTime{
				Time: at("2026-11-28 22:00"), Release: "4.20.8",
				By: &updatev1beta1.ResourceReference{Kind: "UpgradeConfig", Namespace: "ops", Name: "weekly"},
			},
			Remedy: &updatev1beta1.Remedy{
				Type: updatev1beta1.RemedyNone, Text: "Nothing. Check it ahead:", Commands: []string{"oc update pre-checks --version 4.20.8"},
			},
			Sources: currentSources(allSources...),
		},
		origin: publishedOrigin(4 * time.Second),
	}
}

func progressingScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateProgressing, FromRelease: "4.20.5", Release: "4.20.6",
			StartedTime: ago(38 * time.Minute), LastChangeTime: ago(40 * time.Second),
			Estimate: &updatev1beta1.Estimate{
				From: updatev1beta1.EstimateFromNow, Earliest: in(27 * time.Minute), Latest: in(72 * time.Minute),
				Sections: []updatev1beta1.SectionEstimate{
					{Name: "control plane", Earliest: in(14 * time.Minute), Latest: in(33 * time.Minute), Basis: "3 earlier updates took 52m to 71m"},
					{Name: "worker", MinSeconds: 27 * 60, MaxSeconds: 39 * 60, Basis: "9m to 13m per node in the last update"},
				},
			},
			Sections: []updatev1beta1.SectionAssessment{
				{Name: "control plane", Updated: 29, Total: 33, Unit: "operators", Detail: "network, dns updating", DetailSince: ago(6 * time.Minute)},
				{Name: "master", Updated: 1, Total: 3, Unit: "nodes", Detail: "master-1 rebooting", DetailSince: ago(3 * time.Minute)},
				{Name: "worker", Updated: 0, Total: 6, Unit: "nodes", Detail: "pending, 2 at a time"},
			},
			Remedy:  &updatev1beta1.Remedy{Type: updatev1beta1.RemedyNone, Text: "Nothing."},
			Sources: currentSources(allSources...),
		},
		observed: ago(12 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func waitingScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateWaiting, FromRelease: "4.20.5", Release: "4.20.6", Summary: "Pool worker waits for its window",
			Resumes: &updatev1beta1.ScheduledTime{
				Time: at("2026-11-28 22:00"), By: &updatev1beta1.ResourceReference{Kind: "UpgradeJob", Namespace: "ops", Name: "weekly"},
			},
			Estimate: &updatev1beta1.Estimate{
				From: updatev1beta1.EstimateFromResumption, MinSeconds: 108 * 60, MaxSeconds: 156 * 60,
				Sections: []updatev1beta1.SectionEstimate{{Name: "worker", MinSeconds: 108 * 60, MaxSeconds: 156 * 60, Basis: "9m to 13m per node in the last update"}},
			},
			Sections: []updatev1beta1.SectionAssessment{
				{Name: "control plane", Updated: 33, Total: 33, Unit: "operators", Detail: "done after 62m"},
				{Name: "worker", Updated: 0, Total: 12, Unit: "nodes", Detail: "paused, then 1 at a time"},
			},
			Remedy:  &updatev1beta1.Remedy{Type: updatev1beta1.RemedyNone, Text: "Nothing before then."},
			Sources: currentSources(allSources...),
		},
		observed: ago(48 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func stuckDrainScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateStuck, ActionRequired: true, FromRelease: "4.20.5", Release: "4.20.6",
			Summary: "Pool worker has made no progress", SummarySince: ago(64 * time.Minute),
			Estimate: &updatev1beta1.Estimate{From: updatev1beta1.EstimateFromRemedy, MinSeconds: 72 * 60, MaxSeconds: 104 * 60},
			Sections: []updatev1beta1.SectionAssessment{
				{Name: "control plane", Updated: 33, Total: 33, Unit: "operators", Detail: "done after 62m"},
				{Name: "worker", Updated: 4, Total: 12, Unit: "nodes", Detail: "worker-3 draining", DetailSince: ago(64 * time.Minute)},
			},
			Causes: []updatev1beta1.Cause{{
				Chain: []updatev1beta1.CauseLink{
					{Message: "PodDisruptionBudget shop/api allows 0 disruptions (2 of 2 required)"},
					{Message: "pod shop/api-7c9f4-x2k1p cannot be evicted"},
					{Message: "drain of node worker-3 cannot finish, and nothing forces it"},
					{Message: "pool worker waits: 1 node at a time"},
				},
			}},
			Remedy: &updatev1beta1.Remedy{
				Type: updatev1beta1.RemedyFixes, Text: "Add a replica; the update then continues on its own:",
				Commands: []string{"oc -n shop scale deployment/api --replicas=3"},
			},
			Sources: currentSources(allSources...),
		},
		observed: ago(9 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func stuckOperatorScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateStuck, ActionRequired: true, FromRelease: "4.20.5", Release: "4.21.2",
			Summary: "Operator authentication has been failing", SummarySince: ago(42 * time.Minute),
			Estimate: &updatev1beta1.Estimate{From: updatev1beta1.EstimateFromRemedy},
			Sections: []updatev1beta1.SectionAssessment{
				{Name: "control plane", Updated: 28, Total: 33, Unit: "operators", Detail: "authentication failing; 4 waiting"},
				{Name: "worker", Updated: 0, Total: 12, Unit: "nodes", Detail: "pending"},
			},
			Causes: []updatev1beta1.Cause{{
				Chain: []updatev1beta1.CauseLink{
					{Message: "ClusterOperator authentication is degraded (OAuthServerDeployment): 1 of 3 pods is not ready"},
					{Message: "ClusterVersion is failing"},
				},
			}},
			Remedy: &updatev1beta1.Remedy{
				Type: updatev1beta1.RemedyDiagnoses, Text: "Find out why the pod is not ready:",
				Commands: []string{"oc -n openshift-authentication get pods -o wide"},
			},
			Sources: currentSources(allSources...),
		},
		observed: ago(15 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func unknownScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateUnknown, Summary: "Too much data is missing to judge this cluster",
			LastKnown: &updatev1beta1.LastKnown{
				State: updatev1beta1.StateProgressing, Text: "Updating 4.20.5 to 4.20.6, 21 of 33 operators", Time: *ago(7*time.Minute + 12*time.Second),
			},
			Remedy: &updatev1beta1.Remedy{
				Type: updatev1beta1.RemedyDiagnoses, Text: "Start with the controller:", Commands: []string{"oc -n managed-upgrade-operator get pods"},
			},
			Sources: []updatev1beta1.Source{
				{Name: "ClusterVersion", Current: true, Detail: "progressing"},
				{Name: "operators"},
				{Name: "pools"},
				{Name: "Update Status Controller", Message: "no sign of life", Since: ago(7*time.Minute + 12*time.Second)},
				{Name: "nodes", Message: "you are not allowed to list them"},
				{Name: "informer mco-update-informer", Message: "no answer", Since: ago(9 * time.Minute), Detail: "timeout"},
			},
		},
		origin: origin{installed: true, controllerSeen: now.Add(-7*time.Minute - 12*time.Second)},
	}
}

func (c screenCase) screen(width int, name string) *screen {
	return &screen{
		layout:     layout{width: width},
		status:     updatev1beta1.UpdateStatusStatus{Assessment: &c.assessment, ObservedTime: c.observed},
		assessment: c.assessment, origin: c.origin, now: now, name: name,
	}
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for name, c := range designScreens() {
		for _, width := range []int{60, 80, 120, 200} {
			t.Run(fmt.Sprintf("%s at %d columns", name, width), func(t *testing.T) {
				t.Parallel()
				printed := c.screen(width, "oc update").render()
				golden(t, fmt.Sprintf("screens/%s-%d.txt", name, width), printed, width != 80)
				checkWidth(t, printed, width)
			})
		}
	}
}

// At each width, no line is too wide, and no word is lost or broken.
func TestScreens_fit_each_width(t *testing.T) {
	t.Parallel()
	words := func(c screenCase, width int) []string {
		return slices.Sorted(strings.FieldsSeq(strings.ReplaceAll(c.screen(width, "oc update").render(), ":", " "))) // tables become lines
	}
	for name, c := range designScreens() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := words(c, 200)
			for width := 60; width < 200; width++ {
				checkWidth(t, c.screen(width, "oc update").render(), width)
				if diff := cmp.Diff(whole, words(c, width)); diff != "" {
					t.Errorf("%d columns have other words than 200 (-want +got):\n%s", width, diff)
				}
			}
		})
	}
}

// checkWidth fails if a line is too wide. Commands may be wider: they are never broken.
func checkWidth(tb testing.TB, printed string, width int) {
	tb.Helper()
	for line := range strings.Lines(printed) {
		if line = strings.TrimSuffix(line, "\n"); columns(line) > width && !strings.HasPrefix(line, blank(labelWidth+columnGap)+"oc ") {
			tb.Errorf("%d columns are wider than %d: %q", columns(line), width, line)
		}
	}
}

// golden compares a text with a golden file.
func golden(t *testing.T, name, got string, mayUpdate bool) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update && mayUpdate {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got), renew it with -update:\n%s", path, diff)
	}
}
