// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"net/http/httptest"
	"sync"
)

// HTTPFault is the outcome of a request to a server other than the API server.
type HTTPFault int

// Outcomes of a request.
const (
	// HTTPServe serves the request.
	HTTPServe HTTPFault = iota
	// HTTPRefuse responds with 503 Service Unavailable and changes nothing.
	HTTPRefuse
	// HTTPLoseRequest closes the connection and changes nothing.
	HTTPLoseRequest
	// HTTPLoseAnswer serves the request and closes the connection.
	HTTPLoseAnswer
	// HTTPReplaceAnswer serves the request but responds with 502 Bad Gateway.
	HTTPReplaceAnswer
)

// HTTPPlan determines the outcome of each request, counted from 1.
type HTTPPlan func(request int) HTTPFault

// FaultyHandler serves requests according to a plan and counts them. It is safe for concurrent use.
type FaultyHandler struct {
	// Handler serves the requests.
	Handler http.Handler

	mu       sync.Mutex
	plan     HTTPPlan
	requests int
}

// SetPlan sets the plan for all further requests and returns the previous plan. A nil plan serves
// all requests.
func (f *FaultyHandler) SetPlan(plan HTTPPlan) HTTPPlan {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.plan
	f.plan = plan
	return before
}

// ResetRequests sets the number of requests to n and returns the previous number.
func (f *FaultyHandler) ResetRequests(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.requests
	f.requests = n
	return before
}

// ServeHTTP serves a request.
func (f *FaultyHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch f.next() {
	case HTTPServe:
		f.Handler.ServeHTTP(w, r)
	case HTTPRefuse:
		w.WriteHeader(http.StatusServiceUnavailable)
	case HTTPLoseRequest:
		panic(http.ErrAbortHandler)
	case HTTPLoseAnswer:
		f.Handler.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	case HTTPReplaceAnswer:
		f.Handler.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusBadGateway)
	}
}

// next counts a request and returns its fault.
func (f *FaultyHandler) next() HTTPFault {
	f.mu.Lock()
	f.requests++
	plan, n := f.plan, f.requests
	f.mu.Unlock()
	if plan == nil {
		return HTTPServe
	}
	return plan(n)
}
