// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	certutil "k8s.io/client-go/util/cert"
)

// writeCert writes a certificate into a directory like a kubelet, and returns its CA pool.
func writeCert(t *testing.T, folder, name string) *x509.CertPool {
	t.Helper()
	certificate, key, err := certutil.GenerateSelfSignedCertKey(name, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{"tls.crt": certificate, "tls.key": key} {
		if err := os.WriteFile(filepath.Join(folder, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificate)
	return pool
}

func TestMetricsAreServedWithTheCurrentCertificate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{}
	tlsOptions(folder)(server.TLS)
	server.StartTLS()
	t.Cleanup(server.Close)
	// Use the server name that Prometheus uses.
	dial := func(trust *x509.CertPool) error {
		t.Helper()
		config := &tls.Config{RootCAs: trust, ServerName: "metrics.svc", InsecureSkipVerify: trust == nil}
		c, err := tls.Dial("tcp", server.Listener.Addr().String(), config)
		if err != nil {
			return err
		}
		return c.Close()
	}
	if err := dial(nil); err != nil {
		t.Fatalf("without a certificate: %v", err)
	}
	first := writeCert(t, folder, "metrics.svc")
	if err := dial(first); err != nil {
		t.Errorf("once it is there: %v", err)
	}
	second := writeCert(t, folder, "metrics.svc")
	if err := dial(second); err != nil {
		t.Errorf("once it was renewed: %v", err)
	}
	if err := dial(first); err == nil {
		t.Error("the former certificate is still served")
	}
	if err := os.WriteFile(filepath.Join(folder, "tls.key"), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := dial(nil); err == nil {
		t.Error("a certificate without its key was served, or another one in its place")
	}
}

func TestMetrics_without_a_certificate_are_served_self_signed(t *testing.T) {
	t.Parallel()
	var config tls.Config
	tlsOptions("")(&config)
	first, err := config.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := config.GetCertificate(nil); err != nil || first != second {
		t.Errorf("another one is made for each connection: %v", err)
	}
}

// Clients that offer HTTP/2 get HTTP/1.1.
func TestMetricsWithoutHTTP2(t *testing.T) {
	t.Parallel()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.TLS = &tls.Config{NextProtos: []string{"h2"}} // like the metrics server by default
	tlsOptions("")(server.TLS)
	server.StartTLS()
	defer server.Close()
	c, err := tls.Dial("tcp", server.Listener.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2", "http/1.1"}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if got := c.ConnectionState().NegotiatedProtocol; got != "http/1.1" {
		t.Errorf("the protocol is %q", got)
	}
}
