// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint_test

import (
	"encoding/pem"
	"errors"
	"io"
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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/endpoint"
)

// wall is the real clock: what is tested is real waiting.
var wall clock.RealClock

var get = endpoint.Request{Method: http.MethodGet, Path: []string{"api", "a b"}, Query: url.Values{"q": {`x="y"`}}}

func made(t *testing.T, o endpoint.Options) *endpoint.Endpoint {
	t.Helper()
	e, err := endpoint.New(o)
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

func written(t *testing.T, text string) string {
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

func authority(server *httptest.Server) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
}

func TestOptionsThatCannotBeRightAreRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		options endpoint.Options
		want    string // empty: taken
	}{
		"https":                {endpoint.Options{URL: "https://alertmanager:9094/path", TokenFile: "f"}, ""},
		"http without a token": {endpoint.Options{URL: "http://127.0.0.1:9093"}, ""},
		"http with a token":    {endpoint.Options{URL: "http://alertmanager", TokenFile: "f"}, "a token is sent over https only"},
		"nothing":              {endpoint.Options{}, "must begin with https://"},
		"no host":              {endpoint.Options{URL: "https:///path"}, "must begin with https://"},
		"a port alone":         {endpoint.Options{URL: "https://:8443/"}, "must begin with https://"},
		"a port that is none":  {endpoint.Options{URL: "https://here:99999"}, `is "https://here:99999", must have a port from 1 to 65535, or none`},
		"port 0":               {endpoint.Options{URL: "https://here:0"}, "must have a port from 1 to 65535"},
		"another scheme":       {endpoint.Options{URL: "file:///etc/passwd"}, "must begin with https://"},
		"no URL":               {endpoint.Options{URL: "https://a b"}, "must be a URL: "},
		"a password":           {endpoint.Options{URL: "https://u:secret@h"}, "without user"},
		"a query":              {endpoint.Options{URL: "https://h?token=secret"}, "without user, query"},
		"a password, mistyped": {endpoint.Options{URL: "htps://u:secret@h"}, "without user"},
		"no URL, a password":   {endpoint.Options{URL: "https://u:sec ret:secret@h"}, "without user"},
		"no host, a query":     {endpoint.Options{URL: "h/x?token=secret"}, "without user, query"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := endpoint.New(tc.options)
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "secret")):
				t.Errorf("got %v, want %q and no secret", err, tc.want)
			}
		})
	}
}

func TestEveryWayInWhichAServerCanMisbehaveIsAnError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"it is out of order":        {says(500, "oh no\n\n\x1b[31mred\x07"), "answered 500 Internal Server Error: oh no �[31mred�"},
		"it refuses":                {says(401, "<html>who?</html>"), "answered 401 Unauthorized: <html>who?</html>"},
		"it refuses at length":      {says(403, strings.Repeat("x", 1<<21)), "Forbidden: " + strings.Repeat("x", 201) + "…"},
		"it has no words":           {says(502, ""), "answered 502 Bad Gateway"},
		"it has moved":              {moved, "redirects are not followed; this one leads to /elsewhere"},
		"it has not changed":        {says(304, ""), "answered 304"},
		"it talks and talks":        {says(200, strings.Repeat("x", 1001)), "longer than 1000 bytes"},
		"it does not answer":        {silent, "no full answer in time: context deadline exceeded"},
		"it answers drop by drop":   {drips, "no full answer in time: context deadline exceeded"},
		"it breaks off":             {breaksOff, "reading the answer: unexpected EOF"},
		"it hangs up":               {hangsUp, "EOF"},
		"it does not speak HTTP":    {raw("SSH-2.0-x\r\n"), "malformed HTTP"},
		"its header has no end":     {raw("HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 1<<20)), "header"},
		"its length is a lie":       {raw("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort"), "unexpected EOF"},
		"it promises to come later": {later, "answered 429 Too Many Requests"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := serve(t, tc.serve)
			e := made(t, endpoint.Options{URL: server.URL, Timeout: 300 * time.Millisecond, MaxAnswer: 1000})
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

func TestIfOnlyTheStatusMattersNothingElseIsAnError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		serve http.HandlerFunc
		want  string // empty: no error
	}{
		"it talks and talks":      {says(200, strings.Repeat("x", 1001)), ""},
		"it answers drop by drop": {drips, ""},
		"it breaks off":           {breaksOff, ""},
		"it refuses at length":    {says(503, strings.Repeat("x", 1<<21)), "answered 503 Service Unavailable"},
		"it has moved":            {moved, "redirects are not followed"},
		"it does not answer":      {silent, "no full answer in time"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := made(t, endpoint.Options{URL: serve(t, tc.serve).URL, Timeout: 300 * time.Millisecond, MaxAnswer: 1000})
			body, err := e.Do(t.Context(), endpoint.Request{Method: http.MethodPost, StatusOnly: true})
			switch {
			case tc.want == "" && (err != nil || body != nil):
				t.Errorf("got %q, %v", body, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %q, %v; want an error with %q", body, err, tc.want)
			}
		})
	}
}

func says(code int, text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, text)
	}
}

func moved(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/elsewhere" {
		says(200, "stolen")(w, r)
		return
	}
	http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
}

