// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/pki"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	wait       = `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInsightsResponse", "status": {"response": "Wait", "message": "building"}}`
	planAnswer = `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdatePlanInsightsResponse", "status": {"response": "Success"}, "spec": {"insights": [{"uid": "a"}]}}`
)

// count returns the number of requests that equal one.
func count(requests []string, one string) int {
	n := 0
	for _, request := range requests {
		if request == one {
			n++
		}
	}
	return n
}

func TestPolling_is_done_only_when_due(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		setup             func(*world)
		polls, discovered int
	}{
		"idle":                   {func(w *world) { w.update(false, false) }, 0, 1},
		"pending and active":     {func(w *world) { w.update(true, true) }, 121, 4},
		"pending and not active": {func(w *world) { w.update(true, false) }, 16, 4},
		"after the update": {func(w *world) {
			w.change(&updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}, func(o client.Object) {
				o.(*updatev1beta1.UpdateStatus).Status.AfterUpdate = []updatev1beta1.RetainedInsight{
					{UpdateInformer: "shop", Insight: updatev1beta1.Insight{UID: "a"}, RetainedSince: metav1.NewTime(start)},
				}
			})
		}, 3, 4},
		"14 days after the update": {func(w *world) {
			w.change(&updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}, func(o client.Object) {
				o.(*updatev1beta1.UpdateStatus).Status.AfterUpdate = []updatev1beta1.RetainedInsight{
					{UpdateInformer: "shop", Insight: updatev1beta1.Insight{UID: "a"}, RetainedSince: metav1.NewTime(start.Add(-14 * 24 * time.Hour))},
				}
			})
		}, 0, 1},
		"of another informer": {func(w *world) {
			w.change(&updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}, func(o client.Object) {
				o.(*updatev1beta1.UpdateStatus).Status.AfterUpdate = []updatev1beta1.RetainedInsight{
					{UpdateInformer: "other", Insight: updatev1beta1.Insight{UID: "a"}, RetainedSince: metav1.NewTime(start)},
				}
			})
		}, 0, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tc.setup(w)
			w.runFor(30 * time.Minute)
			requests := w.took()
			if polls, discovered := count(requests, "GET updateInsights"), count(requests, "GET discovery"); polls != tc.polls || discovered != tc.discovered {
				t.Errorf("%d polls and %d discoveries in 30 minutes, want %d and %d", polls, discovered, tc.polls, tc.discovered)
			}
			if len(w.tokens) != len(requests) {
				t.Errorf("%d tokens for %d requests", len(w.tokens), len(requests))
			}
		})
	}
}

func TestPolling_begins_with_the_update(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.runFor(time.Hour)
	w.took()
	w.update(true, false)
	w.pass()
	if got := count(w.took(), "GET updateInsights"); got != 1 {
		t.Errorf("%d polls when the update began", got)
	}
	w.update(true, true)
	if next := w.pass(); next > 15*time.Second {
		t.Errorf("the next pass is in %s", next)
	}
}

func TestWait_is_repeated_every_5_seconds_for_2_minutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.answer(answering(wait))
	w.runFor(2*time.Minute - time.Second)
	if got := count(w.took(), "GET updateInsights"); got != 24 {
		t.Errorf("%d requests in the first two minutes", got)
	}
	w.runFor(10 * time.Minute)
	if got := count(w.took(), "GET updateInsights"); got < 38 || got > 42 {
		t.Errorf("%d requests in ten minutes after that", got)
	}
	if got := w.result(); got.Result != insight.Wait || got.Message != "building" {
		t.Errorf("the answer is %+v", got)
	}
	w.answer(answering(success))
	w.runFor(time.Minute)
	if got := w.result().Result; got != insight.Success {
		t.Errorf("the answer is %s", got)
	}
}

func TestMethod_falls_back_to_POST_until_the_next_discovery(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 405, 411, 415} {
		w := newWorld(t)
		w.update(true, true)
		w.answer(func(rw http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				rw.WriteHeader(status)
				return
			}
			answering(success)(rw, r)
		})
		w.runFor(time.Minute)
		want := []string{"GET discovery", "GET updateInsights", "POST updateInsights", "POST updateInsights", "POST updateInsights", "POST updateInsights", "POST updateInsights"}
		if diff := cmp.Diff(want, w.took()); diff != "" {
			t.Errorf("status %d: requests (-want +got):\n%s", status, diff)
		}
		w.runFor(10 * time.Minute)
		if got := count(w.took(), "GET updateInsights"); got != 1 {
			t.Errorf("status %d: %d requests with GET after the next discovery", status, got)
		}
	}
}

