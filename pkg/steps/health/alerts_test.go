// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fakecluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/health"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// source is a source of alerts, and when it was asked.
type source struct {
	names    []string
	err      error
	delay    time.Duration
	clock    *testingclock.FakePassiveClock
	calledAt []time.Duration // since noon
}

func (s *source) FiringAlerts(context.Context) ([]string, error) {
	s.calledAt = append(s.calledAt, s.clock.Since(noon))
	s.clock.SetTime(s.clock.Now().Add(s.delay))
	return s.names, s.err
}

// newTestAlerts returns alerts whose source can be changed.
func newTestAlerts() (*source, *health.Alerts) {
	s := &source{clock: testingclock.NewFakePassiveClock(noon)}
	return s, &health.Alerts{Source: s, Clock: s.clock, Interval: time.Minute}
}

func (s *source) setTime(since time.Duration) { s.clock.SetTime(noon.Add(since)) }

const alertsStaleMessage = "nothing is found to be wrong, but alerts must be asked for again before the upgrade goes on"

func healthyCluster(t *testing.T) client.Reader {
	t.Helper()
	return fakecluster.New(t, version(), healthyOperator("dns"), node("a"))
}

func unhealthyCluster(t *testing.T) client.Reader {
	t.Helper()
	return fakecluster.New(t, version(), node("a", notReady))
}

