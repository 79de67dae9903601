// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Finalizer is the agent's finalizer on ManifestWorks.
const Finalizer = "cluster.open-cluster-management.io/manifest-work-cleanup"

// Apply applies a work and returns its status.
func (c *Cluster) Apply(work *workv1.ManifestWork, now time.Time) workv1.ManifestWorkStatus {
	status := workv1.ManifestWorkStatus{}
	applied, available := metav1.ConditionTrue, metav1.ConditionTrue
	var owned []id
	for i := range work.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		if err := manifest.UnmarshalJSON(work.Spec.Workload.Manifests[i].Raw); err != nil {
			applied = metav1.ConditionFalse
			continue
		}
		option := optionOf(work, manifest)
		strategy := workv1.UpdateStrategyTypeUpdate
		if option != nil && option.UpdateStrategy != nil {
			strategy = option.UpdateStrategy.Type
		}
		reported := workv1.ManifestCondition{ResourceMeta: metaOf(int32(i), manifest)}
		const message = "applied"
		c.apply(manifest, strategy)
		if !isOrphaned(work, manifest) {
			owned = append(owned, idOf(manifest))
		}
		isAvailable := metav1.ConditionTrue
		if c.objects[idOf(manifest)] == nil {
			isAvailable, available = metav1.ConditionFalse, metav1.ConditionFalse
		}
		reported.Conditions = []metav1.Condition{
			condition(workv1.ManifestApplied, metav1.ConditionTrue, work.Generation, message, now),
			condition(workv1.ManifestAvailable, isAvailable, 0, message, now),
		}
		more := c.Conditions[manifest.GetKind()+" "+manifest.GetName()]
		for _, name := range slices.Sorted(maps.Keys(more)) {
			reported.Conditions = append(reported.Conditions, condition(name, more[name], work.Generation, "by its rule", now))
		}
		if option != nil && isAvailable == metav1.ConditionTrue {
			reported.StatusFeedbacks.Values = c.report(c.objects[idOf(manifest)], option.FeedbackRules)
		}
		status.ResourceStatus.Manifests = append(status.ResourceStatus.Manifests, reported)
	}
	former := c.works[work.Name]
	c.works[work.Name] = owned
	for _, key := range former { // objects that only an earlier generation of the work contained
		if !slices.Contains(owned, key) && !c.isOrphanedID(work, key) {
			c.release(key)
		}
	}
	status.Conditions = []metav1.Condition{
		condition(workv1.WorkApplied, applied, work.Generation, "", now), condition(workv1.WorkAvailable, available, work.Generation, "", now),
	}
	return status
}

// Delete deletes the objects of a deleted work, except those that were orphaned when it was last
// applied: a change of deleteOption has no effect until it is applied.
func (c *Cluster) Delete(work *workv1.ManifestWork) {
	former := c.works[work.Name]
	delete(c.works, work.Name)
	for _, key := range former {
		c.release(key)
	}
}

// release deletes an object that a work no longer owns, unless another work also contains it.
func (c *Cluster) release(key id) {
	for _, owned := range c.works {
		if slices.Contains(owned, key) {
			return
		}
	}
	delete(c.objects, key)
	delete(c.applied, key)
}

func condition(name string, status metav1.ConditionStatus, generation int64, message string, now time.Time) metav1.Condition {
	return metav1.Condition{
		Type: name, Status: status, ObservedGeneration: generation, Reason: "Agent", Message: message,
		LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
	}
}

func metaOf(ordinal int32, o *unstructured.Unstructured) workv1.ManifestResourceMeta {
	kind := o.GroupVersionKind()
	return workv1.ManifestResourceMeta{
		Ordinal: ordinal, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Resource: resourceOf(kind.Kind),
		Namespace: o.GetNamespace(), Name: o.GetName(),
	}
}

func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// optionOf returns the first configuration for a manifest, or nil.
func optionOf(work *workv1.ManifestWork, o *unstructured.Unstructured) *workv1.ManifestConfigOption {
	for i := range work.Spec.ManifestConfigs {
		if r := &work.Spec.ManifestConfigs[i].ResourceIdentifier; r.Group == o.GroupVersionKind().Group && r.Resource == resourceOf(o.GetKind()) &&
			r.Namespace == o.GetNamespace() && r.Name == o.GetName() {
			return &work.Spec.ManifestConfigs[i]
		}
	}
	return nil
}

func isOrphaned(work *workv1.ManifestWork, o *unstructured.Unstructured) bool {
	option := work.Spec.DeleteOption
	if option == nil {
		return false
	}
	if option.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan {
		return true
	}
	return option.SelectivelyOrphan != nil && slices.Contains(option.SelectivelyOrphan.OrphaningRules, workv1.OrphaningRule{
		Group: o.GroupVersionKind().Group, Resource: resourceOf(o.GetKind()), Namespace: o.GetNamespace(), Name: o.GetName(),
	})
}

func (c *Cluster) isOrphanedID(work *workv1.ManifestWork, key id) bool {
	o := c.objects[key]
	return o == nil || isOrphaned(work, o)
}

// report returns the feedback values of an object.
func (c *Cluster) report(o *unstructured.Unstructured, rules []workv1.FeedbackRule) []workv1.FeedbackValue {
	var values []workv1.FeedbackValue
	for i := range rules {
		for _, path := range rules[i].JsonPaths {
			if value, err := Evaluate(o.Object, path, c.RawJSON); err == nil && value != nil {
				values = append(values, *value)
			}
		}
	}
	return values
}
