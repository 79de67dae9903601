// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"net/http"
	"net/http/httptest"
	"sync"
)

// HTTPFault describes what becomes of a request to a server other than the API server.
type HTTPFault int

// The faults.
const (
	// HTTPServe serves the request.
	HTTPServe HTTPFault = iota
	// HTTPRefuse answers 503 Service Unavailable, and changes nothing.
	HTTPRefuse
	// HTTPLoseRequest closes the connection, and changes nothing.
	HTTPLoseRequest
	// HTTPLoseAnswer serves the request and closes the connection.
	HTTPLoseAnswer
	// HTTPReplaceAnswer serves the request and answers 502 Bad Gateway.
	HTTPReplaceAnswer
)

// HTTPPlan decides what becomes of each request, counted from 1.
type HTTPPlan func(request int) HTTPFault

// FaultyHandler serves requests by a plan, and counts them. Its methods may be called at any time.
type FaultyHandler struct {
	// Handler serves the requests.
	Handler http.Handler

	mu       sync.Mutex
	plan     HTTPPlan
	requests int
}

// SetPlan sets the plan of the requests from now on, and returns the plan before; nil serves all.
func (f *FaultyHandler) SetPlan(plan HTTPPlan) HTTPPlan {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.plan
	f.plan = plan
	return before
}

// ResetRequests returns the number of requests so far, and sets it to n.
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
