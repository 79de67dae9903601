// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

// killer stands between the operator and the API server. It kills and restarts the operator, if it is told to, at the
// very request by which the operator saves that a step has begun or is over.
type killer struct {
	t        *testing.T
	access   *rest.Config // for the operator
	proxy    *httputil.ReverseProxy
	operator *devcluster.Operator

	mu     sync.Mutex // held during a save, and the killing at it
	moment moment
	kills  int
	hit    map[string]bool // "STEP begun" and "STEP over"
}

// moment is when the operator is killed.
type moment int

const (
	never         moment = iota
	beforeTheSave        // it has done what the step is for, and nobody knows
	afterTheSave         // the API server knows, and the operator does not know that
)

func startKiller(t *testing.T, cluster *devcluster.Cluster) *killer {
	t.Helper()
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(cluster.RESTConfig()))
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(cluster.RESTConfig().Host)
	if err != nil {
		t.Fatal(err)
	}
	k := &killer{t: t, proxy: &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(target) },
		// A request may end since the operator was killed that made it.
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	}}
	server := httptest.NewUnstartedServer(k)
	server.EnableHTTP2 = true
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that end when the operator is killed
	server.StartTLS()
	t.Cleanup(server.Close)
	vouches := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	k.access = &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: vouches}}
	return k
}

// ServeHTTP passes a request on, and the answer back, unless it kills who made the request.
func (k *killer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/upgradeconfigs/") || !strings.HasSuffix(r.URL.Path, "/status") {
		k.proxy.ServeHTTP(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))

	k.mu.Lock()
	defer k.mu.Unlock()
	fresh := k.fresh(body)
	if len(fresh) > 0 && k.moment == beforeTheSave {
		k.kill(fresh)
	}
	answer := httptest.NewRecorder()
	k.proxy.ServeHTTP(answer, r)
	if len(fresh) > 0 && k.moment == afterTheSave && answer.Code == http.StatusOK {
		k.kill(fresh)
	}
	maps.Copy(w.Header(), answer.Header())
	w.WriteHeader(answer.Code)
	_, _ = w.Write(answer.Body.Bytes()) // who is gone is not told
}

// fresh names what the patch saves and the operator was not killed at yet.
func (k *killer) fresh(body []byte) []string {
	var patch struct {
		Status v1alpha1.UpgradeConfigStatus `json:"status"`
	}
	if err := json.Unmarshal(body, &patch); err != nil {
		k.t.Errorf("reading a patch: %v\n%s", err, body)
	}
	var fresh []string
	for _, h := range patch.Status.History[:min(1, len(patch.Status.History))] {
		for _, c := range h.Conditions {
			boundaries := []string{c.Type + " begun"}
			if c.CompleteTime != nil {
				boundaries = append(boundaries, c.Type+" over")
			}
			fresh = append(fresh, slices.DeleteFunc(boundaries, func(b string) bool { return k.hit[b] })...)
		}
	}
	return fresh
}

// kill kills and restarts the operator, and ends the request that it had made.
func (k *killer) kill(at []string) {
	for _, boundary := range at {
		k.hit[boundary] = true
	}
	k.kills++
	if err := k.operator.Restart(); err != nil {
		k.t.Error(err)
	}
	panic(http.ErrAbortHandler)
}

// killAtEachStep kills the operator, until the upgrade is over, each time that it saves that a step has begun or is over
// which it was not killed at before. It fails unless that were all steps of the runbook.
func (k *killer) killAtEachStep(t *testing.T, people client.WithWatch, upgrade *v1alpha1.UpgradeConfig, at moment) int {
	t.Helper()
	k.mu.Lock()
	k.moment, k.kills, k.hit = at, 0, map[string]bool{}
	k.mu.Unlock()
	follow(t, people, upgrade, func(*history.History) {})
	k.mu.Lock()
	defer k.mu.Unlock()
	k.moment = never
	for _, step := range (runbooks.OSD{Tools: runbooks.Tools{Config: config.Default()}}).Runbook(upgrade).Steps {
		for _, boundary := range []string{step.Name + " begun", step.Name + " over"} {
			if !k.hit[boundary] {
				t.Errorf("the operator was not killed when it saved: %s", boundary)
			}
		}
	}
	return k.kills
}
