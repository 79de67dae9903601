// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package silence_test

import (
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

func TestWindow_matchers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	got := w.call(w.window(named).Open(), 0)
	if got.Reason() != engine.ReasonDone {
		t.Errorf("got %+v", got)
	}
	made := w.mustBeActive(2)
	golden.Texts(t, "", got.Message(), made[0].Comment, made[1].Comment)
	for _, s := range made {
		if s.EndsAt != noon.Add(30*time.Minute) || s.State != alertmanager.Active || s.CreatedBy != "managed-upgrade-operator" {
			t.Errorf("made %+v", s)
		}
	}
	for name, tc := range map[string]struct {
		labels   map[string]string
		silenced bool
	}{
		"a warning of the platform":       {map[string]string{"alertname": "KubePodNotReady", "severity": "warning", "namespace": "openshift-etcd"}, true},
		"a warning of the default":        {map[string]string{"alertname": "A", "severity": "warning", "namespace": "default"}, true},
		"a notice of no namespace":        {map[string]string{"alertname": "NodeClockNotSynchronising", "severity": "info"}, true},
		"an application's warning":        {map[string]string{"alertname": "ShopIsSlow", "severity": "warning", "namespace": "shop"}, false},
		"a namespace with such an ending": {map[string]string{"alertname": "A", "severity": "warning", "namespace": "my-default"}, false},
		"a critical alert":                {map[string]string{"alertname": "KubeAPIDown", "severity": "critical", "namespace": "openshift-etcd"}, false},
		"a critical alert by name":        {map[string]string{"alertname": "etcdMembersDown", "severity": "critical", "namespace": "openshift-etcd"}, true},
		"a name that begins like one":     {map[string]string{"alertname": "etcdMembersDownForever", "severity": "critical"}, false},
		"the watchdog":                    {map[string]string{"alertname": "Watchdog", "severity": "none", "namespace": "openshift-monitoring"}, false},
		"alert of the operator":           {map[string]string{"alertname": "ManagedUpgradeStuck", "severity": "warning", "namespace": "openshift-managed"}, false},
		"an alert without severity":       {map[string]string{"alertname": "A", "namespace": "openshift-etcd"}, false},
	} {
		silenced := false
		for _, s := range made {
			silenced = silenced || matchesAll(s.Matchers, tc.labels)
		}
		if silenced != tc.silenced {
			t.Errorf("%s: silenced %t, want %t", name, silenced, tc.silenced)
		}
	}
}

func matchesAll(matchers []alertmanager.Matcher, labels map[string]string) bool {
	for _, m := range matchers {
		equal := m.Value == labels[m.Name]
		if m.IsRegex {
			equal = regexp.MustCompile("^(?:" + m.Value + ")$").MatchString(labels[m.Name])
		}
		if equal != m.IsEqual {
			return false
		}
	}
	return true
}

func TestSilence_of_alerts_by_pattern(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(silence.Scope{Alerts: []string{"etcd*", "Kube.Down"}}).Open(), 0)
	if got, want := w.mustBeActive(1)[0].Matchers[0].String(), `alertname=~"Kube\\.Down|etcd.*"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSilence_names_its_owner(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(silence.Scope{Severities: []string{"warn.ing", "info", "info"}, Namespaces: []string{"a+b*"}}).Open(), 0)
	var got []string
	for _, m := range w.mustBeActive(1)[0].Matchers {
		got = append(got, m.String())
	}
	want := []string{
		`severity=~"info|warn\\.ing"`, `namespace=~"a\\+b.*|"`, `alertname!~"ManagedUpgrade.*"`,
		`managed_upgrade_uid!="u-1"`, `managed_upgrade_attempt!="4.4.6/2026-03-01T12:00:00Z"`, `managed_upgrade_window!="ControlPlane"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("matchers (-want +got):\n%s", diff)
	}
}

func TestSilence_lasts_while_it_is_kept_alive(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(wide).Open(), 0)
	first := w.mustBeActive(1)[0]
	w.takeRequestCount()
	for range 12 * 60 { // a pass every minute, for half a day
		w.pass(time.Minute)
		result, err := w.keepAlive(wide)
		if err != nil || result.Passed() || result.Failed() {
			t.Fatalf("kept: %+v, %v", result, err)
		}
		kept := w.mustBeActive(1)[0]
		if left := kept.EndsAt.Sub(w.clock.Now()); kept.ID != first.ID || left < 15*time.Minute || left > 30*time.Minute {
			t.Fatalf("at %s: %+v", w.clock.Now(), kept)
		}
	}
	if got, want := w.takeRequestCount(), 12*4*2; got != want { // four extensions an hour, each with a list and a change
		t.Errorf("%d requests, want %d", got, want)
	}
	if result := w.call(w.window(wide).Close(), 0); result != engine.Done("silences ended: 1") {
		t.Errorf("ended: %+v", result)
	}
	w.mustBeActive(0)
}

