// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"slices"
	"strings"
	"time"
)

// State is the state of a silence, by the clock of Alertmanager.
type State string

// The states of a silence.
const (
	Pending State = "pending" // it will silence
	Active  State = "active"  // it silences
	Expired State = "expired" // it no longer silences
)

// Silence suppresses the notifications of alerts while it is active.
type Silence struct {
	ID       string    // assigned by Alertmanager; empty for a new silence
	State    State     // as Alertmanager reports it
	Matchers []Matcher // an alert that matches all of them is silenced
	StartsAt time.Time
	EndsAt   time.Time
	// CreatedBy and Comment are for people.
	CreatedBy, Comment string
}

// InEffect reports whether the silence is active or will be.
func (s Silence) InEffect() bool { return s.State == Active || s.State == Pending }

// HasMatchers reports whether the silence has each of the matchers.
func (s Silence) HasMatchers(matchers ...Matcher) bool {
	return !slices.ContainsFunc(matchers, func(m Matcher) bool { return !slices.Contains(s.Matchers, m) })
}

// Matcher is a condition on a label of an alert. A label that the alert does not have counts as
// empty.
type Matcher struct {
	Name, Value string
	IsRegex     bool // whether the value is a regular expression for the whole label
	IsEqual     bool // whether the label must match; otherwise, it must not
}

// Equal matches a label of that value.
func Equal(name, value string) Matcher { return Matcher{Name: name, Value: value, IsEqual: true} }

// NotEqual matches a label of any other value.
func NotEqual(name, value string) Matcher { return Matcher{Name: name, Value: value} }

// Matches matches a label that the regular expression matches as a whole.
func Matches(name, pattern string) Matcher {
	return Matcher{Name: name, Value: pattern, IsRegex: true, IsEqual: true}
}

// NotMatches matches a label that the regular expression does not match as a whole.
func NotMatches(name, pattern string) Matcher {
	return Matcher{Name: name, Value: pattern, IsRegex: true}
}

// String returns the matcher in the syntax of Alertmanager, as in severity=~"info|warning".
func (m Matcher) String() string {
	operator := map[[2]bool]string{{false, true}: "=", {false, false}: "!=", {true, true}: "=~", {true, false}: "!~"}
	value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(m.Value)
	return m.Name + operator[[2]bool{m.IsRegex, m.IsEqual}] + `"` + value + `"`
}