func TestMethod_is_POST_if_discovery_lists_only_that(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.discovery = strings.Replace(discovery, `"name": "status"`, `"name": "status", "methods": ["POST"]`, 1)
	w.update(true, true)
	w.pass()
	if diff := cmp.Diff([]string{"GET discovery", "POST updateInsights"}, w.took()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestDiscovery_of_what_is_not_supported(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ discovery, reason string }{
		"another level": {strings.ReplaceAll(discovery, "v1alpha", "v9"), updatev1beta1.ReasonProtocolUnsupported},
		"no handlers":   {strings.Replace(strings.Replace(discovery, `"status"`, `"x"`, 1), `"plan"`, `"y"`, 1), updatev1beta1.ReasonInvalidResponse},
		"no JSON":       {"x", updatev1beta1.ReasonInvalidResponse},
	} {
		w := newWorld(t)
		w.discovery = tc.discovery
		w.update(true, true)
		w.pass()
		if got := w.condition("Discovered"); got.Status != metav1.ConditionFalse || got.Reason != tc.reason {
			t.Errorf("%s: Discovered is %s %s: %s", name, got.Status, got.Reason, got.Message)
		}
		if got := w.result().Result; got != insight.Invalid {
			t.Errorf("%s: the answer is %s", name, got)
		}
	}
}

func TestBreaker_opens_after_5_failures(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.pass()
	w.took()
	w.answer(func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(http.StatusInternalServerError) })
	w.runFor(time.Hour)
	requests := len(w.took())
	if requests < 100 || requests > 160 { // one every 24 to 30 seconds
		t.Errorf("%d requests to a broken informer in an hour", requests)
	}
	if diff := cmp.Diff([]string{"Warning InformerLost"}, w.events); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	w.answer(answering(success))
	w.runFor(6 * time.Minute)
	if diff := cmp.Diff([]string{"Warning InformerLost", "Normal InformerBack"}, w.events); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
	w.took()
	w.runFor(time.Minute)
	if got := count(w.took(), "GET updateInsights"); got != 4 {
		t.Errorf("%d polls in the minute after it came back", got)
	}
}

// The certificate and its CA change at different times.
func TestRotation_of_the_authority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ca"}, Data: map[string][]byte{"ca.crt": w.ca.PEM}}
	must(t, w.client.Create(t.Context(), secret))
	w.changeInformer(func(i *updatev1beta1.UpdateInformer) {
		i.Spec.ClientConfig.CABundle, i.Annotations = nil, map[string]string{updatev1beta1.InjectCAAnnotation: "shop/ca"}
	})
	w.update(true, true)
	w.runFor(time.Minute)
	if got := w.result().Result; got != insight.Success {
		t.Fatalf("with the authority in the Secret: %s %s", got, w.result().Message)
	}
	renewed := pki.New("test")
	w.mu.Lock()
	w.certificate = renewed.Issue(serverHost, start.Add(-24*time.Hour), start.Add(time.Hour))
	w.mu.Unlock()
	w.server.CloseClientConnections()
	w.runFor(time.Minute)
	if got := w.condition("Reachable").Reason; got != updatev1beta1.ReasonTLSFailed {
		t.Errorf("with the authority of before: %s", got)
	}
	secret.Data["ca.crt"] = renewed.PEM
	must(t, w.client.Update(t.Context(), secret))
	w.runFor(5 * time.Minute)
	if got := w.result().Result; got != insight.Success {
		t.Errorf("with the new authority: %s %s", got, w.result().Message)
	}
}

func TestAuthority_of_the_service_CA(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*testing.T, *world){
		"no annotation": func(*testing.T, *world) {},
		"serving certificate without ca.crt": func(t *testing.T, w *world) {
			t.Helper()
			must(t, w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ca"}, Data: map[string][]byte{"tls.crt": []byte("x")}}))
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) {
				i.Annotations = map[string]string{updatev1beta1.InjectCAAnnotation: "shop/ca"}
			})
		},
		"missing Secret": func(_ *testing.T, w *world) {
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) {
				i.Annotations = map[string]string{updatev1beta1.InjectCAAnnotation: "shop/ca"}
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.serviceCA = w.ca.PEM
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.ClientConfig.CABundle = nil })
			change(t, w)
			w.update(true, true)
			w.pass()
			if got := w.result(); got.Result != insight.Success {
				t.Errorf("the answer is %s: %s", got.Result, got.Message)
			}
		})
	}
}

