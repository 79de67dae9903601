// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer_test

import (
	"compress/gzip"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/pki"
)

func TestInformer_answers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.answer(func(rw http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Authorization"); got != "Bearer secret-token" {
			t.Errorf("the request has the token %q", got)
		}
		body, _ := io.ReadAll(r.Body)
		for _, part := range []string{`"kind":"UpdateInsightsRequest"`, `"clusterID":"id"`, `"controlPlaneVersion":"4.20.5"`, `"targetControlPlaneVersion":"4.20.6"`} {
			if !strings.Contains(string(body), part) {
				t.Errorf("the request lacks %s: %s", part, body)
			}
		}
		answering(success)(rw, r)
	})
	w.pass()
	want := []string{"CABundleResolved=True:AsExpected", "Reachable=True:AsExpected", "Discovered=True:AsExpected", "Ready=True:AsExpected"}
	if diff := cmp.Diff(want, w.conditions()); diff != "" {
		t.Errorf("conditions (-want +got):\n%s", diff)
	}
	if got := w.result().Result; got != insight.Success {
		t.Errorf("the answer is %s", got)
	}
	if diff := cmp.Diff([]string{"update-informer.shop.informer", "update-informer.shop.informer"}, w.tokens); diff != "" {
		t.Errorf("audiences (-want +got):\n%s", diff)
	}
}

func (w *world) changeService(do func(*corev1.Service)) {
	w.t.Helper()
	w.change(service(namespace, "informer", "", 0), func(object client.Object) { do(object.(*corev1.Service)) })
}

// Each cause of an unreachable informer is reported with its reason and its fix. None looks like an
// informer without insights.
func TestInformer_that_cannot_be_reached(t *testing.T) {
	t.Parallel()
	type setup func(*testing.T, *world)
	ip := func(ip string) setup {
		return func(_ *testing.T, w *world) { w.changeService(func(s *corev1.Service) { s.Spec.ClusterIP = ip }) }
	}
	certificate := func(name string, valid time.Duration) setup {
		return func(t *testing.T, w *world) {
			t.Helper()
			w.certificate = w.ca.Issue(name, start.Add(-24*time.Hour), start.Add(valid))
		}
	}
	for name, tc := range map[string]struct {
		setup     setup
		condition string
		reason    string
		fix       string // part of the message
	}{
		"missing Service": {func(t *testing.T, w *world) {
			t.Helper()
			must(t, w.client.Delete(t.Context(), service(namespace, "informer", "", 0)))
		}, "Reachable", "ServiceNotFound", "create it, or correct spec.clientConfig.service"},
		"ExternalName": {func(_ *testing.T, w *world) {
			w.changeService(func(s *corev1.Service) {
				s.Spec.Type, s.Spec.ExternalName, s.Spec.ClusterIP = corev1.ServiceTypeExternalName, "localhost", ""
			})
		}, "Reachable", "ServiceNotClusterIP", "needs a Service with a clusterIP"},
		"headless":           {ip(corev1.ClusterIPNone), "Reachable", "ServiceNotClusterIP", "without clusterIP: None"},
		"link-local":         {ip("169.254.169.254"), "Reachable", "ServiceNotClusterIP", "not an address of the service network"},
		"link-local, mapped": {ip("::ffff:169.254.169.254"), "Reachable", "ServiceNotClusterIP", "not an address of the service network"},
		"unspecified":        {ip("0.0.0.0"), "Reachable", "ServiceNotClusterIP", "not an address of the service network"},
		"multicast":          {ip("224.0.0.1"), "Reachable", "ServiceNotClusterIP", "not an address of the service network"},
		"loopback": {func(_ *testing.T, w *world) {
			w.change(service(metav1.NamespaceDefault, "kubernetes", "", 0), func(o client.Object) { o.(*corev1.Service).Spec.ClusterIP = "172.30.0.1" })
		}, "Reachable", "ServiceNotClusterIP", "not an address of the service network"},
		"another port": {func(_ *testing.T, w *world) {
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.ClientConfig.Service.Port = 1 })
		}, "Reachable", "ServiceNotFound", "set spec.clientConfig.service.port to a port of the Service"},
		"nothing listens":             {func(_ *testing.T, w *world) { w.server.Close() }, "Reachable", "ConnectionFailed", "has ready endpoints"},
		"expired certificate":         {certificate(serverHost, -time.Hour), "Reachable", "TLSFailed", "must be valid for informer.shop.svc"},
		"certificate of another name": {certificate("other.shop.svc", time.Hour), "Reachable", "TLSFailed", "must be valid for informer.shop.svc"},
		"certificate of an IP only":   {certificate("", time.Hour), "Reachable", "TLSFailed", "must be valid for informer.shop.svc"},
		"certificate of another CA": {func(t *testing.T, w *world) {
			t.Helper()
			w.certificate = pki.New("test").Issue(serverHost, start.Add(-24*time.Hour), start.Add(time.Hour))
		}, "Reachable", "TLSFailed", "signed by"},
		"caBundle without certificate": {func(_ *testing.T, w *world) {
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.ClientConfig.CABundle = []byte("x") })
		}, "CABundleResolved", "NoCACertificate", "contains no certificate in PEM"},
		"no CA at all": {func(_ *testing.T, w *world) {
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.ClientConfig.CABundle = nil })
		}, "CABundleResolved", "NoCACertificate", "set spec.clientConfig.caBundle"},
		"Secret of another namespace": {func(_ *testing.T, w *world) {
			w.changeInformer(func(i *updatev1beta1.UpdateInformer) {
				i.Spec.ClientConfig.CABundle, i.Annotations = nil, map[string]string{updatev1beta1.InjectCAAnnotation: "kube-system/secret"}
			})
		}, "CABundleResolved", "SecretForbidden", "must be shop/NAME"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.update(true, true)
			tc.setup(t, w)
			w.pass()
			got := w.condition(tc.condition)
			if got.Status != metav1.ConditionFalse || got.Reason != tc.reason || !strings.Contains(got.Message, tc.fix) {
				t.Errorf("%s is %s %s: %s; want %s and %q", tc.condition, got.Status, got.Reason, got.Message, tc.reason, tc.fix)
			}
			if answer := w.result(); answer.Result != insight.Unreachable || answer.Reason != tc.reason || answer.Message == "" {
				t.Errorf("the answer is %+v", answer)
			}
			if requests := w.took(); len(requests) > 0 {
				t.Errorf("the informer got %q", requests)
			}
		})
	}
}

