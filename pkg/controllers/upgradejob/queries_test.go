// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
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
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// monitor is an HTTP server in place of Prometheus that counts queries by their text.
type monitor struct {
	samples func(query string) string // of a result; nil means that results are empty

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
	w := newWorld(t, withUpgradeConfigs, withMonitor(t, &m), func(w *world) { w.maxBurst = 10 * 2 * each })
	for i := range each {
		cfg := newConfig(startAfter)
		cfg.Name = fmt.Sprintf("config-%02d", i)
		w.create(cfg)
		w.create(newJob(func(job *v1beta1.UpgradeJob) {
			job.Name = fmt.Sprintf("job-%02d", i)
			job.Spec.Config.PreUpgradeHealthChecks.CustomQueries = []v1beta1.CustomQuery{{Query: "up != 1"}, {Query: fmt.Sprintf("up == %d", i%different)}}
		}))
	}
	w.until(noon.Add(5 * time.Minute))
	m.reset()
	w.requests = nil
	w.until(w.Now().Add(intervals * w.config.Alerts.Interval.Duration))
	counts := m.reset()
	if len(counts) != 2+different {
		t.Errorf("%d queries are in use, want that for alerts, the common one, and %d others: %v", len(counts), different, counts)
	}
	for query, n := range counts {
		if n < intervals-1 || n > intervals {
			t.Errorf("%q was sent %d times in %d intervals", query, n, intervals)
		}
	}
	if len(w.requests) > 0 {
		t.Errorf("%d requests to the API server: %q", len(w.requests), slices.Compact(w.requests))
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
	hostile := newJob(func(job *v1beta1.UpgradeJob) {
		job.Name = "hostile"
		job.Spec.StartAfter, job.Spec.StartBefore = timestamp(noon.Add(5*time.Minute)), timestamp(noon.Add(10*time.Minute))
		job.Spec.Config.PreUpgradeHealthChecks.CustomQueries = []v1beta1.CustomQuery{{Query: "huge"}}
	})
	w.create(hostile)
	w.create(newJob())
	const want = "custom query huge: querying Prometheus: requesting ADDRESS: the response is longer than 4194304 bytes"
	shown := func(condition string) bool {
		if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(hostile), hostile); err != nil {
			t.Fatal(err)
		}
		c := meta.FindStatusCondition(hostile.Status.Conditions, condition)
		return c != nil && c.Status == metav1.ConditionFalse && strings.Contains(address.ReplaceAllString(c.Message, "ADDRESS"), want)
	}
	w.until(noon.Add(2 * time.Minute))
	if !shown(v1beta1.ConditionPreCheckPassed) {
		t.Errorf("while it is pending, the conditions are %+v", hostile.Status.Conditions)
	}
	w.untilEnded()
	if !shown(v1beta1.ConditionSucceeded) || hostile.Status.History[0].Phase != history.PhaseSkipped {
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

// address is that of a test server.
var address = regexp.MustCompile(`127\.0\.0\.1:\d+/api/v1/query`)
