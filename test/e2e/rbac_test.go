// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

const (
	permissionsFile = "testdata/permissions.yaml"
	maxUnused       = 5
)

// permission is one verb on one resource.
type permission struct {
	namespace string // empty for every namespace and for cluster-scoped resources
	group     string
	resource  string // with the subresource, as in "pods/eviction"
	name      string // empty for every name
	verb      string
}

func (p permission) String() string {
	text := p.verb + " " + p.resource
	if p.group != "" {
		text += "." + p.group
	}
	if p.name != "" {
		text += " " + p.name
	}
	if p.namespace != "" {
		text += " in namespace " + p.namespace
	}
	return text
}

// permits reports whether the permission was used by a request.
func (p permission) permits(r request) bool {
	resource := r.Object.Resource
	if r.Object.Subresource != "" {
		resource += "/" + r.Object.Subresource
	}
	return p.verb == r.Verb && p.group == r.Object.Group && p.resource == resource &&
		(p.namespace == "" || p.namespace == r.Object.Namespace) && (p.name == "" || p.name == r.Object.Name)
}

// documented is the purpose of a permission in the table.
type documented struct {
	For    string `json:"for"`
	Unused string `json:"unused"` // why no test uses it
}

// documentedPermissions returns the table of permissions.
func documentedPermissions() (map[permission]documented, error) {
	content, err := os.ReadFile(permissionsFile)
	if err != nil {
		return nil, err
	}
	var rows []struct {
		Namespace string                `json:"namespace"`
		Group     string                `json:"group"`
		Resource  string                `json:"resource"`
		Names     []string              `json:"names"`
		Verbs     map[string]documented `json:"verbs"`
	}
	if err := yaml.UnmarshalStrict(content, &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", permissionsFile, err)
	}
	all := map[permission]documented{}
	for _, row := range rows {
		for verb, purpose := range row.Verbs {
			for _, name := range orAny(row.Names) {
				all[permission{row.Namespace, row.Group, row.Resource, name, verb}] = purpose
			}
		}
	}
	return all, nil
}

func orAny(names []string) []string {
	if len(names) == 0 {
		return []string{""}
	}
	return names
}

// grantedPermissions returns what the generated Roles grant to the operator.
func grantedPermissions(t *testing.T) map[permission]bool {
	t.Helper()
	return permissionsIn(t, "operator/role.yaml", "file-integrity/role.yaml")
}

// permissionsIn returns what the Roles in files of the deploy folder grant.
func permissionsIn(tb testing.TB, files ...string) map[permission]bool {
	tb.Helper()
	var objects []*unstructured.Unstructured
	for _, file := range files {
		decoded, err := manifests.Decode([]byte(readFile(tb, filepath.Join(deployFolder, file))))
		if err != nil {
			tb.Fatal(err)
		}
		objects = append(objects, decoded...)
	}
	granted := map[permission]bool{}
	add := func(namespace string, rules []rbacv1.PolicyRule) {
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, name := range orAny(rule.ResourceNames) {
						for _, verb := range rule.Verbs {
							granted[permission{namespace, group, resource, name, verb}] = true
						}
					}
				}
			}
		}
	}
	for _, role := range pick[rbacv1.ClusterRole](tb, objects, "ClusterRole") {
		add("", role.Rules)
	}
	for _, role := range pick[rbacv1.Role](tb, objects, "Role") {
		add(role.Namespace, role.Rules)
	}
	return granted
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	table, err := documentedPermissions()
	if err != nil {
		t.Fatal(err)
	}
	var want, got, unused []string
	for p, purpose := range table {
		want = append(want, p.String())
		if purpose.For == "" {
			t.Errorf("%s does not say what needs %s", permissionsFile, p)
		}
		if purpose.Unused != "" {
			unused = append(unused, p.String())
		}
	}
	for p := range grantedPermissions(t) {
		got = append(got, p.String())
		if p.verb == "*" || p.resource == "*" || p.group == "*" {
			t.Errorf("a wildcard: %s", p)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-%s +deploy/operator/role.yaml):\n%s", permissionsFile, diff)
	}
	if len(unused) > maxUnused {
		t.Errorf("%d permissions that no test uses, want at most %d: %q", len(unused), maxUnused, unused)
	}
}

// watchedGroups are the groups of the objects that the operator manages in the watched namespaces.
var watchedGroups = []string{"upgrade.managed.openshift.io", "managedupgrade.appuio.io", "batch"}

