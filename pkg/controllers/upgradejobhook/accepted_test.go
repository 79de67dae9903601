// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// accepted returns the condition as in "False InvalidTemplate: message".
func accepted(hook *v1beta1.UpgradeJobHook) string {
	for _, c := range hook.Status.Conditions {
		if c.Type == v1beta1.ConditionAccepted {
			return string(c.Status) + " " + c.Reason + ": " + c.Message
		}
	}
	return ""
}

func TestAccepted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		template string
		change   func(*v1beta1.UpgradeJobHook)
		want     string
		event    bool
	}{
		"valid": {template: exits0, want: "True Valid: the template is valid"},
		"other conditions go": {template: exits0, change: func(h *v1beta1.UpgradeJobHook) {
			h.Status.Conditions = []metav1.Condition{{Type: "Foreign", Status: metav1.ConditionTrue, Reason: "X", LastTransitionTime: metav1.Now()}}
		}, want: "True Valid: the template is valid"},
		"no container": {
			template: `{"template":{"spec":{"containers":[]}}}`, event: true,
			want: `False InvalidTemplate: the API server rejects spec.template: Job.batch `,
		},
		"no object": {template: `{"template":7}`, event: true, want: "False InvalidTemplate: spec.template.spec.template.spec is not an object"},
		"not allowed": {
			template: `{"template":{"spec":{"serviceAccountName":"x","containers":[{"name":"a","image":"a"}]}}}`, event: true,
			want: `False ServiceAccountNotAllowed: ServiceAccount "x" is not allowed; add it to hooks.serviceAccounts of the operator's configuration, or remove it from the template`,
		},
		"invalid selector": {template: exits0, change: func(h *v1beta1.UpgradeJobHook) {
			h.Spec.Selector = &v1beta1.LabelSelector{MatchLabels: map[string]string{"a b": "c"}}
		}, event: true, want: "False InvalidSelector: spec.selector: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			hook := newHook("a", tc.template, v1beta1.EventStart)
			if tc.change != nil {
				tc.change(hook)
			}
			w := newWorld(t, hook)
			w.start()
			w.runFor(time.Minute)
			got := w.hook("a")
			if text := accepted(got); !strings.HasPrefix(text, tc.want) {
				t.Errorf("got %s, want %s", text, tc.want)
			}
			if got.Status.ObservedGeneration != got.Generation || len(got.Status.Conditions) != 1 {
				t.Errorf("the status is %+v", got.Status)
			}
			if published := len(w.events) == 1 && strings.HasPrefix(w.events[0], "Warning "); published != tc.event {
				t.Errorf("Events: %s", w.events)
			}
			if jobs := w.jobs(); len(jobs) > 0 {
				t.Errorf("%d Jobs were created", len(jobs))
			}
			before := w.requests
			w.runFor(12 * time.Hour)
			if w.requests != before {
				t.Errorf("%d requests in quiet hours", w.requests-before)
			}
			w.process.Kill()
			w.start()
			w.runFor(time.Hour)
			if len(w.events) > 1 {
				t.Errorf("Events after a restart: %s", w.events)
			}
		})
	}
}

func TestAccepted_follows_the_spec_and_the_configuration(t *testing.T) {
	t.Parallel()
	dryRuns := 0
	w := newWorld(t, newHook("a", strings.Replace(exits0, `"containers"`, `"serviceAccountName":"notifier","containers"`, 1), v1beta1.EventStart))
	w.plan = func(r simulation.Request) simulation.Fault {
		if r.Verb == "create" && r.Kind == "Job" {
			dryRuns++
		}
		return simulation.Fault{}
	}
	w.start()
	expect := func(want string, runs int) {
		t.Helper()
		w.runFor(time.Minute)
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
	w.must(w.api.Update(t.Context(), hook))
	expect("True Valid", 2)
	w.process.Kill()
	w.start()
	expect("True Valid", 2)
	if !w.hasSeries("a") {
		t.Error("no series of the hook")
	}
	w.must(w.api.Delete(t.Context(), w.hook("a")))
	w.runFor(time.Minute)
	if w.hasSeries("a") {
		t.Error("series of a hook that is gone")
	}
}

func TestAccepted_is_tried_again_while_Jobs_are_forbidden(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newHook("a", exits0, v1beta1.EventStart))
	full := true
	w.plan = func(r simulation.Request) simulation.Fault {
		if r.Verb == "create" && r.Kind == "Job" && full {
			return simulation.Fault{Outcome: simulation.Refuse, Err: apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "x", errRefused)}
		}
		return simulation.Fault{}
	}
	w.start()
	w.runFor(time.Hour)
	if got := accepted(w.hook("a")); !strings.HasPrefix(got, "False Forbidden: the Job must not be created") || len(w.events) != 1 {
		t.Errorf("got %s, Events %s", got, w.events)
	}
	full = false
	w.runFor(time.Hour)
	if got := accepted(w.hook("a")); !strings.HasPrefix(got, "True Valid") {
		t.Errorf("got %s", got)
	}
}

func TestOutcome_is_published_and_counted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newHook("bad", exits1, v1beta1.EventStart), newHook("good", exits0, v1beta1.EventStart), newUpgrade("upgrade", nil))
	w.start()
	w.runUntil("upgrade", time.Hour)
	slices.Sort(w.events)
	for i := range w.events {
		for _, job := range w.jobs() {
			w.events[i] = strings.ReplaceAll(w.events[i], job.Name, "JOB")
		}
	}
	want := []string{
		"Normal HookSucceeded upgrade: hook Start/good succeeded: Job JOB",
		"Warning HookFailed upgrade: hook Start/bad failed: Job JOB: BackoffLimitExceeded: Job has reached the specified backoff limit",
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	if got := w.count("bad", "Start", "Failed") + w.count("good", "Start", "Succeeded"); got != 2 {
		t.Errorf("%v runs are counted", got)
	}
}