// A trusted server may still be slow, send too much, or send the wrong data. An empty answer is
// none of these.
func TestInformer_with_a_hostile_answer(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 20) + strings.Repeat("]", 20)
	for name, tc := range map[string]struct {
		handler http.HandlerFunc
		result  insight.Result
		reason  string
	}{
		"redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, insight.Unreachable, "RequestRejected"},
		"status 500":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, insight.Unreachable, "RequestRejected"},
		"status 401":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, insight.Unreachable, "RequestRejected"},
		"connection cut": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, insight.Unreachable, "ConnectionFailed"},
		"oversized":      {func(w http.ResponseWriter, _ *http.Request) { endless(w, 2<<20) }, insight.Invalid, "InvalidResponse"},
		"compressed":     {compressed, insight.Invalid, "InvalidResponse"},
		"oversized error": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			endless(w, 2<<20)
		}, insight.Unreachable, "RequestRejected"},
		"headers beyond their bound": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("x", 100<<10))
		}, insight.Unreachable, "ConnectionFailed"},
		"no JSON":          {answering("<html>"), insight.Invalid, "InvalidResponse"},
		"empty":            {answering(""), insight.Invalid, "InvalidResponse"},
		"two documents":    {answering(success + success), insight.Invalid, "InvalidResponse"},
		"another kind":     {answering(strings.Replace(success, "UpdateInsightsResponse", "Status", 1)), insight.Invalid, "InvalidResponse"},
		"another version":  {answering(strings.Replace(success, "v1beta1", "v1", 1)), insight.Invalid, "InvalidResponse"},
		"another response": {answering(strings.Replace(success, "Success", "success", 1)), insight.Invalid, "InvalidResponse"},
		"another case":     {answering(strings.Replace(success, "status", "Status", 1)), insight.Invalid, "InvalidResponse"},
		"deep nesting":     {answering(strings.Replace(success, "[]", deep, 1)), insight.Invalid, "InvalidResponse"},
		"absurd time":      {answering(strings.Replace(success, "[]", `[{"uid": "a", "acquisitionTime": "tomorrow"}]`, 1)), insight.Invalid, "InvalidResponse"},
		"bare Failure":     {answering(strings.Replace(success, "Success", "Failure", 1)), insight.Failure, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.update(true, true)
			w.answer(tc.handler)
			w.pass()
			if answer := w.result(); answer.Result != tc.result || answer.Reason != tc.reason || len(answer.Insights) > 0 {
				t.Errorf("the answer is %s %s: %s; want %s %s", answer.Result, answer.Reason, answer.Message, tc.result, tc.reason)
			}
		})
	}
}

// endless sends a chunked body.
func endless(w http.ResponseWriter, size int) {
	for range size / 1024 {
		_, _ = w.Write(make([]byte, 1024))
	}
}

func compressed(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Encoding", "gzip")
	body := gzip.NewWriter(w)
	_, _ = body.Write([]byte(success))
	_ = body.Close()
}

// The limits for answers also apply to the discovery.
func TestDiscovery_that_is_hostile(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"oversized":  func(w http.ResponseWriter, _ *http.Request) { endless(w, 2<<20) },
		"compressed": compressed,
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://127.0.0.1:1/", http.StatusTemporaryRedirect)
		},
		"deep nesting": answering(strings.Replace(discovery, `"name": "status"`, `"name": "status", "methods": `+strings.Repeat("[", 20)+strings.Repeat("]", 20), 1)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.discover = handler
			w.update(true, true)
			w.answer(answering(success))
			w.pass()
			if answer := w.result(); answer.Result == insight.Success {
				t.Errorf("the answer is %s, although the discovery is hostile", answer.Result)
			}
		})
	}
}

