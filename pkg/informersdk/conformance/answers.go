// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/wire"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// endpoint is a handler of the informer with the properties defined by the protocol.
type endpoint struct {
	path, requestKind, responseKind string
	maxWait                         time.Duration
	methods                         []string
	// timeout limits each response.
	timeout time.Duration
}

func (r *run) endpoint(h hooksv1alpha.Handler) endpoint {
	e := endpoint{hooksv1alpha.UpdateInsightsPath, hooksv1alpha.UpdateInsightsRequestKind, hooksv1alpha.UpdateInsightsResponseKind, statusWait, []string{http.MethodGet}, defaultCallTimeout}
	if h.Name == hooksv1alpha.HandlerPlan {
		e = endpoint{hooksv1alpha.UpdatePlanInsightsPath, hooksv1alpha.UpdatePlanInsightsRequestKind, hooksv1alpha.UpdatePlanInsightsResponseKind, planWait, []string{http.MethodPost}, defaultCallTimeout}
	}
	e.maxWait = cmp.Or(r.target.MaxWait, e.maxWait)
	if h.TimeoutSeconds > 0 {
		e.timeout = min(time.Duration(h.TimeoutSeconds)*time.Second, maxCallTimeout)
	}
	if len(h.Methods) > 0 {
		e.methods = slices.DeleteFunc(slices.Clone(h.Methods), func(m string) bool { return m != http.MethodGet && m != http.MethodPost })
	}
	return e
}

// answerInterval is the time between two compared responses. It is long enough for a time in a uid
// to change.
const answerInterval = 1100 * time.Millisecond

// checkHandler checks the responses of a handler: two per method, and those to missing or invalid
// bodies.
func (r *run) checkHandler(ctx context.Context, h hooksv1alpha.Handler) {
	e := r.endpoint(h)
	var previous []hooksv1alpha.Insight
	var answered string // the method of the previous response
	for _, method := range e.methods {
		for range 2 {
			if answered != "" && !r.sleep(ctx, answerInterval) {
				return
			}
			insights, complete := r.ask(ctx, e, method)
			if !complete {
				break
			}
			if answered != "" {
				r.compare(method+" "+e.path, previous, insights)
			}
			previous, answered = insights, method
		}
	}
	if answered == "" {
		return
	}
	r.checkBodies(ctx, e, answered)
	if r.target.Token == "" {
		return
	}
	request := answered + " " + e.path + " without a token"
	if _, err := r.send(ctx, r.anonymous, e.timeout, answered, e.path, r.requestBody(e.requestKind)); code(err) != http.StatusUnauthorized && code(err) != http.StatusForbidden {
		r.report(Error, CheckAuthentication, request, "the answer is "+outcome(err), "Check the token on each path")
	}
}

// ask requests insights until the response is not Wait. It reports whether the response is complete
// and valid enough for a comparison.
func (r *run) ask(ctx context.Context, e endpoint, method string) ([]hooksv1alpha.Insight, bool) {
	request := method + " " + e.path
	deadline := r.clock.Now().Add(e.maxWait)
	for {
		body, err := r.send(ctx, r.client, e.timeout, method, e.path, r.requestBody(e.requestKind))
		if err != nil {
			r.report(Error, CheckMethods, request, text.Excerpt(err.Error()), fmt.Sprintf("Answer each listed method with status 200 and %s within %d seconds, in at most 1 MiB, uncompressed", e.responseKind, int(e.timeout/time.Second)))
			return nil, false
		}
		status, insights, err := wire.DecodeInsights(e.responseKind, body)
		if err != nil {
			r.report(Error, CheckResponse, request, text.Excerpt(err.Error()), "Encode the answer as the OpenAPI document of the protocol describes")
			return nil, false
		}
		r.checkFields(CheckResponse, request, body, &hooksv1alpha.UpdateInsightsResponse{})
		r.checkInsights(request, insights)
		switch status.Response {
		case hooksv1alpha.ResponseSuccess:
			return insights, true
		case hooksv1alpha.ResponseFailure:
			r.checkFailure(request, status, insights)
			return nil, false
		case hooksv1alpha.ResponseWait:
		}
		if r.clock.Now().Add(waitRetry).After(deadline) {
			r.report(Error, CheckWait, request, fmt.Sprintf("the answer is still Wait after %s", e.maxWait), "Answer with the data that there is, or with Failure and an insight that explains it")
			return nil, false
		}
		if !r.sleep(ctx, waitRetry) {
			return nil, false
		}
	}
}

