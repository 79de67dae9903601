// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Feedback holds what the agent reports about the current generation of a ManifestWork.
type Feedback struct {
	Applied   metav1.ConditionStatus // all manifests are applied; Unknown until the agent has tried it
	Available metav1.ConditionStatus // all objects of the manifests exist
	Message   string                 // why a manifest could not be applied, as one bounded line
	Deleting  bool                   // the work is being deleted: nothing in it counts
	Manifests []Manifest             // in the order of the spec
}

// IsApplied reports whether the agent has applied all manifests.
func (f *Feedback) IsApplied() bool { return f.Applied == metav1.ConditionTrue }

// Manifest holds what the agent reports about one manifest.
type Manifest struct {
	Group, Kind, Namespace, Name string

	// Each condition is Unknown unless it is of the current generation. Degraded and Complete need rules in the work.
	Applied, Available, Degraded, Complete metav1.ConditionStatus
	AppliedMessage, DegradedMessage        string // each as one bounded line
	NeedsComplete                          bool   // the work has a rule for Complete

	values values
}

// Read returns the feedback of a work. The work may be nil. Read never panics, whatever the status holds.
func Read(work *workv1.ManifestWork) *Feedback {
	if work == nil {
		work = &workv1.ManifestWork{}
	}
	f := &Feedback{Applied: metav1.ConditionUnknown, Available: metav1.ConditionUnknown, Deleting: !work.DeletionTimestamp.IsZero()}
	for i := range work.Spec.Workload.Manifests {
		m, _ := identify(&work.Spec.Workload.Manifests[i])
		f.Manifests = append(f.Manifests, readManifest(work, m))
	}
	if f.Deleting || len(f.Manifests) == 0 { // the latter is an edited work
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
			f.Applied = metav1.ConditionUnknown // the agent has not reported each manifest
		}
		if m.Available != metav1.ConditionTrue && f.Available == metav1.ConditionTrue {
			f.Available = metav1.ConditionUnknown
		}
	}
	return f
}

// IsTaken reports whether an agent has put its finalizer on a work, which it does before it applies anything.
func IsTaken(work *workv1.ManifestWork) bool {
	return slices.Contains(work.Finalizers, workv1.ManifestWorkFinalizer)
}

// MayBeApplied reports whether the agent has applied a manifest of a work, or may have without having reported it.
func MayBeApplied(work *workv1.ManifestWork) bool {
	f := Read(work)
	return f.IsApplied() || IsTaken(work) &&
		(f.Applied != metav1.ConditionFalse || slices.ContainsFunc(f.Manifests, func(m Manifest) bool { return m.Applied == metav1.ConditionTrue }))
}

// identify returns the identity of a manifest, and whether the manifest can be decoded.
func identify(m *workv1.Manifest) (Manifest, bool) {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(m.Raw, &o); err != nil {
		return Manifest{}, false
	}
	return Manifest{Group: o.GroupVersionKind().Group, Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}, true
}

// readManifest completes a manifest by what the agent reports about it. Two reports about one manifest are none.
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
		return m // the rest may be about the manifest of an older generation
	}
	// The agent does not set the generation of Available, and keeps the values of an object that it can no longer read.
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

// needsComplete reports whether an object has a rule for the condition Complete. The agent uses the first configuration with
// condition rules that matches.
func needsComplete(object *workv1.ManifestResourceMeta, configs []workv1.ManifestConfigOption) bool {
	for i := range configs {
		if len(configs[i].ConditionRules) == 0 || !Matches(object, &configs[i].ResourceIdentifier) {
			continue
		}
		return slices.ContainsFunc(configs[i].ConditionRules, func(r workv1.ConditionRule) bool { return r.Condition == workv1.ManifestComplete })
	}
	return false
}

// Matches reports whether an identifier of a configuration matches an object, as the agent does it: the name and the
// namespace may contain the wildcard *.
func Matches(object *workv1.ManifestResourceMeta, id *workv1.ResourceIdentifier) bool {
	return object.Group == id.Group && object.Resource == id.Resource &&
		text.MatchesAny(object.Namespace, []string{id.Namespace}) && text.MatchesAny(object.Name, []string{id.Name})
}

