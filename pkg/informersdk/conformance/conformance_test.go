// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/conformance"
)

var start = time.Date(2026, 11, 22, 17, 0, 0, 0, time.UTC)

// good returns the insights of a good informer.
func good() []hooksv1alpha.Insight {
	return []hooksv1alpha.Insight{
		{
			UID: "NodeRebooting/worker-0", AcquisitionTime: metav1.NewTime(start.Add(-time.Minute)),
			Scope: updatev1beta1.InsightScope{
				Type:       updatev1beta1.ScopeWorkerPool,
				WorkerPool: []updatev1beta1.ResourceReference{{Kind: "MachineSet", Namespace: "openshift-machine-api", Name: "my-machine-set"}},
				Resources:  []updatev1beta1.ResourceReference{{Kind: "Node", Name: "worker-0"}, {Kind: "Node", Name: "worker-1"}},
			},
			Impact:      updatev1beta1.InsightImpact{Level: updatev1beta1.LevelStatus, Summary: "Node rebooting", Description: "For the\nsecond time."},
			Remediation: updatev1beta1.InsightRemediation{EstimatedFinish: "15m", Reference: "https://docs.redhat.com/openshift"},
		},
		{
			UID: "HighCPU", AcquisitionTime: metav1.NewTime(start.Add(-time.Minute)),
			Scope:       updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
			Impact:      updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning, Type: "api-availability", Summary: "3 nodes have a high load"},
			Remediation: updatev1beta1.InsightRemediation{EstimatedFinish: "2026-11-22T18:00:00Z"},
		},
	}
}

// response is a response of the informer in JSON form, to be modified by test cases.
type response = map[string]any

// informer is a good informer with modifications.
type informer struct {
	find informersdk.Find
	// change modifies each response of updateInsights. The first response has n = 0.
	change func(n int, r response)
	// discovery modifies the discovery response.
	discovery func(r response)
	// handle may respond to a request itself and return true.
	handle func(w http.ResponseWriter, r *http.Request) bool
}

func authorize(_ context.Context, token string) error {
	if token != "token" {
		return informersdk.ErrUnauthenticated
	}
	return nil
}

// serve starts the informer.
func (i *informer) serve(t *testing.T) conformance.Target {
	t.Helper()
	find := i.find
	if find == nil {
		find = func(context.Context, hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) { return good(), nil }
	}
	handler, err := informersdk.NewHandler(informersdk.HandlerOptions{
		UpdateInsights: find, PlanInsights: func(context.Context, hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) { return good(), nil },
		Authorize: authorize, Clock: clocktesting.NewFakePassiveClock(start),
	})
	if err != nil {
		t.Fatal(err)
	}
	var answers atomic.Int32
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if i.handle != nil && i.handle(w, r) {
			return
		}
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, r)
		body := recorder.Body.Bytes()
		switch {
		case recorder.Code == http.StatusOK && r.URL.Path == hooksv1alpha.UpdateInsightsPath && i.change != nil:
			body = edited(body, func(r response) { i.change(int(answers.Add(1))-1, r) })
		case recorder.Code == http.StatusOK && r.URL.Path == hooksv1alpha.DiscoveryPath && i.discovery != nil:
			body = edited(body, i.discovery)
		}
		w.WriteHeader(recorder.Code)
		_, _ = w.Write(body)
	}))
	t.Cleanup(server.Close)
	return conformance.Target{
		URL: server.URL, Token: "token", ServerName: "example.com", Clock: steppedClock{clocktesting.NewFakeClock(start)},
		CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
}

// steppedClock is a clock whose timers fire immediately.
type steppedClock struct{ *clocktesting.FakeClock }

func (c steppedClock) NewTimer(d time.Duration) clock.Timer {
	timer := c.FakeClock.NewTimer(d)
	c.Step(d)
	return timer
}

func edited(body []byte, change func(response)) []byte {
	var r response
	if err := json.Unmarshal(body, &r); err != nil {
		panic(err)
	}
	change(r)
	body, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return body
}

