// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package alertmanager

import (
	"slices"
	"strings"
	"time"
)

// SilenceState is the state of a silence according to Alertmanager's clock.
type SilenceState string

// States of a silence.
const (
	Pending SilenceState = "pending" // starts in the future
	Active  SilenceState = "active"  // suppresses notifications
	Expired SilenceState = "expired" // has ended
)

// Silence suppresses the notifications of alerts while it is active.
type Silence struct {
	ID       string       // assigned by Alertmanager; empty for a new silence
	State    SilenceState // as reported by Alertmanager
	Matchers []Matcher    // an alert is silenced if all of them match
	StartsAt time.Time
	EndsAt   time.Time
	// CreatedBy and Comment are shown to users.
	CreatedBy, Comment string
}

// InEffect reports whether the silence is active or pending.
func (s Silence) InEffect() bool { return s.State == Active || s.State == Pending }

// HasMatchers reports whether the silence has all of the matchers.
func (s Silence) HasMatchers(matchers ...Matcher) bool {
	return !slices.ContainsFunc(matchers, func(m Matcher) bool { return !slices.Contains(s.Matchers, m) })
}

// Matcher is a condition on a label of an alert. A missing label counts as empty.
type Matcher struct {
	Name, Value string
	IsRegex     bool // whether the value is a regular expression that must match the whole label
	IsEqual     bool // whether the label must match, rather than must not match
}

// Equal matches labels with this value.
func Equal(name, value string) Matcher { return Matcher{Name: name, Value: value, IsEqual: true} }

// NotEqual matches labels with any other value.
func NotEqual(name, value string) Matcher { return Matcher{Name: name, Value: value} }

// Matches matches labels that match the regular expression completely.
func Matches(name, pattern string) Matcher {
	return Matcher{Name: name, Value: pattern, IsRegex: true, IsEqual: true}
}

// NotMatches matches labels that do not match the regular expression completely.
func NotMatches(name, pattern string) Matcher {
	return Matcher{Name: name, Value: pattern, IsRegex: true}
}

// String returns the matcher in Alertmanager's syntax, as in severity=~"info|warning".
func (m Matcher) String() string {
	operator := map[[2]bool]string{{false, true}: "=", {false, false}: "!=", {true, true}: "=~", {true, false}: "!~"}
	value := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(m.Value)
	return m.Name + operator[[2]bool{m.IsRegex, m.IsEqual}] + `"` + value + `"`
}
