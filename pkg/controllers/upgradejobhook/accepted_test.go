// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/kstatus"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// accepted returns the condition in the form "False InvalidTemplate: message".
func accepted(hook *maintenancev1beta1.UpgradeJobHook) string {
	for _, c := range hook.Status.Conditions {
		if c.Type == maintenancev1beta1.ConditionAccepted {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

func TestAccepted_is_shown_although_the_Event_is_rejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newHook("a", `{"template":7}`, maintenancev1beta1.EventStart))
	w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: apierrors.NewForbidden(schema.GroupResource{Resource: "events"}, "x", errors.New("quota"))}.If(func(r simulation.Request) bool {
		return r.Kind == "Event"
	})
	w.Begin()
	w.RunFor(time.Minute)
	if got := accepted(w.hook("a")); !strings.HasPrefix(got, "False InvalidTemplate") {
		t.Errorf("the condition is %q", got)
	}
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		template string
		change   func(*maintenancev1beta1.UpgradeJobHook)
		want     string
		event    bool
	}{
		"valid": {template: exits0, want: "True Valid: the template is valid"},
		"other conditions go": {template: exits0, change: func(h *maintenancev1beta1.UpgradeJobHook) {
			h.Status.Conditions = []metav1.Condition{{Type: "Foreign", Status: metav1.ConditionTrue, Reason: "X", LastTransitionTime: metav1.Now()}}
		}, want: "True Valid: the template is valid"},
		"no container": {
			template: `{"template":{"spec":{"containers":[]}}}`, event: true,
			want: `False InvalidTemplate: the API server rejects spec.template: Job.batch `,
		},
		"no object": {template: `{"template":7}`, event: true, want: "False InvalidTemplate: spec.template.spec.template.spec is not an object"},
		"not allowed": {
			template: `{"template":{"spec":{"serviceAccountName":"x","containers":[{"name":"a","image":"a"}]}}}`, event: true,
			want: `False ServiceAccountNotAllowed: ServiceAccount "x"`,
		},
		"invalid selector": {template: exits0, change: func(h *maintenancev1beta1.UpgradeJobHook) {
			h.Spec.Selector = &maintenancev1beta1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, event: true, want: "False InvalidSelector: spec.selector: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := newHook("a", tc.template, maintenancev1beta1.EventStart)
			if tc.change != nil {
				tc.change(hook)
			}
			w := newWorld(t, hook)
			w.Begin()
			w.RunFor(time.Minute)
			got := w.hook("a")
			if text := accepted(got); !strings.HasPrefix(text, tc.want) {
				t.Errorf("got %s, want %s", text, tc.want)
			} else {
				golden.Texts(t, "", text)
			}
			if got.Status.ObservedGeneration != got.Generation || apimeta.FindStatusCondition(got.Status.Conditions, "Foreign") != nil {
				t.Errorf("the status is %+v", got.Status)
			}
			want := "Failed"
			if strings.HasPrefix(tc.want, "True ") {
				want = "Current"
			}
			if health, err := kstatus.Of(got); err != nil || health.Status != want {
				t.Errorf("%+v, %v, want %s", health, err, want)
			}
			if published := len(w.events) == 1 && strings.HasPrefix(w.events[0], "Warning "); published != tc.event {
				t.Errorf("Events: %s", w.events)
			}
			if jobs := w.jobs(); len(jobs) > 0 {
				t.Errorf("%d Jobs were created", len(jobs))
			}
			before := len(w.Requests)
			w.RunFor(12 * time.Hour)
			if again := strings.Contains(tc.want, "the API server rejects"); again != (len(w.Requests) != before) {
				t.Errorf("%d requests in quiet hours", len(w.Requests)-before)
			}
			w.Process.Kill()
			w.Begin()
			w.RunFor(time.Hour)
			if len(w.events) > 1 {
				t.Errorf("Events after a restart: %s", w.events)
			}
		})
	}
}