// A gate is asked each second, as if something happened in the cluster all the time.
func TestAlertsAreAskedForOnceAMinuteWhileAGateWaits(t *testing.T) {
	t.Parallel()
	minutes := []time.Duration{0, time.Minute, 2 * time.Minute}
	cases := map[string]struct {
		names  []string
		err    error
		reader client.Reader
		want   []time.Duration
	}{
		"an alert is firing":                     {names: []string{"A"}, reader: healthyCluster(t), want: minutes},
		"alerts cannot be found out":             {err: errors.New("down"), reader: healthyCluster(t), want: minutes},
		"no alert is firing, a node is not well": {reader: unhealthyCluster(t), want: minutes},
		"an alert is firing, and a node is ill":  {names: []string{"A"}, reader: unhealthyCluster(t), want: minutes},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, alerts := newTestAlerts()
			s.names, s.err = tc.names, tc.err
			for second := range 180 {
				s.setTime(time.Duration(second) * time.Second)
				// Each pass makes its steps anew.
				result, err := health.WaitUntilHealthy(tc.reader, "ClusterUnhealthy", alerts, platform)(t.Context(), engine.Run{})
				if result.Passed() || !errors.Is(err, tc.err) {
					t.Fatalf("after %d s: got %v, %v", second, result, err)
				}
			}
			if diff := cmp.Diff(tc.want, s.calledAt); diff != "" {
				t.Errorf("asked (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAWaitingGateLooksAgainWhenTheMinuteIsOver(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	healthy := health.WaitUntilHealthy(healthyCluster(t), "ClusterUnhealthy", alerts, platform)
	step := func(since time.Duration, want engine.Result) {
		t.Helper()
		s.setTime(since)
		got, err := healthy(t.Context(), engine.Run{})
		if err != nil || got != want {
			t.Errorf("after %s: got %v, %v, want %v", since, got, err, want)
		}
	}
	s.names = []string{"B in namespace y", "A"}
	step(0, engine.WaitFor(time.Minute, "ClusterUnhealthy", "alerts firing: A, B in namespace y"))
	s.names = nil
	step(20*time.Second, engine.WaitFor(40*time.Second, "ClusterUnhealthy", "alerts firing: A, B in namespace y"))
	step(time.Minute, engine.Done("the cluster is healthy"))
}

func TestNoGateOpensByAnOldAnswer(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		takes, after time.Duration
		want         engine.Result
		asked        int
	}{
		"at once":                           {0, 0, engine.Done("the cluster is healthy"), 1},
		"after a few seconds":               {0, 5 * time.Second, engine.Done("the cluster is healthy"), 1},
		"after more than a few seconds":     {0, 6 * time.Second, engine.WaitFor(54*time.Second, "ClusterUnhealthy", alertsStaleMessage), 1},
		"after a minute":                    {0, time.Minute, engine.Done("the cluster is healthy"), 2},
		"after an answer that took a while": {8 * time.Second, 8 * time.Second, engine.WaitFor(52*time.Second, "ClusterUnhealthy", alertsStaleMessage), 1},
		"after the clock was put back":      {0, -time.Second, engine.Done("the cluster is healthy"), 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, alerts := newTestAlerts()
			s.delay = tc.takes
			r := healthyCluster(t)
			if got, err := health.WaitUntilHealthy(r, "ClusterUnhealthy", alerts, platform)(t.Context(), engine.Run{}); err != nil || !got.Passed() {
				t.Fatalf("an answer that has just come does not open the gate: %v, %v", got, err)
			}
			s.setTime(tc.after)
			got, err := health.WaitUntilHealthy(r, "ClusterUnhealthy", alerts, platform)(t.Context(), engine.Run{})
			if err != nil || got != tc.want {
				t.Errorf("got %v, %v, want %v", got, err, tc.want)
			}
			if len(s.calledAt) != tc.asked {
				t.Errorf("asked at %v", s.calledAt)
			}
		})
	}
}

// Whether a cluster is healthy is asked when an upgrade would fail otherwise:
// it must not fail because there is no new answer yet.
func TestAnOldAnswerIsNoNo(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	is := health.IsHealthy(healthyCluster(t), alerts, platform)
	if yes, err := is(t.Context()); err != nil || !yes {
		t.Errorf("got %t, %v", yes, err)
	}
	s.setTime(30 * time.Second)
	if yes, err := is(t.Context()); err == nil || yes {
		t.Errorf("by an old answer: got %t, %v", yes, err)
	}
	s.names = []string{"A"}
	s.setTime(time.Minute)
	if yes, err := is(t.Context()); err != nil || yes {
		t.Errorf("with an alert: got %t, %v", yes, err)
	}
}

func TestAllThatIsFoundIsNamed(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	s.names = []string{"E", "D in namespace y", "D in namespace x", "A", "A"}
	got, err := health.WaitUntilHealthy(unhealthyCluster(t), "ClusterUnhealthy", alerts, platform)(t.Context(), engine.Run{})
	want := engine.WaitFor(time.Minute, "ClusterUnhealthy", "nodes not ready: a; alerts firing: A, D in namespace x, D in namespace y and 1 more")
	if err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}

	s, alerts = newTestAlerts()
	s.err = errors.New("the answer is 503 Service Unavailable")
	_, err = health.WaitUntilHealthy(unhealthyCluster(t), "ClusterUnhealthy", alerts, platform)(t.Context(), engine.Run{})
	if want := "checking the health of the cluster: the answer is 503 Service Unavailable; found so far: nodes not ready: a"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestWithoutASourceOfAlertsNoGateOpensUnlessTheyAreNotToBeChecked(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakePassiveClock(noon)
	for name, tc := range map[string]struct {
		alerts *health.Alerts
		opens  bool
	}{
		"they are not to be checked": {&health.Alerts{Disabled: true}, true},
		"there are none":             {nil, false},
		"there is no source of them": {&health.Alerts{Clock: clock, Interval: time.Minute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			result, err := health.WaitUntilHealthy(healthyCluster(t), "ClusterUnhealthy", tc.alerts, platform)(t.Context(), engine.Run{})
			if result.Passed() != tc.opens || (err == nil) != tc.opens {
				t.Errorf("got %v, %v", result, err)
			}
			if err != nil && !strings.Contains(err.Error(), "no source of alerts is given") {
				t.Error(err)
			}
		})
	}
}

// A call that was given up says nothing about alerts: the next one asks again.
func TestAnAnswerThatWasNotWaitedForIsNotKept(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	s.err = context.Canceled
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := health.WaitUntilHealthy(healthyCluster(t), "ClusterUnhealthy", alerts, platform)(ctx, engine.Run{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.err = nil
	if result, err := health.WaitUntilHealthy(healthyCluster(t), "ClusterUnhealthy", alerts, platform)(t.Context(), engine.Run{}); err != nil || !result.Passed() {
		t.Errorf("got %v, %v", result, err)
	}
}

func TestWhoLooksAheadIsContentWithAnAnswerAsOldAsTheInterval(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		names []string
		err   error
		ill   bool
		want  engine.Result
		fails string
	}{
		"nothing is wrong":           {want: engine.Done("the cluster is healthy")},
		"an alert is firing":         {names: []string{"A"}, want: engine.Wait("Ill", "alerts firing: A")},
		"a node is ill":              {ill: true, want: engine.Wait("Ill", "nodes not ready: a")},
		"alerts cannot be found out": {err: errors.New("down"), fails: "checking the health of the cluster: down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, alerts := newTestAlerts()
			s.names, s.err = tc.names, tc.err
			cluster := healthyCluster(t)
			if tc.ill {
				cluster = fakecluster.New(t, version(), healthyOperator("dns"), node("a", notReady))
			}
			for _, second := range []time.Duration{0, 30 * time.Second, 59 * time.Second} {
				s.setTime(second)
				got, err := health.PreCheckHealth(cluster, "Ill", alerts, platform)(t.Context(), engine.Run{})
				if got != tc.want || (err == nil) != (tc.fails == "") || err != nil && err.Error() != tc.fails {
					t.Errorf("after %s: got %+v, %v, want %+v, %s", second, got, err, tc.want, tc.fails)
				}
			}
			if len(s.calledAt) != 1 {
				t.Errorf("it was asked %d times in a minute", len(s.calledAt))
			}
		})
	}
}
