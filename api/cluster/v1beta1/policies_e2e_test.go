// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/yaml"
)

// people are users and their rights: editor edits upgrades in the namespace policies; author may also create sets of
// works there; planner can also edit upgrades in the namespace dev.
const people = `
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: Namespace, metadata: {name: policies}}
- {apiVersion: v1, kind: Namespace, metadata: {name: dev}}
- apiVersion: rbac.authorization.k8s.io/v1
  kind: Role
  metadata: {name: author, namespace: policies}
  rules: [{apiGroups: [work.open-cluster-management.io], resources: [manifestworkreplicasets], verbs: [create]}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: author, namespace: policies}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: author}
  subjects: [{kind: User, name: author}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: editors, namespace: policies}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fleet-editor}
  subjects: [{kind: User, name: editor}, {kind: User, name: author}, {kind: User, name: planner}]
- apiVersion: rbac.authorization.k8s.io/v1
  kind: RoleBinding
  metadata: {name: editors, namespace: dev}
  roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: fleet-editor}
  subjects: [{kind: User, name: planner}]
`

const (
	actionsRefused    = "actions run on managed clusters: to set one, a user needs the right to create manifestworkreplicasets.work.open-cluster-management.io in namespace policies"
	placementRefused  = "to use Placements of other namespaces, a user needs the right to create managedclustersupgrades.cluster.open-cluster-management.io in each of these namespaces: dev/dev"
	actionsUnchanging = "actions cannot change after the first cluster was admitted"
)

// as runs kubectl as a user, without an effect, and returns what it prints.
func as(ctx context.Context, user, input string, args ...string) string {
	return asIn(ctx, "policies", user, input, args...)
}

// asIn does the same in a namespace.
func asIn(ctx context.Context, namespace, user, input string, args ...string) string {
	cmd := server.Kubectl(ctx, append(args, "--as="+user, "--namespace="+namespace, "--dry-run=server")...)
	cmd.Stdin = strings.NewReader(input)
	printed, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	return string(printed)
}

func manifest(t *testing.T, edits ...edit) string {
	t.Helper()
	object := edited(t, "ManagedClustersUpgrade", append([]edit{{"metadata.namespace", "policies"}, {"spec.placement", nil}, {"spec.preUpgradeAction", nil}, {"spec.postUpgradeAction", nil}}, edits...)...)
	data, err := json.Marshal(object.Object)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var peopleCreated sync.Once

// createPeople creates the users of the tests once.
func createPeople(t *testing.T) {
	t.Helper()
	peopleCreated.Do(func() { createAll(t, people) })
}

// createAll creates the objects of a list.
func createAll(t *testing.T, text string) {
	t.Helper()
	var list struct{ Items []map[string]any }
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		t.Fatal(err)
	}
	for _, item := range list.Items {
		server.MustCreate(t, &unstructured.Unstructured{Object: item})
	}
}

