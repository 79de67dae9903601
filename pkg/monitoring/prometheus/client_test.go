// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// respondJSON responds with a JSON body.
func respondJSON(body string) http.HandlerFunc {
	return respond(http.StatusOK, "application/json", body)
}

func respond(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

const emptyResult = `{"status":"success","data":{"resultType":"vector","result":[]}}`

// firingResponse returns a response with alerts, each defined by its labels.
func firingResponse(alerts ...map[string]string) string {
	type sample struct {
		Metric map[string]string `json:"metric"`
		Value  [2]any            `json:"value"`
	}
	samples := []sample{}
	for _, labels := range alerts {
		samples = append(samples, sample{labels, [2]any{1600000000.5, "1"}})
	}
	data, err := json.Marshal(map[string]any{"status": "success", "data": map[string]any{"resultType": "vector", "result": samples}})
	if err != nil {
		panic(err)
	}
	return string(data)
}

func alert(name, namespace string) map[string]string {
	return map[string]string{"__name__": "ALERTS", "alertname": name, "namespace": namespace, "severity": "critical"}
}

// serve starts an HTTPS server and returns client options for it.
func serve(tb testing.TB, handler http.Handler) prometheus.Options {
	tb.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // a server notices that its client has disconnected once it has read the request
		handler.ServeHTTP(w, r)
	}))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	tb.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return prometheus.Options{HTTPClient: httpclient.Options{URL: server.URL, CAFile: file(tb, string(authority)), TokenFile: file(tb, "token\n"), Timeout: time.Minute}}
}

func file(tb testing.TB, content string) string {
	tb.Helper()
	name := filepath.Join(tb.TempDir(), "file")
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	return name
}

func criticalAlerts(tb testing.TB, o prometheus.Options) ([]clusterstate.Alert, error) {
	tb.Helper()
	p, err := prometheus.New(o)
	if err != nil {
		tb.Fatal(err)
	}
	return p.CriticalAlerts(tb.Context())
}

