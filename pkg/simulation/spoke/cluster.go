// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
)

// id identifies an object of a cluster.
type id struct{ group, kind, namespace, name string }

func idOf(o *unstructured.Unstructured) id {
	return id{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

var versionID = id{"config.openshift.io", "ClusterVersion", "", "version"}

// Cluster has the objects of a managed cluster.
type Cluster struct {
	// Name is the name of the cluster, and that of its namespace on the hub.
	Name string
	// RawJSON is the feature gate RawFeedbackJsonString of the agent.
	RawJSON bool
	// Conditions are what the agent reports about an object beside Applied and Available, by its kind and
	// name: what the rules of its manifest evaluate to.
	Conditions map[string]map[string]metav1.ConditionStatus

	objects map[id]*unstructured.Unstructured
	applied map[id]map[string]any // the spec that the agent applied last, by object
	works   map[string][]id       // the objects that a work owns
}

// New returns a cluster that has a release.
func New(name, release string, at time.Time) *Cluster {
	c := &Cluster{Name: name, objects: map[id]*unstructured.Unstructured{}, applied: map[id]map[string]any{}, works: map[string][]id{}}
	version := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
		"metadata": map[string]any{"name": "version", "generation": int64(1)},
		"spec":     map[string]any{"clusterID": name, "channel": "stable"},
		"status":   map[string]any{"observedGeneration": int64(1)},
	}}
	c.objects[versionID] = version
	c.setHistory(entry(release, "Completed", at))
	return c
}

func entry(release, state string, at time.Time) map[string]any {
	return map[string]any{"version": release, "state": state, "verified": true, "startedTime": at.UTC().Format(time.RFC3339), "image": Image(release)}
}

// Image returns the pull spec of a release.
func Image(release string) string {
	return fmt.Sprintf("quay.io/openshift-release-dev/ocp-release@sha256:%064x", release)
}

// Version returns the ClusterVersion.
func (c *Cluster) Version() *unstructured.Unstructured { return c.objects[versionID] }

// Object returns an object; nil means that it does not exist.
func (c *Cluster) Object(group, kind, namespace, name string) *unstructured.Unstructured {
	return c.objects[id{group, kind, namespace, name}]
}

// Objects returns the objects of a kind, by name.
func (c *Cluster) Objects(kind string) []*unstructured.Unstructured {
	var found []*unstructured.Unstructured
	for key, o := range c.objects {
		if key.kind == kind {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b *unstructured.Unstructured) int {
		if a.GetName() < b.GetName() {
			return -1
		}
		return 1
	})
	return found
}

// Desired returns the release that the ClusterVersion requests; empty means none.
func (c *Cluster) Desired() string {
	desired, _, _ := unstructured.NestedString(c.Version().Object, "spec", "desiredUpdate", "version")
	return desired
}

// Request has a user of the cluster request a release; empty withdraws the request.
func (c *Cluster) Request(release string) {
	spec, _ := c.Version().Object["spec"].(map[string]any)
	delete(spec, "desiredUpdate")
	if release != "" {
		spec["desiredUpdate"] = map[string]any{"version": release}
	}
	c.Version().SetGeneration(c.Version().GetGeneration() + 1)
}

// History returns the history of the ClusterVersion as release and state, the newest first.
func (c *Cluster) History() []string {
	var lines []string
	for _, e := range c.history() {
		lines = append(lines, fmt.Sprintf("%s %s", e["version"], e["state"]))
	}
	return lines
}

func (c *Cluster) history() []map[string]any {
	list, _, _ := unstructured.NestedSlice(c.Version().Object, "status", "history")
	entries := make([]map[string]any, len(list))
	for i := range list {
		entries[i], _ = list[i].(map[string]any)
	}
	return entries
}

func (c *Cluster) setHistory(entries ...map[string]any) {
	list := make([]any, len(entries))
	for i := range entries {
		list[i] = entries[i]
	}
	status, _ := c.Version().Object["status"].(map[string]any)
	status["history"] = list
	status["observedGeneration"] = c.Version().GetGeneration()
}

// Accept has the cluster version operator begin to install a release.
func (c *Cluster) Accept(release string, at time.Time) {
	c.setHistory(append([]map[string]any{entry(release, "Partial", at)}, c.history()...)...)
	c.SetCondition(c.Version(), "Progressing", "True", "Upgrading", "Working towards "+release, at)
}

// Complete has the cluster version operator complete the newest release.
func (c *Cluster) Complete(at time.Time) {
	entries := c.history()
	entries[0]["state"] = "Completed"
	c.setHistory(entries...)
	c.SetCondition(c.Version(), "Progressing", "False", "AsExpected", fmt.Sprintf("Cluster version is %s", entries[0]["version"]), at)
}

// Observe has the cluster version operator observe the spec.
func (c *Cluster) Observe() { c.setHistory(c.history()...) }

// SetCondition sets a condition of an object. Its time changes with its status.
func (*Cluster) SetCondition(o *unstructured.Unstructured, name, status, reason, message string, at time.Time) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	condition := map[string]any{
		"type": name, "status": status, "reason": reason, "message": message, "lastTransitionTime": at.UTC().Format(time.RFC3339),
	}
	i := slices.IndexFunc(conditions, func(c any) bool { m, _ := c.(map[string]any); return m["type"] == name })
	if i < 0 {
		conditions = append(conditions, condition)
	} else {
		if old, _ := conditions[i].(map[string]any); old["status"] == status {
			condition["lastTransitionTime"] = old["lastTransitionTime"]
		}
		conditions[i] = condition
	}
	_ = unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions") // of a tree of plain values
}

// apply applies a manifest as the update strategy says: it reports why it cannot.
func (c *Cluster) apply(manifest *unstructured.Unstructured, strategy workv1.UpdateStrategyType) error {
	key := idOf(manifest)
	existing := c.objects[key]
	switch {
	case strategy == workv1.UpdateStrategyTypeReadOnly:
		if existing == nil {
			return fmt.Errorf("%s %s does not exist", key.kind, key.name)
		}
		return nil
	case existing == nil:
		created := manifest.DeepCopy()
		created.SetGeneration(1)
		c.objects[key] = created
		existing = created
	case strategy == workv1.UpdateStrategyTypeCreateOnly:
		return nil
	}
	c.merge(key, existing, manifest)
	return nil
}

// merge writes the fields of the spec, and removes those that the agent applied before and that the
// manifest lacks.
func (c *Cluster) merge(key id, existing, manifest *unstructured.Unstructured) {
	wanted, _, _ := unstructured.NestedMap(manifest.Object, "spec")
	spec, _, _ := unstructured.NestedMap(existing.Object, "spec")
	before := maps.Clone(spec)
	for field := range c.applied[key] {
		delete(spec, field)
	}
	if len(wanted) > 0 && spec == nil {
		spec = map[string]any{}
	}
	maps.Copy(spec, wanted)
	c.applied[key] = wanted
	if fmt.Sprint(before) == fmt.Sprint(spec) {
		return
	}
	existing.Object["spec"] = spec
	existing.SetGeneration(existing.GetGeneration() + 1)
}
