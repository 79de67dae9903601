// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence_test

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/fakealertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

var (
	noon        = time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	settings    = silence.Settings{Lease: 30 * time.Minute, Timeout: 2 * time.Minute}
	wide        = silence.Scope{Severities: []string{"warning", "info"}, Namespaces: []string{"openshift-*", "default"}}
	named       = silence.Scope{Severities: wide.Severities, Namespaces: wide.Namespaces, Alerts: []string{"ClusterOperatorDown", "etcdMembersDown"}}
	testAttempt = engine.AttemptRef{UID: "u-1", Kind: "UpgradeConfig", Namespace: "ns", Name: "cluster", Key: "2026-03-01T12:00:00Z", Version: "4.4.6"}
)

// fault is what becomes of a request.
type fault int

const (
	none  fault = iota
	lost        // it does not arrive
	mute        // it is carried out, but the answer is lost
	odd         // it is carried out, and answered with what is no answer
	fails       // it is refused
)

// world is an Alertmanager, reached over HTTP, and a clock.
type world struct {
	t        *testing.T
	clock    *testclock.FakePassiveClock
	client   *alertmanager.Client
	close    func()
	requests atomic.Int32

	mu       sync.Mutex
	fault    func(request int) fault // returns the fault of each request, from 1
	operator *silence.Silencer       // that lives now
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: testclock.NewFakePassiveClock(noon)}
	inner := fakealertmanager.New(w.clock)
	server := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		switch w.nextFault(int(w.requests.Add(1))) {
		case none:
			inner.ServeHTTP(rw, r)
		case lost:
			panic(http.ErrAbortHandler)
		case mute:
			inner.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case odd:
			inner.ServeHTTP(httptest.NewRecorder(), r)
			rw.WriteHeader(http.StatusBadGateway)
		case fails:
			rw.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	w.close = server.Close
	t.Cleanup(server.Close)
	var err error
	if w.client, err = alertmanager.New(httpclient.Options{URL: server.URL}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	return w
}

// nextFault is what becomes of a request.
func (w *world) nextFault(request int) fault {
	w.mu.Lock()
	f := w.fault
	w.mu.Unlock()
	if f == nil {
		return none
	}
	return f(request)
}

// setFault lets requests fail from now on, and returns how they did before.
func (w *world) setFault(f func(request int) fault) func(int) fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := w.fault
	w.fault = f
	return before
}

// restart lets the operator die and another live.
func (w *world) restart() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.operator = &silence.Silencer{Alertmanager: w.client}
}

// silencer is the operator that lives.
func (w *world) silencer() *silence.Silencer {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.operator
}

func (w *world) window(scope silence.Scope) silence.Window {
	return w.silencer().Window(testAttempt, "ControlPlane", scope, settings)
}

// call calls a step that was first tried some time ago.
func (w *world) call(step engine.UpgradeStep, tried time.Duration) engine.Result {
	w.t.Helper()
	now := w.clock.Now()
	result, err := step(w.t.Context(), engine.Run{Started: noon, Since: now.Add(-tried), Now: now})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// keepAlive calls a keeper. Its trouble, if it has any, is returned.
func (w *world) keepAlive(scope silence.Scope) (engine.Result, error) {
	return w.window(scope).KeepAlive()(w.t.Context(), engine.Run{Started: noon, Since: noon, Now: w.clock.Now()})
}

// settle calls a step as the engine does until it is over, for an hour at most.
func (w *world) settle(step func() engine.UpgradeStep) {
	w.t.Helper()
	since := w.clock.Now()
	for range 3600 {
		if result := w.call(step(), w.clock.Now().Sub(since)); result.Passed() {
			return
		}
		w.pass(time.Second)
	}
	w.t.Fatal("it does not end")
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// active are the silences that have not ended, asked without a fault.
func (w *world) active() []alertmanager.Silence {
	w.t.Helper()
	defer w.setFault(w.setFault(nil))
	found, err := w.client.Silences(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.requests.Add(-1)
	found = slices.DeleteFunc(found, func(s alertmanager.Silence) bool { return !s.InEffect() })
	slices.SortFunc(found, func(a, b alertmanager.Silence) int {
		return cmp.Or(a.EndsAt.Compare(b.EndsAt), strings.Compare(a.ID, b.ID))
	})
	return found
}

// mustBeActive have so many silences that have not ended.
func (w *world) mustBeActive(n int) []alertmanager.Silence {
	w.t.Helper()
	alive := w.active()
	if len(alive) != n {
		w.t.Fatalf("%d silences are in force, want %d: %+v", len(alive), n, alive)
	}
	return alive
}

// create makes a silence behind the operator's back.
func (w *world) create(d time.Duration, matchers ...alertmanager.Matcher) {
	w.t.Helper()
	s := alertmanager.Silence{Matchers: matchers, StartsAt: w.clock.Now(), EndsAt: w.clock.Now().Add(d), CreatedBy: "x", Comment: "x"}
	if _, err := w.client.Upsert(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) takeRequestCount() int { return int(w.requests.Swap(0)) }