func TestCriticalAlerts(t *testing.T) {
	t.Parallel()
	pending := func(labels map[string]string) map[string]string {
		labels["alertstate"] = "pending"
		return labels
	}
	cases := map[string]struct {
		answer   string
		watchdog string
		want     []clusterstate.Alert
	}{
		"nothing is firing": {answer: emptyResult},
		"infos are no warnings": {
			answer: `{"status":"success","infos":["a remark"],"data":{"resultType":"vector","result":[]}}`,
		},
		"alerts are sorted, each once": {
			answer: firingResponse(alert("B", "y"), alert("B", "x"), alert("A", "z"), alert("B", "x"), map[string]string{"alertname": "C"}),
			want:   []clusterstate.Alert{{Name: "A", Namespace: "z", Severity: "critical", Firing: true}, {Name: "B", Namespace: "x", Severity: "critical", Firing: true}, {Name: "B", Namespace: "y", Severity: "critical", Firing: true}, {Name: "C", Severity: "critical", Firing: true}},
		},
		"an alert is pending for one pod and firing for another": {
			answer: firingResponse(pending(alert("A", "x")), alert("A", "x")),
			want:   []clusterstate.Alert{{Name: "A", Namespace: "x", Severity: "critical", Firing: true}, {Name: "A", Namespace: "x", Severity: "critical"}},
		},
		"an alert without a name counts, too": {
			answer: firingResponse(map[string]string{"severity": "critical"}),
			want:   []clusterstate.Alert{{Severity: "critical", Firing: true}},
		},
		"an alert that is named like the missing watchdog is one": {
			answer: firingResponse(map[string]string{"alertname": ""}),
			want:   []clusterstate.Alert{{Severity: "critical", Firing: true}},
		},
		"the watchdog is firing and nothing else": {
			answer: firingResponse(alert("Watchdog", "openshift-monitoring")), watchdog: "Watchdog",
		},
		"the watchdog is firing and something else": {
			answer: firingResponse(alert("Watchdog", "openshift-monitoring"), alert("A", "x")), watchdog: "Watchdog",
			want: []clusterstate.Alert{{Name: "A", Namespace: "x", Severity: "critical", Firing: true}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := serve(t, respondJSON(tc.answer))
			o.Watchdog = tc.watchdog
			got, err := criticalAlerts(t, o)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(append([]clusterstate.Alert{}, tc.want...), got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCriticalAlerts_returns_an_error_unless_the_response_is_complete(t *testing.T) {
	t.Parallel()
	junk, blank := file(t, "a\r\nb"), file(t, " \n")
	hang := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	cases := map[string]struct {
		answer http.HandlerFunc
		spoil  func(*prometheus.Options)
		want   string
	}{
		"a server error":                  {answer: respond(500, "text/plain", "oops"), want: "responded 500 Internal Server Error"},
		"it is unavailable":               {answer: respond(503, "text/html", "<html>"), want: "responded 503 Service Unavailable"},
		"a server error with a success":   {answer: respond(500, "application/json", emptyResult), want: "responded 500 Internal Server Error"},
		"the query is refused":            {answer: respond(400, "application/json", `{"status":"error","errorType":"bad_data","error":"parse error"}`), want: `responded 400 Bad Request: {"status":"error","errorType":"bad_data","error":"parse error"}`},
		"the query cannot be evaluated":   {answer: respond(422, "application/json", `{"status":"error","errorType":"execution","error":"too many\u0000\n samples"}`), want: `responded 422 Unprocessable Entity: {"status":"error"`},
		"a refusal with a success":        {answer: respond(400, "application/json", emptyResult), want: "responded 400 Bad Request"},
		"the token is not accepted":       {answer: respond(401, "text/plain", "Unauthorized"), want: "responded 401 Unauthorized"},
		"the account may not ask":         {answer: respond(403, "text/plain", "Forbidden"), want: "responded 403 Forbidden"},
		"the address is wrong":            {answer: respond(404, "text/plain", "404 page not found"), want: "responded 404 Not Found"},
		"the method is refused":           {answer: respond(405, "text/plain", ""), want: "responded 405 Method Not Allowed"},
		"too many requests":               {answer: respond(429, "application/json", emptyResult), want: "responded 429 Too Many Requests"},
		"no content":                      {answer: respond(204, "application/json", ""), want: "the response is not JSON: unexpected end"},
		"an error with code 200":          {answer: respondJSON(`{"status":"error","errorType":"timeout","error":"query\u0007 timed out"}`), want: "the response has status \"error\": query timed out"},
		"an error with data":              {answer: respondJSON(`{"status":"error","data":{"resultType":"vector","result":[]}}`), want: `the response has status "error"`},
		"an unknown status":               {answer: respondJSON(`{"status":"partial","data":{"resultType":"vector","result":[]}}`), want: `the response has status "partial"`},
		"no status":                       {answer: respondJSON(`{"data":{"resultType":"vector","result":[]}}`), want: `the response has status ""`},
		"a status that is none":           {answer: respondJSON(`{"status":1,"data":{"resultType":"vector","result":[]}}`), want: "the response is not JSON"},
		"HTML":                            {answer: respond(200, "text/html", "<html>Sign in</html>"), want: "the response is not JSON: invalid character '<'"},
		"nothing":                         {answer: respondJSON(""), want: "the response is not JSON: unexpected end of JSON input"},
		"null":                            {answer: respondJSON("null"), want: `the response has status ""`},
		"a list":                          {answer: respondJSON("[]"), want: "the response is not JSON"},
		"truncated JSON":                  {answer: respondJSON(emptyResult[:len(emptyResult)-3]), want: "the response is not JSON: unexpected end of JSON input"},
		"more after the JSON":             {answer: respondJSON(emptyResult + emptyResult), want: "the response is not JSON"},
		"no data":                         {answer: respondJSON(`{"status":"success"}`), want: "the response is not a vector"},
		"data that is null":               {answer: respondJSON(`{"status":"success","data":null}`), want: "the response is not a vector"},
		"no type":                         {answer: respondJSON(`{"status":"success","data":{"result":[]}}`), want: "the response is malformed: unexpected value type"},
		"an unknown type":                 {answer: respondJSON(`{"status":"success","data":{"resultType":"streams","result":[]}}`), want: "the response is malformed"},
		"a scalar":                        {answer: respondJSON(`{"status":"success","data":{"resultType":"scalar","result":[1,"0"]}}`), want: "the response is not a vector"},
		"a matrix":                        {answer: respondJSON(`{"status":"success","data":{"resultType":"matrix","result":[]}}`), want: "the response is not a vector"},
		"a string":                        {answer: respondJSON(`{"status":"success","data":{"resultType":"string","result":[1,"none"]}}`), want: "the response is malformed"},
		"no result":                       {answer: respondJSON(`{"status":"success","data":{"resultType":"vector"}}`), want: "the response is malformed"},
		"a result that is null":           {answer: respondJSON(`{"status":"success","data":{"resultType":"vector","result":null}}`), want: "the response is not a vector"},
		"a result that is an object":      {answer: respondJSON(`{"status":"success","data":{"resultType":"vector","result":{}}}`), want: "the response is malformed"},
		"a sample that is null":           {answer: respondJSON(`{"status":"success","data":{"resultType":"vector","result":[null]}}`), want: "the response has a sample that is null"},
		"a label that is none":            {answer: respondJSON(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{"alertname":1},"value":[1,"1"]}]}}`), want: "the response is malformed"},
		"a warning":                       {answer: respondJSON(`{"status":"success","warnings":["a store is \u0007gone","and another"],"data":{"resultType":"vector","result":[]}}`), want: "the response has warnings: a store is gone; and another"},
		"a huge body":                     {answer: respondJSON(`{"status":"success","data":{"resultType":"vector","result":[` + strings.Repeat(" ", 4<<20) + `]}}`), want: "the response is longer than 4194304 bytes"},
		"a body without an end":           {answer: endless, want: "the response is longer than 4194304 bytes"},
		"huge headers":                    {answer: hugeHeaders, want: "server response headers exceeded"},
		"a long error":                    {answer: respond(400, "application/json", `{"status":"error","error":"`+strings.Repeat("x", 1<<20)+`"}`), want: strings.Repeat("x", 150)},
		"a body that ends too soon":       {answer: breaksOff, want: "unexpected EOF"},
		"the connection is closed":        {answer: closes, want: "EOF"},
		"it does not speak HTTP":          {answer: babbles, want: "malformed HTTP"},
		"a redirect":                      {answer: redirects(http.StatusFound), want: "responded 302 Found"},
		"a redirect that keeps the query": {answer: redirects(http.StatusTemporaryRedirect), want: "responded 307 Temporary Redirect"},
		"no answer":                       {answer: hang, spoil: shortTimeout, want: "no complete response in time"},
		"a slow drip":                     {answer: drips, spoil: shortTimeout, want: "no complete response in time"},
		"certificate of another CA":       {answer: respondJSON(emptyResult), spoil: untrusted, want: "certificate"},
		"no authorities":                  {answer: respondJSON(emptyResult), spoil: func(o *prometheus.Options) { o.HTTPClient.CAFile += "s" }, want: "reading the CA certificates: open "},
		"authorities that are none":       {answer: respondJSON(emptyResult), spoil: func(o *prometheus.Options) { o.HTTPClient.CAFile = junk }, want: "does not hold a PEM certificate"},
		"no token":                        {answer: respondJSON(emptyResult), spoil: func(o *prometheus.Options) { o.HTTPClient.TokenFile += "s" }, want: "reading the token: open "},
		"an empty token":                  {answer: respondJSON(emptyResult), spoil: func(o *prometheus.Options) { o.HTTPClient.TokenFile = blank }, want: "the token file does not hold a valid token"},
		"a token that is none":            {answer: respondJSON(emptyResult), spoil: func(o *prometheus.Options) { o.HTTPClient.TokenFile = junk }, want: "the token file does not hold a valid token"},
		"closed port":                     {answer: respondJSON(emptyResult), spoil: unreachable, want: "connection refused"},
		"unknown host":                    {answer: respondJSON(emptyResult), spoil: func(o *prometheus.Options) { o.HTTPClient.URL = "https://prometheus.invalid" }, want: "prometheus.invalid"},
		"the watchdog is not firing": {
			answer: respondJSON(firingResponse(alert("A", "x"))), spoil: func(o *prometheus.Options) { o.Watchdog = "Watchdog" },
			want: "where rules are evaluated, is not firing",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var requests atomic.Int32
			o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				requests.Add(1)
				tc.answer(w, r)
			}))
			if tc.spoil != nil {
				tc.spoil(&o)
			}
			alerts, err := criticalAlerts(t, o)
			if err == nil || alerts != nil {
				t.Fatalf("got %v, %v", alerts, err)
			}
			if text := err.Error(); !strings.Contains(text, tc.want) || !strings.HasPrefix(text, "querying Prometheus for alerts: ") || len(text) > 1024 || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("got %q, want %q, at most 1024 bytes and no control characters", text, tc.want)
			}
			if strings.Contains(err.Error(), "token\n") || requests.Load() > 1 {
				t.Errorf("%d requests: %v", requests.Load(), err)
			}
		})
	}
}

func shortTimeout(o *prometheus.Options) { o.HTTPClient.Timeout = 300 * time.Millisecond }

func unreachable(o *prometheus.Options) {
	server := httptest.NewTLSServer(nil)
	server.Close()
	o.HTTPClient.URL = server.URL
}

// untrusted makes the client distrust the server's certificate.
func untrusted(o *prometheus.Options) { o.HTTPClient.CAFile = "" }

// drips sends one byte from time to time, but never the last one.
func drips(w http.ResponseWriter, r *http.Request) {
	for {
		if _, err := io.WriteString(w, " "); err != nil {
			return
		}
		_ = http.NewResponseController(w).Flush()
		pause, cancel := context.WithTimeout(r.Context(), 20*time.Millisecond)
		<-pause.Done()
		cancel()
	}
}

func endless(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":["`)
	for {
		if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
			return
		}
	}
}

func hugeHeaders(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Huge", strings.Repeat("x", 1<<20))
	_, _ = io.WriteString(w, emptyResult)
}

func breaksOff(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Length", "1000")
	_, _ = io.WriteString(w, emptyResult)
}

func closes(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_ = connection.Close()
	}
}

func babbles(w http.ResponseWriter, _ *http.Request) {
	connection, _, err := http.NewResponseController(w).Hijack()
	if err == nil {
		_, _ = io.WriteString(connection, "\x00\x1b[2Jhello\r\n\r\n")
		_ = connection.Close()
	}
}

// redirects returns a handler that redirects the query to a path with no firing alerts.
func redirects(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/elsewhere" {
			respondJSON(emptyResult)(w, r)
			return
		}
		http.Redirect(w, r, "/elsewhere", code)
	}
}

