// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/status"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// Without Prometheus, Kubernetes' Events show when nodes were cordoned or not ready.
func TestEventRows(t *testing.T) {
	t.Parallel()
	event := func(reason string, first, last int) corev1.Event {
		e := nodeEvent(reason, "worker-0", time.Duration(first)*time.Minute, time.Duration(last)*time.Minute)
		e.Reason = reason
		return *e
	}
	for name, tc := range map[string]struct {
		events []corev1.Event
		want   string
	}{
		"a reboot": {
			[]corev1.Event{event("NodeSchedulable", 20, 20), event("NodeReady", 25, 25), event("NodeNotReady", 30, 30), event("NodeNotSchedulable", 40, 40), event("Rebooted", 26, 26)},
			"cordoned 40 to 20, not ready 30 to 25",
		},
		"that lasts":             {[]corev1.Event{event("NodeNotReady", 30, 30)}, "not ready 30 to 10"},
		"of an unknown start":    {[]corev1.Event{event("NodeReady", 30, 30)}, "seen in Events 30 to 30"},
		"twice, in two Events":   {[]corev1.Event{event("NodeNotReady", 40, 20), event("NodeReady", 35, 15)}, "not ready 40 to 35, not ready 20 to 15"},
		"other Events":           {[]corev1.Event{event("Drain", 40, 30), event("Uncordon", 20, 20)}, "seen in Events 40 to 20"},
		"reported by two parts":  {[]corev1.Event{event("NodeNotReady", 40, 40), event("NodeNotReady", 39, 39), event("NodeReady", 35, 35)}, "not ready 40 to 35"},
		"no Event about a node":  {nil, ""},
		"an end before the next": {[]corev1.Event{event("NodeReady", 50, 50), event("NodeNotReady", 40, 40), event("NodeReady", 35, 35)}, "not ready 40 to 35"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, row := range eventRows(tc.events, clitest.Ago(10*time.Minute).Time) {
				for _, bar := range row.Bars {
					got = append(got, fmt.Sprintf("%s %.0f to %.0f", bar.Kind, clitest.Now.Sub(bar.Start).Minutes(), clitest.Now.Sub(bar.End).Minutes()))
				}
			}
			if joined := strings.Join(got, ", "); joined != tc.want {
				t.Errorf("%s, want %s", joined, tc.want)
			}
		})
	}
}

// The page of an upgrade explains why the update is waiting and what to do, like status does.
func TestCauses_of_a_simulated_update(t *testing.T) {
	t.Parallel()
	s := clitest.NewSimulated(t, openshiftsim.ClusterSpec{})
	for _, object := range clitest.Shop() {
		if err := s.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	if causes, err := status.Causes(t.Context(), s.Connect()); err != nil || len(causes) > 0 {
		t.Errorf("without an update: %v, %v", causes, err)
	}
	s.Update(t, 3*time.Hour)
	causes, err := status.Causes(t.Context(), s.Connect())
	if err != nil || len(causes) == 0 {
		t.Fatalf("%v, %v", causes, err)
	}
	first := causes[0]
	if !strings.HasPrefix(first.Chain[0], "PodDisruptionBudget shop/api") || len(first.Chain) < 3 || len(first.Commands) == 0 {
		t.Errorf("%+v", first)
	}
}
