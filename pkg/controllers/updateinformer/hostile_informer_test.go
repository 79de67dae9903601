// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updateinformer"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// Informers older than the rules for their names, or that have evaded them, are not queried.
func TestInformer_named_like_a_built_in_one(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"builtin-nodes", "builtin-", "update-status-controller"} {
		w := newWorld(t)
		w.update(true, true)
		var informer updatev1beta1.UpdateInformer
		must(t, w.client.Get(t.Context(), client.ObjectKey{Name: "shop"}, &informer))
		must(t, w.client.Create(t.Context(), &updatev1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: informer.Spec}))
		result, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: name}})
		must(t, err)
		if requests := w.took(); len(requests) > 0 || len(w.Answers()) > 0 || result.RequeueAfter > 0 {
			t.Errorf("%s: requests %q, answers %v", name, requests, w.Answers())
		}
	}
}

// A heartbeat proves that an informer is alive, not that it has no insights.
func TestHeartbeat_without_answers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.pass()
	w.server.Close()
	for range 20 {
		w.setOnline(metav1.ConditionTrue, updatev1beta1.ReasonAsExpected, w.clock.Now())
		w.runFor(30 * time.Second)
	}
	if got := w.result(); got.Result != insight.Unreachable {
		t.Errorf("the answer is %s", got.Result)
	}
	if diff := cmp.Diff([]string{"Warning InformerLost"}, w.events); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

// The deletion of an informer takes precedence over an answer to an earlier request.
func TestAnswer_after_the_deletion(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.answer(func(rw http.ResponseWriter, r *http.Request) {
		if err := w.client.Delete(r.Context(), &updatev1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
			t.Error(err)
		}
		answering(success)(rw, r)
	})
	w.pass()
	w.pass()
	if got := w.result(); got.Result != insight.Deleted {
		t.Errorf("the answer is %s", got.Result)
	}
	w.took()
	w.runFor(time.Hour)
	if requests := w.took(); len(requests) > 0 {
		t.Errorf("requests after the deletion: %q", requests)
	}
}

// An informer that fails every other time is queried as often as any other and causes no Events.
func TestAnswers_that_alternate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.pass()
	w.took()
	n := 0
	w.answer(func(rw http.ResponseWriter, r *http.Request) {
		if n++; n%2 == 1 {
			rw.WriteHeader(http.StatusInternalServerError)
			return
		}
		answering(success)(rw, r)
	})
	for range 20 {
		w.runFor(15 * time.Second)
	}
	if requests := count(w.took(), "GET updateInsights"); requests < 20 || requests > 45 {
		t.Errorf("%d requests in five minutes", requests)
	}
	if len(w.events) > 0 {
		t.Errorf("Events: %q", w.events)
	}
}

// If an informer echoes the token of a request, users who can read the status do not see it.
func TestToken_that_an_informer_repeats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.answer(func(rw http.ResponseWriter, r *http.Request) {
		repeated := `[{"uid": "a", "impact": {"summary": "got ` + r.Header.Get("Authorization") + `"}}]`
		answering(strings.Replace(success, "[]", repeated, 1))(rw, r)
	})
	w.pass()
	got := w.result()
	if len(got.Insights) != 1 {
		t.Fatalf("%d insights", len(got.Insights))
	}
	if summary := got.Insights[0].Impact.Summary; strings.Contains(summary, "secret-token") || !strings.Contains(summary, "got Bearer") {
		t.Errorf("the summary is %q", summary)
	}
}

// Each informer has its own tokens. They are replaced before they expire.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	requested := 0
	world := simulation.New(simulation.WorldOptions{})
	account := types.NamespacedName{Namespace: "managed-upgrade-operator", Name: "update-status-controller"}
	must(t, world.Add(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: account.Namespace, Name: account.Name}}))
	tokens := &updateinformer.Tokens{Clock: w.clock, ServiceAccount: account, Client: world.FaultyClient("test", func(simulation.Request) simulation.Fault {
		requested++
		return simulation.Fault{}
	})}
	for _, step := range []struct {
		name, audience string
		after          time.Duration
		want           int
	}{
		{"the first", "a", 0, 1},
		{"the same again", "a", 7 * time.Minute, 1},
		{"of another audience", "b", 0, 2},
		{"the first, which expires in two minutes", "a", time.Minute, 3},
		{"the first, after the clock was set back", "a", -24 * time.Hour, 4},
	} {
		w.clock.SetTime(w.clock.Now().Add(step.after))
		if _, err := tokens.Token(t.Context(), step.audience); err != nil {
			t.Fatal(err)
		}
		if requested != step.want {
			t.Errorf("%s: %d requests, want %d", step.name, requested, step.want)
		}
	}
}