// Otherwise, every attempt would save the record.
func TestErrors_are_stable(t *testing.T) {
	t.Parallel()
	o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		connection, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		if secure, ok := connection.(*tls.Conn); ok {
			_ = secure.NetConn().(*net.TCPConn).SetLinger(0) // reset it
			_ = secure.NetConn().Close()
		}
	}))
	_, first := criticalAlerts(t, o)
	_, second := criticalAlerts(t, o)
	if first == nil || second == nil || first.Error() != second.Error() || !strings.Contains(first.Error(), "connection reset by peer") {
		t.Errorf("got %v, then %v", first, second)
	}
}

func TestCriticalAlerts_request(t *testing.T) {
	t.Parallel()
	const query = `up{job="a&b=c"}`
	type request struct{ Method, Path, Query, Token string }
	var got []request
	o := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, request{r.Method, r.URL.Path, r.FormValue("query"), r.Header.Get("Authorization")})
		respondJSON(emptyResult)(w, r)
	}))
	o.HTTPClient.URL += "/prefix/"
	p, err := prometheus.New(o)
	if err != nil {
		t.Fatal(err)
	}
	// The token changes between queries.
	for _, token := range []string{"first", "second\n"} {
		if err := os.WriteFile(o.HTTPClient.TokenFile, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := p.HasSamples(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	want := []request{
		{"POST", "/prefix/api/v1/query", "count(\n" + query + "\n)", "Bearer first"},
		{"POST", "/prefix/api/v1/query", "count(\n" + query + "\n)", "Bearer second"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// While the operator is running, first the CAs and then the server's certificate change.
func TestCAs_are_read_for_each_connection(t *testing.T) {
	t.Parallel()
	o := serve(t, respondJSON(emptyResult))
	right, err := os.ReadFile(o.HTTPClient.CAFile)
	if err != nil {
		t.Fatal(err)
	}
	o.HTTPClient.CAFile = file(t, "none")
	p, err := prometheus.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.CriticalAlerts(t.Context()); err == nil {
		t.Fatal("it was trusted without an authority")
	}
	if err := os.WriteFile(o.HTTPClient.CAFile, right, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.CriticalAlerts(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestCriticalAlerts_reuses_one_connection(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]http.HandlerFunc{
		"answers":  respondJSON(firingResponse(alert("A", "x"))),
		"errors":   respond(503, "text/html", strings.Repeat("x", 1<<20)),
		"refusals": redirects(http.StatusFound),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var opened atomic.Int32
			server := httptest.NewUnstartedServer(answer)
			server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					opened.Add(1)
				}
			}
			server.Start()
			t.Cleanup(server.Close)
			p, err := prometheus.New(prometheus.Options{HTTPClient: httpclient.Options{URL: server.URL, Timeout: time.Minute}})
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				_, _ = p.CriticalAlerts(t.Context())
			}
			if opened.Load() != 1 {
				t.Errorf("%d connections were opened", opened.Load())
			}
		})
	}
}

func TestProxy_of_the_environment_is_not_used(t *testing.T) {
	proxy := httptest.NewServer(respondJSON(emptyResult))
	t.Cleanup(proxy.Close)
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	if alerts, err := criticalAlerts(t, prometheus.Options{HTTPClient: httpclient.Options{URL: "http://prometheus.invalid", Timeout: time.Minute}}); err == nil {
		t.Errorf("the proxy was used, and returned %v", alerts)
	}
}

func TestCriticalAlerts_that_is_cancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	}))
	p, err := prometheus.New(o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.CriticalAlerts(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestNew_rejects_invalid_options(t *testing.T) {
	t.Parallel()
	at := httpclient.Options{URL: "https://prometheus:9090"}
	cases := map[string]struct {
		options prometheus.Options
		want    string // empty if accepted
	}{
		"these are good": {prometheus.Options{HTTPClient: at}, ""},
		"no URL":         {prometheus.Options{}, `the URL of Prometheus is "", must begin with https://`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := prometheus.New(tc.options)
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

// Only complete responses that report success count as healthy.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		emptyResult, firingResponse(alert("A", "x")), firingResponse(alert("Watchdog", "x")), "null", "{}", `{"status":"error"}`, emptyResult[:40],
		`{"status":"success","data":{"resultType":"vector","result":null}}`,
		`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"histogram":[1,{"count":"1","sum":"1","buckets":[[0,"1","2","3"]]}]}]}}`,
		`{"status":"success","data":{"resultType":"scalar","result":[1,"0"]}}`,
		`{"status":"success","warnings":["x"],"data":{"resultType":"vector","result":[]}}`,
		`{"status":"error","STATUS":"success","data":{"resultType":"vector","result":[]}}`,
	} {
		f.Add(200, body)
		f.Add(500, body)
	}
	var code int
	var body string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		respond(code, "application/json", body)(w, r)
	}))
	f.Cleanup(server.Close)
	p, err := prometheus.New(prometheus.Options{HTTPClient: httpclient.Options{URL: server.URL, Timeout: time.Minute}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, status int, text string) {
		if status < 200 || status > 999 {
			t.Skip()
		}
		code, body = status, text
		alerts, err := p.CriticalAlerts(t.Context())
		if err != nil {
			if text := err.Error(); alerts != nil || len(text) > 1024 || strings.ContainsFunc(text, unicode.IsControl) {
				t.Errorf("got %v, %q", alerts, text)
			}
			return
		}
		var answer struct {
			Status   string
			Warnings []string
			Data     struct {
				ResultType string
				Result     []json.RawMessage
			}
		}
		if err := json.Unmarshal([]byte(text), &answer); err != nil || status > 299 || answer.Status != "success" ||
			answer.Data.ResultType != "vector" || answer.Data.Result == nil || len(answer.Warnings) > 0 {
			t.Errorf("%v was accepted from %d %q, %v", alerts, status, text, err)
		}
		if len(alerts) > len(answer.Data.Result) || (len(alerts) == 0) != (len(answer.Data.Result) == 0) {
			t.Errorf("%v was made of %q", alerts, text)
		}
	})
}

func TestHasSamples(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer string
		want   bool
		fails  string
	}{
		"no sample": {answer: emptyResult},
		"a sample":  {answer: firingResponse(alert("A", "x")), want: true},
		"a scalar":  {answer: `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`, fails: "the response is not a vector"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := prometheus.New(serve(t, respondJSON(tc.answer)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.HasSamples(t.Context(), "vector(1)")
			if got != tc.want || (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("got %t, %v", got, err)
			}
		})
	}
}

// The response is a single sample, no matter how many series an expression selects.
func TestHasSamples_of_very_many_series(t *testing.T) {
	t.Parallel()
	series := make([]map[string]string, 100_000)
	for i := range series {
		series[i] = alert("A", strconv.Itoa(i))
	}
	all, one := respondJSON(firingResponse(series...)), respondJSON(firingResponse(nil))
	p, err := prometheus.New(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.FormValue("query"), "count(") {
			one(w, r)
		} else {
			all(w, r)
		}
	})))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := p.HasSamples(t.Context(), `{__name__=~".+"}`); !got || err != nil {
		t.Errorf("got %t, %v", got, err)
	}
}
