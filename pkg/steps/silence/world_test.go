// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence_test

import (
	"cmp"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	testclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/fakealertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

var (
	noon        = time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	settings    = silence.Settings{Lease: 30 * time.Minute, Timeout: 2 * time.Minute}
	wide        = silence.Scope{Severities: []string{"warning", "info"}, Namespaces: []string{"openshift-*", "default"}}
	named       = silence.Scope{Severities: wide.Severities, Namespaces: wide.Namespaces, Alerts: []string{"ClusterOperatorDown", "etcdMembersDown"}}
	testAttempt = engine.AttemptRef{UID: "u-1", Kind: "UpgradeConfig", Namespace: "ns", Name: "cluster", Key: "2026-03-01T12:00:00Z", Version: "4.4.6"}
)

// world is an Alertmanager behind HTTP, and a clock.
type world struct {
	t        *testing.T
	clock    *testclock.FakePassiveClock
	server   *simulation.FaultyHandler
	client   *alertmanager.Client
	close    func()
	operator atomic.Pointer[silence.Silencer] // of the current process
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: testclock.NewFakePassiveClock(noon)}
	w.server = &simulation.FaultyHandler{Handler: fakealertmanager.New(w.clock)}
	server := httptest.NewServer(w.server)
	w.close = server.Close
	t.Cleanup(server.Close)
	var err error
	if w.client, err = alertmanager.New(httpclient.Options{URL: server.URL}); err != nil {
		t.Fatal(err)
	}
	w.restart()
	return w
}

// restart replaces the process of the operator.
func (w *world) restart() { w.operator.Store(&silence.Silencer{Alertmanager: w.client}) }

func (w *world) window(scope silence.Scope) silence.Window {
	return w.operator.Load().Window(testAttempt, "ControlPlane", scope, settings)
}

// call calls a step that was first called some time ago.
func (w *world) call(step engine.UpgradeStep, tried time.Duration) engine.Result {
	w.t.Helper()
	now := w.clock.Now()
	result, err := step(w.t.Context(), engine.Run{Started: noon, Since: now.Add(-tried), Now: now})
	if err != nil {
		w.t.Fatal(err)
	}
	return result
}

// keepAlive renews the silences of a window.
func (w *world) keepAlive(scope silence.Scope) (engine.Result, error) {
	return w.window(scope).KeepAlive()(w.t.Context(), engine.Run{Started: noon, Since: noon, Now: w.clock.Now()})
}

// settle calls a step like the engine until it has passed, for at most an hour.
func (w *world) settle(step func() engine.UpgradeStep) {
	w.t.Helper()
	since := w.clock.Now()
	for range 3600 {
		if result := w.call(step(), w.clock.Now().Sub(since)); result.Passed() {
			return
		}
		w.pass(time.Second)
	}
	w.t.Fatal("the step does not pass within an hour")
}

func (w *world) pass(d time.Duration) { w.clock.SetTime(w.clock.Now().Add(d)) }

// active returns the unexpired silences. Its request is not faulted or counted.
func (w *world) active() []alertmanager.Silence {
	w.t.Helper()
	defer w.server.ResetRequests(w.server.ResetRequests(0))
	defer w.server.SetPlan(w.server.SetPlan(nil))
	found, _, err := w.client.Silences(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	found = slices.DeleteFunc(found, func(s alertmanager.Silence) bool { return !s.InEffect() })
	slices.SortFunc(found, func(a, b alertmanager.Silence) int {
		return cmp.Or(a.EndsAt.Compare(b.EndsAt), strings.Compare(a.ID, b.ID))
	})
	return found
}

// mustBeActive returns the unexpired silences. It fails the test unless there are n.
func (w *world) mustBeActive(n int) []alertmanager.Silence {
	w.t.Helper()
	alive := w.active()
	if len(alive) != n {
		w.t.Fatalf("%d silences are active, want %d: %+v", len(alive), n, alive)
	}
	return alive
}

// create creates a silence as another client.
func (w *world) create(d time.Duration, matchers ...alertmanager.Matcher) {
	w.t.Helper()
	s := alertmanager.Silence{Matchers: matchers, StartsAt: w.clock.Now(), EndsAt: w.clock.Now().Add(d), CreatedBy: "x", Comment: "x"}
	if _, err := w.client.Upsert(w.t.Context(), s); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) takeRequestCount() int { return w.server.ResetRequests(0) }
