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
	"k8s.io/apimachinery/pkg/runtime/schema"
	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Feedback holds what the agent reports about the current generation of a ManifestWork.
type Feedback struct {
	// Applied reports whether all manifests are applied. It is Unknown until the agent has tried it.
	Applied metav1.ConditionStatus
	// Available reports whether all objects of the manifests exist.
	Available metav1.ConditionStatus
	// Message is why a manifest could not be applied, as one bounded line. Empty means no problem.
	Message string
	// Deleting reports whether the work is being deleted: nothing in it counts then.
	Deleting bool
	// Manifests are in the order of the spec.
	Manifests []Manifest
}

// Manifest holds what the agent reports about one manifest.
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
func Read(work *workv1.ManifestWork) *Feedback {
	f := &Feedback{Applied: metav1.ConditionUnknown, Available: metav1.ConditionUnknown, Deleting: !work.DeletionTimestamp.IsZero()}
	for i := range work.Spec.Workload.Manifests {
		f.Manifests = append(f.Manifests, readManifest(work, identify(&work.Spec.Workload.Manifests[i])))
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
			f.Applied = metav1.ConditionUnknown // The agent has not reported each manifest.
		}
		if m.Available != metav1.ConditionTrue && f.Available == metav1.ConditionTrue {
			f.Available = metav1.ConditionUnknown
		}
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
		return m // All else may be about the manifest of an older generation.
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

// needsComplete reports whether the first configuration with condition rules that matches an object has one for the
// condition Complete. The agent also uses the first one.
func needsComplete(object *workv1.ManifestResourceMeta, configs []workv1.ManifestConfigOption) bool {
	for i := range configs {
		if len(configs[i].ConditionRules) == 0 || !Matches(object, &configs[i].ResourceIdentifier) {
			continue
		}
		return slices.ContainsFunc(configs[i].ConditionRules, func(r workv1.ConditionRule) bool { return r.Condition == workv1.ManifestComplete })
	}
	return false
}

// Matches reports whether an identifier of a configuration matches an object, as the agent does it: the
// name and the namespace may contain the wildcard *.
func Matches(object *workv1.ManifestResourceMeta, id *workv1.ResourceIdentifier) bool {
	return object.Group == id.Group && object.Resource == id.Resource &&
		text.MatchesAny(object.Namespace, []string{id.Namespace}) && text.MatchesAny(object.Name, []string{id.Name})
}

// find returns the only manifest of the kind, or nil. Without a name, it may have any.
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

const maxName = 512 // bounds what identifies something: a version, a state, a pull spec, or a reason, in bytes

// maxMessage bounds a message, in bytes. Longer ones are truncated.
const maxMessage = 1024

// Quality is whether a value can be used.
type Quality string

// The qualities of a value.
const (
	// Missing is a value that the agent does not report. It is the zero Quality.
	Missing   Quality = ""
	Known     Quality = "Known"     // a value that can be used
	Mistyped  Quality = "Mistyped"  // a value of another type than its field has
	Ambiguous Quality = "Ambiguous" // a value that is reported more than once
	TooLong   Quality = "TooLong"   // a value that is longer than any that its field can have
)

// Value is one reported value. The text of a value that is not Known is empty.
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

// name returns a string that identifies something. An empty one is missing: no such field is ever empty if it is set.
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

// message returns a string for people, as one bounded line. It is empty if the value is not known.
func (v values) message(name string) string {
	return text.Sanitize(v.read(name, workv1.String).Text, maxMessage)
}

// Condition is a condition of an object on the cluster.
type Condition struct {
	// Status is True, False, or Unknown.
	Status Value
	// Reason and Message are the words of the cluster, each as one bounded line.
	Reason, Message string
	// Since is when the status last changed, by the clock of the cluster. Zero means not known.
	Since time.Time
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
