// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pause

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// State describes whether an update is paused.
type State string

// States of an update.
const (
	// NotPaused is the state if nothing pauses the update.
	NotPaused State = ""
	// PausedUntil is the state if the update is paused until a known time.
	PausedUntil State = "Until"
	// Paused is the state if the update is paused until a user ends the pause.
	Paused State = "Paused"
	// Unknown is the state if it is unknown whether the update is paused.
	Unknown State = "Unknown"
)

// Pause describes the pause of an update. The zero value is not a pause.
type Pause struct {
	State State
	// Until is when the update resumes, after all consecutive pauses, or zero if that is unknown.
	Until time.Time
	// Message lists everything that currently pauses the update, in sentences.
	Message string
}

// Subject describes the target of the update: the control plane or a pool.
type Subject struct {
	// Kind is the kind of the object, used in messages.
	Kind string
	// VersionManagement is the object's spec.versionManagement as decoded from JSON, or nil.
	VersionManagement any
	// Missing, if set, is the reason why spec.versionManagement cannot be read.
	Missing string
	// Started reports that the control plane update has started. It cannot be interrupted, so windows
	// and exclusions no longer pause it.
	Started bool
	// Pool is the MachineConfigPool, or nil for other subjects. PoolUpToDate reports that it has
	// nothing to update.
	Pool         *clusterstate.Pool
	PoolUpToDate bool
}

// Of returns the pause of a subject's update. cluster is the subject of the control plane, whose
// pauses also apply to every pool; it is nil if the subject is the control plane itself. Windows of
// the cluster apply to pools even after the control plane update has started.
func Of(subject Subject, cluster *Subject, now time.Time) Pause {
	var all []rule
	if cluster != nil {
		whole := *cluster
		whole.Started = false
		rules, err := whole.rules(now)
		if err != nil {
			return Pause{State: Unknown, Message: err.Error()}
		}
		for i := range rules {
			rules[i].message = "Updates paused at cluster level. " + rules[i].message
		}
		all = rules
	}
	rules, err := subject.rules(now)
	if err != nil {
		return Pause{State: Unknown, Message: err.Error()}
	}
	return combine(append(all, rules...), now)
}

// rule is a possible pause.
type rule struct {
	// message describes the pause while the rule is in effect.
	message string
	// latest reports that the pause may end before end.
	latest bool
	// end returns the first time at or after at when the rule does not pause the update, or errNever.
	end func(at time.Time) (time.Time, error)
}

func (s Subject) rules(now time.Time) ([]rule, error) {
	if s.Missing != "" {
		return nil, errors.New(s.Kind + " " + field + " cannot be read: " + s.Missing + ".")
	}
	managed, err := parse(s.VersionManagement)
	if err != nil {
		return nil, errors.New(s.Kind + " " + err.Error() + ".")
	}
	rules := managed.rules(s.Kind, s.Started)
	if s.Pool != nil && s.Pool.Paused {
		rules = append(rules, poolRule(*s.Pool, s.PoolUpToDate, now))
	}
	return rules, nil
}

func (m management) rules(kind string, started bool) []rule {
	var rules []rule
	switch {
	case m.paused:
		rules = append(rules, rule{message: kind + " " + field + ".pausedUntil is true.", end: never})
	case !m.pausedUntil.IsZero():
		rules = append(rules, rule{message: kind + " " + field + ".pausedUntil is " + text.FormatTime(m.pausedUntil) + ".", end: until(m.pausedUntil)})
	}
	if started {
		return rules
	}
	if m.window != nil {
		rules = append(rules, rule{message: "Outside " + kind + " maintenance window.", end: m.window.end})
	}
	for _, e := range m.exclusions {
		rules = append(rules, rule{
			message: "Inside " + kind + " exclusion window.",
			end:     func(at time.Time) (time.Time, error) { return e.endAfter(at), nil },
		})
	}
	return rules
}

// poolRule returns the rule for a paused MachineConfigPool.
func poolRule(pool clusterstate.Pool, upToDate bool, now time.Time) rule {
	name := "MachineConfigPool " + pool.Name
	switch release := clusterstate.ReleaseOf(pool, upToDate, now); release.State {
	case clusterstate.ReleaseLater:
		return rule{message: name + " is paused by an upgrade until " + text.FormatTime(release.At) + ".", end: until(release.At)}
	case clusterstate.ReleaseNow:
		return rule{message: name + " is paused by an upgrade, which unpauses it before " + text.FormatTime(release.At) + ".", latest: true, end: until(release.At)}
	case clusterstate.ReleaseKept:
		return rule{message: name + " is paused by an upgrade that failed, until a person unpauses it.", end: never}
	case clusterstate.ReleaseMissed:
		return rule{message: name + " is paused: an UpgradeJob did not unpause it before " + text.FormatTime(release.At) + ".", end: never}
	case clusterstate.ReleaseNotOurs:
	}
	return rule{message: name + " is paused.", end: never}
}

// maxPauses is the maximum number of consecutive pauses that are followed to determine when an
// update resumes.
const maxPauses = 2000

// combine returns the combined pause of all rules.
func combine(rules []rule, now time.Time) Pause {
	var messages []string
	preposition := "at"
	for _, r := range rules {
		if end, err := r.end(now); err == nil && !end.After(now) || slices.Contains(messages, r.message) {
			continue
		}
		messages = append(messages, r.message)
		if r.latest {
			preposition = "by"
		}
	}
	if len(messages) == 0 {
		return Pause{}
	}
	paused := Pause{State: Paused, Message: strings.Join(messages, " ")}
	if at, found := resume(rules, now); found {
		paused.State, paused.Until = PausedUntil, at
		paused.Message += " The update resumes " + preposition + " " + text.FormatTime(at) + "."
	}
	return paused
}

// resume returns the first time when no rule pauses the update, or false if there is none.
func resume(rules []rule, now time.Time) (time.Time, bool) {
	at := now
	for range maxPauses {
		before := at
		for _, r := range rules {
			end, err := r.end(at)
			if err != nil {
				return time.Time{}, false
			}
			at = end
		}
		if at.Equal(before) {
			return at, true
		}
	}
	return time.Time{}, false
}

func never(time.Time) (time.Time, error) { return time.Time{}, errNever }

func until(end time.Time) func(time.Time) (time.Time, error) {
	return func(at time.Time) (time.Time, error) {
		if end.After(at) {
			return end.UTC(), nil
		}
		return at, nil
	}
}
