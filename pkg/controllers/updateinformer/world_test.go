// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/updateinformer"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	namespace  = "shop"
	serverHost = "informer.shop.svc"
	discovery  = `{"apiVersion": "hooks.config.openshift.io/v1alpha", "kind": "DiscoveryResponse", "spec": {
		"apiVersions": ["hooks.config.openshift.io/v1alpha"], "handlers": [{"name": "status"}, {"name": "plan", "methods": ["POST"]}]}}`
	success = `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInsightsResponse", "status": {"response": "Success"}, "spec": {"insights": []}}`
)

// start is the time at which the tests begin: certificates are checked against the real time.
var start = clock.RealClock{}.Now().UTC().Truncate(time.Second)

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: start.Add(-48 * time.Hour), NotAfter: start.Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var der []byte
	der, a.key = sign(t, template, nil, nil)
	var err error
	a.certificate, err = x509.ParseCertificate(der)
	must(t, err)
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// sign returns a certificate and its key. Without an authority it signs itself.
func sign(t *testing.T, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	must(t, err)
	return der, key
}

// issue returns a serving certificate.
func (a *authority) issue(t *testing.T, name string, until time.Time) tls.Certificate {
	t.Helper()
	der, key := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: start.Add(-24 * time.Hour), NotAfter: until, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}, a.certificate, a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// world is an update informer, served by a real HTTPS server, and the controller that queries it.
type world struct {
	*updateinformer.Reconciler
	t      *testing.T
	client client.Client
	clock  *clocktesting.FakePassiveClock
	ca     *authority
	server *httptest.Server

	mu          sync.Mutex
	certificate tls.Certificate
	handler     http.HandlerFunc
	requests    []string // to the informer: method and the last element of the path
	tokens      []string // audiences of requested tokens
	events      []string
	serviceCA   string
	discovery   string
	discover    http.HandlerFunc // answers instead of discovery; nil means that it does not
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, clock: clocktesting.NewFakePassiveClock(start), ca: newAuthority(t), discovery: discovery}
	w.certificate, w.handler = w.ca.issue(t, serverHost, start.Add(24*time.Hour)), answering(success)
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
		&v1beta1.UpdateInformer{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", Generation: 1},
			Spec: v1beta1.UpdateInformerSpec{ClientConfig: v1beta1.InformerClientConfig{
				Service: v1beta1.InformerService{Namespace: namespace, Name: "informer", Port: w.port()}, CABundle: []byte(w.ca.pem),
			}},
		},
		&v1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.UpdateStatusName}})
	w.Reconciler = &updateinformer.Reconciler{
		Exchange: updateinformer.NewExchange(), Client: w.client, Live: w.client, Clock: w.clock,
		ServiceAccount: types.NamespacedName{Namespace: "managed-upgrade-operator", Name: "update-status-controller"},
		Token: func(_ context.Context, audience string) (string, error) {
			w.tokens = append(w.tokens, audience)
			return "secret-token", nil
		},
		ServiceCA: func() ([]byte, error) { return []byte(w.serviceCA), nil },
		Request: func(context.Context) (v1alpha.RequestSpec, error) {
			return v1alpha.RequestSpec{ClusterID: "id", ControlPlaneVersion: "4.20.5", TargetControlPlaneVersion: "4.20.6"}, nil
		},
		Events: w, Metrics: ignored{},
	}
	return w
}

func service(namespace, name, ip string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, ClusterIP: ip, Ports: []corev1.ServicePort{{Port: port, Protocol: corev1.ProtocolTCP}}},
	}
}

func (w *world) port() int32 {
	_, port, err := net.SplitHostPort(w.server.Listener.Addr().String())
	must(w.t, err)
	n, err := strconv.ParseInt(port, 10, 32)
	must(w.t, err)
	return int32(n)
}

// serve answers discoveries, and other requests by the handler.
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

func answering(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) }
}

// answer has the informer answer with another handler.
func (w *world) answer(handler http.HandlerFunc) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.handler = handler
}

// took returns the requests to the informer since the last call.
func (w *world) took() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	requests := w.requests
	w.requests = nil
	return requests
}