// insights returns the insights in a response.
func insights(r response) []any { return r["spec"].(response)["insights"].([]any) }

// each returns a modification of the first insight in every response. A nil value removes the
// field.
func each(path string, value any) func(int, response) {
	return func(_ int, r response) {
		node := insights(r)[0].(response)
		fields := strings.Split(path, ".")
		for _, field := range fields[:len(fields)-1] {
			node = node[field].(response)
		}
		if node[fields[len(fields)-1]] = value; value == nil {
			delete(node, fields[len(fields)-1])
		}
	}
}

// on returns a handler for a single kind of request.
func on(method, path string, respond http.HandlerFunc) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != method || r.URL.Path != path {
			return false
		}
		respond(w, r)
		return true
	}
}

func with(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// cases maps defects of informers to the checks that find them.
func cases() map[string]struct {
	informer informer
	want     []string
} {
	const status = hooksv1alpha.UpdateInsightsPath
	long := strings.Repeat("x", 5000)
	handlers := func(change func(response)) func(response) {
		return func(r response) { change(r["spec"].(response)["handlers"].([]any)[0].(response)) }
	}
	refs := func(n int) []any {
		var all []any
		for i := range n {
			all = append(all, response{"kind": "Node", "name": strconv.Itoa(i)})
		}
		return all
	}
	type testCase = struct {
		informer informer
		want     []string
	}
	return map[string]testCase{
		"good":                   {},
		"no discovery":           {informer{handle: on("GET", hooksv1alpha.DiscoveryPath, with(404))}, []string{"error discovery"}},
		"redirected discovery":   {informer{handle: on("GET", hooksv1alpha.DiscoveryPath, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusFound) })}, []string{"error discovery"}},
		"discovery in YAML":      {informer{handle: on("GET", hooksv1alpha.DiscoveryPath, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "kind: DiscoveryResponse") })}, []string{"error discovery"}},
		"another level":          {informer{discovery: func(r response) { r["spec"].(response)["apiVersions"] = []any{"v1"} }}, []string{"error discovery"}},
		"kind of discovery":      {informer{discovery: func(r response) { r["kind"] = "Discovery" }}, []string{"error discovery"}},
		"no handlers":            {informer{discovery: func(r response) { r["spec"].(response)["handlers"] = []any{} }}, []string{"error discovery"}},
		"unknown handler":        {informer{discovery: handlers(func(h response) { h["name"] = "updateInsights" })}, []string{"warning discovery"}},
		"method in lower case":   {informer{discovery: handlers(func(h response) { h["methods"] = []any{"GET", "post"} })}, []string{"error methods"}},
		"plan by GET only":       {informer{discovery: handlers(func(h response) { h["name"], h["methods"] = "plan", []any{"GET"} })}, []string{"error discovery", "error methods"}},
		"long timeout":           {informer{discovery: handlers(func(h response) { h["timeoutSeconds"] = 31 })}, []string{"warning times"}},
		"every path answers":     {informer{handle: on("GET", hooksv1alpha.PathPrefix+"unknown", with(200))}, []string{"warning paths"}},
		"discovery is open":      {informer{handle: open(hooksv1alpha.DiscoveryPath)}, []string{"error authentication"}},
		"insights are open":      {informer{handle: open(status)}, []string{"error authentication"}},
		"GET is not implemented": {informer{handle: on("GET", status, with(405))}, []string{"error methods"}},
		"POST breaks":            {informer{handle: on("POST", status, with(500))}, []string{"error methods"}},
		"GET is redirected":      {informer{handle: on("GET", status, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusTemporaryRedirect) })}, []string{"error methods"}},
		"answer of 2 MiB":        {informer{handle: on("GET", status, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 2<<20)) })}, []string{"error methods"}},
		"compressed answer":      {informer{handle: on("GET", status, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "gzip") })}, []string{"error methods"}},
		"answer that is empty":   {informer{handle: on("GET", status, with(200))}, []string{"error response"}},
		"two documents":          {informer{handle: on("GET", status, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}{}") })}, []string{"error response"}},
		"kind of the answer":     {informer{change: func(_ int, r response) { r["kind"] = "Response" }}, []string{"error response"}},
		"unknown response":       {informer{change: func(_ int, r response) { r["status"].(response)["response"] = "OK" }}, []string{"error response"}},
		"fields in another case": {informer{change: each("UID", "a")}, []string{"warning response"}},
		"no uid":                 {informer{change: each("uid", nil)}, []string{"error uids"}},
		"long uid":               {informer{change: each("uid", long)}, []string{"error uids"}},
		"uid twice":              {informer{change: each("uid", "HighCPU")}, []string{"error scopes", "error uids"}},
		"uid with a counter":     {informer{change: func(n int, r response) { insights(r)[0].(response)["uid"] = fmt.Sprint("insight-", n) }}, []string{"error uids"}},
		"counter in the summary": {informer{change: func(n int, r response) {
			insights(r)[0].(response)["impact"].(response)["summary"] = fmt.Sprint(n, " nodes")
		}}, nil},
		"insight that comes": {informer{change: func(n int, r response) { r["spec"].(response)["insights"] = insights(r)[:min(n+1, 2)] }}, nil},
		"scope that changes": {informer{change: func(n int, r response) { insights(r)[0].(response)["scope"].(response)["resources"] = refs(n%2 + 1) }}, []string{"error scopes"}},
		"scope in another order": {informer{change: func(n int, r response) {
			reverse(insights(r)[0].(response)["scope"].(response)["resources"].([]any), n)
		}}, nil},
		"no scope":                {informer{change: each("scope", nil)}, []string{"error scopes"}},
		"unknown scope":           {informer{change: each("scope.type", "Node")}, []string{"error scopes"}},
		"worker pool is missing":  {informer{change: each("scope.workerPool", nil)}, []string{"error scopes"}},
		"worker pool of none":     {informer{change: each("scope.type", "ControlPlane")}, []string{"warning scopes"}},
		"resource without name":   {informer{change: each("scope.resources", []any{response{"kind": "Node"}})}, []string{"error scopes"}},
		"resource without kind":   {informer{change: each("scope.resources", []any{response{"name": "a"}})}, []string{"error scopes"}},
		"17 resources":            {informer{change: each("scope.resources", refs(17))}, []string{"error sizes"}},
		"unknown level":           {informer{change: each("impact.level", "fatal")}, []string{"error levels"}},
		"no level":                {informer{change: each("impact.level", nil)}, []string{"error levels"}},
		"no summary":              {informer{change: each("impact.summary", nil)}, []string{"error texts"}},
		"long summary":            {informer{change: each("impact.summary", long)}, []string{"warning sizes"}},
		"long description":        {informer{change: each("impact.description", long)}, []string{"warning sizes"}},
		"long reason":             {informer{change: each("impact.reason", long)}, []string{"warning sizes"}},
		"two lines in summary":    {informer{change: each("impact.summary", "a\nb")}, []string{"warning texts"}},
		"colors":                  {informer{change: each("impact.description", "\x1b[31mred")}, []string{"warning texts"}},
		"right to left":           {informer{change: each("impact.summary", "a\u202eb")}, []string{"warning texts"}},
		"zero width":              {informer{change: each("impact.summary", "a\u200bb")}, []string{"warning texts"}},
		"reference by http":       {informer{change: each("remediation.reference", "http://example.com")}, []string{"warning texts"}},
		"reference with password": {informer{change: each("remediation.reference", "https://a:b@example.com")}, []string{"warning texts"}},
		"no time":                 {informer{change: each("acquisitionTime", nil)}, []string{"error times", "warning times"}},
		"time in the future":      {informer{change: each("acquisitionTime", "2026-11-22T17:01:01Z")}, []string{"error times"}},
		"time a little ahead":     {informer{change: each("acquisitionTime", "2026-11-22T17:01:00Z")}, nil},
		"old data":                {informer{change: each("acquisitionTime", "2026-11-22T15:00:00Z")}, []string{"warning times"}},
		"time in another form":    {informer{change: each("acquisitionTime", "now")}, []string{"error response"}},
		"finish in another form":  {informer{change: each("remediation.estimatedFinish", "soon")}, []string{"error times"}},
		"finish in the past":      {informer{change: each("remediation.estimatedFinish", "-5m")}, []string{"warning times"}},
		"finish in a year":        {informer{change: each("remediation.estimatedFinish", "8760h")}, []string{"warning times"}},
		"nested 40 levels": {informer{handle: on("GET", status, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInsightsResponse", "x": `+strings.Repeat("[", 40)+strings.Repeat("]", 40)+`}`)
		})}, []string{"error response"}},
		"uid with a time":                     {informer{change: each("uid", "drain-2026-11-22T17:00:00Z")}, []string{"error uids"}},
		"uid with seconds":                    {informer{change: each("uid", "drain/1795366800")}, []string{"error uids"}},
		"uid with milliseconds":               {informer{change: each("uid", "1795366800123")}, []string{"error uids"}},
		"uid with a release":                  {informer{change: each("uid", "risk/4.20.6-202611221700.p0")}, nil},
		"65 insights about the control plane": {informer{change: many(65)}, []string{"warning sizes"}},
		"64 insights about the control plane": {informer{change: many(64)}, nil},
		"handler listed twice": {informer{discovery: func(r response) {
			spec := r["spec"].(response)
			spec["handlers"] = append(spec["handlers"].([]any), spec["handlers"].([]any)[0])
		}}, []string{"error discovery"}},
		"token in a text":         {informer{change: each("impact.description", "request with Bearer abcdefghijklmnopqrstuvw failed")}, []string{"error texts"}},
		"key in a text":           {informer{change: each("impact.summary", "-----BEGIN PRIVATE KEY-----")}, []string{"error texts"}},
		"status 201":              {informer{handle: created(status)}, nil},
		"321 insights":            {informer{change: tooMany}, []string{"error sizes"}},
		"failure":                 {informer{find: failing}, []string{"warning failure"}},
		"bare failure":            {informer{change: func(_ int, r response) { r["spec"], r["status"] = response{}, response{"response": "Failure"} }}, []string{"error failure", "warning failure"}},
		"failure without message": {informer{change: func(_ int, r response) { r["status"] = response{"response": "Failure"} }}, []string{"warning failure"}},
		"endless wait":            {informer{change: func(_ int, r response) { r["status"].(response)["response"] = "Wait" }}, []string{"error wait"}},
		"wait that ends": {informer{change: func(n int, r response) {
			r["status"].(response)["response"] = map[bool]string{true: "Wait", false: "Success"}[n < 3]
		}}, nil},
		"missing body breaks":      {informer{handle: body(func(n int64) bool { return n == 0 }, 500)}, []string{"warning body"}},
		"missing body is rejected": {informer{handle: body(func(n int64) bool { return n == 0 }, 400)}, nil},
		"half a body is fine":      {informer{handle: body(func(n int64) bool { return n > 0 && n < 30 }, 200)}, []string{"warning body"}},
		"long body is fine":        {informer{handle: body(func(n int64) bool { return n > 1<<17 }, 200)}, []string{"warning body"}},
	}
}