func (r *run) sleep(ctx context.Context, d time.Duration) bool {
	timer := r.clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

func (r *run) checkFailure(request string, status hooksv1alpha.ResponseStatus, insights []hooksv1alpha.Insight) {
	problem := "the answer is Failure: " + status.Message
	r.report(Warning, CheckFailure, request, problem, "Repair what the informer depends on, and check it again: uids and scopes were not compared")
	if len(insights) == 0 && status.Message == "" {
		r.report(Error, CheckFailure, request, "the Failure has neither an insight nor a message", "Add an insight that explains the problem to spec.insights")
	}
}

// compare checks that insights keep their uid and scope between two responses.
func (r *run) compare(request string, previous, current []hooksv1alpha.Insight) {
	var gone []hooksv1alpha.Insight
	for _, in := range previous {
		i := slices.IndexFunc(current, func(c hooksv1alpha.Insight) bool { return c.UID == in.UID })
		switch {
		case i < 0:
			gone = append(gone, in)
		case scopeKey(in.Scope) != scopeKey(current[i].Scope):
			r.report(Error, CheckScopes, request, fmt.Sprintf("the scope of uid %s changed between two answers", text.Excerpt(in.UID)), "Use another uid if the scope differs: the scope is a part of the identity")
		}
	}
	for _, in := range current {
		if slices.ContainsFunc(previous, func(p hooksv1alpha.Insight) bool { return p.UID == in.UID }) {
			continue
		}
		same := func(p hooksv1alpha.Insight) bool {
			return scopeKey(p.Scope) == scopeKey(in.Scope) && p.Impact.Reason == in.Impact.Reason && p.Impact.Type == in.Impact.Type && withoutDigits(p.Impact.Summary) == withoutDigits(in.Impact.Summary)
		}
		if i := slices.IndexFunc(gone, same); i >= 0 {
			r.report(Error, CheckUIDs, request, fmt.Sprintf("an insight had uid %s, and then %s", text.Excerpt(gone[i].UID), text.Excerpt(in.UID)), "Derive the uid from what is wrong and with which object, never from a time, a count, or an index")
		}
	}
}

// scopeKey returns a string that is equal for equal scopes, regardless of order.
func scopeKey(scope updatev1beta1.InsightScope) string {
	sorted := func(refs []updatev1beta1.ResourceReference) []string {
		var all []string
		for _, ref := range refs {
			all = append(all, fmt.Sprintf("%q", ref))
		}
		slices.Sort(all)
		return all
	}
	return fmt.Sprint(scope.Type, sorted(scope.WorkerPool), sorted(scope.Resources))
}

func withoutDigits(s string) string {
	return strings.Map(func(c rune) rune {
		if c >= '0' && c <= '9' {
			return -1
		}
		return c
	}, s)
}

// longBody is the length, in bytes, of a body that no informer should accept.
const longBody = 256 << 10

// checkBodies checks the responses to requests whose body is missing, not JSON, or too long. The
// informer must respond and keep working.
func (r *run) checkBodies(ctx context.Context, e endpoint, method string) {
	for _, tc := range []struct {
		name   string
		body   []byte
		valid  []int // accepted status codes; 0 is a success
		change string
	}{
		{"without a body", nil, []int{0, http.StatusBadRequest}, "Answer with what is known without the release, or with 400: proxies may drop the body of a GET"},
		{"with half a body", []byte(`{"apiVersion": "config`), []int{http.StatusBadRequest}, "Answer 400 to a body that is no JSON document"},
		{"with a body of 256 KiB", bytes.Repeat([]byte(" "), longBody), []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge}, "Read at most 64 KiB of a body, and answer 413 to a longer one"},
	} {
		_, err := r.send(ctx, r.client, e.timeout, method, e.path, tc.body)
		var got int
		if err != nil {
			got = cmp.Or(code(err), -1)
		}
		if got == -1 && len(tc.body) == longBody && !errors.Is(err, context.DeadlineExceeded) {
			continue // the informer closed the connection before reading everything
		}
		if !slices.Contains(tc.valid, got) {
			r.report(Warning, CheckBody, method+" "+e.path+" "+tc.name, "the answer is "+outcome(err), tc.change)
		}
	}
}