func TestKeepAlive_requests_a_pass_at_half_of_the_lease(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(wide).Open(), 0)
	w.pass(10 * time.Minute)
	if got, err := w.keepAlive(wide); err != nil || got != engine.WaitFor(5*time.Minute, "Silenced", "the alerts are silenced") {
		t.Errorf("kept: %+v, %v", got, err)
	}
	w.restart() // it queries Alertmanager and finds nothing to do
	w.takeRequestCount()
	if got, err := w.keepAlive(wide); err != nil || got != engine.WaitFor(5*time.Minute, "Silenced", "the alerts are silenced") || w.takeRequestCount() != 1 {
		t.Errorf("kept after a restart: %+v, %v", got, err)
	}
}

func TestSilences_are_reconciled_from_any_state(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		before func(t *testing.T, w *world)
		others int // silences of other clients must stay
	}{
		"nothing":                       {func(*testing.T, *world) {}, 0},
		"the same":                      {func(_ *testing.T, w *world) { w.call(w.window(wide).Open(), 0) }, 0},
		"one that lapsed":               {func(_ *testing.T, w *world) { w.call(w.window(wide).Open(), 0); w.pass(time.Hour) }, 0},
		"one that was ended":            {func(_ *testing.T, w *world) { w.call(w.window(wide).Open(), 0); w.call(w.window(wide).Close(), 0) }, 0},
		"one that is about to lapse":    {func(_ *testing.T, w *world) { w.call(w.window(wide).Open(), 0); w.pass(29 * time.Minute) }, 0},
		"one that lasts too long":       {func(_ *testing.T, w *world) { w.call(w.window(wide).Open(), 0); w.pass(-5 * time.Hour) }, 0},
		"one for more alerts":           {func(_ *testing.T, w *world) { w.call(w.window(named).Open(), 0) }, 0},
		"silence of an earlier attempt": {func(_ *testing.T, w *world) { w.call(w.otherWindow(1, 0).Open(), 0) }, 0},
		"twice the same":                {func(_ *testing.T, w *world) { createTwice(w, 0) }, 0},
		"twice, one lasts longer":       {func(_ *testing.T, w *world) { createTwice(w, time.Minute) }, 0},
		"silence of another window": {func(_ *testing.T, w *world) {
			w.call(w.operator.Load().Window(testAttempt, "Workers", wide, settings).Open(), 0)
		}, 1},
		"silence of another UpgradeConfig":           {func(_ *testing.T, w *world) { w.call(w.otherWindow(2, 1).Open(), 0) }, 1},
		"silence of a person":                        {func(_ *testing.T, w *world) { w.create(5*time.Hour, alertmanager.Equal("severity", "warning")) }, 1},
		"silence of a person with the same matchers": {func(_ *testing.T, w *world) { w.create(5*time.Hour, alertmanager.Matches("severity", "info|warning")) }, 1},
		"one that begins in the future":              {func(_ *testing.T, w *world) { w.call(w.window(wide).Open(), 0); w.pass(-time.Second) }, 0},
		"everything has been forgotten":              {func(_ *testing.T, w *world) { w.call(w.window(wide).Open(), 0); w.restart() }, 0},
		"an operator was down for a day":             {func(_ *testing.T, w *world) { w.call(w.window(named).Open(), 0); w.pass(24 * time.Hour); w.restart() }, 0},
	} {
		for how, ensure := range map[string]func(w *world){
			"opened": func(w *world) { w.call(w.window(wide).Open(), 0) },
			"kept":   func(w *world) { w.restart(); _, _ = w.keepAlive(wide) },
		} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				tc.before(t, w)
				ensure(w)
				mine := 0
				for _, s := range w.mustBeActive(1 + tc.others) {
					left := s.EndsAt.Sub(w.clock.Now())
					if s.HasMatchers(alertmanager.NotEqual("managed_upgrade_uid", "u-1"), alertmanager.NotEqual("managed_upgrade_attempt", "4.4.6/2026-03-01T12:00:00Z"),
						alertmanager.NotEqual("managed_upgrade_window", "ControlPlane")) && left > 15*time.Minute && left <= 30*time.Minute {
						mine++
					}
				}
				if mine != 1 {
					t.Errorf("%d are this window's", mine)
				}
			})
		}
	}
}

