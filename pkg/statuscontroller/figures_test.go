// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// quietInformers is the number of update informers. quietTime is how long the cluster stays idle.
const (
	quietInformers = 50
	quietTime      = 10 * time.Minute
)

// figures counts requests and writes while nothing happens.
type figures struct {
	informers, api, writes int64 // requests to informers, requests to the API server, and status writes
}

// registerInformers registers informers that share one HTTPS server and returns a counter of the requests to
// it.
func (w *world) registerInformers(count int) *atomic.Int64 {
	w.t.Helper()
	requests := &atomic.Int64{}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		kind := "UpdateInsightsResponse"
		switch {
		case strings.HasSuffix(r.URL.Path, "/discovery"):
			_, _ = io.WriteString(rw, `{"apiVersion": "hooks.config.openshift.io/v1alpha", "kind": "DiscoveryResponse", "spec": {
				"apiVersions": ["hooks.config.openshift.io/v1alpha"], "handlers": [{"name": "status"}, {"name": "plan"}]}}`)
			return
		case strings.HasSuffix(r.URL.Path, "/updatePlanInsights"):
			kind = "UpdatePlanInsightsResponse"
		}
		_, _ = fmt.Fprintf(rw, `{"apiVersion": "config.openshift.io/v1beta1", "kind": %q, "status": {"response": "Success"}, "spec": {"insights": [
			{"uid": "disk", "scope": {"type": "ControlPlane"}, "impact": {"level": "warning", "summary": "The disk is slow"}}]}}`, kind)
	}))
	certificate, authority := selfSigned(w.t, "*.shop.svc")
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	w.t.Cleanup(server.Close)
	_, text, err := net.SplitHostPort(server.Listener.Addr().String())
	must(w.t, err)
	port, err := strconv.ParseInt(text, 10, 32)
	must(w.t, err)
	service := func(namespace, name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: objectMeta(namespace, name), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "127.0.0.1", Ports: []corev1.ServicePort{{Port: int32(port), Protocol: corev1.ProtocolTCP}},
		}}
	}
	must(w.t, w.Add(service(metav1.NamespaceDefault, "kubernetes")))
	for i := range count {
		name := fmt.Sprintf("informer-%02d", i)
		must(w.t, w.Add(service("shop", name)))
		must(w.t, w.client.Create(w.t.Context(), &updatev1beta1.UpdateInformer{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: updatev1beta1.UpdateInformerSpec{ClientConfig: updatev1beta1.InformerClientConfig{
				Service: updatev1beta1.InformerService{Namespace: "shop", Name: name, Port: int32(port)}, CABundle: authority,
			}},
		}))
	}
	return requests
}

// selfSigned returns a certificate and its CA. It is valid now, in real time.
func selfSigned(tb testing.TB, name string) (tls.Certificate, []byte) {
	tb.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(tb, err)
	now := clock.RealClock{}.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: now.Add(-time.Hour), NotAfter: now.Add(time.Hour), DNSNames: []string{name},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	must(tb, err)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// beatFor advances the time by d. The informers send a heartbeat every two minutes.
func (w *world) beatFor(d time.Duration) {
	w.t.Helper()
	const interval = 2 * time.Minute
	for ; d > 0; d -= interval {
		var list updatev1beta1.UpdateInformerList
		must(w.t, w.client.List(w.t.Context(), &list))
		for i := range list.Items {
			informer := &list.Items[i]
			online := updatev1beta1.InformerCondition{
				Type: updatev1beta1.ConditionOnline, Status: metav1.ConditionTrue, Reason: updatev1beta1.ReasonAsExpected,
				LastHeartbeatTime: new(metav1.NewTime(w.Now())), LastTransitionTime: metav1.NewTime(simulation.Start),
			}
			conditions := slices.DeleteFunc(informer.Status.Conditions, func(c updatev1beta1.InformerCondition) bool { return c.Type == online.Type })
			informer.Status.Conditions = append(conditions, online)
			must(w.t, w.client.Status().Update(w.t.Context(), informer))
		}
		w.runFor(min(d, interval))
	}
}

// measure counts the requests during the quiet time.
func (w *world) measure(requests *atomic.Int64) figures {
	w.t.Helper()
	before := requests.Load()
	w.requests = nil
	w.beatFor(quietTime)
	f := figures{informers: requests.Load() - before, api: int64(len(w.requests))}
	for _, r := range w.requests {
		w.t.Log(r)
	}
	f.writes = int64(w.writes())
	return f
}

// idle measures a cluster without a pending update.
func idle(tb testing.TB) figures {
	tb.Helper()
	w := newWorld(tb)
	requests := w.registerInformers(quietInformers)
	w.start()
	w.beatFor(time.Minute)
	if requests.Load() != quietInformers {
		tb.Errorf("%d requests to %d informers at the start, want one discovery of each", requests.Load(), quietInformers)
	}
	return w.measure(requests)
}

// active measures an update that makes no progress.
func active(tb testing.TB) figures {
	tb.Helper()
	w := newWorld(tb)
	requests := w.registerInformers(quietInformers)
	w.start()
	w.update()
	w.beatFor(5 * time.Minute)
	return w.measure(requests)
}

// dormant measures five plans that were analyzed longer than an hour ago.
func dormant(tb testing.TB) figures {
	tb.Helper()
	w := newWorld(tb)
	requests := w.registerInformers(quietInformers)
	w.script.Offer("4.4.6", "4.4.7", "4.4.8", "4.4.9", "4.4.10")
	w.start()
	for _, target := range w.script.Available {
		must(tb, w.client.Create(tb.Context(), &updatev1beta1.UpdatePlan{
			ObjectMeta: metav1.ObjectMeta{Name: updateplan.Name(target)}, Spec: updatev1beta1.UpdatePlanSpec{TargetRelease: target},
		}))
	}
	w.beatFor(70 * time.Minute)
	if want := int64(quietInformers * (len(w.script.Available) + 1)); requests.Load() < want {
		tb.Errorf("%d requests to informers, want at least %d: the plans were not analyzed", requests.Load(), want)
	}
	return w.measure(requests)
}

func TestFigures(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		measure func(testing.TB) figures
		limit   figures
	}{
		"idle":          {idle, figures{}},
		"active":        {active, figures{informers: quietInformers * 42, api: 10 + quietInformers*2, writes: 10}},
		"dormant plans": {dormant, figures{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tc.measure(t)
			if got.informers > tc.limit.informers || got.api > tc.limit.api || got.writes > tc.limit.writes {
				t.Errorf("got %+v, want at most %+v", got, tc.limit)
			}
		})
	}
}

// BenchmarkFigures reports the figures that TestFigures checks.
func BenchmarkFigures(b *testing.B) {
	b.Logf("Method: virtual time; %d update informers behind one HTTPS server, all of the controllers, and a scripted cluster. "+
		"Requests in %s without any change but the heartbeats of the informers, apart from watches and the Lease, which the simulation does not have.", quietInformers, quietTime)
	for name, measure := range map[string]func(testing.TB) figures{"idle": idle, "active_unchanged": active, "dormant_plans": dormant} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				got := measure(b)
				b.ReportMetric(float64(got.informers), "to_informers")
				b.ReportMetric(float64(got.api), "to_API_server")
				b.ReportMetric(float64(got.writes), "status_writes")
				b.ReportMetric(0, "ns/op")
			}
		})
	}
}
