// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func TestFaultyHandler(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fault  simulation.HTTPFault
		served int
		status int // 0 if the connection is closed
	}{
		"serve":          {simulation.HTTPServe, 1, http.StatusOK},
		"refuse":         {simulation.HTTPRefuse, 0, http.StatusServiceUnavailable},
		"lose request":   {simulation.HTTPLoseRequest, 0, 0},
		"lose answer":    {simulation.HTTPLoseAnswer, 1, 0},
		"replace answer": {simulation.HTTPReplaceAnswer, 1, http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var served atomic.Int64 // a connection may be closed before its handler returns
			faulty := &simulation.FaultyHandler{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served.Add(1) })}
			faulty.SetPlan(func(n int) simulation.HTTPFault {
				if n == 2 {
					return tc.fault
				}
				return simulation.HTTPServe
			})
			server := httptest.NewServer(faulty)
			defer server.Close()
			var status int
			for range 2 {
				status = post(t, server.URL)
			}
			if got := int(served.Load()) - 1; got != tc.served || status != tc.status {
				t.Errorf("served %d times, status %d, want %d and %d", got, status, tc.served, tc.status)
			}
			faulty.SetPlan(nil)
			if got := faulty.ResetRequests(0); got != 2 || post(t, server.URL) != http.StatusOK || faulty.ResetRequests(0) != 1 {
				t.Errorf("%d requests were counted", got)
			}
		})
	}
}

// post returns the status of the response, or 0 if there is none.
func post(t *testing.T, url string) int {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0
	}
	defer response.Body.Close()
	if _, err := io.Copy(io.Discard, response.Body); err != nil {
		t.Error(err)
	}
	return response.StatusCode
}