// TestWatchedNamespaceRole compares the role for further namespaces with the role in the operator's
// own namespace.
func TestWatchedNamespaceRole(t *testing.T) {
	t.Parallel()
	var want, got []string
	for p := range grantedPermissions(t) {
		if slices.Contains(watchedGroups, p.group) || p.resource == "serviceaccounts" {
			p.namespace = ""
			want = append(want, p.String())
		}
	}
	for _, role := range pick[rbacv1.ClusterRole](t, kustomized(t), "ClusterRole") {
		if role.Name != "managed-upgrade-operator-watched-namespace" {
			continue
		}
		for _, rule := range role.Rules {
			for _, verb := range rule.Verbs {
				for _, resource := range rule.Resources {
					got = append(got, permission{group: rule.APIGroups[0], resource: resource, verb: verb}.String())
				}
			}
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("permissions (-operator's namespace +further namespaces):\n%s", diff)
	}
}

// used collects the requests of the operator on all clusters of this run.
var used struct {
	sync.Mutex
	requests map[request]bool
}

func recordUse(all []request) {
	used.Lock()
	defer used.Unlock()
	if used.requests == nil {
		used.requests = map[request]bool{}
	}
	for _, r := range all {
		if r.Response.Code != http.StatusForbidden && r.Response.Code != http.StatusUnauthorized { // it was authorized
			used.requests[request{Verb: r.Verb, Object: r.Object}] = true
		}
	}
}

func init() {
	onAudit = recordUse
	afterAll = checkUse
}

// checkUse compares the permissions of the table with the requests of a whole run of the suite.
// They must be equal: each request needs a permission of the table, and each permission is used, or
// the table gives the reason why not. The check is skipped for single tests unless
// E2E_PERMISSIONS=1 is set.
func checkUse(code int) int {
	if single := flag.Lookup("test.run"); code != 0 || single != nil && single.Value.String() != "" && os.Getenv("E2E_PERMISSIONS") == "" {
		return code
	}
	table, err := documentedPermissions()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	requests := slices.Collect(maps.Keys(used.requests))
	if problems := compareUse(table, requests); len(problems) > 0 {
		fmt.Fprintf(os.Stderr, "permissions of the operator:\n- %s\n", strings.Join(problems, "\n- "))
		return 1
	}
	fmt.Printf("permissions of the operator: %d, equal to those that %d different requests needed\n", len(table), len(requests))
	return code
}

// byOtherRoles reports whether a permission that a test or a page grants in addition covers the request: the permission
// of the custom upgrader's example, or the permission to watch a further namespace.
func byOtherRoles(r request) bool {
	return r.Object.Namespace == "shop" && (r.Object.Resource == "configmaps" || slices.Contains(watchedGroups, r.Object.Group))
}

func compareUse(table map[permission]documented, requests []request) []string {
	var problems []string
	for p, purpose := range table {
		isUsed := slices.ContainsFunc(requests, p.permits)
		switch {
		case !isUsed && purpose.Unused == "":
			problems = append(problems, fmt.Sprintf("no request needed: %s", p))
		case isUsed && purpose.Unused != "":
			problems = append(problems, fmt.Sprintf("a request needed %s, which %s lists as unused", p, permissionsFile))
		}
	}
	for _, r := range requests {
		permits := func(p permission) bool { return p.permits(r) }
		if r.Object.Resource != "" && !byOtherRoles(r) && !slices.ContainsFunc(slices.Collect(maps.Keys(table)), permits) {
			problems = append(problems, fmt.Sprintf("no permission of the table covers %s in namespace %q, name %q", r.operation(), r.Object.Namespace, r.Object.Name))
		}
	}
	slices.Sort(problems)
	return problems
}

// Caches list first if the API server is too old to stream a list to a watch.
func TestCaches_with_an_API_server_that_cannot_stream_lists(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))
	server.apply(t, kustomizedFrom(t, deployFolder+"/update-status/crds"))
	kubeconfig, _ := server.account(t, home)
	probes := freeAddress(t)
	process, err := childprocess.Start(childprocess.Command{
		Path: "/usr/bin/env",
		Args: []string{
			"KUBE_FEATURE_WatchListClient=false", program(t), "--kubeconfig=" + kubeconfig, "--leader-elect=false",
			"--metrics-bind-address=0", "--health-probe-bind-address=" + probes,
		},
		Log: filepath.Join(t.TempDir(), "operator.log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	r := replica{probes: probes}
	waitUntil(t, "the operator is ready", func(ctx context.Context) bool { return r.probe(ctx, "/readyz") == http.StatusOK })
	// The operator is ready before its caches of optional kinds have listed their objects.
	table, err := documentedPermissions()
	if err != nil {
		t.Fatal(err)
	}
	var missing []permission
	defer func() {
		if t.Failed() {
			t.Logf("without a request: %v", missing)
		}
	}()
	waitUntil(t, "each cache has listed its objects", func(context.Context) bool {
		missing = unlisted(table, readAuditLog(t, server.AuditLog()))
		return len(missing) == 0
	})
}

// unlisted returns the lists of caches, which need "list" and "watch", that no request made.
func unlisted(table map[permission]documented, requests []request) []permission {
	var missing []permission
	for p := range table {
		watch := p
		watch.verb = "watch"
		if _, isCached := table[watch]; p.verb == "list" && isCached && !slices.ContainsFunc(requests, p.permits) {
			missing = append(missing, p)
		}
	}
	return missing
}

func TestPermissions_surplus_is_reported(t *testing.T) {
	t.Parallel()
	table := map[permission]documented{
		{"", "", "pods", "", "list"}:                       {For: "used"},
		{"", "", "pods", "", "delete"}:                     {For: "surplus"},
		{"", "", "pods/eviction", "", "create"}:            {For: "used"},
		{"a", "coordination.k8s.io", "leases", "l", "get"}: {For: "used"},
		{"b", "coordination.k8s.io", "leases", "l", "get"}: {For: "surplus"},
		{"", "", "nodes", "", "get"}:                       {For: "never used", Unused: "there is a reason"},
		{"", "", "nodes", "", "list"}:                      {For: "used", Unused: "outdated"},
	}
	of := func(verb, namespace, group, resource, sub, name string) (r request) {
		r.Verb, r.Object.Namespace, r.Object.Group, r.Object.Resource, r.Object.Subresource, r.Object.Name = verb, namespace, group, resource, sub, name
		return r
	}
	got := compareUse(table, []request{
		of("list", "", "", "pods", "", ""), of("create", "shop", "", "pods", "eviction", "p"),
		of("get", "a", "coordination.k8s.io", "leases", "", "l"), of("list", "", "", "nodes", "", ""),
		of("get", "shop", "", "secrets", "", "s"), of("get", "shop", "", "configmaps", "", "c"), of("get", "", "", "", "", ""),
	})
	want := []string{
		"a request needed list nodes, which testdata/permissions.yaml lists as unused",
		`no permission of the table covers get secrets in namespace "shop", name "s"`,
		"no request needed: delete pods",
		"no request needed: get leases.coordination.k8s.io l in namespace b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}