func TestSecret_that_may_not_be_read(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "ca", errors.New("no"))
	cluster, ok := w.client.(client.WithWatch)
	if !ok {
		t.Fatal("the client does not watch")
	}
	w.Live = simulation.WithReadErrors(cluster, forbidden, func(object any) bool { _, is := object.(*corev1.Secret); return is })
	w.serviceCA = w.ca.PEM
	w.changeInformer(func(i *updatev1beta1.UpdateInformer) {
		i.Spec.ClientConfig.CABundle, i.Annotations = nil, map[string]string{updatev1beta1.InjectCAAnnotation: "shop/ca"}
	})
	w.update(true, true)
	w.pass()
	got := w.condition("CABundleResolved")
	if got.Reason != updatev1beta1.ReasonSecretForbidden || !strings.Contains(got.Message, "oc -n shop create role ca-ca --verb=get --resource=secrets --resource-name=ca") {
		t.Errorf("CABundleResolved is %s: %s", got.Reason, got.Message)
	}
	if len(w.took()) > 0 {
		t.Error("the informer was queried with another authority than the one that was configured")
	}
}

func TestService_that_moves_is_followed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.pass()
	w.changeService(func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
	w.pass()
	if got := w.condition("Reachable").Reason; got != updatev1beta1.ReasonServiceNotClusterIP {
		t.Errorf("Reachable is %s", got)
	}
	w.took()
	w.changeService(func(s *corev1.Service) { s.Spec.ClusterIP = "127.0.0.1" })
	w.runFor(15 * time.Second)
	if diff := cmp.Diff([]string{"GET discovery", "GET updateInsights"}, w.took()[:2]); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

// After its CA is corrected, an informer that has failed for a long time is queried at once and
// lists its handlers again.
func TestAuthority_that_is_corrected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.pass()
	renewed := pki.New("test")
	w.mu.Lock()
	w.certificate = renewed.Issue(serverHost, start.Add(-24*time.Hour), start.Add(time.Hour))
	w.mu.Unlock()
	w.server.CloseClientConnections()
	w.runFor(10 * time.Minute)
	if got := w.condition("Reachable").Reason; got != updatev1beta1.ReasonTLSFailed {
		t.Fatalf("with the authority of before: %s", got)
	}
	w.took()
	w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.ClientConfig.CABundle = renewed.PEM })
	w.pass()
	if diff := cmp.Diff([]string{"GET discovery", "GET updateInsights"}, w.took()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if got := w.result().Result; got != insight.Success {
		t.Errorf("the answer is %s: %s", got, w.result().Message)
	}
}

func TestDisabled_and_deleted_informers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.pass()
	w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.Enabled = new(false) })
	w.took()
	w.runFor(time.Hour)
	if got := w.result().Result; got != insight.Disabled || len(w.took()) > 0 {
		t.Errorf("the answer of a disabled informer is %s", got)
	}
	want := []string{"CABundleResolved=Unknown:Disabled", "Reachable=Unknown:Disabled", "Discovered=Unknown:Disabled", "Ready=True:Disabled"}
	if diff := cmp.Diff(want, w.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	must(t, w.client.Delete(t.Context(), &updatev1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}))
	w.pass()
	if got := w.result().Result; got != insight.Deleted {
		t.Errorf("the answer of a deleted informer is %s", got)
	}
}