func open(path string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		return r.URL.Path == path && r.Header.Get("Authorization") == ""
	}
}

// body returns a handler for status requests, selected by the length of their body.
func body(matches func(int64) bool, code int) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != hooksv1alpha.UpdateInsightsPath || r.Header.Get("Authorization") == "" || !matches(r.ContentLength) {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(code)
		return true
	}
}

func reverse(list []any, n int) {
	if n%2 == 1 {
		list[0], list[1] = list[1], list[0]
	}
}

func tooMany(_ int, r response) {
	all := insights(r)
	for i := range 319 {
		clone := maps.Clone(all[1].(response))
		clone["uid"] = fmt.Sprint("uid-", i)
		all = append(all, clone)
	}
	r["spec"].(response)["insights"] = all
}

// many returns a modification that reports n insights about the control plane.
func many(n int) func(int, response) {
	return func(_ int, r response) {
		var all []any
		for i := range n {
			clone := maps.Clone(insights(r)[1].(response))
			clone["uid"] = fmt.Sprint("node/", i)
			all = append(all, clone)
		}
		r["spec"].(response)["insights"] = all
	}
}

// created responds with status 201 to authorized and valid requests for a path.
func created(path string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != path || r.Header.Get("Authorization") == "" || r.ContentLength < 100 || r.ContentLength > 1000 {
			return false
		}
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInsightsResponse", "status": {"response": "Success"}, "spec": {"insights": []}}`)
		return true
	}
}