// otherWindow returns the window of another UpgradeConfig or attempt.
func (w *world) otherWindow(uid rune, attempt int32) silence.Window {
	other := testAttempt
	other.UID, other.Key = "u-"+string('0'+uid), strings.Replace(testAttempt.Key, "-01T", "-0"+string('0'+attempt)+"T", 1)
	return w.operator.Load().Window(other, "ControlPlane", wide, settings)
}

// createTwice creates the same silence twice. The second one lasts longer by the given time.
func createTwice(w *world, longer time.Duration) {
	w.call(w.window(wide).Open(), 0)
	w.create(30*time.Minute+longer, w.mustBeActive(1)[0].Matchers...)
	w.mustBeActive(2)
}

func TestSilences_the_longest_duplicate_is_kept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(wide).Open(), 0)
	w.pass(10 * time.Minute)
	w.create(30*time.Minute, w.mustBeActive(1)[0].Matchers...)
	longer := w.mustBeActive(2)[1]
	w.restart()
	if _, err := w.keepAlive(wide); err != nil {
		t.Fatal(err)
	}
	if kept := w.mustBeActive(1)[0]; kept.ID != longer.ID {
		t.Errorf("kept %+v, want %+v", kept, longer)
	}
}

func TestAlertmanager_is_down(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.SetPlan(func(int) simulation.HTTPFault { return simulation.HTTPRefuse })
	down := `responded 503 Service Unavailable`
	for tried, want := range map[time.Duration]string{
		0:                "the alerts are not silenced yet: ",
		time.Minute:      "the alerts are not silenced yet: ",
		2 * time.Minute:  "the alerts are not silenced within 2m0s: ",
		20 * time.Minute: "the alerts are not silenced within 2m0s: ",
		-time.Hour:       "the alerts are not silenced yet: ",
	} {
		got := w.call(w.window(wide).Open(), tried)
		if got.Passed() != (tried >= settings.Timeout) || got.Failed() || got.Reason() != "NotSilenced" ||
			!strings.HasPrefix(got.Message(), want) || !strings.HasSuffix(got.Message(), down) {
			t.Errorf("after %s: %+v", tried, got)
		}
		got = w.call(w.window(wide).Close(), tried)
		if got.Passed() != (tried >= settings.Timeout) || got.Reason() != "NotEnded" || !strings.HasPrefix(got.Message(), "the silences could not be ended and will expire within 30m0s") {
			t.Errorf("ended after %s: %+v", tried, got)
		}
	}
}

func TestKeepAlive_retries_once_a_minute(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.SetPlan(func(int) simulation.HTTPFault { return simulation.HTTPRefuse })
	for range 600 { // a change every second for ten minutes
		if result, err := w.keepAlive(wide); err == nil || !strings.HasPrefix(err.Error(), "keeping the alerts silenced: ") {
			t.Fatalf("kept: %+v, %v", result, err)
		}
		w.pass(time.Second)
	}
	if got := w.takeRequestCount(); got != 10 {
		t.Errorf("%d requests in ten minutes", got)
	}
	w.server.SetPlan(nil)
	if _, err := w.keepAlive(wide); err != nil {
		t.Errorf("it is up again, and kept: %v", err)
	}
	w.mustBeActive(1)
}

func TestKeepAlive_never_blocks_its_step(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.SetPlan(func(int) simulation.HTTPFault { return simulation.HTTPLoseRequest })
	pass := func(result engine.Result) history.StepCondition {
		book := engine.Runbook{Steps: []engine.Step{{
			Name:      "Upgraded",
			Do:        func(c ctx, _ engine.Run) (engine.Result, error) { return result, c.Err() },
			KeepAlive: []engine.KeepAlive{{Name: "Silence", Renew: w.window(wide).KeepAlive()}},
		}}}
		e := &engine.Engine{Clock: w.clock, Save: func(ctx, history.Record) error { return nil }}
		record, _, err := e.Pass(t.Context(), book, history.Record{}, engine.Constraints{})
		if err != nil {
			t.Fatal(err)
		}
		return record.Conditions[0]
	}
	waits := pass(engine.Wait("Upgrading", "half of it is done"))
	if waits.Reason != "Upgrading" || !strings.HasPrefix(waits.Message, "half of it is done; also: keeping the alerts silenced: listing the silences: ") {
		t.Errorf("waits: %+v", waits)
	}
	if done := pass(engine.Done("all of it")); engine.Classify(done) != engine.ClassDone || done.Message != "all of it" {
		t.Errorf("done: %+v", done)
	}
}

