// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package externaldeps_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func after(d time.Duration) engine.Run { return engine.Run{Since: noon, Now: noon.Add(d)} }

// serve starts an HTTP server and returns its URL.
func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL
}

func answers(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

func available(t *testing.T, o externaldeps.Options) engine.UpgradeStep {
	t.Helper()
	d, err := externaldeps.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return externaldeps.WaitUntilAvailable(d)
}

func hang(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

// flood responds with an endless body.
func flood(w http.ResponseWriter, _ *http.Request) {
	for {
		if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
			return
		}
	}
}

// drip responds slowly with endless headers.
func drip(w http.ResponseWriter, r *http.Request) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer func() { _ = connection.Close() }()
	for text := "HTTP/1.1 200 OK\r\nX: "; ; text = "x" {
		if _, err := io.WriteString(connection, text); err != nil {
			return
		}
		pause, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
		<-pause.Done()
		cancel()
	}
}

func TestDependency(t *testing.T) {
	t.Parallel()
	const patience = 300 * time.Millisecond
	elsewhere := serve(t, answers(500))
	slow := func(w http.ResponseWriter, r *http.Request) {
		pause, cancel := context.WithTimeout(r.Context(), 50*time.Millisecond)
		defer cancel()
		<-pause.Done()
		answers(200)(w, r)
	}
	cases := map[string]struct {
		answer  http.HandlerFunc
		timeout time.Duration
		want    string // why it is unavailable; empty if it is available
		asked   int32
	}{
		"it answers":                       {answer: answers(200), asked: 1},
		"it answers without content":       {answer: answers(204), asked: 1},
		"it answers in time":               {answer: slow, timeout: 10 * time.Second, asked: 1},
		"it answers with more than anyone": {answer: flood, asked: 1},
		"it redirects to another host":     {answer: http.RedirectHandler(elsewhere, http.StatusFound).ServeHTTP, asked: 1},
		"it redirects to itself": {answer: func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/login", http.StatusFound)
				return
			}
			answers(404)(w, r)
		}, want: "the status is 404 Not Found", asked: 2},
		"it redirects without an end": {answer: http.RedirectHandler("/", http.StatusFound).ServeHTTP, want: "more than 5 redirects", asked: 18},
		"not found":                   {answer: answers(404), want: "the status is 404 Not Found", asked: 1},
		"it wants a password":         {answer: answers(401), want: "the status is 401 Unauthorized", asked: 1},
		"too many requests":           {answer: answers(429), want: "the status is 429 Too Many Requests", asked: 3},
		"it is down":                  {answer: answers(503), want: "the status is 503 Service Unavailable", asked: 3},
		"no response":                 {answer: hang, timeout: patience, want: "no response within 300ms", asked: 3},
		"endless response":            {answer: drip, timeout: patience, want: "no response within 300ms", asked: 3},
		"its headers are huge": {answer: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X", strings.Repeat("x", 1<<20))
		}, want: "net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 65536 bytes; aborted", asked: 3},
		"it resets the connection": {answer: func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = connection.(*net.TCPConn).SetLinger(0)
				_ = connection.Close()
			}
		}, want: "read: connection reset by peer", asked: 3},
		"no HTTP": {answer: func(w http.ResponseWriter, _ *http.Request) {
			connection, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_, _ = io.WriteString(connection, "\x1b[2J\r\n\r\n")
				_ = connection.Close()
			}
		}, want: `net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x1b[2J"`, asked: 3},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			at := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				if !r.Close {
					t.Error("the connection would be left open")
				}
				tc.answer(w, r)
			})
			if tc.timeout == 0 {
				tc.timeout = 10 * time.Second
			}
			got, err := available(t, externaldeps.Options{URLs: []string{at + "/?token=secret"}, Timeout: tc.timeout, Interval: time.Minute})(t.Context(), after(0))
			want := engine.Done("all external dependencies are available")
			if tc.want != "" {
				want = engine.WaitFor(time.Minute, "DependenciesUnavailable", "external dependencies are not available: %s/ (%s)", at, tc.want)
			}
			if err != nil || got != want {
				t.Errorf("got %v, %v, want %v", got, err, want)
			}
			if requests.Load() != tc.asked {
				t.Errorf("it was asked %d times, want %d", requests.Load(), tc.asked)
			}
		})
	}
}

