// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// monitor is an HTTP server in place of Prometheus that counts queries by their text.
type monitor struct {
	samples func(query string) string // of a result, or nil for empty results

	mu      sync.Mutex
	queries map[string]int
}

// withMonitor has the operator query a server.
func withMonitor(tb testing.TB, m *monitor) func(*world) {
	tb.Helper()
	m.queries = map[string]int{}
	server := httptest.NewServer(m)
	tb.Cleanup(server.Close)
	source, err := prometheus.New(prometheus.Options{HTTPClient: httpclient.Options{URL: server.URL, Timeout: 10 * time.Second}})
	if err != nil {
		tb.Fatal(err)
	}
	return func(w *world) { w.alerts = source }
}

func (m *monitor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	query, samples := r.FormValue("query"), ""
	m.mu.Lock()
	m.queries[query]++
	m.mu.Unlock()
	if m.samples != nil {
		samples = m.samples(query)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, samples)
}

// reset returns the numbers of queries since the last call.
func (m *monitor) reset() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	counts := m.queries
	m.queries = map[string]int{}
	return counts
}

// Each query is sent once an interval, however many objects of both kinds use it.
func TestQueries_are_shared(t *testing.T) {
	t.Parallel()
	const each, different, intervals = 50, 5, 10
	var m monitor
	w := newWorld(t, withMonitor(t, &m), func(w *world) { w.maxBurst = 10 * 2 * each })
	for i := range each {
		cfg := newConfig(startAfter)
		cfg.Name = fmt.Sprintf("config-%02d", i)
		w.Create(cfg)
		w.Create(newJob(func(job *maintenancev1beta1.UpgradeJob) {
			job.Name = fmt.Sprintf("job-%02d", i)
			job.Spec.Config.PreUpgradeHealthChecks.CustomQueries = []maintenancev1beta1.CustomQuery{{Query: "up != 1"}, {Query: fmt.Sprintf("up == %d", i%different)}}
		}))
	}
	w.RunTo(noon.Add(5 * time.Minute))
	m.reset()
	w.Requests = nil
	w.RunTo(w.Now().Add(intervals * w.config.Alerts.Interval.Duration))
	counts := m.reset()
	if len(counts) != 2+different {
		t.Errorf("%d queries are in use, want that for alerts, the common one, and %d others: %v", len(counts), different, counts)
	}
	for query, n := range counts {
		if n < intervals-1 || n > intervals {
			t.Errorf("%q was sent %d times in %d intervals", query, n, intervals)
		}
	}
	if len(w.Requests) > 0 {
		t.Errorf("%d requests to the API server: %q", len(w.Requests), slices.Compact(w.Requests))
	}
}

// A result of 100,000 series is an error that the UpgradeJob shows, in its conditions and in Events. It
// is skipped, and others are served.
func TestQueries_with_a_huge_result(t *testing.T) {
	t.Parallel()
	series := make([]string, 100_000)
	for i := range series {
		series[i] = fmt.Sprintf(`{"metric":{"pod":"pod-%06d","namespace":"default"},"value":[1,"1"]}`, i)
	}
	result := strings.Join(series, ",")
	m := monitor{samples: func(query string) string {
		if strings.Contains(query, "huge") {
			return result
		}
		return ""
	}}
	w := newWorld(t, withMonitor(t, &m))
	hostile := newJob(func(job *maintenancev1beta1.UpgradeJob) {
		job.Name = "hostile"
		job.Spec.StartAfter, job.Spec.StartBefore = timestamp(noon.Add(5*time.Minute)), timestamp(noon.Add(10*time.Minute))
		job.Spec.Config.PreUpgradeHealthChecks.CustomQueries = []maintenancev1beta1.CustomQuery{{Query: "huge"}}
	})
	w.Create(hostile)
	w.Create(newJob())
	const want = "custom query huge: querying Prometheus: requesting ADDRESS: the response is longer than 4194304 bytes"
	shown := func(condition string) bool {
		w.Must(w.User.Get(t.Context(), client.ObjectKeyFromObject(hostile), hostile))
		c := meta.FindStatusCondition(hostile.Status.Conditions, condition)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(address.ReplaceAllString(c.Message, "ADDRESS"), want)
	}
	w.RunTo(noon.Add(2 * time.Minute))
	if !shown(maintenancev1beta1.ConditionPreCheckPassed) {
		t.Errorf("while it is pending, the conditions are %+v", hostile.Status.Conditions)
	}
	w.untilEnded()
	if !shown(maintenancev1beta1.ConditionSucceeded) || hostile.Status.History[0].Phase != history.PhaseSkipped {
		t.Errorf("after its window, the conditions are %+v", hostile.Status.Conditions)
	}
	events := w.events()
	if !slices.Contains(events, "Warning PreCheckFailed") || !slices.Contains(events, "Warning UpgradeSkipped") {
		t.Errorf("the Events are %q", events)
	}
	if w.record().Phase != history.PhaseUpgraded {
		t.Errorf("the other UpgradeJob: %s", w.describe())
	}
}

