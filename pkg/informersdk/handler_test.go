// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informersdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk"
)

var start = time.Date(2026, 11, 22, 17, 0, 0, 0, time.UTC)

// authorize accepts one token.
func authorize(_ context.Context, token string) error {
	switch token {
	case "valid":
		return nil
	case "other":
		return fmt.Errorf("%w: alice", informersdk.ErrForbidden)
	case "unknown":
		return errors.New("the API server is down")
	}
	return informersdk.ErrUnauthenticated
}

// newHandler returns a handler. change may modify its options.
func newHandler(t *testing.T, find informersdk.Find, change func(*informersdk.HandlerOptions)) http.Handler {
	t.Helper()
	options := informersdk.HandlerOptions{UpdateInsights: find, PlanInsights: find, Authorize: authorize, Clock: clocktesting.NewFakePassiveClock(start)}
	if change != nil {
		change(&options)
	}
	handler, err := informersdk.NewHandler(options)
	if err != nil {
		t.Fatal(err)
	}
	return handler
}

// ask sends a request and returns the response.
func ask(t *testing.T, handler http.Handler, method, path, token, body string) *httptest.ResponseRecorder {
	t.Helper()
	request := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	recorder := httptest.NewRecorder()
	handler.ServeHTTP(recorder, request)
	return recorder
}

func noInsights(context.Context, hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) {
	return nil, nil
}

const (
	statusRequest = `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInsightsRequest", "spec": {"targetControlPlaneVersion": "4.20.6", "new": 1}}`
	planRequest   = `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdatePlanInsightsRequest", "spec": {"targetControlPlaneVersion": "4.20.6"}}`
)

func TestHandlerStatusCodes(t *testing.T) {
	t.Parallel()
	const unknown = "/hooks.config.openshift.io/v1alpha/insights"
	handler := newHandler(t, noInsights, nil)
	for name, tc := range map[string]struct {
		method, path, token, body string
		want                      int
	}{
		"status by GET":                  {"GET", hooksv1alpha.UpdateInsightsPath, "valid", statusRequest, 200},
		"status by POST":                 {"POST", hooksv1alpha.UpdateInsightsPath, "valid", statusRequest, 200},
		"status without body":            {"GET", hooksv1alpha.UpdateInsightsPath, "valid", "", 200},
		"status by PUT":                  {"PUT", hooksv1alpha.UpdateInsightsPath, "valid", statusRequest, 405},
		"status with the body of a plan": {"POST", hooksv1alpha.UpdateInsightsPath, "valid", planRequest, 400},
		"status with a list":             {"POST", hooksv1alpha.UpdateInsightsPath, "valid", "[]", 400},
		"status with two documents":      {"POST", hooksv1alpha.UpdateInsightsPath, "valid", statusRequest + statusRequest, 400},
		"status with half a document":    {"POST", hooksv1alpha.UpdateInsightsPath, "valid", statusRequest[:20], 400},
		"status with an empty object":    {"POST", hooksv1alpha.UpdateInsightsPath, "valid", "{}", 400},
		"status with a long body":        {"POST", hooksv1alpha.UpdateInsightsPath, "valid", strings.Repeat(" ", 64<<10) + statusRequest, 413},
		"status without token":           {"GET", hooksv1alpha.UpdateInsightsPath, "", "", 401},
		"status with another token":      {"GET", hooksv1alpha.UpdateInsightsPath, "stolen", "", 401},
		"status as another user":         {"GET", hooksv1alpha.UpdateInsightsPath, "other", "", 403},
		"status with unknown token":      {"GET", hooksv1alpha.UpdateInsightsPath, "unknown", "", 503},
		"plan by POST":                   {"POST", hooksv1alpha.UpdatePlanInsightsPath, "valid", planRequest, 200},
		"plan by GET":                    {"GET", hooksv1alpha.UpdatePlanInsightsPath, "valid", planRequest, 200},
		"plan without body":              {"POST", hooksv1alpha.UpdatePlanInsightsPath, "valid", "", 400},
		"plan without token":             {"POST", hooksv1alpha.UpdatePlanInsightsPath, "", planRequest, 401},
		"discovery":                      {"GET", hooksv1alpha.DiscoveryPath, "valid", "", 200},
		"discovery without token":        {"GET", hooksv1alpha.DiscoveryPath, "", "", 401},
		"discovery by POST":              {"POST", hooksv1alpha.DiscoveryPath, "valid", "", 405},
		"path in lower case":             {"GET", strings.ToLower(hooksv1alpha.UpdateInsightsPath), "valid", "", 404},
		"unknown path":                   {"GET", unknown, "valid", "", 404},
		"probe":                          {"GET", informersdk.HealthPath, "", "", 200},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if response := ask(t, handler, tc.method, tc.path, tc.token, tc.body); response.Code != tc.want {
				t.Errorf("status %d: %s, want %d", response.Code, response.Body, tc.want)
			}
		})
	}
}

