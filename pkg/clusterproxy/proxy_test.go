// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterproxy

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// proxyReader returns the Proxy of a cluster or an error, and counts reads.
type proxyReader struct {
	client.Reader

	status configv1.ProxyStatus
	err    error
	reads  int
}

func (r *proxyReader) Get(_ context.Context, _ client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	r.reads++
	object.(*configv1.Proxy).Status = r.status
	return r.err
}

// TestProxy follows the Proxy of a cluster, with no proxy variables in the environment.
func TestProxy(t *testing.T) {
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		t.Setenv(name, "")
	}
	clk := clocktesting.NewFakePassiveClock(time.Date(2027, 3, 2, 12, 0, 0, 0, time.UTC))
	reader := &proxyReader{err: errors.New("down")}
	p := &Proxy{Live: reader, Clock: clk}
	expect := func(what, address, want string, reads int) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		got := "direct"
		switch proxy, err := p.ForRequest(request); {
		case err != nil:
			got = "error"
		case proxy != nil:
			got = proxy.String()
		}
		if got != want || reader.reads != reads {
			t.Errorf("%s: %s by %s after %d reads, want %s after %d", what, address, got, reader.reads, want, reads)
		}
	}
	const receiver = "https://receiver.example.com/"
	expect("the API server never answered", receiver, "error", 1)
	reader.err = apierrors.NewNotFound(schema.GroupResource{}, "cluster")
	expect("there is no Proxy", receiver, "direct", 2)
	reader.err, reader.status = nil, configv1.ProxyStatus{HTTPProxy: "http://plain:3128", HTTPSProxy: "http://proxy:3128", NoProxy: ".svc,example.org"}
	expect("it was read just now", receiver, "direct", 2)
	clk.SetTime(clk.Now().Add(interval))
	expect("there is one now", receiver, "http://proxy:3128", 3)
	expect("an http URL", "http://receiver.example.com/", "http://plain:3128", 3)
	expect("a service of the cluster", "https://receiver.team.svc/", "direct", 3)
	clk.SetTime(clk.Now().Add(interval))
	reader.err = errors.New("down")
	expect("the API server is down", receiver, "http://proxy:3128", 4)
	t.Setenv("HTTPS_PROXY", "http://other:3128")
	expect("the environment names another one", receiver, "http://other:3128", 4)
}