// address is the address of a test server.
var address = regexp.MustCompile(`127\.0\.0\.1:\d+/api/v1/query`)

// If Prometheus is down, neither check ends later than its timeout.
func TestHealthChecksEndAtTheirTimeoutWithoutPrometheus(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		down  string // the first step without Prometheus
		phase history.Phase
		step  string
	}{
		"before the upgrade": {down: "StartTimeReached", phase: history.PhaseSkipped, step: "PreHealthCheck"},
		"after the upgrade":  {down: "UpgradeCompleted", phase: history.PhaseFailed, step: "PostHealthCheck"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := &failingSource{}
			w := newWorld(t, func(w *world) { w.alerts = source })
			w.Create(newJob(func(job *maintenancev1beta1.UpgradeJob) {
				job.Spec.StartBefore = timestamp(startAfter.Add(10 * time.Hour))
				job.Spec.Config.PreUpgradeHealthChecks.Timeout, job.Spec.Config.PostUpgradeHealthChecks.Timeout = "10m", "10m"
			}))
			begun := func(step string) bool {
				return slices.ContainsFunc(w.record().Conditions, func(c history.StepCondition) bool { return c.Type == step })
			}
			if err := w.RunUntil(24*time.Hour, func() bool { return begun(tc.down) }); err != nil {
				t.Fatalf("%v; %s", err, w.describe())
			}
			source.down = true
			w.untilEnded()
			i := slices.IndexFunc(w.record().Conditions, func(c history.StepCondition) bool { return c.Type == tc.step })
			if w.record().Phase != tc.phase || i < 0 {
				t.Fatalf("phase %s; %s", w.record().Phase, w.describe())
			}
			c := w.record().Conditions[i]
			if took := c.CompleteTime.Sub(c.StartTime.Time); took < 10*time.Minute || took > 10*time.Minute+2*time.Second || !strings.Contains(c.Message, "CouldNotBeDetermined") {
				t.Errorf("it ended after %s: %s", took, c.Message)
			}
			w.settle()
			if holder := w.lockHolder(); holder != "" {
				t.Errorf("the lock is held by %s", holder)
			}
		})
	}
}

// After an upgrade, a critical alert that is only pending fails nothing, and a firing one does.
func TestPendingAlertsAfterTheUpgrade(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		firing bool
		phase  history.Phase
	}{
		"never fires": {false, history.PhaseUpgraded},
		"fires":       {true, history.PhaseFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := &failingSource{}
			w := newWorld(t, func(w *world) { w.alerts = source })
			w.Create(newJob(func(job *maintenancev1beta1.UpgradeJob) { job.Spec.Config.PostUpgradeHealthChecks.Timeout = "10m" }))
			w.untilStep("UpgradeCompleted")
			source.alerts = []clusterstate.Alert{{Name: "etcdDown", Severity: "critical"}}
			w.untilStep("PostHealthCheck")
			begun := w.Now()
			w.RunTo(begun.Add(5 * time.Minute))
			if w.record().CompleteTime != nil {
				t.Fatalf("the checks do not wait for the pending alert: %s", w.describe())
			}
			source.alerts = []clusterstate.Alert{{Name: "etcdDown", Severity: "critical", Firing: tc.firing}}
			w.untilEnded()
			if took := w.record().CompleteTime.Sub(begun); w.record().Phase != tc.phase || took > 11*time.Minute {
				t.Errorf("after %s: %s", took, w.describe())
			}
		})
	}
}

// failingSource is a source of alerts. It is down or has the given alerts.
type failingSource struct {
	down   bool
	alerts []clusterstate.Alert
}

func (s *failingSource) CriticalAlerts(context.Context) ([]clusterstate.Alert, error) {
	if s.down {
		return nil, errors.New("connection refused")
	}
	return s.alerts, nil
}

func (s *failingSource) HasSamples(context.Context, string) (bool, error) { return false, nil }