func TestInformer_with_many_insights_is_bounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.answer(answering(strings.Replace(success, "[]", "["+strings.Repeat(`{"uid":"a"},`, 9999)+`{"uid":"a"}]`, 1)))
	w.pass()
	if n := len(w.result().Insights); n != insight.MaxInsights+1 {
		t.Errorf("%d insights are kept", n)
	}
}

// An informer may request a timeout below the default.
func TestInformer_that_is_too_slow(t *testing.T) {
	t.Parallel()
	for name, handler := range map[string]http.HandlerFunc{
		"no headers": func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // only after this does the server notice that the connection has ended
			<-r.Context().Done()
		},
		"dripping": func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				_ = http.NewResponseController(w).Flush()
				select {
				case <-r.Context().Done():
				case <-clock.RealClock{}.After(50 * time.Millisecond):
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.discovery = strings.Replace(discovery, `"name": "status"`, `"name": "status", "timeoutSeconds": 1`, 1)
			w.update(true, true)
			w.answer(handler)
			w.pass()
			if answer := w.result(); answer.Result != insight.Unreachable || answer.Reason != updatev1beta1.ReasonTimeout {
				t.Errorf("the answer is %s %s: %s", answer.Result, answer.Reason, answer.Message)
			}
		})
	}
}

func TestInformer_that_speaks_plain_HTTP(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	plain := httptest.NewServer(answering(success))
	t.Cleanup(plain.Close)
	_, port, err := net.SplitHostPort(plain.Listener.Addr().String())
	must(t, err)
	n, err := strconv.ParseInt(port, 10, 32)
	must(t, err)
	w.changeService(func(s *corev1.Service) { s.Spec.Ports[0].Port = int32(n) })
	w.changeInformer(func(i *updatev1beta1.UpdateInformer) { i.Spec.ClientConfig.Service.Port = int32(n) })
	w.pass()
	if got := w.condition("Reachable"); got.Reason != updatev1beta1.ReasonTLSFailed || !strings.Contains(got.Message, "does not speak TLS") {
		t.Errorf("Reachable is %s: %s", got.Reason, got.Message)
	}
}

// Proxy variables only apply to servers outside of the cluster.
func TestInformer_is_reached_without_a_proxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy", "http_proxy"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	w := newWorld(t)
	w.update(true, true)
	w.pass()
	if got := w.result().Result; got != insight.Success {
		t.Errorf("the answer is %s: %s", got, w.result().Message)
	}
}

// A megabyte of empty values would take a hundred as objects.
func TestInformer_with_too_many_values_is_refused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.update(true, true)
	w.answer(answering(strings.Replace(success, "[]", "["+strings.Repeat(`{},`, 340_000)+`{}]`, 1)))
	w.pass()
	if got := w.result(); got.Result != insight.Invalid || !strings.Contains(got.Message, "values") || len(got.Insights) > 0 {
		t.Errorf("the answer is %s with %d insights: %s", got.Result, len(got.Insights), got.Message)
	}
}

func TestAuthorities_are_kept_while_the_Service_is_missing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	must(t, w.client.Delete(t.Context(), service(namespace, "informer", "127.0.0.1", w.port())))
	w.pass()
	if got := w.condition("Reachable").Reason; got != updatev1beta1.ReasonServiceNotFound {
		t.Fatalf("Reachable is %s without a Service", got)
	}
	must(t, w.client.Create(t.Context(), service(namespace, "informer", "127.0.0.1", w.port())))
	w.clock.SetTime(start.Add(time.Second))
	w.pass()
	if got := w.condition("Reachable"); got.Status != "True" {
		t.Errorf("Reachable is %s: %s", got.Reason, got.Message)
	}
}

// An informer that responds is reachable, even if its response is unusable.
func TestReachable_is_true_once_the_informer_answers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	right := w.certificate
	w.certificate = w.ca.Issue("other.shop.svc", start.Add(-24*time.Hour), start.Add(24*time.Hour))
	w.pass()
	if got := w.condition("Reachable").Reason; got != updatev1beta1.ReasonTLSFailed {
		t.Fatalf("Reachable is %s", got)
	}
	w.mu.Lock()
	w.certificate, w.discovery = right, "{}"
	w.mu.Unlock()
	w.clock.SetTime(start.Add(time.Minute))
	w.pass()
	if reachable, discovered := w.condition("Reachable"), w.condition("Discovered"); reachable.Status != "True" || discovered.Reason != updatev1beta1.ReasonProtocolUnsupported {
		t.Errorf("Reachable is %s: %s; Discovered is %s", reachable.Reason, reachable.Message, discovered.Reason)
	}
}
