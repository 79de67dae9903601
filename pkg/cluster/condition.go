// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	configv1 "github.com/openshift/api/config/v1"
)

// Condition is what an object reports about itself under one type. The zero
// Condition is one that is not reported.
type Condition struct {
	Status  string // True, False or Unknown; empty if it is not reported
	Reason  string
	Message string
}

// IsTrue says whether the condition is reported to hold.
func (c Condition) IsTrue() bool { return c.Status == string(configv1.ConditionTrue) }

// IsFalse says whether the condition is reported not to hold.
func (c Condition) IsFalse() bool { return c.Status == string(configv1.ConditionFalse) }

// Text is the condition's message in one bounded line, or else its reason.
func (c Condition) Text() string {
	return cmp.Or(brief(c.Message), Brief(c.Reason))
}

// Brief is a text of somebody else's in one bounded line.
func Brief(text string) string { return cmp.Or(brief(text), "no reason is given") }

// Why is the condition's reason and message in one bounded line.
func (c Condition) Why() string {
	reason, message := brief(c.Reason), brief(c.Message)
	if reason == "" || message == "" {
		return c.Text()
	}
	return reason + ": " + message
}

func condition(conditions []configv1.ClusterOperatorStatusCondition, name configv1.ClusterStatusConditionType) Condition {
	for i := range conditions {
		if c := &conditions[i]; c.Type == name {
			return Condition{Status: string(c.Status), Reason: c.Reason, Message: c.Message}
		}
	}
	return Condition{}
}

// maxText bounds a text of somebody else's within a message of ours, in bytes.
const maxText = 512

// brief makes one bounded line of a text, without what cannot be printed.
func brief(text string) string {
	cut := len(text) > 4*maxText // long before what is kept of it: white space shrinks
	if cut {
		text = text[:4*maxText]
	}
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), unprintable), " ")
	if len(text) > maxText {
		cut = true
		end := maxText
		for !utf8.RuneStart(text[end]) {
			end--
		}
		text = text[:end]
	}
	if cut {
		text += "…"
	}
	return text
}

// unprintable are white space, control characters, and those that change how others are shown.
func unprintable(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }
