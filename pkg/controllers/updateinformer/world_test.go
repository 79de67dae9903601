// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer_test

import (
	"context"
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updateinformer"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/pki"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	namespace  = "shop"
	serverHost = "informer.shop.svc"
	discovery  = `{"apiVersion": "hooks.config.openshift.io/v1alpha", "kind": "DiscoveryResponse", "spec": {
		"apiVersions": ["hooks.config.openshift.io/v1alpha"], "handlers": [{"name": "status"}, {"name": "plan", "methods": ["POST"]}]}}`
	success = `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInsightsResponse", "status": {"response": "Success"}, "spec": {"insights": []}}`
)

// start is the start time of the tests. It is the real time, because certificates are checked
// against the real time.
var start = clock.RealClock{}.Now().UTC().Truncate(time.Second)

// world is the controller with an update informer behind a real HTTPS server.
type world struct {
	*updateinformer.Reconciler
	notify.ObjectPublisher // for methods that this type does not implement
	t                      *testing.T
	client                 client.Client
	clock                  *clocktesting.FakePassiveClock
	ca                     *pki.Authority
	server                 *httptest.Server

	mu          sync.Mutex
	certificate tls.Certificate
	handler     http.HandlerFunc
	requests    []string // to the informer: the method and the last element of the path
	tokens      []string // audiences of requested tokens
	events      []string
	serviceCA   []byte
	discovery   string
	discover    http.HandlerFunc // replaces discovery; nil if it does not
	patience    time.Duration    // timeout of a pass; 0 leaves it to the controller
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(start), ca: pki.New("test"), discovery: discovery}
	w.certificate, w.handler = w.ca.Issue(serverHost, start.Add(-24*time.Hour), start.Add(24*time.Hour)), answering(success)
	w.server = httptest.NewUnstartedServer(http.HandlerFunc(w.serve))
	w.server.TLS = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return &w.certificate, nil
	}}
	w.server.Config.ErrorLog = log.New(io.Discard, "", 0)
	w.server.StartTLS()
	t.Cleanup(w.server.Close)

	w.client = simulation.NewFakeClient(t,
		service(metav1.NamespaceDefault, "kubernetes", "127.0.0.1", 443), service(namespace, "informer", "127.0.0.1", w.port()),
		&updatev1beta1.UpdateInformer{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", Generation: 1},
			Spec: updatev1beta1.UpdateInformerSpec{ClientConfig: updatev1beta1.InformerClientConfig{
				Service: updatev1beta1.InformerService{Namespace: namespace, Name: "informer", Port: w.port()}, CABundle: w.ca.PEM,
			}},
		},
		&updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}})
	w.Reconciler = &updateinformer.Reconciler{
		Exchange: updateinformer.NewExchange(), Client: w.client, Live: w.client, Clock: w.clock,
		ServiceAccount: types.NamespacedName{Namespace: "managed-upgrade-operator", Name: "update-status-controller"},
		Token: func(_ context.Context, audience string) (string, error) {
			w.tokens = append(w.tokens, audience)
			return "secret-token", nil
		},
		ServiceCA: func() ([]byte, error) { return w.serviceCA, nil },
		Request: func(context.Context) (hooksv1alpha.RequestSpec, error) {
			return hooksv1alpha.RequestSpec{ClusterID: "id", ControlPlaneVersion: "4.20.5", TargetControlPlaneVersion: "4.20.6"}, nil
		},
		Events: w, Metrics: ignored{},
	}
	return w
}

func (w *world) port() int32 {
	_, port, err := net.SplitHostPort(w.server.Listener.Addr().String())
	must(w.t, err)
	n, err := strconv.ParseInt(port, 10, 32)
	must(w.t, err)
	return int32(n)
}

// serve responds to discoveries, and passes other requests to the handler.
func (w *world) serve(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.requests = append(w.requests, r.Method+" "+r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:])
	handler := w.handler
	if strings.HasSuffix(r.URL.Path, "/discovery") {
		handler = answering(w.discovery)
		if w.discover != nil {
			handler = w.discover
		}
	}
	w.mu.Unlock()
	handler(rw, r)
}

// Publish implements notify.ObjectPublisher.
func (w *world) Publish(_ context.Context, _ client.Object, eventType, reason, _ string) {
	w.events = append(w.events, eventType+" "+reason)
}

// ignored discards all metrics.
type ignored struct{}

func (ignored) ObserveInformerRequest(string, string, string) {}
func (ignored) SetInformerReachable(string, bool)             {}
func (ignored) DeleteInformer(string)                         {}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
