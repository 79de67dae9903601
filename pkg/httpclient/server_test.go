// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient_test

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/pki"
)

// port returns the port of a test server.
func port(t *testing.T, server *httptest.Server) string {
	t.Helper()
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// A server in the cluster is reached at its address, while its certificate contains its name.
func TestDo_dials_a_fixed_address(t *testing.T) {
	t.Parallel()
	var host string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { host = r.Host }))
	t.Cleanup(server.Close)
	ca, address := []byte(caPEM(server)), "127.0.0.1:"+port(t, server)
	for name, tc := range map[string]struct {
		options httpclient.Options
		want    string // empty for success
	}{
		"its name":            {httpclient.Options{URL: "https://example.com", CA: ca, DialAddress: address}, ""},
		"pinned name":         {httpclient.Options{URL: "https://127.0.0.1:" + port(t, server), CA: ca, ServerName: "example.com"}, ""},
		"another name":        {httpclient.Options{URL: "https://api.shop.svc", CA: ca, DialAddress: address}, "not api.shop.svc"},
		"another pinned name": {httpclient.Options{URL: server.URL, CA: ca, ServerName: "api.shop.svc"}, "not api.shop.svc"},
		"system CAs":          {httpclient.Options{URL: "https://example.com", DialAddress: address}, "unknown authority"},
		"empty bundle":        {httpclient.Options{URL: "https://example.com", CA: []byte{}, DialAddress: address}, "the CA bundle does not hold a PEM certificate"},
	} {
		c := newClient(t, tc.options)
		_, err := c.Do(t.Context(), get)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		if err != nil && name != "empty bundle" && !httpclient.IsTLSError(err) {
			t.Errorf("%s: %v is not an error of TLS", name, err)
		}
		c.Close()
	}
	if host != "example.com" && host != "127.0.0.1:"+port(t, server) {
		t.Errorf("the host of the last request is %q", host)
	}
}

func TestDo_sends_the_token_of_its_source(t *testing.T) {
	t.Parallel()
	var got string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	errDenied := errors.New("denied")
	for name, tc := range map[string]struct {
		token string
		err   error
		want  string
	}{
		"valid":   {"secret", nil, "Bearer secret"},
		"empty":   {"", nil, ""},
		"invalid": {"se\ncret", nil, ""},
		"error":   {"", errDenied, ""},
	} {
		got = ""
		c := newClient(t, httpclient.Options{
			URL: server.URL, CA: []byte(caPEM(server)), Token: func(context.Context) (string, error) { return tc.token, tc.err },
		})
		_, err := c.Do(t.Context(), get)
		if got != tc.want || (err == nil) != (tc.want != "") || tc.err != nil && !errors.Is(err, tc.err) {
			t.Errorf("%s: sent %q, %v; want %q", name, got, err, tc.want)
		}
		if err != nil && strings.Contains(err.Error(), "cret") {
			t.Errorf("%s: the error shows the token: %v", name, err)
		}
	}
}

func TestNew_rejects_contradictory_sources(t *testing.T) {
	t.Parallel()
	source := func(context.Context) (string, error) { return "x", nil }
	for name, o := range map[string]httpclient.Options{
		"two CAs":              {URL: "https://h", CA: []byte("x"), CAFile: "f"},
		"two tokens":           {URL: "https://h", Token: source, TokenFile: "f"},
		"token over http":      {URL: "http://h", Token: source},
		"proxy, fixed address": {URL: "https://h", DialAddress: "127.0.0.1:1", Proxy: http.ProxyFromEnvironment},
	} {
		if _, err := httpclient.New(o); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// A limit on received bytes does not limit the size of a decompressed body.
func TestDo_rejects_a_compressed_response(t *testing.T) {
	t.Parallel()
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Accept-Encoding") != "" {
			t.Errorf("the request accepts %s", r.Header.Get("Accept-Encoding"))
		}
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		_, _ = compressed.Write(make([]byte, 4<<20))
		_ = compressed.Close()
	})
	_, err := newClient(t, httpclient.Options{URL: server.URL}).Do(t.Context(), get)
	if err == nil || !strings.Contains(err.Error(), "compressed (Content-Encoding gzip)") {
		t.Errorf("got %v", err)
	}
}

func TestDo_of_an_address_that_never_answers_ends_with_the_dial_timeout(t *testing.T) {
	t.Parallel()
	c := newClient(t, httpclient.Options{URL: "https://api.shop.svc", DialAddress: "192.0.2.1:443", DialTimeout: time.Nanosecond})
	if _, err := c.Do(t.Context(), get); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// Messages are published when they change, so they must not contain the time of the request.
func TestDo_reports_a_failed_handshake_in_the_same_words(t *testing.T) {
	t.Parallel()
	plain := serve(t, respondWith(200, "x"))
	expired := httptest.NewUnstartedServer(respondWith(200, "x"))
	authority := pki.New("test")
	certificate := authority.Issue("127.0.0.1", wall.Now().Add(-time.Hour), wall.Now().Add(-time.Minute))
	expired.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	expired.StartTLS()
	t.Cleanup(expired.Close)
	old := httptest.NewUnstartedServer(respondWith(200, "x"))
	old.TLS = &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}
	old.StartTLS()
	t.Cleanup(old.Close)
	for name, tc := range map[string]struct {
		options httpclient.Options
		want    string
	}{
		"plain HTTP": {httpclient.Options{URL: strings.Replace(plain.URL, "http:", "https:", 1)}, "the server does not speak TLS"},
		"expired": {
			httpclient.Options{URL: expired.URL, CA: authority.PEM},
			"until " + certificate.Leaf.NotAfter.UTC().Format(time.RFC3339),
		},
		"TLS 1.1": {httpclient.Options{URL: old.URL, CA: []byte(caPEM(old))}, "protocol version"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := newClient(t, tc.options).Do(t.Context(), get)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "current time") || !httpclient.IsTLSError(err) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
