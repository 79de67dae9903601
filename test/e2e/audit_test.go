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

// request is one request to the API server, as its audit log tells of it.
type request struct {
	Stage string `json:"stage"`
	Verb  string `json:"verb"`
	URI   string `json:"requestURI"`
	User  struct {
		Username string `json:"username"`
	} `json:"user"`
	Object struct {
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
	Received time.Time `json:"requestReceivedTimestamp"`
}

// operation names the verb and the resource, as in "patch upgradeconfigs/status".
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

// requests are those of the operator since some time, but for watches (of which there is one for each kind that is
// cached) and for Leases (of the leader election, and of the lock).
func requests(tb testing.TB, cluster *devcluster.Cluster, since time.Time) []request {
	tb.Helper()
	return slices.DeleteFunc(auditedRequests(tb, cluster), func(r request) bool {
		return r.Verb == "watch" || r.Object.Resource == "leases" || r.Received.Before(since)
	})
}

// auditedRequests are all requests of the operator that have been answered.
func auditedRequests(tb testing.TB, cluster *devcluster.Cluster) []request {
	tb.Helper()
	file, err := os.Open(cluster.AuditLog())
	if err != nil {
		tb.Fatal(err)
	}
	defer file.Close()
	var found []request
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return found // the rest of a line is still being written
		}
		var r request
		if err := json.Unmarshal(line, &r); err != nil {
			tb.Fatalf("reading the audit log: %v\n%s", err, line)
		}
		if r.User.Username == operatorUser && r.Stage == "ResponseComplete" {
			found = append(found, r)
		}
	}
}

// tally counts requests by verb and resource, one line for each.
func tally(all []request) string {
	counts := map[string]int{}
	for _, r := range all {
		what := r.operation()
		if !r.succeeded() {
			what += fmt.Sprintf(", answered by %d", r.Response.Code)
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

// count counts the requests of that verb and resource that succeeded.
func count(all []request, what string) int {
	n := 0
	for _, r := range all {
		if r.operation() == what && r.succeeded() {
			n++
		}
	}
	return n
}
