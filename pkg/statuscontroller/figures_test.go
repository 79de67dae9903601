// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller_test

import (
	"crypto/tls"
	"fmt"
	"io"
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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/pki"
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
	w.TB.Helper()
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
	now, authority := clock.RealClock{}.Now(), pki.New("informers")
	certificate := authority.Issue("*.shop.svc", now.Add(-time.Hour), now.Add(time.Hour))
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	w.TB.Cleanup(server.Close)
	_, text, err := net.SplitHostPort(server.Listener.Addr().String())
	w.Must(err)
	port, err := strconv.ParseInt(text, 10, 32)
	w.Must(err)
	service := func(namespace, name string) *corev1.Service {
		return &corev1.Service{ObjectMeta: objectMeta(namespace, name), Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeClusterIP, ClusterIP: "127.0.0.1", Ports: []corev1.ServicePort{{Port: int32(port), Protocol: corev1.ProtocolTCP}},
		}}
	}
	w.Must(w.Add(service(metav1.NamespaceDefault, "kubernetes")))
	for i := range count {
		name := fmt.Sprintf("informer-%02d", i)
		w.Must(w.Add(service("shop", name)))
		w.Must(w.User.Create(w.TB.Context(), &updatev1beta1.UpdateInformer{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: updatev1beta1.UpdateInformerSpec{ClientConfig: updatev1beta1.InformerClientConfig{
				Service: updatev1beta1.InformerService{Namespace: "shop", Name: name, Port: int32(port)}, CABundle: authority.PEM,
			}},
		}))
	}
	return requests
}

// beatFor lets time pass, in which the informers confirm every two minutes that they are online.
func (w *world) beatFor(d time.Duration) {
	w.TB.Helper()
	const interval = 2 * time.Minute
	for ; d > 0; d -= interval {
		var list updatev1beta1.UpdateInformerList
		w.Must(w.User.List(w.TB.Context(), &list))
		for i := range list.Items {
			informer := &list.Items[i]
			online := updatev1beta1.InformerCondition{
				Type: updatev1beta1.ConditionOnline, Status: metav1.ConditionTrue, Reason: updatev1beta1.ReasonAsExpected,
				LastHeartbeatTime: new(metav1.NewTime(w.Now())), LastTransitionTime: metav1.NewTime(simulation.Start),
			}
			conditions := slices.DeleteFunc(informer.Status.Conditions, func(c updatev1beta1.InformerCondition) bool { return c.Type == online.Type })
			informer.Status.Conditions = append(conditions, online)
			w.UpdateStatus(informer)
		}
		w.RunFor(min(d, interval))
	}
}

// measure counts the requests during the quiet time.
func (w *world) measure(requests *atomic.Int64) figures {
	w.TB.Helper()
	before := requests.Load()
	w.Requests = nil
	w.beatFor(quietTime)
	f := figures{informers: requests.Load() - before, api: int64(len(w.Requests))}
	for _, r := range w.Requests {
		w.TB.Log(r)
	}
	f.writes = int64(w.writes())
	return f
}

// idle measures a cluster without a pending update.
func idle(tb testing.TB) figures {
	tb.Helper()
	w := newWorld(tb)
	requests := w.registerInformers(quietInformers)
	w.Begin()
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
	w.Begin()
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
	w.Begin()
	for _, target := range w.script.Available {
		w.Must(w.User.Create(tb.Context(), &updatev1beta1.UpdatePlan{
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