// find returns the only manifest of a kind and, if it is not empty, a name; otherwise nil.
func (f *Feedback) find(group, kind, namespace, name string) *Manifest {
	var found *Manifest
	for i := range f.Manifests {
		m := &f.Manifests[i]
		if m.Group != group || m.Kind != kind || name != "" && (m.Namespace != namespace || m.Name != name) {
			continue
		}
		if found != nil {
			return nil
		}
		found = m
	}
	return found
}

// Limits in bytes.
const (
	maxName    = 512  // of what identifies something: a version, a state, a pull spec, or a reason
	maxMessage = 1024 // longer messages are truncated
)

// Quality is whether a value can be used.
type Quality string

// Qualities of a value. Only a known one can be used.
const (
	Missing   Quality = "" // the agent does not report the value
	Known     Quality = "Known"
	Mistyped  Quality = "Mistyped"  // the value is of another type than its field
	Ambiguous Quality = "Ambiguous" // the value is reported more than once
	TooLong   Quality = "TooLong"   // the value is longer than any that its field can have
)

// Value is one reported value. Its text is empty unless it is Known.
type Value struct {
	Text    string
	Quality Quality
}

// IsKnown reports whether the value can be used.
func (v Value) IsKnown() bool { return v.Quality == Known }

// Is reports whether the value is known and equal to the given one.
func (v Value) Is(value string) bool { return v.IsKnown() && v.Text == value }

// values are the reported values of one manifest by their names.
type values map[string]value

type value struct {
	field     workv1.FieldValue
	ambiguous bool
}

func newValues(list []workv1.FeedbackValue) values {
	v := make(values, len(list))
	for i := range list {
		_, exists := v[list[i].Name]
		v[list[i].Name] = value{list[i].Value, exists}
	}
	return v
}

// read returns a value of the type, as text.
func (v values) read(name string, want workv1.ValueType) Value {
	got, ok := v[name]
	switch {
	case !ok:
		return Value{}
	case got.ambiguous:
		return Value{Quality: Ambiguous}
	case got.field.Type != want:
		return Value{Quality: Mistyped}
	}
	switch f := got.field; {
	case want == workv1.String && f.String != nil:
		return Value{*f.String, Known}
	case want == workv1.Boolean && f.Boolean != nil:
		return Value{strconv.FormatBool(*f.Boolean), Known}
	case want == workv1.Integer && f.Integer != nil:
		return Value{strconv.FormatInt(*f.Integer, 10), Known}
	}
	return Value{Quality: Mistyped}
}

// name returns a string that identifies something. An empty one is missing: no such field is set and empty.
func (v values) name(name string) Value {
	got := v.read(name, workv1.String)
	switch {
	case got.IsKnown() && got.Text == "":
		return Value{}
	case len(got.Text) > maxName:
		return Value{Quality: TooLong}
	}
	return got
}

// message returns a string for people, as one bounded line; empty if the value is not known.
func (v values) message(name string) string {
	return text.Sanitize(v.read(name, workv1.String).Text, maxMessage)
}

// Condition is a condition of an object on the cluster.
type Condition struct {
	Status          Value     // True, False, or Unknown
	Reason, Message string    // the words of the cluster, each as one bounded line
	Since           time.Time // of the status, by the clock of the cluster; zero if it is not known
}

// IsTrue reports whether the condition is known to be true.
func (c *Condition) IsTrue() bool { return c.Status.Is("True") }

// IsFalse reports whether the condition is known to be false.
func (c *Condition) IsFalse() bool { return c.Status.Is("False") }

func (v values) condition(prefix string) Condition {
	c := Condition{
		Status:  v.name(prefix + "Status"),
		Reason:  text.Sanitize(v.read(prefix+"Reason", workv1.String).Text, maxName),
		Message: v.message(prefix + "Message"),
	}
	if since, err := time.Parse(time.RFC3339, v.name(prefix+"Since").Text); err == nil {
		c.Since = since
	}
	return c
}