// setOnline sets the condition Online, as the informer would.
// TestIdle_informer_has_no_problem ends an update while the last answer of an informer was no success.
// The informer is not queried until the next update, so nothing else would end the insight about it.
func TestIdle_informer_has_no_problem(t *testing.T) {
	t.Parallel()
	var shop updatev1beta1.UpdateInformer // before its deletion
	for name, tc := range map[string]struct {
		during func(*testing.T, *world)
		result insight.Result // during the update
		fix    func(*testing.T, *world)
	}{
		"not discovered": {
			during: func(_ *testing.T, w *world) { w.answerDiscovery(answering("no JSON")) },
			result: insight.Invalid, fix: func(_ *testing.T, w *world) { w.answerDiscovery(nil) },
		},
		"without a Service": {
			during: func(t *testing.T, w *world) {
				t.Helper()
				must(t, w.client.Delete(t.Context(), service(namespace, "informer", "127.0.0.1", w.port())))
			},
			result: insight.Unreachable, fix: func(t *testing.T, w *world) {
				t.Helper()
				must(t, w.client.Create(t.Context(), service(namespace, "informer", "127.0.0.1", w.port())))
			},
		},
		"waiting": {during: func(_ *testing.T, w *world) { w.answer(answering(wait)) }, result: insight.Wait},
		"failing": {
			during: func(_ *testing.T, w *world) { w.answer(answering(strings.Replace(wait, "Wait", "Failure", 1))) }, result: insight.Failure,
		},
		"disabled": {
			during: func(_ *testing.T, w *world) {
				w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.Enabled = new(false) })
			},
			result: insight.Disabled, fix: func(_ *testing.T, w *world) {
				w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.Enabled = nil })
			},
		},
		"re-created": {
			during: func(t *testing.T, w *world) {
				t.Helper()
				w.pass()
				must(t, w.client.Get(t.Context(), client.ObjectKey{Name: "shop"}, &shop))
				must(t, w.client.Delete(t.Context(), &shop))
			},
			result: insight.Deleted, fix: func(t *testing.T, w *world) {
				t.Helper()
				again := &updatev1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "again", Generation: 1}, Spec: shop.Spec}
				must(t, w.client.Create(t.Context(), again))
			},
		},
		"answering": {during: func(*testing.T, *world) {}, result: insight.Success},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.update(true, true)
			tc.during(t, w)
			w.runFor(5 * time.Minute)
			if got := w.result().Result; got != tc.result {
				t.Fatalf("during the update, the answer is %s, want %s", got, tc.result)
			}
			w.update(false, false)
			w.runFor(time.Minute)
			if tc.fix != nil {
				tc.fix(t, w)
			}
			w.runFor(time.Minute)
			want := insight.NotQueried
			if tc.result == insight.Success {
				want = insight.Success
			}
			if got := w.result().Result; got != want {
				t.Errorf("on the idle cluster, the answer is %s, want %s", got, want)
			}
		})
	}
}

func (w *world) setOnline(status metav1.ConditionStatus, reason string, beat time.Time) {
	w.changeInformer(func(i *updatev1beta1.UpdateInformer) {
		i.Status.Conditions = slices.DeleteFunc(i.Status.Conditions, func(c updatev1beta1.InformerCondition) bool { return c.Type == updatev1beta1.ConditionOnline })
		i.Status.Conditions = append(i.Status.Conditions, updatev1beta1.InformerCondition{
			Type: updatev1beta1.ConditionOnline, Status: status, Reason: reason, Message: "m", LastHeartbeatTime: new(metav1.NewTime(beat)), LastTransitionTime: metav1.NewTime(beat),
		})
	})
}

func TestOnline_is_the_informers_own(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		status   metav1.ConditionStatus
		reason   string
		age      time.Duration
		degraded string
	}{
		"online":         {metav1.ConditionTrue, "AsExpected", time.Minute, ""},
		"stale":          {metav1.ConditionTrue, "AsExpected", 6 * time.Minute, "no heartbeat since"},
		"degraded":       {metav1.ConditionFalse, "Degraded", time.Minute, "Degraded: m"},
		"updates itself": {metav1.ConditionFalse, "InformerUpdating", time.Minute, ""},
		"ahead":          {metav1.ConditionTrue, "AsExpected", -4 * time.Minute, ""},
		"in the future":  {metav1.ConditionTrue, "AsExpected", -6 * time.Minute, "is in the future"},
		"absurd":         {metav1.ConditionFalse, "InformerUpdating", -70 * 365 * 24 * time.Hour, "is in the future"},
	} {
		w := newWorld(t)
		w.update(true, true)
		w.setOnline(tc.status, tc.reason, start.Add(-tc.age))
		w.pass()
		if got := w.result().Degraded; (got == "") != (tc.degraded == "") || !strings.Contains(got, tc.degraded) {
			t.Errorf("%s: degraded because %q, want %q", name, got, tc.degraded)
		}
		if got := w.condition(updatev1beta1.ConditionOnline); got.Status != tc.status || got.Reason != tc.reason {
			t.Errorf("%s: Online was changed to %s %s", name, got.Status, got.Reason)
		}
	}
}

