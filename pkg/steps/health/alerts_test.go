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

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/health"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// source is a source of alerts that records the times of its queries.
type source struct {
	names    []string
	err      error
	delay    time.Duration
	clock    *testingclock.FakePassiveClock
	calledAt []time.Duration // since noon
}

func (s *source) CriticalAlerts(context.Context) ([]clusterstate.Alert, error) {
	s.calledAt = append(s.calledAt, s.clock.Since(noon))
	s.clock.SetTime(s.clock.Now().Add(s.delay))
	var alerts []clusterstate.Alert
	for _, name := range s.names {
		name, namespace, _ := strings.Cut(name, "/")
		alerts = append(alerts, clusterstate.Alert{Name: name, Namespace: namespace, Severity: "critical", Firing: true})
	}
	return alerts, s.err
}

func (s *source) HasSamples(context.Context, string) (bool, error) { return false, s.err }

// newTestAlerts returns a source of alerts that tests can change.
func newTestAlerts() (*source, *checks.Sources) {
	s := &source{clock: testingclock.NewFakePassiveClock(noon)}
	return s, &checks.Sources{Prometheus: s, Clock: s.clock, Interval: time.Minute}
}

func (s *source) setTime(since time.Duration) { s.clock.SetTime(noon.Add(since)) }

func healthyCluster(t *testing.T) client.Reader {
	t.Helper()
	return newCluster(t, healthyOperator("dns"), node("a"))
}

func unhealthyCluster(t *testing.T) client.Reader {
	t.Helper()
	return newCluster(t, node("a", notReady))
}

// The gate is evaluated every second, as if the cluster changed all the time.
func TestAlerts_are_queried_once_a_minute_while_a_gate_waits(t *testing.T) {
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
				// Each pass creates new steps.
				result, err := health.WaitUntilHealthy(runner(tc.reader, alerts), "ClusterUnhealthy")(t.Context(), engine.Run{})
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

// After a source has failed for ten intervals and recovers, the gate opens within one interval.
func TestGate_opens_soon_after_its_source_recovers(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	s.err = errors.New("connection refused")
	done := func(context.Context, engine.Run) (engine.Result, error) { return engine.Done(""), nil }
	book := engine.Runbook{Steps: []engine.Step{
		{Name: "Healthy", Doc: "Checks.", Do: health.WaitUntilHealthy(runner(healthyCluster(t), alerts), "ClusterUnhealthy")},
		{Name: "Commit", Doc: "Commits.", Do: done},
	}}
	var record history.Record
	e := &engine.Engine{Clock: s.clock, Save: func(_ context.Context, saved history.Record) error {
		record = saved
		return nil
	}}
	recovery := 10*time.Minute + 20*time.Second
	for s.clock.Since(noon) < time.Hour {
		_, next, err := e.Pass(t.Context(), book, record, engine.Constraints{})
		if err != nil {
			t.Fatal(err)
		}
		if next.IsZero() {
			break
		}
		if at := noon.Add(recovery); s.err != nil && next.After(at) {
			s.err = nil
		}
		s.clock.SetTime(next)
	}
	if took := s.clock.Since(noon) - recovery; took > alerts.Interval {
		t.Errorf("the gate opens %s after the recovery; the source was asked at %s", took, s.calledAt)
	}
	if len(s.calledAt) > 14 {
		t.Errorf("the source was asked %d times", len(s.calledAt))
	}
}

// The timeout also ends the wait for checks that cannot be completed.
func TestGate_fails_at_its_timeout_although_its_source_fails(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	s.err = errors.New("connection refused")
	checked := runner(healthyCluster(t), alerts)
	checked.Options.Timeout = 10 * time.Minute
	healthy := health.WaitUntilHealthy(checked, "ClusterUnhealthy")
	s.setTime(9*time.Minute + 50*time.Second)
	if got, err := healthy(t.Context(), engine.Run{Since: noon, Now: s.clock.Now()}); err == nil || got.After() != 10*time.Second {
		t.Errorf("before the timeout: %+v, %v", got, err)
	}
	s.setTime(10 * time.Minute)
	want := engine.Fail("ClusterUnhealthy", "not healthy within 10m0s: CouldNotBeDetermined: checking the health of the cluster: connection refused")
	if got, err := healthy(t.Context(), engine.Run{Since: noon, Now: s.clock.Now()}); err != nil || got != want {
		t.Errorf("at the timeout: %+v, %v", got, err)
	}
}

func TestGate_requests_a_pass_when_the_minute_is_over(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	healthy := health.WaitUntilHealthy(runner(healthyCluster(t), alerts), "ClusterUnhealthy")
	step := func(since time.Duration, want engine.Result) {
		t.Helper()
		s.setTime(since)
		got, err := healthy(t.Context(), engine.Run{})
		if err != nil || got != want {
			t.Errorf("after %s: got %v, %v, want %v", since, got, err, want)
		}
	}
	s.names = []string{"B/y", "A"}
	step(0, engine.WaitFor(time.Minute, "ClusterUnhealthy", "critical alerts firing: A, y/B"))
	s.names = nil
	step(20*time.Second, engine.WaitFor(40*time.Second, "ClusterUnhealthy", "critical alerts firing: A, y/B"))
	step(time.Minute, engine.Done("the cluster is healthy"))
}

func TestGate_does_not_pass_on_an_outdated_result(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		takes, after time.Duration
		queries      int
	}{
		"at once":                         {0, 0, 1},
		"after a few seconds":             {0, 5 * time.Second, 1},
		"after more than a few seconds":   {0, 6 * time.Second, 2},
		"after a minute":                  {0, time.Minute, 2},
		"after a query that took a while": {8 * time.Second, 8 * time.Second, 2},
		"after the clock was set back":    {0, -time.Second, 2},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, alerts := newTestAlerts()
			s.delay = tc.takes
			gate := health.WaitUntilHealthy(runner(healthyCluster(t), alerts), "ClusterUnhealthy")
			if got, err := gate(t.Context(), engine.Run{}); err != nil || !got.Passed() {
				t.Fatalf("a new result does not open the gate: %v, %v", got, err)
			}
			s.setTime(tc.after)
			if got, err := gate(t.Context(), engine.Run{}); err != nil || !got.Passed() {
				t.Errorf("got %v, %v", got, err)
			}
			if len(s.calledAt) != tc.queries {
				t.Errorf("queried at %v", s.calledAt)
			}
		})
	}
}

