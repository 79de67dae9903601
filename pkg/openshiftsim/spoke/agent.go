// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Apply applies a work and returns its status. Conditions with unchanged status keep their
// transition times.
func (c *Cluster) Apply(work *workv1.ManifestWork, now time.Time) workv1.ManifestWorkStatus {
	status := workv1.ManifestWorkStatus{}
	allApplied, allAvailable := true, true
	former, owned := c.works[work.Name], []id(nil)
	for i := range work.Spec.Workload.Manifests {
		manifest := &unstructured.Unstructured{}
		failure := manifest.UnmarshalJSON(work.Spec.Workload.Manifests[i].Raw)
		if failure == nil {
			strategy := strategyOf(work, manifest)
			c.apply(manifest, strategy)
			owns := !isOrphaned(work, manifest)
			if strategy == workv1.UpdateStrategyTypeReadOnly { // nothing is written, so the owner stays
				owns = slices.Contains(former, idOf(manifest))
			}
			if owns {
				owned = append(owned, idOf(manifest))
			}
		}
		allApplied, allAvailable = allApplied && failure == nil, allAvailable && c.objects[idOf(manifest)] != nil
		status.ResourceStatus.Manifests = append(status.ResourceStatus.Manifests, c.report(work, i, manifest, failure, now))
	}
	c.works[work.Name] = owned
	for _, key := range former { // objects that only an earlier generation of the work contained
		if !slices.Contains(owned, key) && !c.isOrphanedID(work, key) {
			c.release(key)
		}
	}
	status.Conditions = keepTimes(work.Status.Conditions,
		condition(workv1.WorkApplied, allApplied, work.Generation, "AppliedManifestWork", now),
		condition(workv1.WorkAvailable, allAvailable, work.Generation, "Resources", now))
	return status
}

// report returns what the agent reports about a manifest.
func (c *Cluster) report(work *workv1.ManifestWork, ordinal int, manifest *unstructured.Unstructured, failure error, now time.Time) workv1.ManifestCondition {
	reported := workv1.ManifestCondition{ResourceMeta: metaOf(int32(ordinal), manifest)}
	found := c.objects[idOf(manifest)]
	applied := condition(workv1.ManifestApplied, failure == nil, work.Generation, "AppliedManifest", now)
	if failure != nil {
		applied.Message = "Failed to apply manifest: " + failure.Error()
	}
	conditions := []metav1.Condition{applied, condition(workv1.ManifestAvailable, found != nil, 0, "Resource", now)} // without a generation, like the real agent
	more := c.Conditions[manifest.GetKind()+" "+manifest.GetName()]
	for _, name := range slices.Sorted(maps.Keys(more)) {
		conditions = append(conditions, metav1.Condition{
			Type: name, Status: more[name], ObservedGeneration: work.Generation, Reason: "Rule", Message: "by its rule", LastTransitionTime: second(now),
		})
	}
	var before workv1.ManifestCondition
	for _, old := range work.Status.ResourceStatus.Manifests {
		if old.ResourceMeta == reported.ResourceMeta {
			before = old
		}
	}
	if found != nil {
		var about metav1.Condition
		reported.StatusFeedbacks.Values, about = c.feedback(found, optionOf(work, manifest, func(o *workv1.ManifestConfigOption) bool { return len(o.FeedbackRules) > 0 }))
		about.LastTransitionTime = second(now)
		conditions = append(conditions, about)
	} else { // the last values stay
		reported.StatusFeedbacks = before.StatusFeedbacks
		if about := apimeta.FindStatusCondition(before.Conditions, feedbackSynced); about != nil {
			conditions = append(conditions, *about)
		}
	}
	reported.Conditions = keepTimes(before.Conditions, conditions...)
	return reported
}

// keepTimes returns the new conditions. Those with unchanged status keep their previous transition
// time.
func keepTimes(before []metav1.Condition, after ...metav1.Condition) []metav1.Condition {
	for i := range after {
		if old := apimeta.FindStatusCondition(before, after[i].Type); old != nil && old.Status == after[i].Status {
			after[i].LastTransitionTime = old.LastTransitionTime
		}
	}
	return after
}

// Answer processes a work on the hub like the agent: it applies the work and reports its status, or
// deletes the objects of a deleted work. Before the report, it calls applied (unless nil) with the
// release that the work newly requests, or with an empty string if there is none.
func (c *Cluster) Answer(ctx context.Context, hub client.Client, work *workv1.ManifestWork, now time.Time, applied func(release string)) error {
	if !work.DeletionTimestamp.IsZero() {
		c.Delete(work)
		if !controllerutil.RemoveFinalizer(work, workv1.ManifestWorkFinalizer) {
			return nil
		}
		return hub.Update(ctx, work)
	}
	if controllerutil.AddFinalizer(work, workv1.ManifestWorkFinalizer) {
		if err := hub.Update(ctx, work); err != nil {
			return err
		}
	}
	before := c.Desired()
	reported := work.Status
	work.Status = c.Apply(work, now)
	release := c.Desired()
	if release == before {
		release = ""
	}
	if applied != nil {
		applied(release)
	}
	if c.Mute || equality.Semantic.DeepEqual(reported, work.Status) {
		return nil
	}
	return hub.Status().Update(ctx, work)
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

// condition returns a condition of a work or a manifest with the reason that the agent uses.
func condition(name string, holds bool, generation int64, subject string, now time.Time) metav1.Condition {
	c := metav1.Condition{
		Type: name, Status: metav1.ConditionFalse, ObservedGeneration: generation, Reason: subject + "Failed", Message: "It failed", LastTransitionTime: second(now),
	}
	if holds {
		c.Status, c.Reason, c.Message = metav1.ConditionTrue, subject+"Complete", "It is complete"
	}
	if name == workv1.WorkAvailable {
		c.Reason, c.Message = subject+"Available", subject+" is available"
		if !holds {
			c.Reason, c.Message = subject+"NotAvailable", subject+" is not available"
		}
	}
	return c
}

func second(t time.Time) metav1.Time { return metav1.NewTime(t.Truncate(time.Second)) }

func metaOf(ordinal int32, o *unstructured.Unstructured) workv1.ManifestResourceMeta {
	kind := o.GroupVersionKind()
	return workv1.ManifestResourceMeta{
		Ordinal: ordinal, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Resource: resourceOf(kind.Kind),
		Namespace: o.GetNamespace(), Name: o.GetName(),
	}
}

func resourceOf(kind string) string { return strings.ToLower(kind) + "s" }

// optionOf returns the first configuration for a manifest for which has returns true, or nil.
func optionOf(work *workv1.ManifestWork, o *unstructured.Unstructured, has func(*workv1.ManifestConfigOption) bool) *workv1.ManifestConfigOption {
	for i := range work.Spec.ManifestConfigs {
		option := &work.Spec.ManifestConfigs[i]
		if r := &option.ResourceIdentifier; has(option) && r.Group == o.GroupVersionKind().Group && r.Resource == resourceOf(o.GetKind()) &&
			text.MatchesAny(o.GetNamespace(), []string{r.Namespace}) && text.MatchesAny(o.GetName(), []string{r.Name}) {
			return option
		}
	}
	return nil
}

func strategyOf(work *workv1.ManifestWork, o *unstructured.Unstructured) workv1.UpdateStrategyType {
	if option := optionOf(work, o, func(o *workv1.ManifestConfigOption) bool { return o.UpdateStrategy != nil }); option != nil {
		return option.UpdateStrategy.Type
	}
	return workv1.UpdateStrategyTypeUpdate
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