func TestAccepted_follows_the_spec_and_the_configuration(t *testing.T) {
	t.Parallel()
	dryRuns := 0
	w := newWorld(t, newHook("a", strings.Replace(exits0, `"containers"`, `"serviceAccountName":"notifier","containers"`, 1), maintenancev1beta1.EventStart))
	w.Plan = func(r simulation.Request) simulation.Fault {
		if r.Verb == "create" && r.Kind == "Job" {
			dryRuns++
		}
		return simulation.Fault{}
	}
	w.Begin()
	expect := func(want string, runs int) {
		t.Helper()
		w.RunFor(time.Minute)
		if got := accepted(w.hook("a")); !strings.HasPrefix(got, want) || dryRuns != runs {
			t.Errorf("got %s after %d dry runs, want %s after %d", got, dryRuns, want, runs)
		}
	}
	configure := func(accounts ...string) {
		w.config.ServiceAccounts = accounts
		w.changed <- genericEvent
	}
	expect("False ServiceAccountNotAllowed", 0)
	configure("notifier")
	expect("True Valid", 1)
	configure("notifier", "other")
	expect("True Valid", 1)
	configure()
	expect("False ServiceAccountNotAllowed", 1)
	hook := w.hook("a")
	hook.Spec.Template.Spec.Raw = []byte(exits0)
	w.Update(hook)
	expect("True Valid", 2)
	w.Process.Kill()
	w.Begin()
	expect("True Valid", 2)
	if !w.hasSeries("a") {
		t.Error("no series of the hook")
	}
	w.Delete(w.hook("a"))
	w.RunFor(time.Minute)
	if w.hasSeries("a") {
		t.Error("series of a hook that is gone")
	}
}

// TestAccepted_follows_what_rejects_Jobs lifts a quota, and policies that deny Jobs with their own
// codes. The hook is accepted within half a minute, whether or not an upgrade is waiting for it.
func TestAccepted_follows_what_rejects_Jobs(t *testing.T) {
	t.Parallel()
	jobs := schema.GroupResource{Group: "batch", Resource: "jobs"}
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"a quota":             {apierrors.NewForbidden(jobs, "x", errRefused), "False Forbidden: the Job must not be created"},
		"a webhook, code 400": {apierrors.NewBadRequest(`admission webhook "policy" denied the request: no`), "False InvalidTemplate: the API server rejects spec.template: admission webhook"},
		"a policy, code 422":  {apierrors.NewInvalid(schema.GroupKind{Group: "batch", Kind: "Job"}, "x", nil), "False InvalidTemplate: the API server rejects spec.template"},
	} {
		for state, upgrades := range map[string][]client.Object{"idle": nil, "active": {newUpgrade("upgrade", nil)}} {
			t.Run(name+", "+state, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, append(upgrades, newHook("a", exits0, maintenancev1beta1.EventStart))...)
				full := true
				w.Plan = simulation.Fault{Outcome: simulation.Refuse, Err: tc.err}.If(func(r simulation.Request) bool {
					return r.Verb == "create" && r.Kind == "Job" && full
				})
				w.Begin()
				w.RunFor(time.Hour)
				published := slices.DeleteFunc(slices.Clone(w.events), func(e string) bool { return strings.Fields(e)[2] != "a:" })
				if got := accepted(w.hook("a")); !strings.HasPrefix(got, tc.want) || len(published) != 1 {
					t.Errorf("got %s, Events %s", got, w.events)
				}
				full = false
				w.RunFor(30 * time.Second)
				if got := accepted(w.hook("a")); !strings.HasPrefix(got, "True Valid") {
					t.Errorf("got %s", got)
				}
			})
		}
	}
}

func TestOutcome_is_published_and_counted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newHook("bad", exits1, maintenancev1beta1.EventStart), newHook("good", exits0, maintenancev1beta1.EventStart), newUpgrade("upgrade", nil))
	w.Begin()
	w.runUntil("upgrade", time.Hour)
	slices.Sort(w.events)
	for i := range w.events {
		w.events[i] = w.anonymous(w.events[i])
	}
	golden.Events(t, "", []string{"Normal HookSucceeded upgrade", "Warning HookFailed upgrade"}, w.events...)
	if got := w.count("bad", "Start", "Failed") + w.count("good", "Start", "Succeeded"); got != 2 {
		t.Errorf("%v runs are counted", got)
	}
}
