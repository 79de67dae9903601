// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// watchSteps runs "status -w". It calls a function before each read except the first and interrupts the
// command after the last.
func watchSteps(t *testing.T, terminal screen.Terminal, cluster *clitest.FakeCluster, steps ...func()) clitest.Result {
	t.Helper()
	clock := clocktesting.NewFakeClock(clitest.Now)
	streams, _, out, errOut := genericiooptions.NewTestIOStreams()
	p := session.New(session.Environment{Program: "/oc-update", Clock: clock, Terminal: &terminal, Streams: streams, NoColor: true})
	ctx, interrupt := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		done <- (&statusOptions{Session: p, watch: true, namespace: session.ControllerNamespace, format: session.OutputFlags(&cobra.Command{})}).report(ctx, cluster.Cluster)
	}()
	for _, step := range append(steps, interrupt) {
		for !clock.HasWaiters() {
			runtime.Gosched()
		}
		step()
		clock.Step(livePollInterval)
	}
	return clitest.Result{Code: session.CodeOf(<-done), Out: out.String(), ErrOut: errOut.String()}
}

func TestWatch(t *testing.T) {
	t.Parallel()
	publish := func(t *testing.T, cluster *clitest.FakeCluster, change func(*updatev1beta1.UpdateStatus)) func() {
		t.Helper()
		return func() {
			status := &updatev1beta1.UpdateStatus{}
			if err := cluster.Client.Get(t.Context(), client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, status); err != nil {
				t.Error(err)
			}
			change(status)
			if err := cluster.Client.Update(t.Context(), status); err != nil {
				t.Error(err)
			}
		}
	}
	tests := map[string]struct {
		terminal screen.Terminal
		screens  int
		clears   int
	}{
		"file":     {screen.Terminal{}, 2, 0},
		"terminal": {screen.Terminal{Interactive: true}, 4, 4},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := waitingScreen()
			c.assessment.Release = "4.20.6"
			cluster := clitest.NewFakeCluster(t, updateStatus(c), clitest.Lease(0))
			got := watchSteps(t, test.terminal, cluster,
				func() {}, // nothing changes
				publish(t, cluster, func(s *updatev1beta1.UpdateStatus) { s.Status.ObservedTime = clitest.Ago(time.Second) }),
				publish(t, cluster, func(s *updatev1beta1.UpdateStatus) { s.Status.Assessment.Summary = "Pool infra waits for its window" }),
			)
			if screens, clears := strings.Count(got.Out, "WAITING  "), strings.Count(got.Out, session.Redraw); screens != test.screens || clears != test.clears {
				t.Errorf("%d screens and %d redraws, want %d and %d:\n%s", screens, clears, test.screens, test.clears, got.Out)
			}
			if !strings.Contains(got.Out, "Pool infra waits") || got.Code != session.ExitWaiting {
				t.Errorf("exit code %d:\n%s", got.Code, got.Out)
			}
		})
	}
}

// A status computed from live reads is printed once if nothing but the time changes.
func TestWatch_of_live_reads(t *testing.T) {
	t.Parallel()
	for name, ready := range map[string]corev1.ConditionStatus{"idle": corev1.ConditionTrue, "node not ready": corev1.ConditionFalse} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			worker := clitest.HealthyNode("worker-9", "worker")
			worker.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
			cluster := clitest.NewFakeCluster(t, worker)
			pass := func() { cluster.Clock = session.FixedClock(cluster.Clock.Now().Add(livePollInterval)) }
			got := watchSteps(t, screen.Terminal{}, cluster, pass, pass, pass)
			if screens := strings.Count(got.Out, "Data  "); screens != 1 || got.ErrOut != "" {
				t.Errorf("%d screens, want 1:\n%s%s", screens, got.Out, got.ErrOut)
			}
		})
	}
}

func TestWatch_continues_after_an_error(t *testing.T) {
	t.Parallel()
	c := waitingScreen()
	cluster := clitest.NewFakeCluster(t, updateStatus(c), clitest.Lease(0))
	fail := func(string) error { return errors.New("connection refused") }
	got := watchSteps(t, screen.Terminal{}, cluster, func() { cluster.Err = fail }, func() {}, func() { cluster.Err = func(string) error { return nil } })
	if strings.Count(got.Out, "connection refused") != 1 || got.Code != session.ExitWaiting {
		t.Errorf("exit code %d, want the error once:\n%s", got.Code, got.Out)
	}
}