// A gate is evaluated every second. The cluster becomes healthy at any second of the interval, and
// the gate of the next step is evaluated some time after the first.
func TestGate_passes_as_soon_as_the_cluster_is_healthy(t *testing.T) {
	t.Parallel()
	for second := range 60 {
		for _, next := range []time.Duration{2 * time.Second, 8 * time.Second, 20 * time.Second, 55 * time.Second} {
			s, alerts := newTestAlerts()
			healthyAt := 5*time.Minute + time.Duration(second)*time.Second
			for since := time.Duration(0); since < healthyAt; since += time.Second {
				s.setTime(since)
				_, _ = health.WaitUntilHealthy(runner(sick{}, alerts), "ClusterUnhealthy")(t.Context(), engine.Run{})
			}
			for _, at := range []time.Duration{healthyAt, healthyAt + next} {
				s.setTime(at)
				got, err := health.WaitUntilHealthy(runner(well, alerts), "ClusterUnhealthy")(t.Context(), engine.Run{})
				if err != nil || !got.Passed() {
					t.Errorf("healthy after %s, gate at %s: got %v, %v; queried at %v", healthyAt, at, got, err, s.calledAt)
				}
			}
		}
	}
}

func TestUpgrade_starts_on_time_after_pre_checks(t *testing.T) {
	t.Parallel()
	for second := range 60 {
		s, alerts := newTestAlerts()
		for since := time.Duration(second) * time.Second; since < 10*time.Minute; since += time.Minute {
			s.setTime(since)
			_, _ = health.PreCheckHealth(runner(well, alerts), "ClusterUnhealthy")(t.Context(), engine.Run{})
		}
		for _, at := range []time.Duration{10 * time.Minute, 10*time.Minute + 3*time.Second, 10*time.Minute + 12*time.Second} {
			s.setTime(at)
			got, err := health.WaitUntilHealthy(runner(well, alerts), "ClusterUnhealthy")(t.Context(), engine.Run{})
			if err != nil || !got.Passed() {
				t.Errorf("pre-checks at second %d, gate at %s: got %v, %v; queried at %v", second, at, got, err, s.calledAt)
			}
		}
	}
}

// Even if the cluster keeps changing between healthy and unhealthy, the average is at most one
// query per minute.
func TestAlerts_are_queried_at_most_once_a_minute_on_average(t *testing.T) {
	t.Parallel()
	for name, isWell := range map[string]func(second int) bool{
		"always":             func(int) bool { return true },
		"never":              func(int) bool { return false },
		"every other second": func(second int) bool { return second%2 == 0 },
		"each tenth second":  func(second int) bool { return second%10 == 0 },
		"half of the time":   func(second int) bool { return second%120 < 60 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, alerts := newTestAlerts()
			for second := range 3600 {
				s.setTime(time.Duration(second) * time.Second)
				var reader client.Reader = sick{}
				if isWell(second) {
					reader = well
				}
				_, _ = health.WaitUntilHealthy(runner(reader, alerts), "ClusterUnhealthy")(t.Context(), engine.Run{})
			}
			if n := len(s.calledAt); n > 60+2 || n < 58 {
				t.Errorf("%d queries in an hour: %v", n, s.calledAt)
			}
		})
	}
}