// If an informer reports that it is updating itself, the controller waits as long as the informer
// reports that.
func TestInformer_that_updates_itself_is_waited_for(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*updatev1beta1.InformerCondition)
		want   insight.Result
	}{
		"now":                      {func(*updatev1beta1.InformerCondition) {}, insight.Wait},
		"six minutes ago":          {func(c *updatev1beta1.InformerCondition) { c.LastHeartbeatTime.Time = start.Add(-6 * time.Minute) }, insight.Unreachable},
		"in seventy years":         {func(c *updatev1beta1.InformerCondition) { c.LastHeartbeatTime.Time = start.AddDate(70, 0, 0) }, insight.Unreachable},
		"now, without a heartbeat": {func(c *updatev1beta1.InformerCondition) { c.LastHeartbeatTime = nil }, insight.Wait},
		"once, without a heartbeat": {func(c *updatev1beta1.InformerCondition) {
			c.LastHeartbeatTime, c.LastTransitionTime.Time = nil, start.Add(-6*time.Minute)
		}, insight.Unreachable},
		"at no time": {func(c *updatev1beta1.InformerCondition) {
			c.LastHeartbeatTime, c.LastTransitionTime = nil, metav1.Time{}
		}, insight.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.update(true, true)
			w.setOnline(metav1.ConditionFalse, updatev1beta1.ReasonInformerUpdating, start)
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) { tc.change(&i.Status.Conditions[len(i.Status.Conditions)-1]) })
			w.server.Close()
			w.pass()
			if got := w.result().Result; got != tc.want {
				t.Errorf("the answer is %s, want %s", got, tc.want)
			}
		})
	}
}

// The controller restores its conditions after another client changes them.
func TestConditions_of_the_controller_are_its_own(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.pass()
	want := w.conditions()
	w.changeInformer(func(i *updatev1beta1.UpdateInformer) {
		i.Status.Conditions[1].Status, i.Status.Conditions[1].Reason = metav1.ConditionFalse, "Hostile"
	})
	w.pass()
	if diff := cmp.Diff(want, w.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
}

var (
	plan        = types.NamespacedName{Name: "update-plan-4.20.6"}
	planRequest = hooksv1alpha.UpdatePlanInsightsRequest{Spec: hooksv1alpha.RequestSpec{TargetControlPlaneVersion: "4.20.6"}}
)

// planResults returns the results for the plan.
func (w *world) planResults() []insight.Result {
	w.t.Helper()
	answers, known := w.PlanAnswers(plan)
	if !known {
		w.t.Fatal("the plan is unknown")
	}
	results := []insight.Result{}
	for _, answer := range answers {
		results = append(results, answer.Result)
	}
	return results
}

func TestPlan_is_asked_once(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.answer(answering(planAnswer))
	w.pass()
	if _, known := w.PlanAnswers(plan); known {
		t.Error("a plan is known that was not asked")
	}
	w.AskPlan(plan, planRequest)
	if diff := cmp.Diff([]insight.Result{}, w.planResults()); diff != "" {
		t.Errorf("before the pass (-want +got):\n%s", diff)
	}
	w.took()
	w.runFor(time.Hour)
	if diff := cmp.Diff([]string{"POST updatePlanInsights"}, w.took()); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]insight.Result{insight.Success}, w.planResults()); diff != "" {
		t.Errorf("results (-want +got):\n%s", diff)
	}
	select {
	case <-w.PlanChanged():
	default:
		t.Error("the answer was not signaled")
	}
	w.AskPlan(plan, planRequest)
	w.pass()
	if got := count(w.took(), "POST updatePlanInsights"); got != 1 {
		t.Errorf("%d requests after the plan was asked again", got)
	}
	w.ForgetPlan(plan)
	if _, known := w.PlanAnswers(plan); known {
		t.Error("a forgotten plan is known")
	}
}