func TestPolicies(t *testing.T) {
	t.Parallel()
	createPeople(t)
	action := sample(t, "ManagedClustersUpgrade").Object["spec"].(map[string]any)["preUpgradeAction"]
	pre, post := edit{"spec.preUpgradeAction", action}, edit{"spec.postUpgradeAction", action}
	foreign := edit{"spec.placement", []any{map[string]any{"name": "own"}, map[string]any{"name": "dev", "namespace": "dev"}}}
	// Policies apply some time after they are created.
	err := wait.PollUntilContextTimeout(t.Context(), time.Second, time.Minute, true, func(ctx context.Context) (bool, error) {
		return strings.Contains(as(ctx, "editor", manifest(t, pre), "create", "--filename=-"), actionsRefused) &&
			strings.Contains(as(ctx, "editor", manifest(t, foreign), "create", "--filename=-"), placementRefused), nil
	})
	if err != nil {
		t.Fatalf("the policies do not apply: %v: %s", err, as(t.Context(), "editor", manifest(t, foreign), "create", "--filename=-"))
	}
	for name, edits := range map[string][]edit{"plain": nil, "acting": {pre, foreign}} {
		server.RunKubectl(t, manifest(t, append(edits, edit{"metadata.name", name})...), "create", "--filename=-", "--namespace=policies")
	}
	server.RunKubectl(t, manifest(t, pre, edit{"metadata.name", "started"}), "create", "--filename=-", "--namespace=policies")
	server.RunKubectl(t, "", "patch", "mcu", "started", "--namespace=policies", "--subresource=status", "--type=merge", "--patch", `{"status":{"startTime":"2022-06-02T15:20:08Z"}}`)
	patch := func(change string, name string) []string {
		return []string{"patch", "mcu", name, "--type=merge", "--patch", change}
	}
	const otherPlacement = `{"spec":{"placement":[{"name":"dev","namespace":"dev"}]}}`
	job := `{"spec":{"preUpgradeAction":{"manifestWork":{"workload":{"manifests":[{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"backup","namespace":"default"},%s}]}}}}}`
	for name, tc := range map[string]struct {
		user, input string
		args        []string
		want        string
	}{
		"editor without actions":                  {user: "editor", input: manifest(t)},
		"editor, pre-upgrade action":              {user: "editor", input: manifest(t, pre), want: actionsRefused},
		"editor, post-upgrade action":             {user: "editor", input: manifest(t, post), want: actionsRefused},
		"author, actions":                         {user: "author", input: manifest(t, pre, post)},
		"editor, own placement":                   {user: "editor", input: manifest(t, edit{"spec.placement", []any{map[string]any{"name": "a"}, map[string]any{"name": "b", "namespace": ""}, map[string]any{"name": "c", "namespace": "policies"}}})},
		"editor, placement of another namespace":  {user: "editor", input: manifest(t, foreign), want: placementRefused},
		"planner, placement of another namespace": {user: "planner", input: manifest(t, foreign)},
		"stranger":                                {user: "stranger", input: manifest(t), want: "is forbidden"},
		"editor adds an action":                   {user: "editor", args: patch(fmt.Sprintf(job, `"spec":{}`), "plain"), want: actionsRefused},
		"author adds an action":                   {user: "author", args: patch(fmt.Sprintf(job, `"spec":{}`), "plain")},
		"editor changes an action":                {user: "editor", args: patch(fmt.Sprintf(job, `"spec":{"backoffLimit":7}`), "acting"), want: actionsRefused},
		"editor removes an action":                {user: "editor", args: patch(`{"spec":{"preUpgradeAction":null}}`, "acting")},
		"editor pauses":                           {user: "editor", args: patch(`{"spec":{"paused":true}}`, "acting")},
		"editor adds a placement":                 {user: "editor", args: patch(otherPlacement, "plain"), want: placementRefused},
		"editor keeps a placement":                {user: "editor", args: patch(otherPlacement, "acting")},
		"planner adds a placement":                {user: "planner", args: patch(otherPlacement, "plain")},
		"hub adds its finalizer":                  {user: "system:serviceaccount:managed-upgrade-operator:managed-upgrade-hub", args: patch(`{"metadata":{"finalizers":["upgrade.managed.openshift.io/managed-clusters-upgrade"]}}`, "acting")},
		"hub changes the spec of a started one":   {user: "system:serviceaccount:managed-upgrade-operator:managed-upgrade-hub", args: patch(`{"spec":{"paused":true}}`, "started")},
		"author replaces a field after the start": {user: "author", args: patch(fmt.Sprintf(job, `"other":{}`), "started"), want: actionsUnchanging},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.args == nil {
				tc.args = []string{"create", "--filename=-"}
			}
			got := as(t.Context(), tc.user, tc.input, tc.args...)
			if tc.want == "" && got != "" || !strings.Contains(got, tc.want) {
				t.Errorf("kubectl prints %q, want %q in it", got, tc.want)
			}
		})
	}
}

func TestRights(t *testing.T) {
	t.Parallel()
	resource := func(group, name, verb string) map[string]any {
		name, subresource, _ := strings.Cut(name, "/")
		return map[string]any{"group": group, "resource": name, "subresource": subresource, "verb": verb, "namespace": "dev1"}
	}
	lease := func(namespace, name, verb string) map[string]any {
		return map[string]any{"group": "coordination.k8s.io", "resource": "leases", "verb": verb, "namespace": namespace, "name": name}
	}
	executor := func(name string) map[string]any {
		return map[string]any{"group": "work.open-cluster-management.io", "resource": "manifestworks", "verb": "execute-as", "namespace": "dev1", "name": name}
	}
	const home, clusters, works = "managed-upgrade-operator", "cluster.open-cluster-management.io", "work.open-cluster-management.io"
	for name, tc := range map[string]struct {
		access map[string]any
		want   bool
	}{
		"lists clusters":            {resource(clusters, "managedclusters", "list"), true},
		"changes no cluster":        {resource(clusters, "managedclusters", "patch"), false},
		"creates works":             {resource(works, "manifestworks", "create"), true},
		"executes works as agents":  {executor("system:serviceaccount::klusterlet-work-sa"), true},
		"executes works as others":  {executor("system:serviceaccount:backup:backup"), false},
		"changes no status of work": {resource(works, "manifestworks/status", "patch"), false},
		"reads no Secret":           {resource("", "secrets", "get"), false},
		"deletes no upgrade":        {resource(clusters, "managedclustersupgrades", "delete"), false},
		"has its lease":             {lease(home, "managed-upgrade-hub-leader", "update"), true},
		"has the lock of a cluster": {lease(home, "cluster-upgrade-dev1", "patch"), true},
		"deletes the former lock":   {lease("dev1", "cluster-upgrade", "delete"), true},
		"writes no former lock":     {lease("dev1", "cluster-upgrade", "patch"), false},
		"has no other lease":        {lease("dev1", "other", "patch"), false},
	} {
		t.Run("hub "+name, func(t *testing.T) {
			t.Parallel()
			review := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
				"spec": map[string]any{"user": "system:serviceaccount:managed-upgrade-operator:managed-upgrade-hub", "resourceAttributes": tc.access},
			}}
			server.MustCreate(t, review)
			if allowed, _, _ := unstructured.NestedBool(review.Object, "status", "allowed"); allowed != tc.want {
				t.Errorf("%v is allowed: %t, want %t", tc.access, allowed, tc.want)
			}
		})
	}
}
