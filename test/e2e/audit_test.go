// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e || cvo

package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
)

// request is a request to the API server, as its audit log records it.
type request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	URI   string `json:"requestURI"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Namespace   string `json:"namespace"`
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

// operation returns the verb and the resource, as in "patch upgradeconfigs/status".
func (r request) operation() string {
	resource := r.Object.Resource
	if resource == "" {
		resource, _, _ = strings.Cut(r.URI, "?")
	}
	if r.Object.Subresource != "" {
		resource += "/" + r.Object.Subresource
	}
	return r.Verb + " " + resource
}

func (r request) succeeded() bool { return r.Response.Code >= 200 && r.Response.Code < 300 }

const operatorUser = "system:serviceaccount:" + devcluster.OperatorNamespace + ":" + devcluster.OperatorServiceAccount

// requests returns the answered requests of the operator since a time, without watches (one for
// each cached kind) and without those for Leases (of the leader election and the lock).
func requests(tb testing.TB, cluster *devcluster.Cluster, since time.Time) []request {
	tb.Helper()
	return slices.DeleteFunc(auditedRequests(tb, cluster), func(r request) bool {
		return r.Stage != stageComplete || r.Verb == "watch" || r.Object.Resource == "leases" || r.Received.Before(since)
	})
}

// The stages in which a request has been authorized. One that is watching or waiting has started
// its response; every other one has completed it.
const (
	stageStarted  = "ResponseStarted"
	stageComplete = "ResponseComplete"
)

// onAudit, if set, receives all requests of the operator whenever a test reads an audit log.
// afterAll, if set, receives the exit code of the tests after they have run, and returns the exit
// code of the process.
var (
	onAudit  func([]request)
	afterAll func(code int) int
)

// auditedRequests returns all requests of the operator that the API server has started to answer.
func auditedRequests(tb testing.TB, cluster *devcluster.Cluster) []request {
	tb.Helper()
	return readAuditLog(tb, cluster.AuditLog())
}

func readAuditLog(tb testing.TB, name string) []request {
	tb.Helper()
	found := parseAuditLog(tb, name)
	if onAudit != nil {
		onAudit(found)
	}
	return found
}

func parseAuditLog(tb testing.TB, name string) []request {
	tb.Helper()
	return parseAuditLogOf(tb, name, operatorUser)
}

// parseAuditLogOf returns the requests of a user.
func parseAuditLogOf(tb testing.TB, name, user string) []request {
	tb.Helper()
	file, err := os.Open(name)
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var found []request
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return found // an incomplete line is still being written
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			tb.Fatalf("reading the audit log: %v\n%s", err, line)
		}
		if r.User.Username == user && (r.Stage == stageStarted || r.Stage == stageComplete) {
			found = append(found, r)
		}
	}
}

// tally returns the numbers of requests by verb and resource, one per line.
func tally(all []request) string {
	counts := map[string]int{}
	for _, r := range all {
		what := r.operation()
		if !r.succeeded() {
			what += fmt.Sprintf(", response %d", r.Response.Code)
		}
		counts[what]++
	}
	var lines strings.Builder
	for _, what := range slices.Sorted(maps.Keys(counts)) {
		fmt.Fprintf(&lines, "%6d %s\n", counts[what], what)
	}
	if len(counts) == 0 {
		return "     0 requests\n"
	}
	return lines.String()
}

// count returns the number of successful requests of an operation.
func count(all []request, what string) int {
	n := 0
	for _, r := range all {
		if r.operation() == what && r.succeeded() {
			n++
		}
	}
	return n
}