func TestHandlerListsWhatIsImplemented(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*informersdk.HandlerOptions)
		want   []string
	}{
		"both":   {nil, []string{"status", "plan"}},
		"status": {func(o *informersdk.HandlerOptions) { o.PlanInsights = nil }, []string{"status"}},
		"plan":   {func(o *informersdk.HandlerOptions) { o.UpdateInsights = nil }, []string{"plan"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := newHandler(t, noInsights, tc.change)
			var discovery hooksv1alpha.DiscoveryResponse
			decode(t, ask(t, handler, "GET", hooksv1alpha.DiscoveryPath, "valid", ""), &discovery)
			var got []string
			for _, h := range discovery.Spec.Handlers {
				got = append(got, h.Name)
				if diff := cmp.Diff(hooksv1alpha.Handler{Name: h.Name, Methods: []string{"GET", "POST"}, TimeoutSeconds: 8}, h); diff != "" {
					t.Errorf("handler (-want +got):\n%s", diff)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("handlers (-want +got):\n%s", diff)
			}
			if got := ask(t, handler, "POST", hooksv1alpha.UpdatePlanInsightsPath, "valid", planRequest).Code; (got == http.StatusOK) != strings.Contains(strings.Join(tc.want, " "), "plan") {
				t.Errorf("the status of a plan request is %d", got)
			}
		})
	}
}

func TestHandlerNeedsFunctionsAndAuthorization(t *testing.T) {
	t.Parallel()
	for name, options := range map[string]informersdk.HandlerOptions{
		"no function":      {Authorize: authorize},
		"no authorization": {UpdateInsights: noInsights},
	} {
		if handler, err := informersdk.NewHandler(options); err == nil {
			t.Errorf("%s: %v", name, handler)
		}
	}
}

func decode(t *testing.T, response *httptest.ResponseRecorder, into any) {
	t.Helper()
	if response.Code != http.StatusOK || response.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("status %d, type %s: %s", response.Code, response.Header().Get("Content-Type"), response.Body)
	}
	decoder := json.NewDecoder(response.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		t.Fatal(err)
	}
}

// valid returns a valid insight.
func valid(uid string) hooksv1alpha.Insight {
	return hooksv1alpha.Insight{
		UID:   uid,
		Scope: updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane},
		Impact: updatev1beta1.InsightImpact{
			Level: updatev1beta1.LevelWarning, Type: "api-availability", Summary: "High control plane CPU during upgrade",
		},
	}
}

// changed returns a valid insight with a modification.
func changed(uid string, change func(*hooksv1alpha.Insight)) hooksv1alpha.Insight {
	in := valid(uid)
	change(&in)
	return in
}

