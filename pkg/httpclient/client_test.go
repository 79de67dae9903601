// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient_test

import (
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
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
)

// wall is the real clock, since these tests measure real time.
var wall clock.RealClock

var get = httpclient.Request{Method: http.MethodGet, Path: []string{"api", "a b"}, Query: url.Values{"q": {`x="y"`}}}

func newClient(t *testing.T, o httpclient.Options) *httpclient.Client {
	t.Helper()
	e, err := httpclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server
}

func writeTempFile(t *testing.T, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "file")
	rewrite(t, file, text)
	return file
}

func rewrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func caPEM(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func TestNew_rejects_invalid_options(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options httpclient.Options
		want    string // empty if accepted
	}{
		"https":                {httpclient.Options{URL: "https://alertmanager:9094/path", TokenFile: "f"}, ""},
		"http without a token": {httpclient.Options{URL: "http://127.0.0.1:9093"}, ""},
		"http with a token":    {httpclient.Options{URL: "http://alertmanager", TokenFile: "f"}, "a token is sent over https only"},
		"nothing":              {httpclient.Options{}, "must begin with https://"},
		"no host":              {httpclient.Options{URL: "https:///path"}, "must begin with https://"},
		"a port alone":         {httpclient.Options{URL: "https://:8443/"}, "must begin with https://"},
		"invalid port":         {httpclient.Options{URL: "https://here:99999"}, `is "https://here:99999", must have a port from 1 to 65535, or none`},
		"port 0":               {httpclient.Options{URL: "https://here:0"}, "must have a port from 1 to 65535"},
		"another scheme":       {httpclient.Options{URL: "file:///etc/passwd"}, "must begin with https://"},
		"no URL":               {httpclient.Options{URL: "https://a b"}, "must be a URL: "},
		"a password":           {httpclient.Options{URL: "https://u:secret@h"}, "without user"},
		"a query":              {httpclient.Options{URL: "https://h?token=secret"}, "without user, query"},
		"a password, mistyped": {httpclient.Options{URL: "htps://u:secret@h"}, "without user"},
		"no URL, a password":   {httpclient.Options{URL: "https://u:sec ret:secret@h"}, "without user"},
		"no host, a query":     {httpclient.Options{URL: "h/x?token=secret"}, "without user, query"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := httpclient.New(tc.options)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret")):
				t.Errorf("got %v, want %q and no secret", err, tc.want)
			}
		})
	}
}

func TestDo_returns_an_error_for_every_invalid_response(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"status 500":             {respondWith(500, "oh no\n\n\x1b[31mred\x07"), "responded 500 Internal Server Error: oh no red"},
		"status 401":             {respondWith(401, "<html>who?</html>"), "responded 401 Unauthorized: <html>who?</html>"},
		"error with a long body": {respondWith(403, strings.Repeat("x", 1<<21)), "Forbidden: " + strings.Repeat("x", 200) + "…"},
		"error without a body":   {respondWith(502, ""), "responded 502 Bad Gateway"},
		"redirect":               {redirect, "redirects are not followed; this one is to /elsewhere"},
		"status 304":             {respondWith(304, ""), "responded 304"},
		"endless body":           {respondWith(200, strings.Repeat("x", 1001)), "longer than 1000 bytes"},
		"no response":            {silent, "no complete response in time: context deadline exceeded"},
		"slow body":              {drips, "no complete response in time: context deadline exceeded"},
		"body cut off":           {breaksOff, "reading the response: unexpected EOF"},
		"connection closed":      {hangsUp, "EOF"},
		"no HTTP":                {raw("SSH-2.0-x\r\n"), "malformed HTTP"},
		"endless header":         {raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)), "header"},
		"wrong length":           {raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"), "unexpected EOF"},
		"status 429":             {tooManyRequests, "responded 429 Too Many Requests"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, tc.serve)
			e := newClient(t, httpclient.Options{URL: server.URL, Timeout: 300 * time.Millisecond, MaxBodyBytes: 1000})
			began := wall.Now()
			body, err := e.Do(t.Context(), get)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("answered %q, %v; want an error with %q", body, err, tc.want)
			}
			if took := wall.Since(began); took > 5*time.Second {
				t.Errorf("it took %s", took)
			}
			if err != nil && len(err.Error()) > 500 {
				t.Errorf("the error has %d bytes", len(err.Error()))
			}
		})
	}
}

