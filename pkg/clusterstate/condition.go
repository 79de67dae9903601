// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

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

// MessageOrReason is the condition's message in one bounded line, or else its reason.
func (c Condition) MessageOrReason() string {
	return cmp.Or(sanitize(c.Message), Sanitize(c.Reason))
}

// Sanitize is a text of somebody else's in one bounded line.
func Sanitize(text string) string { return cmp.Or(sanitize(text), "no reason is given") }

// ReasonAndMessage is the condition's reason and message in one bounded line.
func (c Condition) ReasonAndMessage() string {
	reason, message := sanitize(c.Reason), sanitize(c.Message)
	if reason == "" || message == "" {
		return c.MessageOrReason()
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

// maxTextBytes bounds a text of somebody else's within a message of ours, in bytes.
const maxTextBytes = 512

// sanitize makes one bounded line of a text, without what cannot be printed.
func sanitize(text string) string {
	cut := len(text) > 4*maxTextBytes // long before what is kept of it: white space shrinks
	if cut {
		text = text[:4*maxTextBytes]
	}
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, ""), unprintable), " ")
	if len(text) > maxTextBytes {
		cut = true
		end := maxTextBytes
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
