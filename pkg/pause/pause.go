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

// State is whether an update is paused.
type State string

// The states.
const (
	// NotPaused is an update that nothing pauses.
	NotPaused State = ""
	// PausedUntil is an update that is paused until a known time.
	PausedUntil State = "Until"
	// Paused is an update that is paused without an end: only a person ends the pause.
	Paused State = "Paused"
	// Unknown is an update of which it is not known whether it is paused.
	Unknown State = "Unknown"
)

// Pause describes what pauses an update. The zero Pause means that nothing does.
type Pause struct {
	State State
	// Until is when the update resumes, after every pause that follows; zero if no time is known.
	Until time.Time
	// Message names everything that pauses the update now, in sentences.
	Message string
}

// Subject describes what is updated: the control plane, or a pool.
type Subject struct {
	// Kind is the kind of the object, for messages.
	Kind string
	// VersionManagement is spec.versionManagement of the object, as it is decoded from JSON; nil if
	// the object has none.
	VersionManagement any
	// Missing is why spec.versionManagement cannot be read; empty if it can.
	Missing string
	// Started reports that the update of the control plane has begun. It cannot be interrupted, so
	// windows and exclusions do not pause it.
	Started bool
	// Pool is the MachineConfigPool; nil means the subject is none. PoolUpToDate reports that it has nothing to
	// update.
	Pool         *clusterstate.Pool
	PoolUpToDate bool
}

// Of returns what pauses the update of a subject. The cluster is the subject of the control plane,
// whose pauses hold for every pool; nil means the subject is the control plane itself. A window of the
// cluster holds for pools also after the update of the control plane has begun.
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

// rule is one possible pause.
type rule struct {
	// message describes what pauses the update, while the rule does.
	message string
	// latest reports that the pause ends at end at the latest, not exactly then.
	latest bool
	// end returns the first time, not before at, at which the rule pauses nothing. It is errNever if
	// there is none.
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

// poolRule returns the rule of a paused MachineConfigPool.
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

// maxPauses bounds the pauses that are followed one after the other to find when an update resumes.
const maxPauses = 2000

// combine returns what the rules pause together.
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

// resume returns the first time at which no rule pauses the update; false if there is none.
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
