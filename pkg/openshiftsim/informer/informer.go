// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package informer simulates update informers: real HTTPS servers at the cluster IPs of their
// Services, each registered by an UpdateInformer, that respond, hang, or fail.
//
// It needs a cluster whose service network is a loopback network. It knows nothing about the Update
// Status Controller.
package informer

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/pki"
)

// Break is a failure mode of an informer.
type Break string

// Failure modes.
const (
	// BreakConnection closes each connection.
	BreakConnection Break = "connection"
	// BreakCertificate presents a certificate for another name.
	BreakCertificate Break = "certificate"
	// BreakStatus responds with status 500.
	BreakStatus Break = "status"
	// BreakRedirect redirects to another server.
	BreakRedirect Break = "redirect"
	// BreakJSON responds with text that is not JSON.
	BreakJSON Break = "json"
	// BreakSize responds with 2 MiB.
	BreakSize Break = "size"
)

// Breaks returns all failure modes.
func Breaks() []Break {
	return []Break{BreakConnection, BreakCertificate, BreakStatus, BreakRedirect, BreakJSON, BreakSize}
}

// Behavior describes how an informer responds to requests for insights. The zero value responds
// with success and no insights.
type Behavior struct {
	// Insights are the insights returned by both handlers. Missing acquisition times default to the
	// time of the response.
	Insights []hooksv1alpha.Insight `json:"insights,omitempty"`
	// Response is Success (the default), Failure, or Wait.
	Response hooksv1alpha.Response `json:"response,omitempty"`
	// Message explains a Failure or a Wait.
	Message string `json:"message,omitempty"`
	// Hang delays all responses until the behavior changes.
	Hang bool `json:"hang,omitempty"`
	// Break, if set, is the failure mode. It also applies to discovery.
	Break Break `json:"break,omitempty"`
}

// port is the port of each Service. Ports below 1024 require root.
const port = 8443

// Server is a running informer. Its methods are safe for concurrent use.
type Server struct {
	name, namespace string
	address         string
	authority       *pki.Authority
	serving, other  tls.Certificate // for the name of the informer, and for another one
	server          *http.Server
	ended           chan error

	mu       sync.Mutex
	behavior Behavior
	changed  chan struct{} // closed when the behavior changes
	requests map[string]int
}

// Start registers and serves an informer: it applies the namespace, the Service, and an
// UpdateInformer whose CA bundle contains the authority of the informer's certificate. The
// CustomResourceDefinitions of update status must be installed.
func Start(ctx context.Context, c client.Client, namespace, name string) (*Server, error) {
	s := &Server{name: name, namespace: namespace, changed: make(chan struct{}), requests: map[string]int{}, ended: make(chan error, 1)}
	host, now := name+"."+namespace+".svc", time.Now()
	s.authority = pki.New("informer-ca")
	s.serving = s.authority.Issue(host, now.Add(-time.Hour), now.Add(24*time.Hour))
	s.other = s.authority.Issue("another."+host, now.Add(-time.Hour), now.Add(24*time.Hour))
	if err := s.register(ctx, c); err != nil {
		return nil, fmt.Errorf("registering informer %s: %w", name, err)
	}
	handler, err := s.handler()
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", s.address)
	if err != nil {
		return nil, fmt.Errorf("listening as informer %s: %w", name, err)
	}
	s.server = &http.Server{
		Handler: handler, TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: s.certificate},
		ReadHeaderTimeout: 10 * time.Second, ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { s.ended <- s.server.ServeTLS(listener, "", "") }()
	return s, nil
}