func later(w http.ResponseWriter, _ *http.Request) {
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

func TestAStatusErrorSaysWhenToComeBack(t *testing.T) {
	t.Parallel()
	_, err := made(t, endpoint.Options{URL: serve(t, later).URL}).Do(t.Context(), get)
	var refused *endpoint.StatusError
	if !errors.As(err, &refused) {
		t.Fatal(err)
	}
	if diff := cmp.Diff(endpoint.StatusError{Code: 429, RetryAfter: 7 * time.Second}, *refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
}

func TestNobodyIsThere(t *testing.T) {
	t.Parallel()
	server := serve(t, silent)
	e := made(t, endpoint.Options{URL: server.URL})
	server.Close()
	var first string
	for range 3 { // the text is the same each time, whatever port this end has
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

func TestWhatIsAskedArrives(t *testing.T) {
	t.Parallel()
	var got []string
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = []string{r.Method, r.URL.EscapedPath(), r.URL.Query().Get("q"), r.Header.Get("Content-Type"), r.Header.Get("Authorization"), string(body)}
		says(201, "made")(w, r)
	})
	r := get
	r.Method, r.ContentType, r.Body = http.MethodPost, "application/json", []byte("{}")
	answer, err := made(t, endpoint.Options{URL: server.URL + "/base/", MaxAnswer: 4}).Do(t.Context(), r)
	if err != nil || string(answer) != "made" {
		t.Errorf("answered %q, %v", answer, err)
	}
	want := []string{"POST", "/base/api/a%20b", `x="y"`, "application/json", "", "{}"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

func TestOneConnectionIsUsedAgain(t *testing.T) {
	t.Parallel()
	var opened atomic.Int32
	server := httptest.NewUnstartedServer(says(200, "x"))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			opened.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	e := made(t, endpoint.Options{URL: server.URL})
	for range 10 {
		if _, err := e.Do(t.Context(), get); err != nil {
			t.Fatal(err)
		}
	}
	if got := opened.Load(); got != 1 {
		t.Errorf("%d connections were opened for ten requests", got)
	}
}

func TestTheServerMustBeVouchedForByTheAuthorityThatTheFileNamesNow(t *testing.T) {
	t.Parallel()
	server := httptest.NewTLSServer(says(200, "x"))
	t.Cleanup(server.Close)
	ca := written(t, "nothing")
	e := made(t, endpoint.Options{URL: server.URL, CAFile: ca})
	for _, step := range []struct{ ca, want string }{
		{"nothing", "no certificate in PEM"},
		{authority(server), ""},
		{strings.Replace(authority(server), "BEGIN CERT", "BEGIN CERTX", 1), "no certificate in PEM"},
		{authority(server), ""},
	} {
		rewrite(t, ca, step.ca)
		_, err := e.Do(t.Context(), get)
		if step.want == "" && err != nil || step.want != "" && (err == nil || !strings.Contains(err.Error(), step.want)) {
			t.Errorf("got %v, want %q", err, step.want)
		}
	}
	for name, o := range map[string]endpoint.Options{
		"the system does not know it": {URL: server.URL},
		"the file is missing":         {URL: server.URL, CAFile: ca + "x"},
		"it has another name":         {URL: strings.Replace(server.URL, "127.0.0.1", "localhost", 1), CAFile: ca},
	} {
		if _, err := made(t, o).Do(t.Context(), get); err == nil {
			t.Errorf("%s, and it was believed", name)
		}
	}
}

func TestTheTokenIsTheOneInTheFileNow(t *testing.T) {
	t.Parallel()
	var got string
	server := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header.Get("Authorization") }))
	t.Cleanup(server.Close)
	token := written(t, "first\n")
	e := made(t, endpoint.Options{URL: server.URL, CAFile: written(t, authority(server)), TokenFile: token})
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

func TestATokenThatAServerSaysBackIsNotShown(t *testing.T) {
	t.Parallel()
	for name, echo := range map[string]func(http.ResponseWriter, string){
		"in a refusal": func(w http.ResponseWriter, said string) { http.Error(w, "you said: "+said, http.StatusUnauthorized) },
		"in where a redirect leads to": func(w http.ResponseWriter, said string) {
			w.Header().Set("Location", "/login?you="+said)
			w.WriteHeader(http.StatusFound)
		},
		"in the middle of what is cut off": func(w http.ResponseWriter, said string) {
			http.Error(w, strings.Repeat("x", 185)+said, http.StatusUnauthorized)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { echo(w, r.Header.Get("Authorization")) }))
			t.Cleanup(server.Close)
			e := made(t, endpoint.Options{URL: server.URL, CAFile: written(t, authority(server)), TokenFile: written(t, "sha256~secret")})
			_, err := e.Do(t.Context(), get)
			if err == nil || strings.Contains(err.Error(), "sha256") || !strings.Contains(err.Error(), "Bearer …") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestPrintable(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                        "",
		"  plain \t text\r\n":     "plain text",
		"a\x00b\x1b[2Jc":          "a�b�[2Jc",
		"not \xff UTF-8":          "not � UTF-8",
		"right\u202eto left":      "right�to left",
		"grüße 世界":                "grüße 世界",
		strings.Repeat("é", 5000): strings.Repeat("é", 101) + "…",
	} {
		if got := endpoint.Printable(text); got != want {
			t.Errorf("%q becomes %q, want %q", text, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	f.Add("a\x00b")
	f.Fuzz(func(t *testing.T, text string) {
		got := endpoint.Printable(text)
		if len(got) > 210 || strings.ContainsAny(got, "\x00\n\r\x1b") || got != endpoint.Printable(got) && len(got) < 200 {
			t.Errorf("%q becomes %q", text, got)
		}
	})
}