func TestHandlerAnswers(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("ä", n) }
	refs := make([]updatev1beta1.ResourceReference, hooksv1alpha.MaxReferences+1)
	for name, tc := range map[string]struct {
		insights []hooksv1alpha.Insight
		err      error
		response hooksv1alpha.Response
		message  string   // part of the message
		uids     []string // without the uid of a failure
	}{
		"nothing":             {response: hooksv1alpha.ResponseSuccess},
		"one":                 {insights: []hooksv1alpha.Insight{valid("a")}, response: hooksv1alpha.ResponseSuccess, uids: []string{"a"}},
		"wait":                {err: informersdk.Wait("collecting"), response: hooksv1alpha.ResponseWait, message: "collecting"},
		"wait in an error":    {err: fmt.Errorf("reading metrics: %w", informersdk.Wait("collecting")), response: hooksv1alpha.ResponseWait, message: "collecting"},
		"failure":             {insights: []hooksv1alpha.Insight{valid("a")}, err: errors.New("no database"), response: hooksv1alpha.ResponseFailure, message: "no database", uids: []string{"a"}},
		"empty uid":           {insights: []hooksv1alpha.Insight{valid("a"), valid("")}, response: hooksv1alpha.ResponseFailure, message: "insight 1: the uid is empty", uids: []string{"a"}},
		"uid twice":           {insights: []hooksv1alpha.Insight{valid("a"), valid("a"), valid("b")}, response: hooksv1alpha.ResponseFailure, message: "uid a is used twice", uids: []string{"a", "b"}},
		"long uid":            {insights: []hooksv1alpha.Insight{valid(strings.Repeat("a", 254))}, response: hooksv1alpha.ResponseFailure, message: "more than 253"},
		"unknown level":       {insights: []hooksv1alpha.Insight{changed("a", func(in *hooksv1alpha.Insight) { in.Impact.Level = "fatal" })}, response: hooksv1alpha.ResponseFailure, message: `level "fatal"`},
		"no level":            {insights: []hooksv1alpha.Insight{changed("a", func(in *hooksv1alpha.Insight) { in.Impact.Level = "" })}, response: hooksv1alpha.ResponseFailure, message: `level ""`},
		"no scope":            {insights: []hooksv1alpha.Insight{changed("a", func(in *hooksv1alpha.Insight) { in.Scope.Type = "" })}, response: hooksv1alpha.ResponseFailure, message: `scope type ""`},
		"no summary":          {insights: []hooksv1alpha.Insight{changed("a", func(in *hooksv1alpha.Insight) { in.Impact.Summary = "" })}, response: hooksv1alpha.ResponseFailure, message: "no summary"},
		"long reason":         {insights: []hooksv1alpha.Insight{changed("a", func(in *hooksv1alpha.Insight) { in.Impact.Reason = strings.Repeat("a", 129) })}, response: hooksv1alpha.ResponseFailure, message: "128 bytes"},
		"too many resources":  {insights: []hooksv1alpha.Insight{changed("a", func(in *hooksv1alpha.Insight) { in.Scope.Resources = refs })}, response: hooksv1alpha.ResponseFailure, message: "16 resources"},
		"invalid wait":        {insights: []hooksv1alpha.Insight{valid("")}, err: informersdk.Wait("collecting"), response: hooksv1alpha.ResponseFailure, message: "collecting"},
		"long texts":          {insights: []hooksv1alpha.Insight{changed("a", func(in *hooksv1alpha.Insight) { in.Impact.Summary, in.Impact.Description = long(300), long(3000) })}, response: hooksv1alpha.ResponseSuccess, uids: []string{"a"}},
		"too many insights":   {insights: many(400, 10), response: hooksv1alpha.ResponseFailure, message: "400 insights"},
		"319 insights":        {insights: many(319, 10), response: hooksv1alpha.ResponseSuccess},
		"more than a MiB":     {insights: many(319, 4000), response: hooksv1alpha.ResponseFailure, message: "bytes, more than 1048576: shorten"},
		"a MiB with Failure":  {insights: many(319, 4000), err: errors.New("no database"), response: hooksv1alpha.ResponseFailure, message: "more than 1048576"},
		"message with escape": {err: errors.New("no\n \x1b[31mdatabase\u202e here"), response: hooksv1alpha.ResponseFailure, message: "database"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			handler := newHandler(t, func(context.Context, hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) {
				return tc.insights, tc.err
			}, nil)
			recorder := ask(t, handler, "GET", hooksv1alpha.UpdateInsightsPath, "valid", statusRequest)
			if recorder.Body.Len() > hooksv1alpha.MaxAnswerBytes || strings.ContainsAny(recorder.Body.String(), "\x1b\u202e") {
				t.Errorf("the answer has %d bytes, or control characters", recorder.Body.Len())
			}
			var response hooksv1alpha.UpdateInsightsResponse
			decode(t, recorder, &response)
			if response.APIVersion != hooksv1alpha.APIVersion || response.Kind != hooksv1alpha.UpdateInsightsResponseKind {
				t.Errorf("the answer is %s of %s", response.Kind, response.APIVersion)
			}
			if response.Status.Response != tc.response || !strings.Contains(response.Status.Message, tc.message) {
				t.Errorf("status %v, want %s with %q", response.Status, tc.response, tc.message)
			}
			checkInsights(t, response, tc.uids)
		})
	}
}

func many(n, description int) []hooksv1alpha.Insight {
	var all []hooksv1alpha.Insight
	for i := range n {
		all = append(all, changed(fmt.Sprintf("uid-%d", i), func(in *hooksv1alpha.Insight) { in.Impact.Description = strings.Repeat("x", description) }))
	}
	return all
}

// checkInsights checks the uids, unless there are too many to list, and that a failure is explained
// by an insight.
func checkInsights(t *testing.T, response hooksv1alpha.UpdateInsightsResponse, want []string) {
	t.Helper()
	var got []string
	explained := false
	for _, in := range response.Spec.Insights {
		if in.AcquisitionTime.IsZero() || len(in.Impact.Summary) > 256 || len(in.Impact.Description) > 4096 {
			t.Errorf("insight %s has time %s and texts of %d and %d bytes", in.UID, in.AcquisitionTime, len(in.Impact.Summary), len(in.Impact.Description))
		}
		if in.Impact.Reason == updatev1beta1.ReasonInformerFailed {
			explained = true
			continue
		}
		got = append(got, in.UID)
	}
	if explained != (response.Status.Response == hooksv1alpha.ResponseFailure) {
		t.Errorf("a %s is explained: %t", response.Status.Response, explained)
	}
	if len(got) > 320 {
		t.Errorf("there are %d insights", len(got))
	}
	if diff := cmp.Diff(want, got); diff != "" && len(got) < 10 {
		t.Errorf("uids (-want +got):\n%s", diff)
	}
}