func failing(context.Context, hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) {
	return good(), io.ErrUnexpectedEOF
}

func TestRun(t *testing.T) {
	t.Parallel()
	for name, tc := range cases() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := tc.informer.serve(t)
			findings, err := conformance.Run(t.Context(), target)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]bool{}
			for _, f := range findings {
				got[string(f.Level)+" "+f.Check] = true
				if f.Request == "" || f.Problem == "" || f.Change == "" || strings.ContainsAny(f.String(), "\n\x1b\u202e") || len(f.String()) > 1000 {
					t.Errorf("finding %q", f)
				}
			}
			want := map[string]bool{}
			for _, w := range tc.want {
				want[w] = true
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("findings (-want +got):\n%s\n%v", diff, findings)
			}
		})
	}
}

func TestRunChecksTheCertificate(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*conformance.Target){
		"another name": func(target *conformance.Target) { target.ServerName = "another.ns.svc" },
		"unknown CA":   func(target *conformance.Target) { target.CA = nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := (&informer{}).serve(t)
			change(&target)
			findings, err := conformance.Run(t.Context(), target)
			if err != nil || len(findings) != 1 || !strings.Contains(findings[0].Change, "certificate for SERVICE.NAMESPACE.svc") {
				t.Errorf("%v, %v", findings, err)
			}
		})
	}
}