func TestPlan_with_an_informer_that_does_not_answer(t *testing.T) {
	t.Parallel()
	waiting := strings.Replace(planAnswer, "Success", "Wait", 1)
	for name, tc := range map[string]struct {
		setup   func(*world)
		pending time.Duration
		result  insight.Result
	}{
		"endless Wait":    {func(w *world) { w.answer(answering(waiting)) }, 10*time.Minute - time.Second, insight.Wait},
		"no plan handler": {func(w *world) { w.discovery = strings.Replace(discovery, `"plan"`, `"x"`, 1) }, 0, insight.NotQueried},
		"down":            {func(w *world) { w.server.Close() }, 9 * time.Second, insight.Unreachable},
		"no Service":      {func(w *world) { w.changeService(func(s *corev1.Service) { s.Spec.ClusterIP = "None" }) }, 0, insight.Unreachable},
		"no JSON":         {func(w *world) { w.answer(answering("x")) }, 0, insight.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			tc.setup(w)
			w.AskPlan(plan, planRequest)
			if tc.pending > 0 {
				w.runFor(tc.pending)
				if diff := cmp.Diff([]insight.Result{}, w.planResults()); diff != "" {
					t.Errorf("after %s (-want +got):\n%s", tc.pending, diff)
				}
			}
			w.runFor(30 * time.Second)
			if diff := cmp.Diff([]insight.Result{tc.result}, w.planResults()); diff != "" {
				t.Errorf("results (-want +got):\n%s", diff)
			}
		})
	}
}

// An informer that could not answer a plan is queried again while the plan is in use. Once it is
// fixed, its answer counts within 30 seconds.
func TestPlan_of_a_repaired_informer(t *testing.T) {
	t.Parallel()
	answer := func(body string) func(*world) { return func(w *world) { w.answer(answering(body)) } }
	clusterIP := func(ip string) func(*world) {
		return func(w *world) { w.changeService(func(s *corev1.Service) { s.Spec.ClusterIP = ip }) }
	}
	online := func(status metav1.ConditionStatus, reason string) func(*world) {
		return func(w *world) { w.setOnline(status, reason, w.clock.Now()) }
	}
	for name, tc := range map[string]struct{ breaks, repairs func(*world) }{
		"Failure":    {answer(strings.Replace(planAnswer, "Success", "Failure", 1)), answer(planAnswer)},
		"Wait":       {answer(strings.Replace(planAnswer, "Success", "Wait", 1)), answer(planAnswer)},
		"no JSON":    {answer("x"), answer(planAnswer)},
		"no Service": {clusterIP(corev1.ClusterIPNone), clusterIP("127.0.0.1")},
		"degraded":   {online(metav1.ConditionFalse, updatev1beta1.ReasonDegraded), online(metav1.ConditionTrue, updatev1beta1.ReasonAsExpected)},
		"unreachable": {func(w *world) {
			w.answerDiscovery(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
		}, func(w *world) { w.answerDiscovery(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.answer(answering(planAnswer))
			tc.breaks(w)
			w.AskPlan(plan, planRequest)
			good := func() bool {
				answers, _ := w.PlanAnswers(plan)
				return len(answers) == 1 && answers[0].Result == insight.Success && answers[0].Degraded == ""
			}
			w.runFor(20 * time.Minute)
			if good() {
				t.Fatal("the informer is not broken")
			}
			w.took()
			w.runFor(10 * time.Minute)
			if requests := len(w.took()); requests > 60 {
				t.Errorf("%d requests in 10 minutes", requests)
			}
			tc.repairs(w)
			w.runFor(30 * time.Second)
			w.pass()
			if !good() {
				answers, _ := w.PlanAnswers(plan)
				t.Errorf("30 seconds later: %+v", answers)
			}
			w.took()
			w.runFor(4 * time.Minute)
			if asked := count(w.took(), "POST updatePlanInsights"); asked > 0 {
				t.Errorf("it is asked %d more times", asked)
			}
		})
	}
}

// A degraded informer is a risk of a plan, even if it only reports on updates in progress.
func TestPlan_with_a_degraded_informer(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		discovery string
		result    insight.Result
	}{
		"plan handler":    {discovery, insight.Success},
		"no plan handler": {strings.Replace(discovery, `"plan"`, `"x"`, 1), insight.NotQueried},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.discovery = tc.discovery
			w.answer(answering(planAnswer))
			w.setOnline(metav1.ConditionFalse, updatev1beta1.ReasonDegraded, start)
			w.AskPlan(plan, planRequest)
			w.pass()
			answers, _ := w.PlanAnswers(plan)
			if len(answers) != 1 || answers[0].Result != tc.result || !strings.Contains(answers[0].Degraded, "Degraded: m") {
				t.Errorf("the answers are %+v", answers)
			}
		})
	}
}