// Publish implements updateinformer.EventPublisher.
func (w *world) Publish(_ context.Context, _ client.Object, eventType, reason, _ string) {
	w.events = append(w.events, eventType+" "+reason)
}

// ignored observes nothing.
type ignored struct{}

func (ignored) ObserveInformerRequest(string, string, string) {}
func (ignored) SetInformerReachable(string, bool)             {}
func (ignored) DeleteInformer(string)                         {}

// update sets whether an update is pending and active.
func (w *world) update(pending, active bool) {
	w.t.Helper()
	status := func(b bool) metav1.ConditionStatus {
		if b {
			return metav1.ConditionTrue
		}
		return metav1.ConditionFalse
	}
	w.change(&v1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.UpdateStatusName}}, func(object client.Object) {
		object.(*v1beta1.UpdateStatus).Status.ControlPlane = &v1beta1.ControlPlaneStatus{Section: v1beta1.Section{Conditions: []metav1.Condition{
			{Type: v1beta1.ConditionUpdatePending, Status: status(pending), Reason: "R", LastTransitionTime: metav1.NewTime(start)},
			{Type: v1beta1.ConditionUpdateActive, Status: status(active), Reason: "R", LastTransitionTime: metav1.NewTime(start)},
		}}}
	})
}

// change changes an object, status included.
func (w *world) change(object client.Object, do func(client.Object)) {
	w.t.Helper()
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKeyFromObject(object), object))
	before := object.GetGeneration()
	do(object)
	status, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		w.t.Fatalf("%T is not an object", object)
	}
	must(w.t, w.client.Update(w.t.Context(), object))
	switch status.(type) {
	case *v1beta1.UpdateStatus, *v1beta1.UpdateInformer:
		status.SetResourceVersion(object.GetResourceVersion())
		status.SetGeneration(max(before, object.GetGeneration()))
		must(w.t, w.client.Status().Update(w.t.Context(), status))
	}
}

// changeInformer changes the UpdateInformer.
func (w *world) changeInformer(do func(*v1beta1.UpdateInformer)) {
	w.t.Helper()
	w.change(&v1beta1.UpdateInformer{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, func(object client.Object) {
		informer, ok := object.(*v1beta1.UpdateInformer)
		if !ok {
			w.t.Fatalf("%T is no UpdateInformer", object)
		}
		do(informer)
		informer.Generation++
	})
}

// pass makes one pass and returns when the next one is due.
func (w *world) pass() time.Duration {
	w.t.Helper()
	result, err := w.Reconcile(w.t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: "shop"}})
	must(w.t, err)
	return result.RequeueAfter
}

// runFor makes the passes that are due in this time, each at its time.
func (w *world) runFor(d time.Duration) {
	w.t.Helper()
	end := w.clock.Now().Add(d)
	for {
		next := w.pass()
		if next == 0 || w.clock.Now().Add(next).After(end) {
			w.clock.SetTime(end)
			return
		}
		w.clock.SetTime(w.clock.Now().Add(next))
	}
}

// conditions returns the conditions as type=status:reason.
func (w *world) conditions() []string {
	w.t.Helper()
	var informer v1beta1.UpdateInformer
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: "shop"}, &informer))
	var all []string
	for _, c := range informer.Status.Conditions {
		all = append(all, c.Type+"="+string(c.Status)+":"+c.Reason)
	}
	return all
}

// condition returns a condition.
func (w *world) condition(name string) v1beta1.InformerCondition {
	w.t.Helper()
	var informer v1beta1.UpdateInformer
	must(w.t, w.client.Get(w.t.Context(), client.ObjectKey{Name: "shop"}, &informer))
	for _, c := range informer.Status.Conditions {
		if c.Type == name {
			return c
		}
	}
	return v1beta1.InformerCondition{}
}

// result returns the latest answer about the update in progress.
func (w *world) result() insight.Answer {
	w.t.Helper()
	answers := w.Answers()
	if len(answers) != 1 {
		w.t.Fatalf("got %d answers", len(answers))
	}
	return answers[0]
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