func TestHandlerPassesTheRequest(t *testing.T) {
	t.Parallel()
	var got hooksv1alpha.RequestSpec
	handler := newHandler(t, func(_ context.Context, request hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) {
		got = request
		return nil, nil
	}, nil)
	body := `{"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdatePlanInsightsRequest", "spec": {"clusterID": "a", "controlPlaneVersion": "4.20.5", "targetControlPlaneVersion": "4.20.6", "informerUpdate": true}}`
	var response hooksv1alpha.UpdatePlanInsightsResponse
	decode(t, ask(t, handler, "POST", hooksv1alpha.UpdatePlanInsightsPath, "valid", body), &response)
	want := hooksv1alpha.RequestSpec{ClusterID: "a", ControlPlaneVersion: "4.20.5", TargetControlPlaneVersion: "4.20.6", InformerUpdate: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
	if response.Kind != hooksv1alpha.UpdatePlanInsightsResponseKind {
		t.Errorf("the answer is an %s", response.Kind)
	}
}

func TestHandlerReportsPanics(t *testing.T) {
	t.Parallel()
	handler := newHandler(t, func(context.Context, hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) { panic("secret") }, nil)
	var response hooksv1alpha.UpdateInsightsResponse
	decode(t, ask(t, handler, "GET", hooksv1alpha.UpdateInsightsPath, "valid", ""), &response)
	if response.Status.Response != hooksv1alpha.ResponseFailure || strings.Contains(response.Status.Message, "secret") {
		t.Errorf("status %v, want a failure without details", response.Status)
	}
}

// A request to a hanging function gets a response, and the function occupies only its own slot.
func TestHandlerBoundsFunctionsThatHang(t *testing.T) {
	t.Parallel()
	hang := make(chan struct{})
	called := make(chan struct{}, 2)
	handler := newHandler(t, func(context.Context, hooksv1alpha.RequestSpec) ([]hooksv1alpha.Insight, error) {
		called <- struct{}{}
		<-hang
		return nil, nil
	}, func(o *informersdk.HandlerOptions) { o.Timeout, o.MaxConcurrent = 20*time.Millisecond, 1 })
	var response hooksv1alpha.UpdateInsightsResponse
	decode(t, ask(t, handler, "GET", hooksv1alpha.UpdateInsightsPath, "valid", ""), &response)
	if response.Status.Response != hooksv1alpha.ResponseFailure || !strings.Contains(response.Status.Message, "20ms") {
		t.Errorf("status %v, want a failure", response.Status)
	}
	<-called
	if second := ask(t, handler, "GET", hooksv1alpha.UpdateInsightsPath, "valid", ""); second.Code != http.StatusServiceUnavailable || second.Header().Get("Retry-After") == "" {
		t.Errorf("while the function hangs: status %d: %s", second.Code, second.Body)
	}
	close(hang)
	for ask(t, handler, "GET", hooksv1alpha.UpdateInsightsPath, "valid", "").Code != http.StatusOK {
		if t.Context().Err() != nil {
			t.Fatal("the slot is not released")
		}
	}
}

// The result of a function does not race with its timeout.
func TestHandlerLosesNoAnswer(t *testing.T) {
	t.Parallel()
	handler := newHandler(t, noInsights, nil)
	for range 2000 {
		var response hooksv1alpha.UpdateInsightsResponse
		if decode(t, ask(t, handler, "GET", hooksv1alpha.UpdateInsightsPath, "valid", ""), &response); response.Status.Response != hooksv1alpha.ResponseSuccess {
			t.Fatalf("status %v", response.Status)
		}
	}
}

func FuzzHandlerDecodesRequests(f *testing.F) {
	for _, seed := range []string{"", "{}", "[]", statusRequest, planRequest, strings.Repeat("[", 1000)} {
		f.Add(seed)
	}
	handler, err := informersdk.NewHandler(informersdk.HandlerOptions{UpdateInsights: noInsights, Authorize: authorize})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if code := ask(t, handler, "POST", hooksv1alpha.UpdateInsightsPath, "valid", body).Code; code != 200 && code != 400 && code != 413 {
			t.Errorf("status %d", code)
		}
	})
}
