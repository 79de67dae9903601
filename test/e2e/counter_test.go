// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
)

// counter is a proxy that counts requests and connections.
type counter struct {
	name, url string

	mu       sync.Mutex
	requests map[string]int // by method and path, without IDs
	opened   int            // connections since the start
	open     int            // connections at present
	maxOpen  int            // connections at one time
}

func startCounter(tb testing.TB, name, of string) *counter {
	tb.Helper()
	target, err := url.Parse(of)
	if err != nil {
		tb.Fatal(err)
	}
	c := &counter{name: name, requests: map[string]int{}}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.count(r)
		proxy.ServeHTTP(w, r)
	}))
	server.Config.ConnState = c.state
	server.Start()
	tb.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *counter) count(r *http.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	path := r.URL.Path
	if strings.HasPrefix(path, "/api/v2/silence/") {
		path = "/api/v2/silence/ID"
	}
	c.requests[r.Method+" "+path]++
}

func (c *counter) state(_ net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		c.opened++
		c.open++
		c.maxOpen = max(c.maxOpen, c.open)
	case http.StateClosed, http.StateHijacked:
		c.open--
	case http.StateActive, http.StateIdle:
	}
}

func (c *counter) snapshot() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.requests)
}

func (c *counter) total() int {
	n := 0
	for _, each := range c.snapshot() {
		n += each
	}
	return n
}

// externalServers are the servers that the operator uses beside the API server, each behind a
// counter.
type externalServers struct{ prometheus, alertmanager, receiver *counter }

func countExternal(tb testing.TB, cluster *devcluster.Cluster) externalServers {
	tb.Helper()
	return externalServers{
		startCounter(tb, "Prometheus", cluster.Monitoring.PrometheusURL()),
		startCounter(tb, "Alertmanager", cluster.Monitoring.AlertmanagerURL()),
		startCounter(tb, "the receiver", cluster.Sink.URL()),
	}
}

func (o externalServers) all() []*counter {
	return []*counter{o.prometheus, o.alertmanager, o.receiver}
}

// configuration returns a configuration with the URLs of the counters.
func (o externalServers) configuration(interval time.Duration) string {
	return fmt.Sprintf("alerts: {url: %q, interval: %s}\nalertmanager: {url: %q}\nwebhook: {url: %q}\n", o.prometheus.url, interval, o.alertmanager.url, o.receiver.url)
}

// reset clears the requests, and keeps the connections.
func (o externalServers) reset() {
	for _, c := range o.all() {
		c.mu.Lock()
		c.requests = map[string]int{}
		c.mu.Unlock()
	}
}

// String returns a table like the table of requests to the API server.
func (o externalServers) String() string {
	var lines strings.Builder
	for _, c := range o.all() {
		made := c.snapshot()
		for _, what := range slices.Sorted(maps.Keys(made)) {
			fmt.Fprintf(&lines, "%6d %s: %s\n", made[what], c.name, what)
		}
		c.mu.Lock()
		fmt.Fprintf(&lines, "%6d connections to %s, at most %d open at a time\n", c.opened, c.name, c.maxOpen)
		c.mu.Unlock()
	}
	return lines.String()
}

// checkConnections fails if a connection was not reused: then each pass would leave one open. A
// connection that was idle for 90 s is closed, and another one opened.
func (o externalServers) checkConnections(tb testing.TB) {
	tb.Helper()
	for _, c := range o.all() {
		c.mu.Lock()
		if c.maxOpen > 1 || c.opened > 2 {
			tb.Errorf("%d connections were made to %s, and %d open at a time, want one that is used again", c.opened, c.name, c.maxOpen)
		}
		c.mu.Unlock()
	}
}

// checkIdle fails if, while an upgrade waits, Prometheus is queried more than once in an interval,
// or any other server gets a request. It returns the number of queries.
func (o externalServers) checkIdle(tb testing.TB, idle, interval time.Duration) int {
	tb.Helper()
	queries, limit := o.prometheus.total(), int(idle/interval)+1
	if queries > limit || queries == 0 {
		tb.Errorf("Prometheus was queried %d times in %s, want 1 to %d times", queries, idle, limit)
	}
	if n := o.alertmanager.total(); n > 0 {
		tb.Errorf("%d requests to Alertmanager while nothing was silenced", n)
	}
	o.checkConnections(tb)
	return queries
}

// checkUpgrade fails if an upgrade queried Prometheus more than once in an interval, or sent more
// requests to Alertmanager than two windows need. It returns the numbers of requests.
func (o externalServers) checkUpgrade(tb testing.TB, took, interval time.Duration) (queries, silencing int) {
	tb.Helper()
	queries = o.prometheus.total()
	if limit := int(took/interval) + 1; queries > limit || queries < 2 {
		tb.Errorf("Prometheus was queried %d times in %s, want 2 to %d times", queries, took, limit)
	}
	// Silences are listed before each window is opened, and before it is closed.
	want := map[string]int{"GET /api/v2/silences": 4, "POST /api/v2/silences": 2, "DELETE /api/v2/silence/ID": 2}
	if diff := cmp.Diff(want, o.alertmanager.snapshot()); diff != "" {
		tb.Errorf("requests to Alertmanager (-want +got):\n%s", diff)
	}
	o.checkConnections(tb)
	return queries, o.alertmanager.total()
}