// register applies the objects of the informer and determines its address.
func (s *Server) register(ctx context.Context, c client.Client) error {
	service := map[string]any{
		"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"namespace": s.namespace, "name": s.name},
		"spec": map[string]any{"ports": []any{map[string]any{"name": "https", "port": int64(port)}}},
	}
	registration := map[string]any{
		"apiVersion": updatev1beta1.GroupVersion.String(), "kind": "UpdateInformer", "metadata": map[string]any{"name": s.name},
		"spec": map[string]any{"clientConfig": map[string]any{
			"service":  map[string]any{"namespace": s.namespace, "name": s.name, "port": int64(port)},
			"caBundle": base64.StdEncoding.EncodeToString(s.authority.PEM),
		}},
	}
	namespace := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": s.namespace}}
	for _, object := range []map[string]any{namespace, service} {
		if err := manifests.Apply(ctx, c, []*unstructured.Unstructured{{Object: object}}); err != nil {
			return err
		}
	}
	created := &unstructured.Unstructured{}
	created.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Service"})
	if err := c.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.name}, created); err != nil {
		return err
	}
	text, _, err := unstructured.NestedString(created.Object, "spec", "clusterIP")
	if err != nil {
		return err
	}
	address, err := netip.ParseAddr(text)
	if err != nil || !address.IsLoopback() {
		return fmt.Errorf("the cluster IP %q is not within loopback", text)
	}
	s.address = net.JoinHostPort(text, strconv.Itoa(port))
	return manifests.Apply(ctx, c, []*unstructured.Unstructured{{Object: registration}})
}

// Address returns the address that the informer listens on.
func (s *Server) Address() string { return s.address }

// CA returns the CA bundle of the informer's certificate.
func (s *Server) CA() []byte { return s.authority.PEM }

// Behave changes the behavior of the informer and releases hanging requests.
func (s *Server) Behave(b Behavior) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behavior = b
	close(s.changed)
	s.changed = make(chan struct{})
}

// Requests returns the number of requests that the informer has received on a path.
func (s *Server) Requests(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[path]
}

// Stop stops the server but keeps its objects. It may be called more than once.
func (s *Server) Stop() error {
	if s.server == nil {
		return nil
	}
	s.Behave(Behavior{})
	err := s.server.Close()
	if ended := <-s.ended; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	s.server = nil
	return err
}

// current returns the behavior and a channel that is closed when it changes.
func (s *Server) current() (Behavior, chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.behavior, s.changed
}

func (s *Server) certificate(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if b, _ := s.current(); b.Break == BreakCertificate {
		return &s.other, nil
	}
	return &s.serving, nil
}

// handler returns a handler that fails, hangs, or lets the SDK respond.
func (s *Server) handler() (http.Handler, error) {
	find := func(context.Context, hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) {
		b, _ := s.current()
		switch b.Response {
		case hooksv1alpha.ResponseFailure:
			return b.Insights, errors.New(b.Message)
		case hooksv1alpha.ResponseWait:
			return b.Insights, informersdk.Wait(b.Message)
		case hooksv1alpha.ResponseSuccess:
		}
		return b.Insights, nil
	}
	authorize := func(context.Context, string) error { return nil } // accept any token
	kit, err := informersdk.NewHandler(informersdk.HandlerOptions{UpdateInsights: find, PlanInsights: find, Authorize: authorize, MaxConcurrent: 64})
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests[r.URL.Path]++
		s.mu.Unlock()
		b, changed := s.current()
		if b.Hang && r.URL.Path != hooksv1alpha.DiscoveryPath {
			select {
			case <-changed:
			case <-r.Context().Done():
				return
			}
		}
		if !respondBroken(w, r, b.Break) {
			kit.ServeHTTP(w, r)
		}
	}), nil
}

// respondBroken responds according to a failure mode. It reports whether it has responded.
func respondBroken(w http.ResponseWriter, r *http.Request, b Break) bool {
	switch b {
	case BreakConnection:
		panic(http.ErrAbortHandler)
	case BreakStatus:
		http.Error(w, "the informer is broken", http.StatusInternalServerError)
	case BreakRedirect:
		http.Redirect(w, r, "https://example.com/", http.StatusTemporaryRedirect)
	case BreakJSON:
		_, _ = io.WriteString(w, "<html>no JSON</html>") // errors are irrelevant if the caller is gone
	case BreakSize:
		_, _ = io.Copy(w, strings.NewReader(strings.Repeat(" ", 2<<20)))
	case BreakCertificate: // fails in the handshake
		return false
	default:
		return false
	}
	return true
}
