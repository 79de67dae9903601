// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
)

// screenCase is a status and its origin.
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
	return origin{published: true, installed: true, controllerSeen: clitest.Now.Add(-seen)}
}

// designScreens returns the screens of the design.
func designScreens() map[string]screenCase {
	return map[string]screenCase{
		"idle":           idleScreen(),
		"progressing":    progressingScreen(),
		"waiting":        waitingScreen(),
		"stuck-drain":    stuckDrainScreen(),
		"stuck-operator": stuckOperatorScreen(),
		"unknown":        unknownScreen(),
		"idle-watch":     idleWatchScreen(),
		"watch":          watchScreen(),
		"unclear":        unclearScreen(),
	}
}

func idleScreen() screenCase {
	installed := clitest.At("2026-11-14 03:12")
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateIdle, Release: "4.20.6", InstalledTime: &installed,
			Next: &updatev1beta1.ScheduledTime{
				Time: clitest.At("2026-11-28 22:00"), Release: "4.20.8",
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
			StartedTime: clitest.Ago(38 * time.Minute), LastChangeTime: clitest.Ago(40 * time.Second),
			Estimate: &updatev1beta1.Estimate{
				From: updatev1beta1.EstimateFromNow, Earliest: clitest.In(27 * time.Minute), Latest: clitest.In(72 * time.Minute),
				Sections: []updatev1beta1.SectionEstimate{
					{Name: "control plane", Earliest: clitest.In(14 * time.Minute), Latest: clitest.In(33 * time.Minute), Basis: "3 earlier updates took 52m to 71m"},
					{Name: "worker", MinSeconds: 27 * 60, MaxSeconds: 39 * 60, Basis: "9m to 13m per node in the last update"},
				},
			},
			Sections: []updatev1beta1.SectionAssessment{
				{Name: "control plane", Updated: 29, Total: 33, Unit: "operators", Detail: "network, dns updating", DetailSince: clitest.Ago(6 * time.Minute)},
				{Name: "master", Updated: 1, Total: 3, Unit: "nodes", Detail: "master-1 rebooting", DetailSince: clitest.Ago(3 * time.Minute)},
				{Name: "worker", Updated: 0, Total: 6, Unit: "nodes", Detail: "pending, 2 at a time"},
			},
			Remedy:  &updatev1beta1.Remedy{Type: updatev1beta1.RemedyNone, Text: "Nothing."},
			Sources: currentSources(allSources...),
		},
		observed: clitest.Ago(12 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func waitingScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateWaiting, FromRelease: "4.20.5", Release: "4.20.6", Summary: "Pool worker waits for its window",
			Resumes: &updatev1beta1.ScheduledTime{
				Time: clitest.At("2026-11-28 22:00"), By: &updatev1beta1.ResourceReference{Kind: "UpgradeJob", Namespace: "ops", Name: "weekly"},
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
		observed: clitest.Ago(48 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func stuckDrainScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateStuck, ActionRequired: true, FromRelease: "4.20.5", Release: "4.20.6",
			Summary: "Pool worker has made no progress", SummarySince: clitest.Ago(64 * time.Minute),
			Estimate: &updatev1beta1.Estimate{From: updatev1beta1.EstimateFromRemedy, MinSeconds: 72 * 60, MaxSeconds: 104 * 60},
			Sections: []updatev1beta1.SectionAssessment{
				{Name: "control plane", Updated: 33, Total: 33, Unit: "operators", Detail: "done after 62m"},
				{Name: "worker", Updated: 4, Total: 12, Unit: "nodes", Detail: "worker-3 draining", DetailSince: clitest.Ago(64 * time.Minute)},
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
		observed: clitest.Ago(9 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func stuckOperatorScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateStuck, ActionRequired: true, FromRelease: "4.20.5", Release: "4.21.2",
			Summary: "Operator authentication has been failing", SummarySince: clitest.Ago(42 * time.Minute),
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
		observed: clitest.Ago(15 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func unknownScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateUnknown, Summary: "Too much data is missing to judge this cluster",
			LastKnown: &updatev1beta1.LastKnown{
				State: updatev1beta1.StateProgressing, Text: "Updating 4.20.5 to 4.20.6, 21 of 33 operators", Time: *clitest.Ago(7*time.Minute + 12*time.Second),
			},
			Remedy: &updatev1beta1.Remedy{
				Type: updatev1beta1.RemedyDiagnoses, Text: "Start with the controller:", Commands: []string{"oc -n managed-upgrade-operator get pods"},
			},
			Sources: []updatev1beta1.Source{
				{Name: "ClusterVersion", Current: true, Detail: "progressing"},
				{Name: "operators"},
				{Name: "pools"},
				{Name: "Update Status Controller", Message: "no sign of life", Since: clitest.Ago(7*time.Minute + 12*time.Second)},
				{Name: "nodes", Message: "you are not allowed to list them"},
				{Name: "informer mco-update-informer", Message: "no answer", Since: clitest.Ago(9 * time.Minute), Detail: "timeout"},
			},
		},
		origin: origin{installed: true, controllerSeen: clitest.Now.Add(-7*time.Minute - 12*time.Second)},
	}
}

func idleWatchScreen() screenCase {
	installed := metav1.NewTime(clitest.Now.Add(-27*24*time.Hour - 4*time.Hour - 30*time.Minute))
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateIdle, Release: "4.20.5", InstalledTime: &installed,
			Watch: []updatev1beta1.WatchedFact{
				{Level: updatev1beta1.LevelError, Message: "ClusterVersion has been failing", Since: clitest.Ago(5 * time.Hour), Detail: "ClusterOperatorDegraded: monitoring"},
				{Level: updatev1beta1.LevelError, Message: "operator monitoring is degraded", Since: clitest.Ago(330 * time.Minute)},
				{Level: updatev1beta1.LevelWarning, Message: "node worker-1 is not ready", Since: clitest.Ago(330 * time.Minute)},
			},
			Remedy: &updatev1beta1.Remedy{
				Type: updatev1beta1.RemedyNone, Text: "Look into the errors before the next update:", Commands: []string{"oc update status --details"},
			},
			Sources: currentSources("ClusterVersion", "operators", "nodes", "pools"),
		},
	}
}

func watchScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateProgressing, FromRelease: "4.20.5", Release: "4.20.6",
			StartedTime: clitest.Ago(22 * time.Minute), LastChangeTime: clitest.Ago(2 * time.Minute),
			Sections: []updatev1beta1.SectionAssessment{
				{Name: "control plane", Updated: 12, Total: 34, Unit: "operators", Detail: "kube-apiserver updating", DetailSince: clitest.Ago(12 * time.Minute)},
				{Name: "worker", Updated: 0, Total: 6, Unit: "nodes", Detail: "pending, 2 at a time"},
			},
			Watch: []updatev1beta1.WatchedFact{
				{Level: updatev1beta1.LevelWarning, Message: "operator insights has been degraded", Since: clitest.Ago(20 * 24 * time.Hour), Detail: "since before the update"},
				{Level: updatev1beta1.LevelWarning, Message: "High control plane CPU during upgrade", UpdateInformer: "mco-update-informer"},
			},
			Remedy:  &updatev1beta1.Remedy{Type: updatev1beta1.RemedyNone, Text: "Nothing."},
			Sources: currentSources(allSources...),
		},
		observed: clitest.Ago(12 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func unclearScreen() screenCase {
	return screenCase{
		assessment: updatev1beta1.Assessment{
			State: updatev1beta1.StateUnknown, FromRelease: "4.20.5", Release: "4.20.6",
			Summary: `Pool worker cannot be judged: pausedUntil "soon" is not a time`,
			Sections: []updatev1beta1.SectionAssessment{
				{Name: "control plane", Updated: 34, Total: 34, Unit: "operators", Detail: "done after 62m"},
				{Name: "worker", Updated: 2, Total: 6, Unit: "nodes", Detail: "worker-2 rebooting", DetailSince: clitest.Ago(3 * time.Minute)},
			},
			Remedy:  &updatev1beta1.Remedy{Type: updatev1beta1.RemedyFixes, Text: "Correct spec.versionManagement.pausedUntil of MachineSet ops/worker."},
			Sources: currentSources(allSources...),
		},
		observed: clitest.Ago(9 * time.Second), origin: publishedOrigin(4 * time.Second),
	}
}

func (c screenCase) screen(width int, name string) *statusScreen {
	return &statusScreen{
		Layout:     screen.Layout{Width: width},
		status:     updatev1beta1.UpdateStatusStatus{Assessment: &c.assessment, ObservedTime: c.observed},
		assessment: c.assessment, origin: c.origin, now: clitest.Now, name: name,
	}
}

func TestScreens(t *testing.T) {
	t.Parallel()
	for name, c := range designScreens() {
		for _, width := range []int{60, 80, 120, 200} {
			t.Run(fmt.Sprintf("%s at %d columns", name, width), func(t *testing.T) {
				t.Parallel()
				printed := c.screen(width, "oc update").render()
				clitest.Golden(t, fmt.Sprintf("screens/%s-%d.txt", name, width), printed, width != 80)
				clitest.CheckWidth(t, printed, width)
			})
		}
	}
}

// At any width, no line is too wide, and no word is lost or broken.
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
				clitest.CheckWidth(t, c.screen(width, "oc update").render(), width)
				if diff := cmp.Diff(whole, words(c, width)); diff != "" {
					t.Errorf("%d columns have other words than 200 (-want +got):\n%s", width, diff)
				}
			}
		})
	}
}
