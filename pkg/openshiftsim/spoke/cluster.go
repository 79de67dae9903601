// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/fieldwise"
)

// id identifies an object of a cluster.
type id struct{ group, kind, namespace, name string }

func idOf(o *unstructured.Unstructured) id {
	return id{o.GroupVersionKind().Group, o.GetKind(), o.GetNamespace(), o.GetName()}
}

var versionID = id{"config.openshift.io", "ClusterVersion", "", "version"}

// Cluster contains the objects of a managed cluster.
type Cluster struct {
	// Name is the name of the cluster and of its namespace on the hub.
	Name string
	// RawJSON enables the agent's feature gate RawFeedbackJsonString.
	RawJSON bool
	// Mute makes the agent report nothing.
	Mute bool
	// Conditions are the conditions that the agent reports about an object, by kind and name, in
	// addition to Applied and Available. They stand for the results of the condition rules of its
	// manifest.
	Conditions map[string]map[string]metav1.ConditionStatus

	created string // the initial release of the cluster
	objects map[id]*unstructured.Unstructured
	applied map[id]fieldwise.Owned // the spec fields that the agent owns, by object
	works   map[string][]id        // the objects that each work owns
}

// New returns a cluster at a release that another client has updated it to.
func New(name, release string, at time.Time) *Cluster {
	c := &Cluster{Name: name, created: release, objects: map[id]*unstructured.Unstructured{}, applied: map[id]fieldwise.Owned{}, works: map[string][]id{}}
	version := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion",
		"metadata": map[string]any{"name": "version", "generation": int64(1)},
		"spec":     map[string]any{"clusterID": name, "channel": "stable", "desiredUpdate": leftover(release)},
		"status":   map[string]any{"observedGeneration": int64(1)},
	}}
	c.objects[versionID] = version
	c.setHistory(entry(release, "Completed", at))
	return c
}

// leftover returns the spec.desiredUpdate that an earlier update by another client has left: the
// installed release, with its image. Writing only some of the fields then requests nothing, because
// the cluster version operator compares the image.
func leftover(release string) map[string]any {
	return map[string]any{"version": release, "image": Image(release), "force": false, "architecture": ""}
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

// Object returns an object, or nil if it does not exist.
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

// Desired returns the release that the ClusterVersion requests. It is empty if there is no request,
// if the request is for the initial release, if version and image do not match, if the release is
// only checked, or if a work has deleted the ClusterVersion.
func (c *Cluster) Desired() string {
	desired := c.DesiredUpdate()
	version, _ := desired["version"].(string)
	image, _ := desired["image"].(string)
	if version == c.created || image != "" && image != Image(version) || desired["mode"] != nil {
		return ""
	}
	return version
}

// DesiredUpdate returns a copy of spec.desiredUpdate of the ClusterVersion, or nil.
func (c *Cluster) DesiredUpdate() map[string]any {
	if c.Version() == nil {
		return nil
	}
	desired, _, _ := unstructured.NestedMap(c.Version().Object, "spec", "desiredUpdate")
	return desired
}

// SetDesiredUpdate replaces spec.desiredUpdate of the ClusterVersion as another client would, or
// removes it if it is nil.
func (c *Cluster) SetDesiredUpdate(desired map[string]any) {
	spec, _ := c.Version().Object["spec"].(map[string]any)
	delete(spec, "desiredUpdate")
	if desired != nil {
		spec["desiredUpdate"] = runtime.DeepCopyJSON(desired)
	}
	c.Version().SetGeneration(c.Version().GetGeneration() + 1)
}

// Request requests a release as a user of the cluster would. An empty release withdraws the
// request.
func (c *Cluster) Request(release string) {
	if release == "" {
		c.SetDesiredUpdate(nil)
		return
	}
	c.SetDesiredUpdate(map[string]any{"version": release})
}

// History returns the history of the ClusterVersion as "version state", newest first.
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

// Accept makes the cluster version operator start installing a release.
func (c *Cluster) Accept(release string, at time.Time) {
	c.setHistory(append([]map[string]any{entry(release, "Partial", at)}, c.history()...)...)
	c.SetCondition(c.Version(), "Progressing", "True", "Upgrading", "Working towards "+release, at)
}

// Complete makes the cluster version operator complete the newest release.
func (c *Cluster) Complete(at time.Time) {
	entries := c.history()
	entries[0]["state"] = "Completed"
	c.setHistory(entries...)
	c.SetCondition(c.Version(), "Progressing", "False", "AsExpected", fmt.Sprintf("Cluster version is %s", entries[0]["version"]), at)
}

// Observe makes the cluster version operator observe the spec.
func (c *Cluster) Observe() { c.setHistory(c.history()...) }

// SetCondition sets a condition of an object. Its transition time changes only with its status.
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
	_ = unstructured.SetNestedSlice(o.Object, conditions, "status", "conditions") // a tree of plain values
}

// apply applies a manifest according to the update strategy.
func (c *Cluster) apply(manifest *unstructured.Unstructured, strategy workv1.UpdateStrategyType) {
	key := idOf(manifest)
	existing := c.objects[key]
	switch {
	case strategy == workv1.UpdateStrategyTypeReadOnly:
		return // even if the object does not exist
	case existing == nil:
		existing = manifest.DeepCopy()
		if strategy != workv1.UpdateStrategyTypeCreateOnly { // what is created otherwise belongs to another field manager
			delete(existing.Object, "spec")
		}
		c.objects[key] = existing
		c.merge(key, existing, manifest)
		existing.SetGeneration(1)
		return
	case strategy == workv1.UpdateStrategyTypeCreateOnly:
		return
	}
	c.merge(key, existing, manifest)
}

// merge writes the spec fields like server-side apply.
func (c *Cluster) merge(key id, existing, manifest *unstructured.Unstructured) {
	wanted, _, _ := unstructured.NestedMap(manifest.Object, "spec")
	spec, _, _ := unstructured.NestedMap(existing.Object, "spec")
	if len(wanted) > 0 && spec == nil {
		spec = map[string]any{}
	}
	before := fmt.Sprint(spec)
	c.applied[key] = fieldwise.Apply(spec, wanted, c.applied[key])
	if before == fmt.Sprint(spec) {
		return
	}
	existing.Object["spec"] = spec
	existing.SetGeneration(existing.GetGeneration() + 1)
}