func TestDo_with_StatusOnly_ignores_the_body(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		serve http.HandlerFunc
		want  string // empty for no error
	}{
		"endless body":           {respondWith(200, strings.Repeat("x", 1001)), ""},
		"slow body":              {drips, ""},
		"body cut off":           {breaksOff, ""},
		"error with a long body": {respondWith(503, strings.Repeat("x", 1<<21)), "responded 503 Service Unavailable"},
		"redirect":               {redirect, "redirects are not followed"},
		"no response":            {silent, "no complete response in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := newClient(t, httpclient.Options{URL: serve(t, tc.serve).URL, Timeout: 300 * time.Millisecond, MaxBodyBytes: 1000})
			body, err := e.Do(t.Context(), httpclient.Request{Method: http.MethodPost, StatusOnly: true})
			switch {
			case tc.want == "" && (err != nil || body != nil):
				t.Errorf("got %q, %v", body, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %q, %v; want an error with %q", body, err, tc.want)
			}
		})
	}
}

func respondWith(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

func redirect(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/elsewhere" {
		respondWith(200, "stolen")(w, r)
		return
	}
	http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
}

func tooManyRequests(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Retry-After", "7")
	w.WriteHeader(http.StatusTooManyRequests)
}

func silent(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }

func drips(w http.ResponseWriter, r *http.Request) {
	for r.Context().Err() == nil {
		_, _ = io.WriteString(w, "x")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-wall.After(50 * time.Millisecond):
		}
	}
}

func breaksOff(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "[{")
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

func hangsUp(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func raw(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = io.WriteString(conn, text)
		_ = conn.Close()
	}
}

func TestStatusError_has_the_requested_delay(t *testing.T) {
	t.Parallel()
	_, err := newClient(t, httpclient.Options{URL: serve(t, tooManyRequests).URL}).Do(t.Context(), get)
	var statusErr *httpclient.StatusError
	if !errors.As(err, &statusErr) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(httpclient.StatusError{Code: 429, RetryAfter: 7 * time.Second}, *statusErr); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestDo_without_a_server(t *testing.T) {
	t.Parallel()
	server := serve(t, silent)
	e := newClient(t, httpclient.Options{URL: server.URL})
	server.Close()
	var first string
	for range 3 { // the message does not contain the local port
		_, err := e.Do(t.Context(), get)
		if err == nil || !strings.Contains(err.Error(), "dial: connect: connection refused") {
			t.Fatalf("got %v", err)
		}
		if first == "" {
			first = err.Error()
		}
		if err.Error() != first {
			t.Errorf("%q, then %q", first, err)
		}
	}
}

func TestDo_sends_the_request(t *testing.T) {
	t.Parallel()
	var got []string
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = []string{r.Method, r.URL.EscapedPath(), r.URL.Query().Get("q"), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(body)}
		respondWith(201, "made")(w, r)
	})
	r := get
	r.Method, r.ContentType, r.Body = http.MethodPost, "application/json", []byte("{}")
	answer, err := newClient(t, httpclient.Options{URL: server.URL + "/base/", MaxBodyBytes: 4}).Do(t.Context(), r)
	if err != nil || string(answer) != "made" {
		t.Errorf("answered %q, %v", answer, err)
	}
	want := []string{"POST", "/base/api/a%20b", `x="y"`, "application/json", "", "{}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestDo_reuses_one_connection(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(respondWith(200, "x"))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	e := newClient(t, httpclient.Options{URL: server.URL})
	for range 10 {
		if _, err := e.Do(t.Context(), get); err != nil {
			t.Fatal(err)
		}
	}
	if got := opened.Load(); got != 1 {
		t.Errorf("%d connections were opened for ten requests", got)
	}
}

