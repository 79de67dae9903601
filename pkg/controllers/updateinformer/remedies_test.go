// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// roleReader fails to read Secrets until a Role allows it.
type roleReader struct {
	client.Reader
	allowed bool
}

func (r *roleReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	if _, is := object.(*corev1.Secret); is && !r.allowed {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, key.Name, errors.New("no Role"))
	}
	return r.Reader.Get(ctx, key, object, opts...)
}

// answerDiscovery replaces the handler of discoveries; nil restores the correct response.
func (w *world) answerDiscovery(handler http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.discover = handler
}

// remedies returns a function for each reason of a problem. It breaks an informer and returns a fix
// that follows the advice of the condition.
func remedies() map[string]func(*testing.T, *world) (fix func()) {
	respond := func(code int) http.HandlerFunc {
		return func(rw http.ResponseWriter, _ *http.Request) { rw.WriteHeader(code) }
	}
	discovery := func(broken http.HandlerFunc) func(*testing.T, *world) func() {
		return func(_ *testing.T, w *world) func() {
			w.answerDiscovery(broken)
			return func() { w.answerDiscovery(nil) }
		}
	}
	return map[string]func(*testing.T, *world) func(){
		"SecretForbidden": func(t *testing.T, w *world) func() {
			t.Helper()
			reader := &roleReader{Reader: w.client}
			w.Live = reader
			must(t, w.client.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "ca"}, Data: map[string][]byte{"ca.crt": w.ca.PEM},
			}))
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) {
				i.Spec.ClientConfig.CABundle, i.Annotations = nil, map[string]string{updatev1beta1.InjectCAAnnotation: namespace + "/ca"}
			})
			return func() { reader.allowed = true }
		},
		"NoCACertificate": func(_ *testing.T, w *world) func() {
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.ClientConfig.CABundle = nil })
			return func() { w.serviceCA = w.ca.PEM }
		},
		"TLSFailed": func(t *testing.T, w *world) func() {
			t.Helper()
			good := w.certificate
			w.certificate = w.ca.Issue("other.shop.svc", start.Add(-24*time.Hour), start.Add(24*time.Hour))
			return func() {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.certificate = good
			}
		},
		"ConnectionFailed": discovery(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }),
		"RequestRejected":  discovery(respond(http.StatusUnauthorized)),
		"TokenRequestFailed": func(_ *testing.T, w *world) func() {
			token, allowed := w.Token, false
			w.Token = func(ctx context.Context, audience string) (string, error) {
				if !allowed {
					return "", errors.New("forbidden")
				}
				return token(ctx, audience)
			}
			return func() { allowed = true }
		},
		"ServiceNotFound": func(t *testing.T, w *world) func() {
			t.Helper()
			must(t, w.client.Delete(t.Context(), service(namespace, "informer", "127.0.0.1", w.port())))
			return func() { must(t, w.client.Create(t.Context(), service(namespace, "informer", "127.0.0.1", w.port()))) }
		},
		"ServiceNotClusterIP": func(_ *testing.T, w *world) func() {
			w.changeService(func(s *corev1.Service) { s.Spec.ClusterIP = corev1.ClusterIPNone })
			return func() { w.changeService(func(s *corev1.Service) { s.Spec.ClusterIP = "127.0.0.1" }) }
		},
		"Timeout": func(t *testing.T, w *world) func() {
			t.Helper()
			w.answerDiscovery(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
			w.patience = 20 * time.Millisecond
			return func() {
				w.answerDiscovery(nil)
				w.patience = 0
			}
		},
		"ProtocolUnsupported": discovery(respond(http.StatusNotFound)),
		"InvalidResponse":     discovery(answering("no JSON")),
	}
}

// TestRemedies_take_effect follows the advice of conditions after an informer was broken for an
// hour, both during an update and on an idle cluster. The informer is usable within 30 seconds,
// although no event reports the change. Only changes of a Service are watched.
func TestRemedies_take_effect(t *testing.T) {
	t.Parallel()
	for reason, breaks := range remedies() {
		watched := reason == updatev1beta1.ReasonServiceNotFound || reason == updatev1beta1.ReasonServiceNotClusterIP
		for name, active := range map[string]bool{"active": true, "idle": false} {
			for state, reached := range map[string]bool{"at first": false, "later": true} {
				if reached && !watched && reason != updatev1beta1.ReasonSecretForbidden && reason != updatev1beta1.ReasonNoCACertificate {
					continue // an idle informer that was reached is not queried; a poll is tested with each reason
				}
				t.Run(strings.Join([]string{reason, name, state}, " "), func(t *testing.T) {
					t.Parallel()
					w := newWorld(t)
					w.update(active, active)
					if reached {
						w.pass()
					}
					fix := breaks(t, w)
					passes := 0
					for end := w.clock.Now().Add(time.Hour); w.clock.Now().Before(end); passes++ {
						next := w.pass()
						if next == 0 && watched {
							break
						}
						if next == 0 {
							t.Fatal("the informer is never queried again")
						}
						w.clock.SetTime(w.clock.Now().Add(next))
					}
					if passes > int(time.Hour/(5*time.Second)) {
						t.Errorf("%d passes in an hour", passes)
					}
					if all := strings.Join(w.conditions(), " "); !strings.Contains(all, "False:"+reason) {
						t.Fatalf("conditions %s, want %s", all, reason)
					}
					fix()
					w.runFor(30 * time.Second)
					w.pass()
					for _, c := range w.conditions() {
						if !strings.Contains(c, "=True:") {
							t.Errorf("after the fix: %s", c)
						}
					}
				})
			}
		}
	}
}

// Each reason that the documentation of informers explains has a tested remedy, except for reasons
// that need no action and the reasons of the informer's own condition Online.
func TestRemedies_of_each_reason(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../../docs/update-informers.md")
	must(t, err)
	_, table, _ := strings.Cut(string(page), "| condition | reason | what to do |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	table, _, _ = strings.Cut(table, "| all three |")
	want := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\|[^|]*\\| `([A-Za-z]+)`").FindAllStringSubmatch(table, -1) {
		want[row[1]] = true
	}
	got := map[string]bool{}
	for reason := range remedies() {
		got[reason] = true
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("reasons (-page +remedies):\n%s", diff)
	}
}

// The connection is fine if a response arrives, even if the response is too long or compressed.
func TestInformer_with_an_invalid_answer_is_reachable(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"too long":   func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(make([]byte, 2<<20)) },
		"compressed": func(rw http.ResponseWriter, _ *http.Request) { rw.Header().Set("Content-Encoding", "gzip") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.update(true, true)
			w.answer(answer)
			w.pass()
			if got := w.condition(updatev1beta1.ConditionReachable); got.Status != metav1.ConditionTrue {
				t.Errorf("Reachable is %s %s", got.Status, got.Reason)
			}
			if got := w.result(); got.Result != "Invalid" || got.Reason != updatev1beta1.ReasonInvalidResponse {
				t.Errorf("the answer is %s %s: %s", got.Result, got.Reason, got.Message)
			}
			w.answerDiscovery(answer)
			w.runFor(11 * time.Minute) // until the next discovery
			if got := w.condition(updatev1beta1.ConditionDiscovered); got.Reason != updatev1beta1.ReasonInvalidResponse {
				t.Errorf("Discovered is %s %s", got.Status, got.Reason)
			}
		})
	}
}