func TestRunRejectsTargets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "http://127.0.0.1", "127.0.0.1:8443", "https://"} {
		if findings, err := conformance.Run(t.Context(), conformance.Target{URL: url}); err == nil {
			t.Errorf("%q: %v", url, findings)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if findings, err := conformance.Run(ctx, (&informer{}).serve(t)); err == nil {
		t.Errorf("after the end of the context: %v", findings)
	}
}

// A response is late if and only if the controller would not wait for it.
func TestRun_waits_as_long_as_the_controller(t *testing.T) {
	t.Parallel()
	for seconds, late := range map[int]bool{1: true, 3: false} {
		t.Run(strconv.Itoa(seconds), func(t *testing.T) {
			t.Parallel()
			slow := &informer{
				discovery: func(r response) {
					r["spec"].(response)["handlers"] = []any{response{"name": "status", "methods": []any{"GET"}, "timeoutSeconds": seconds}}
				},
				handle: func(_ http.ResponseWriter, r *http.Request) bool {
					if r.URL.Path == hooksv1alpha.UpdateInsightsPath && r.ContentLength > 100 && r.ContentLength < 1000 {
						answer, cancel := context.WithTimeout(r.Context(), 1500*time.Millisecond)
						defer cancel()
						<-answer.Done()
					}
					return false
				},
			}
			findings, err := conformance.Run(t.Context(), slow.serve(t))
			if err != nil {
				t.Fatal(err)
			}
			found := slices.ContainsFunc(findings, func(f conformance.Finding) bool {
				return strings.Contains(f.Change, fmt.Sprintf("within %d seconds", seconds))
			})
			if found != late {
				t.Errorf("late: %t, want %t: %v", found, late, findings)
			}
		})
	}
}
