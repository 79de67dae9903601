// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"encoding/json"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Feedback is what the agent reports about the current generation of a ManifestWork.
type Feedback struct {
	// Applied reports whether all manifests are applied. It is Unknown until the agent has tried it.
	Applied metav1.ConditionStatus
	// Available reports whether all objects of the manifests exist.
	Available metav1.ConditionStatus
	// Message is why a manifest could not be applied, as one bounded line. Empty means no problem.
	Message string
	// Deleting reports whether the work is being deleted: nothing in it counts any more.
	Deleting bool
	// Manifests are in the order of the spec.
	Manifests []Manifest
}

// Manifest is what the agent reports about one manifest.
type Manifest struct {
	Group, Kind, Namespace, Name string

	// Applied, Available, Degraded, and Complete are Unknown unless they are of the current generation.
	// The conditions Degraded and Complete exist only if there are rules for them.
	Applied, Available, Degraded, Complete metav1.ConditionStatus
	// AppliedMessage and DegradedMessage explain the conditions, each as one bounded line.
	AppliedMessage, DegradedMessage string
	// NeedsComplete reports whether the work has a rule for the condition Complete of this manifest.
	NeedsComplete bool

	values values
}

// Read returns the feedback of a work. It never panics, whatever the status holds.
func Read(work *workv1.ManifestWork) Feedback {
	f := Feedback{
		Applied:   metav1.ConditionUnknown,
		Available: metav1.ConditionUnknown,
		Deleting:  !work.DeletionTimestamp.IsZero(),
	}
	for i := range work.Spec.Workload.Manifests {
		f.Manifests = append(f.Manifests, readManifest(work, identify(&work.Spec.Workload.Manifests[i])))
	}
	if f.Deleting {
		return f
	}
	f.Applied = statusOf(work.Status.Conditions, workv1.WorkApplied, work.Generation)
	f.Available = statusOf(work.Status.Conditions, workv1.WorkAvailable, work.Generation)
	for i := range f.Manifests {
		m := &f.Manifests[i]
		if m.Applied == metav1.ConditionFalse && f.Message == "" {
			f.Message = m.AppliedMessage
		}
		if m.Applied != metav1.ConditionTrue && f.Applied == metav1.ConditionTrue {
			f.Applied = metav1.ConditionUnknown // The agent has not reported each manifest.
		}
		if m.Available != metav1.ConditionTrue && f.Available == metav1.ConditionTrue {
			f.Available = metav1.ConditionUnknown
		}
	}
	if len(f.Manifests) == 0 { // An edited work.
		f.Applied, f.Available = metav1.ConditionUnknown, metav1.ConditionUnknown
	}
	return f
}

// identify returns the identity of a manifest. It is empty if the manifest cannot be decoded.
func identify(manifest *workv1.Manifest) Manifest {
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(manifest.Raw, &object); err != nil {
		return Manifest{}
	}
	return Manifest{
		Group: schema.FromAPIVersionAndKind(object.APIVersion, object.Kind).Group, Kind: object.Kind,
		Namespace: object.Namespace, Name: object.Name,
	}
}

// readManifest completes a manifest by what the agent reports about it. Two reports about one manifest
// are none.
func readManifest(work *workv1.ManifestWork, m Manifest) Manifest {
	m.Applied, m.Available, m.Degraded, m.Complete = metav1.ConditionUnknown, metav1.ConditionUnknown, metav1.ConditionUnknown, metav1.ConditionUnknown
	var reported *workv1.ManifestCondition
	for i := range work.Status.ResourceStatus.Manifests {
		c := &work.Status.ResourceStatus.Manifests[i]
		if r := &c.ResourceMeta; r.Name == "" || r.Group != m.Group || r.Kind != m.Kind || r.Namespace != m.Namespace || r.Name != m.Name {
			continue
		}
		if reported != nil {
			return m
		}
		reported = c
	}
	if reported == nil || !work.DeletionTimestamp.IsZero() {
		return m
	}
	m.NeedsComplete = needsComplete(&reported.ResourceMeta, work.Spec.ManifestConfigs)
	m.Applied = statusOf(reported.Conditions, workv1.ManifestApplied, work.Generation)
	m.AppliedMessage = messageOf(reported.Conditions, workv1.ManifestApplied)
	if m.Applied != metav1.ConditionTrue {
		return m // All else may be about the manifest of an older generation.
	}
	// The agent does not set the generation of Available, and keeps the values of an object that it
	// cannot read any more.
	if available := apimeta.FindStatusCondition(reported.Conditions, workv1.ManifestAvailable); available != nil &&
		(available.ObservedGeneration == 0 || available.ObservedGeneration == work.Generation) {
		m.Available = known(available.Status)
	}
	m.Degraded = statusOf(reported.Conditions, workv1.ManifestDegraded, work.Generation)
	m.DegradedMessage = messageOf(reported.Conditions, workv1.ManifestDegraded)
	m.Complete = statusOf(reported.Conditions, workv1.ManifestComplete, work.Generation)
	if m.Available == metav1.ConditionTrue {
		m.values = newValues(reported.StatusFeedbacks.Values)
	}
	return m
}

// statusOf returns the status of a condition of this generation, or Unknown.
func statusOf(conditions []metav1.Condition, name string, generation int64) metav1.ConditionStatus {
	c := apimeta.FindStatusCondition(conditions, name)
	if c == nil || c.ObservedGeneration != generation {
		return metav1.ConditionUnknown
	}
	return known(c.Status)
}

func known(status metav1.ConditionStatus) metav1.ConditionStatus {
	if status == metav1.ConditionTrue || status == metav1.ConditionFalse {
		return status
	}
	return metav1.ConditionUnknown
}

func messageOf(conditions []metav1.Condition, name string) string {
	if c := apimeta.FindStatusCondition(conditions, name); c != nil {
		return text.Sanitize(c.Message, maxMessage)
	}
	return ""
}

// needsComplete reports whether the first configuration with condition rules that matches an object has
// one for the condition Complete. The agent uses the first one, too.
func needsComplete(object *workv1.ManifestResourceMeta, configs []workv1.ManifestConfigOption) bool {
	for i := range configs {
		if len(configs[i].ConditionRules) == 0 || !Matches(object, &configs[i].ResourceIdentifier) {
			continue
		}
		for j := range configs[i].ConditionRules {
			if configs[i].ConditionRules[j].Condition == workv1.ManifestComplete {
				return true
			}
		}
		return false
	}
	return false
}

// Matches reports whether an identifier of a configuration matches an object, as the agent does it: the
// name and the namespace may contain the wildcard *.
func Matches(object *workv1.ManifestResourceMeta, id *workv1.ResourceIdentifier) bool {
	return object.Group == id.Group && object.Resource == id.Resource &&
		text.MatchesAny(object.Namespace, []string{id.Namespace}) && text.MatchesAny(object.Name, []string{id.Name})
}

// find returns the only manifest of the kind, or nil.
func (f *Feedback) find(group, kind string) *Manifest {
	var found *Manifest
	for i := range f.Manifests {
		if m := &f.Manifests[i]; m.Group == group && m.Kind == kind {
			if found != nil {
				return nil
			}
			found = m
		}
	}
	return found
}