func TestDependency_failed_attempt_is_repeated(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) < 3 {
			panic(http.ErrAbortHandler)
		}
		w.WriteHeader(http.StatusOK)
	})
	got, err := available(t, externaldeps.Options{URLs: []string{at}, Timeout: 10 * time.Second, Interval: time.Minute})(t.Context(), after(0))
	if err != nil || !got.Passed() {
		t.Errorf("got %v, %v", got, err)
	}
}

// If the requests were sequential, the first one would wait forever.
func TestDependencies_are_requested_concurrently(t *testing.T) {
	t.Parallel()
	const n = 20
	var there sync.WaitGroup
	there.Add(n)
	at := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		there.Done()
		there.Wait()
		w.WriteHeader(http.StatusOK)
	})
	var urls []string
	for range n {
		urls = append(urls, at)
	}
	got, err := available(t, externaldeps.Options{URLs: urls, Timeout: 15 * time.Second, Interval: time.Minute})(t.Context(), after(0))
	if err != nil || !got.Passed() {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestDependencies_are_requested_once_a_minute_and_failures_named(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	var code atomic.Int32
	code.Store(404)
	down := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		w.WriteHeader(int(code.Load()))
	})
	up := serve(t, answers(200))
	d, err := externaldeps.New(externaldeps.Options{
		URLs:    []string{down + "/d", down + "/c", up, down + "/b", down + "/a"},
		Timeout: 10 * time.Second, Interval: time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	var texts []string
	for _, tc := range []struct {
		after time.Duration
		code  int32
		again time.Duration // until the next round; 0 if all are available
		asked int32
	}{
		{0, 404, time.Minute, 4},
		{time.Second, 200, 59 * time.Second, 4},
		{59 * time.Second, 404, time.Second, 4},
		{60 * time.Second, 404, time.Minute, 8},
		{50 * time.Second, 404, time.Minute, 12}, // the clock was set back
		{110 * time.Second, 200, 0, 16},
		{111 * time.Second, 404, time.Minute, 20},
	} {
		code.Store(tc.code)
		// Each pass creates new steps.
		got, err := externaldeps.WaitUntilAvailable(d)(t.Context(), after(tc.after))
		texts = append(texts, strings.ReplaceAll(got.Message(), down, "http://down"))
		want := "DependenciesUnavailable"
		if tc.again == 0 {
			want = engine.ReasonDone
		}
		if err != nil || got.Reason() != want || got.After() != tc.again || requests.Load() != tc.asked {
			t.Errorf("after %s: asked %d times, want %d; got %v, %v", tc.after, requests.Load(), tc.asked, got, err)
		}
	}
	golden.Texts(t, "", slices.Compact(texts)...)
}

func TestDependencies_not_configured(t *testing.T) {
	t.Parallel()
	got, err := available(t, externaldeps.Options{Timeout: time.Second, Interval: time.Minute})(t.Context(), after(0))
	if want := engine.Skip("NotConfigured", "there are no external dependencies"); err != nil || got != want {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := externaldeps.WaitUntilAvailable(nil)(t.Context(), after(0)); err == nil || got.Passed() {
		t.Errorf("if it is not known: got %v, %v", got, err)
	}
}

func TestDependencies_result_of_a_cancelled_call_is_not_kept(t *testing.T) {
	t.Parallel()
	step := available(t, externaldeps.Options{URLs: []string{serve(t, answers(200))}, Timeout: time.Second, Interval: time.Minute})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := step(ctx, after(0)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := step(t.Context(), after(time.Second)); err != nil || !got.Passed() {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestHTTPS(t *testing.T) {
	t.Parallel()
	plain := serve(t, answers(500))
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The host is the same, but the connection is not encrypted.
		http.Redirect(w, r, "http://"+r.Host, http.StatusFound)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	roots := filepath.Join(t.TempDir(), "ca.crt")
	bundle := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})

	o := externaldeps.Options{URLs: []string{server.URL}, Timeout: 10 * time.Second, Interval: time.Minute, CAFile: roots}
	missing, err := available(t, o)(t.Context(), after(0))
	if err != nil || missing.Passed() || !strings.Contains(missing.Message(), roots) {
		t.Errorf("before the file with the CAs is there: got %v, %v", missing, err)
	}
	if err := os.WriteFile(roots, bundle, 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := available(t, o)(t.Context(), after(0)); err != nil || !got.Passed() {
		t.Errorf("got %v, %v", got, err)
	}
	o.CAFile, o.ExtraCAFile = "", roots
	if got, err := available(t, o)(t.Context(), after(0)); err != nil || !got.Passed() {
		t.Errorf("with a CA that the cluster trusts: got %v, %v", got, err)
	}
	o.ExtraCAFile = ""
	got, err := available(t, o)(t.Context(), after(0))
	if err != nil || got.Passed() || !strings.Contains(got.Message(), "certificate") {
		t.Errorf("with a certificate that is not trusted: got %v, %v", got, err)
	}
	o.URLs = []string{"https" + strings.TrimPrefix(plain, "http")}
	got, err = available(t, o)(t.Context(), after(0))
	if err != nil || got.Passed() {
		t.Errorf("with a server of HTTP: got %v, %v", got, err)
	}
}

func TestDependencies_use_the_given_proxy(t *testing.T) {
	through := serve(t, answers(200))
	t.Setenv("HTTP_PROXY", through)
	o := externaldeps.Options{URLs: []string{"http://dependency.invalid"}, Timeout: 10 * time.Second, Interval: time.Minute}
	if got, err := available(t, o)(t.Context(), after(0)); err != nil || got.Passed() {
		t.Errorf("through the proxy of the environment: got %v, %v", got, err)
	}
	o.Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(through) }
	if got, err := available(t, o)(t.Context(), after(0)); err != nil || !got.Passed() {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestNew_rejects_invalid_options(t *testing.T) {
	t.Parallel()
	good := externaldeps.Options{URLs: []string{"https://quay.io/v2/", "http://10.0.0.1:8080?a=b"}, Timeout: 15 * time.Second, Interval: time.Minute}
	cases := map[string]struct {
		change func(*externaldeps.Options)
		want   string // empty if the options are accepted
	}{
		"these are good":     {func(*externaldeps.Options) {}, ""},
		"no timeout":         {func(o *externaldeps.Options) { o.Timeout = 0 }, "the timeout is 0s"},
		"a timeout too long": {func(o *externaldeps.Options) { o.Timeout = 16 * time.Second }, "the timeout is 16s; it must be positive and at most 15s"},
		"too many":           {func(o *externaldeps.Options) { o.URLs = make([]string, 21) }, "21 URLs are configured, 20 are allowed"},
		"an empty URL":       {func(o *externaldeps.Options) { o.URLs[1] = "" }, "the URL in place 2"},
		"no URL":             {func(o *externaldeps.Options) { o.URLs[0] = "quay.io" }, "the URL in place 1"},
		"another scheme":     {func(o *externaldeps.Options) { o.URLs[0] = "ftp://quay.io" }, "the URL in place 1"},
		"a password":         {func(o *externaldeps.Options) { o.URLs[0] = "https://me:secret@quay.io" }, "without a user"},
		"a port alone":       {func(o *externaldeps.Options) { o.URLs[0] = "https://:8443" }, "the URL in place 1 must be one of https or http, such as https://quay.io/"},
		"port 0":             {func(o *externaldeps.Options) { o.URLs[1] = "http://10.0.0.1:0" }, "the URL in place 2 must have a port from 1 to 65535, or none"},
		"a port too high":    {func(o *externaldeps.Options) { o.URLs[0] = "https://quay.io:65536" }, "the URL in place 1 must have a port from 1 to 65535, or none"},
		"control characters": {func(o *externaldeps.Options) { o.URLs[0] = "https://quay.io/\x1b" }, "the URL in place 1"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := good
			o.URLs = append([]string{}, good.URLs...)
			tc.change(&o)
			_, err := externaldeps.New(o)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret")) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}
