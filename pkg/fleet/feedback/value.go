// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"strconv"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxName bounds what identifies something: a version, a state, a pull spec, or a reason, in bytes.
const maxName = 512

// maxMessage bounds a message, in bytes. Longer ones are truncated.
const maxMessage = 1024

// Quality is whether a value can be used.
type Quality string

const (
	// Missing is a value that the agent does not report. It is the zero Quality.
	Missing Quality = ""
	// Known is a value that can be used.
	Known Quality = "Known"
	// Mistyped is a value of another type than its field has.
	Mistyped Quality = "Mistyped"
	// Ambiguous is a value that is reported more than once.
	Ambiguous Quality = "Ambiguous"
	// TooLong is a value that is longer than any that its field can have.
	TooLong Quality = "TooLong"
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
	case want == workv1.JsonRaw && f.JsonRaw != nil:
		return Value{*f.JsonRaw, Known}
	}
	return Value{Quality: Mistyped}
}

// name returns a string that identifies something. An empty one is missing: no such field is ever
// empty if it is set.
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

// condition returns the condition whose values have the prefix.
func (v values) condition(prefix string) Condition {
	c := Condition{
		Status:  v.name(prefix + suffixStatus),
		Reason:  text.Sanitize(v.read(prefix+suffixReason, workv1.String).Text, maxName),
		Message: v.message(prefix + suffixMessage),
	}
	if since, err := time.Parse(time.RFC3339, v.name(prefix+suffixSince).Text); err == nil {
		c.Since = since
	}
	return c
}
