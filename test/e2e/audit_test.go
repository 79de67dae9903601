// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e || cvo

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
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
	// Sent and Answer are the content of a change of the ClusterVersion.
	Sent   content `json:"requestObject"`
	Answer struct {
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
	} `json:"responseObject"`
}

// content is JSON of any form.
type content string

// UnmarshalJSON keeps the JSON as it is.
func (c *content) UnmarshalJSON(text []byte) error {
	*c = content(text)
	return nil
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

// The stages of a request after its authorization. Watches and waiting requests have started their
// response; all other requests have completed it.
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
		if next := bytes.LastIndex(line, []byte(`{"kind":"Event",`)); next > 0 {
			line = line[next:] // behind what an API server that was killed left of a line
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

// desiredUpdate returns the version that a patch of the ClusterVersion requests, and whether the patch
// changes spec.desiredUpdate. The version is empty if the patch removes the field.
func (r request) desiredUpdate() (version string, sent bool) {
	var patch struct {
		Spec map[string]json.RawMessage `json:"spec"`
	}
	if json.Unmarshal([]byte(r.Sent), &patch) != nil {
		return "", false
	}
	var update configv1.Update
	text, sent := patch.Spec["desiredUpdate"]
	sent = sent && json.Unmarshal(text, &update) == nil
	return update.Version, sent
}

// requestedVersions returns how often these requests set spec.desiredUpdate. A request that changed nothing,
// because the request of a killed operator had already been applied, does not count. A deleted upgrade
// may have requested any version once, because nothing else is known about it.
func requestedVersions(all []request, upgrades []aftermath.Upgrade) *aftermath.Requests {
	var requested aftermath.Requests
	versions := []string{""} // requested, in this order
	generations, reported := map[int64]bool{}, map[string]bool{}
	for _, r := range all {
		if r.Stage != stageComplete || !r.succeeded() {
			continue
		}
		switch r.operation() {
		case "patch clusterversions":
			version, sent := r.desiredUpdate()
			switch {
			case !sent || generations[r.Answer.Metadata.Generation]:
			case version == "":
				requested.Withdraw(versions[len(versions)-1])
			default:
				versions = append(versions, version)
				requested.Request(version)
			}
			generations[r.Answer.Metadata.Generation] = true
		case "patch upgradejobs/status", "patch upgradeconfigs/status":
			reported[r.Object.Group+"/"+r.Object.Namespace+"/"+r.Object.Name] = true
		}
	}
	for i := range upgrades {
		delete(reported, upgrades[i].Group+"/"+upgrades[i].Namespace+"/"+upgrades[i].Name)
	}
	for range reported {
		for _, version := range slices.Compact(slices.Sorted(slices.Values(versions))) {
			requested.Delete(&aftermath.Upgrade{History: []history.Record{{Version: version, Attempt: 1}}})
		}
	}
	return &requested
}