// An upgrade does not fail because of an outdated result.
func TestGate_does_not_fail_on_an_outdated_result(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	is := health.IsHealthy(runner(healthyCluster(t), alerts))
	for _, at := range []time.Duration{0, 10 * time.Second, 20 * time.Second} {
		s.setTime(at)
		if yes, err := is(t.Context()); err != nil || !yes {
			t.Errorf("after %s: got %t, %v", at, yes, err)
		}
	}
	s.setTime(30 * time.Second)
	if yes, err := is(t.Context()); err != nil || !yes {
		t.Errorf("on an outdated result: got %t, %v", yes, err)
	}
	s.names = []string{"A"}
	s.setTime(3 * time.Minute)
	if yes, err := is(t.Context()); err != nil || yes {
		t.Errorf("with an alert: got %t, %v", yes, err)
	}
}

func TestGate_names_all_findings(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	s.names = []string{"E", "D/y", "D/x", "A", "A"}
	got, err := health.WaitUntilHealthy(runner(unhealthyCluster(t), alerts), "ClusterUnhealthy")(t.Context(), engine.Run{})
	want := engine.WaitFor(time.Minute, "ClusterUnhealthy", "nodes not ready: a; critical alerts firing: A, E, x/D and 1 more")
	if err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}

	s, alerts = newTestAlerts()
	s.err = errors.New("the answer is 503 Service Unavailable")
	_, err = health.WaitUntilHealthy(runner(unhealthyCluster(t), alerts), "ClusterUnhealthy")(t.Context(), engine.Run{})
	if want := "checking the health of the cluster: the answer is 503 Service Unavailable; found so far: nodes not ready: a"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestGate_without_alerts_passes_only_if_they_are_disabled(t *testing.T) {
	t.Parallel()
	clock := testingclock.NewFakePassiveClock(noon)
	for name, tc := range map[string]struct {
		alerts *checks.Sources
		opens  bool
	}{
		"they are not to be checked": {&checks.Sources{AlertsDisabled: true}, true},
		"no alerts":                  {nil, false},
		"no source":                  {&checks.Sources{Clock: clock, Interval: time.Minute}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checked := runner(healthyCluster(t), tc.alerts)
			checked.Options.Checks = nil
			result, err := health.WaitUntilHealthy(checked, "ClusterUnhealthy")(t.Context(), engine.Run{})
			if result.Passed() != tc.opens || (err == nil) != tc.opens {
				t.Errorf("got %v, %v", result, err)
			}
			if err != nil && !strings.Contains(err.Error(), "no source of alerts is configured") {
				t.Error(err)
			}
		})
	}
}

// A gate that requires alerts waits while the operator has no source of alerts, and fails at its
// timeout.
func TestGate_that_requires_alerts_without_a_source(t *testing.T) {
	t.Parallel()
	checked := runner(healthyCluster(t), &checks.Sources{AlertsDisabled: true})
	checked.Options.Checks, checked.Options.RequireAlerts, checked.Options.Timeout = nil, true, time.Hour
	const why = "alerts cannot be checked, because the operator has no source of alerts (alerts.url)"
	for after, want := range map[time.Duration]engine.Result{
		time.Minute: engine.WaitFor(59*time.Minute, "ClusterUnhealthy", "%s", why),
		time.Hour:   engine.Fail("ClusterUnhealthy", "not healthy within 1h0m0s: %s", why),
	} {
		got, err := health.WaitUntilHealthy(checked, "ClusterUnhealthy")(t.Context(), engine.Run{Since: noon, Now: noon.Add(after)})
		if err != nil || got != want {
			t.Errorf("after %s: got %+v, %v, want %+v", after, got, err, want)
		}
	}
}

// A canceled call has no result, so the next call queries again.
func TestAlerts_result_of_a_cancelled_call_is_not_kept(t *testing.T) {
	t.Parallel()
	s, alerts := newTestAlerts()
	s.err = context.Canceled
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := health.WaitUntilHealthy(runner(healthyCluster(t), alerts), "ClusterUnhealthy")(ctx, engine.Run{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.err = nil
	if result, err := health.WaitUntilHealthy(runner(healthyCluster(t), alerts), "ClusterUnhealthy")(t.Context(), engine.Run{}); err != nil || !result.Passed() {
		t.Errorf("got %v, %v", result, err)
	}
}

func TestPreCheck_accepts_a_result_within_the_interval(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		names []string
		err   error
		ill   bool
		want  engine.Result
		fails string
	}{
		"healthy":                    {want: engine.Done("the cluster is healthy")},
		"an alert is firing":         {names: []string{"A"}, want: engine.Wait("Ill", "critical alerts firing: A")},
		"a node is ill":              {ill: true, want: engine.Wait("Ill", "nodes not ready: a")},
		"alerts cannot be found out": {err: errors.New("down"), fails: "checking the health of the cluster: down"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, alerts := newTestAlerts()
			s.names, s.err = tc.names, tc.err
			cluster := healthyCluster(t)
			if tc.ill {
				cluster = newCluster(t, healthyOperator("dns"), node("a", notReady))
			}
			for _, second := range []time.Duration{0, 30 * time.Second, 59 * time.Second} {
				s.setTime(second)
				got, err := health.PreCheckHealth(runner(cluster, alerts), "Ill")(t.Context(), engine.Run{})
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