func TestNoRequest_without_anything_to_do(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	unconfigured := &silence.Silencer{}
	for name, tc := range map[string]struct {
		step engine.UpgradeStep
		want engine.Result
	}{
		"open without Alertmanager":       {unconfigured.Window(testAttempt, "X", wide, settings).Open(), engine.Skip("NotConfigured", "no Alertmanager is configured")},
		"keep alive without Alertmanager": {unconfigured.Window(testAttempt, "X", wide, settings).KeepAlive(), engine.Result{}},
		"close without Alertmanager":      {unconfigured.Window(testAttempt, "X", wide, settings).Close(), engine.Skip("NotConfigured", "no Alertmanager is configured")},
		"close all without Alertmanager":  {unconfigured.CloseAll(testAttempt, settings), engine.Skip("NotConfigured", "no Alertmanager is configured")},
		"open without alerts":             {w.window(silence.Scope{}).Open(), engine.Skip("NotConfigured", "no alerts need to be silenced")},
		"keep alive without alerts":       {w.window(silence.Scope{}).KeepAlive(), engine.Result{}},
		"namespaces only":                 {w.window(silence.Scope{Namespaces: []string{"*"}}).Open(), engine.Skip("NotConfigured", "no alerts need to be silenced")},
	} {
		if got := w.call(tc.step, 0); got != tc.want {
			t.Errorf("%s: %+v, want %+v", name, got, tc.want)
		}
	}
	if got := w.takeRequestCount(); got != 0 {
		t.Errorf("%d requests", got)
	}
}

func TestCloseAll_ends_the_silences_of_the_UpgradeConfig_only(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(named).Open(), 0)
	w.call(w.operator.Load().Window(testAttempt, "Workers", wide, settings).Open(), 0)
	w.call(w.otherWindow(1, 7).Open(), 0) // another attempt takes over the window
	w.call(w.otherWindow(2, 1).Open(), 0)
	w.create(time.Hour, alertmanager.Equal("a", "b"))
	w.restart()
	if got := w.call(w.operator.Load().CloseAll(testAttempt, settings), 0); got != engine.Done("silences ended: 2") {
		t.Errorf("got %+v", got)
	}
	w.mustBeActive(2)
	if got := w.call(w.operator.Load().CloseAll(testAttempt, settings), 0); got != engine.Skip("NothingToEnd", "no silence of this upgrade is in effect") {
		t.Errorf("again: %+v", got)
	}
}

func TestCloseNow_ends_silences_unless_Alertmanager_is_down(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(named).Open(), 0)
	w.call(w.otherWindow(2, 1).Open(), 0)
	w.takeRequestCount()
	w.server.SetPlan(func(int) simulation.HTTPFault { return simulation.HTTPRefuse })
	w.operator.Load().CloseNow(t.Context(), testAttempt)
	if requests := w.takeRequestCount(); requests != 1 {
		t.Errorf("%d requests to an Alertmanager that is out of reach, want 1", requests)
	}
	w.server.SetPlan(nil)
	w.mustBeActive(3)
	w.operator.Load().CloseNow(t.Context(), testAttempt)
	w.mustBeActive(1)
	(&silence.Silencer{}).CloseNow(t.Context(), testAttempt) // without Alertmanager
}

func TestSilence_expires_without_the_operator(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(named).Open(), 0)
	w.pass(30 * time.Minute)
	w.mustBeActive(0)
	if got := w.call(w.window(named).Close(), 0); got.Reason() != "NothingToEnd" || !got.Passed() {
		t.Errorf("ended: %+v", got)
	}
}

func TestClose_ends_one_window_only(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(named).Open(), 0)
	w.call(w.operator.Load().Window(testAttempt, "Workers", wide, settings).Open(), 0)
	if got := w.call(w.window(named).Close(), 0); got != engine.Done("silences ended: 2") {
		t.Errorf("got %+v", got)
	}
	w.mustBeActive(1)
}

func TestKeepAlive_after_the_clock_jumps_back(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.call(w.window(wide).Open(), 0)
	w.pass(-10 * time.Minute)
	if _, err := w.keepAlive(wide); err != nil {
		t.Fatal(err)
	}
	if left := w.mustBeActive(1)[0].EndsAt.Sub(w.clock.Now()); left != 30*time.Minute {
		t.Errorf("it lasts for %s more", left)
	}
}