func TestDo_trusts_the_CAs_that_the_file_holds_now(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(respondWith(200, "x"))
	t.Cleanup(server.Close)
	ca := writeTempFile(t, "nothing")
	e := newClient(t, httpclient.Options{URL: server.URL, CAFile: ca})
	for _, step := range []struct{ ca, want string }{
		{"nothing", "does not hold a PEM certificate"},
		{caPEM(server), ""},
		{strings.Replace(caPEM(server), "BEGIN CERT", "BEGIN CERTX", 1), "does not hold a PEM certificate"},
		{caPEM(server), ""},
	} {
		rewrite(t, ca, step.ca)
		_, err := e.Do(t.Context(), get)
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("got %v, want %q", err, step.want)
		}
	}
	for name, o := range map[string]httpclient.Options{
		"unknown CA":          {URL: server.URL},
		"the file is missing": {URL: server.URL, CAFile: ca + "x"},
		"it has another name": {URL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1), CAFile: ca},
	} {
		if _, err := newClient(t, o).Do(t.Context(), get); err == nil {
			t.Errorf("%s, and it was believed", name)
		}
	}
}

func TestDo_trusts_the_CAs_of_the_cluster_as_they_are_now(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(respondWith(200, "x"))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(server.Close)
	bundle := filepath.Join(t.TempDir(), "ca-bundle.crt")
	e := newClient(t, httpclient.Options{URL: server.URL, ExtraCAFile: bundle})
	for _, step := range []struct{ ca, want string }{
		{"", "certificate"},
		{" \n", "certificate"},
		{strings.Repeat("# a comment\n", 10_000) + caPEM(server), ""},
		{"nothing", "does not hold a PEM certificate"},
		{caPEM(server), ""},
	} {
		if step.ca != "" {
			rewrite(t, bundle, step.ca)
		}
		_, err := e.Do(t.Context(), get)
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("with %.20q: got %v, want %q", step.ca, err, step.want)
		}
	}
	own := writeTempFile(t, "nothing")
	if _, err := newClient(t, httpclient.Options{URL: server.URL, ExtraCAFile: bundle, CAFile: own}).Do(t.Context(), get); err == nil {
		t.Error("a caFile was not decisive")
	}
}

func TestDo_sends_the_token_that_the_file_holds_now(t *testing.T) {
	t.Parallel()
	var got string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	token := writeTempFile(t, "first\n")
	e := newClient(t, httpclient.Options{URL: server.URL, CAFile: writeTempFile(t, caPEM(server)), TokenFile: token})
	for text, want := range map[string]string{"first\n": "Bearer first", "second": "Bearer second", "": "", "two words": "", "a\nb": "", "\x00": ""} {
		got = ""
		rewrite(t, token, text)
		_, err := e.Do(t.Context(), get)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("with %q: sent %q, %v; want %q", text, got, err, want)
		}
		if err != nil && text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("the error shows what is in the file: %v", err)
		}
	}
}

func TestDo_hides_a_token_that_the_response_repeats(t *testing.T) {
	t.Parallel()
	for name, respond := range map[string]func(http.ResponseWriter, string){
		"in a refusal": func(w http.ResponseWriter, token string) { http.Error(w, "you said: "+token, http.StatusUnauthorized) },
		"in where a redirect leads to": func(w http.ResponseWriter, token string) {
			w.Header().Set("Location", "/login?you="+token)
			w.WriteHeader(http.StatusFound)
		},
		"in the middle of what is cut off": func(w http.ResponseWriter, token string) {
			http.Error(w, strings.Repeat("x", 185)+token, http.StatusUnauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { respond(w, r.Header.Get("Authorization")) }))
			t.Cleanup(server.Close)
			e := newClient(t, httpclient.Options{URL: server.URL, CAFile: writeTempFile(t, caPEM(server)), TokenFile: writeTempFile(t, "sha256~secret")})
			_, err := e.Do(t.Context(), get)
			if err == nil || strings.Contains(err.Error(), "sha256") || !strings.Contains(err.Error(), "Bearer …") {
				t.Errorf("got %v", err)
			}
		})
	}
}
