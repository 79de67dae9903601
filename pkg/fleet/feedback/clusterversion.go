// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"github.com/blang/semver/v4"
	workv1 "open-cluster-management.io/api/work/v1"
)

// Stage is how far the upgrade of a platform to a target is.
type Stage string

const (
	// StageUnknown means that the feedback does not answer the question. It changes nothing.
	StageUnknown Stage = "Unknown"
	// StageNotAccepted means that the history lacks the target, or has only an entry of an earlier
	// upgrade: the release of the newest entry is older. A caller that has observed the target as the
	// newest entry knows that it was replaced.
	StageNotAccepted Stage = "NotAccepted"
	// StagePartial means that the target is the newest entry, and is not complete.
	StagePartial Stage = "Partial"
	// StageCompleted means that the newest entry is the target and is Completed, or that the target is
	// Completed below a newer release.
	StageCompleted Stage = "Completed"
	// StageSuperseded means that the target is Partial below a newer release.
	StageSuperseded Stage = "Superseded"
)

// The states of entries in the history of a ClusterVersion.
const (
	stateCompleted = "Completed"
	statePartial   = "Partial"
)

// ClusterVersion is what the agent reports about the ClusterVersion of the cluster.
type ClusterVersion struct {
	// Version, State, Verified, and Image are those of the newest entry of the history. Verified is
	// true or false.
	Version, State, Verified, Image Value
	// TargetState and TargetVersion are those of the newest entry of the target.
	TargetState, TargetVersion Value
	// Message is the message of the condition Progressing. It is empty if it is not known.
	Message string
	// Failing, ReleaseAccepted, Upgradeable, and Invalid are conditions of the cluster version
	// operator.
	Failing, ReleaseAccepted, Upgradeable, Invalid Condition

	// Channel, Installed, Offered, Conditional, and Recommended are reported by the work of a preflight
	// only. Installed is the newest release that is complete. Offered is the target if it is offered
	// unconditionally. Conditional is the target if it is offered with risks; the condition Recommended
	// names them.
	Channel, Installed, Offered, Conditional Value
	Recommended                              Condition
	// Hold is the reason of the annotation that holds all upgrades of the cluster, which may be empty. It is
	// reported by the work of a preflight only; missing means that there is no annotation.
	Hold Value

	generation, observedGeneration Value
}

// ClusterVersion returns what the agent reports about the ClusterVersion. All its values are missing if
// the work has none, or if it is not applied and available.
func (f *Feedback) ClusterVersion() ClusterVersion {
	m := f.find("config.openshift.io", "ClusterVersion")
	if m == nil {
		return ClusterVersion{}
	}
	v := m.values
	return ClusterVersion{
		Version: v.name(nameVersion), State: v.name(nameState), Verified: v.read(nameVerified, workv1.Boolean), Image: v.name(nameImage),
		TargetState: v.name(nameTargetState), TargetVersion: v.name(nameTargetVersion),
		Message: v.message(nameMessage),
		Failing: v.condition("Failing"), ReleaseAccepted: v.condition("ReleaseAccepted"),
		Upgradeable: v.condition("Upgradeable"), Invalid: v.condition("Invalid"),
		Channel: v.name(nameChannel), Installed: v.name(nameInstalled), Offered: v.name(nameOffered),
		Conditional: v.name(nameConditional), Recommended: v.condition("Recommended"),
		Hold:       v.read(nameHold, workv1.String),
		generation: v.read(nameGeneration, workv1.Integer), observedGeneration: v.read(nameObservedGeneration, workv1.Integer),
	}
}

// IsObserved reports whether the cluster version operator is known to have observed the spec of the
// ClusterVersion. Without that, its conditions may be about an earlier target.
func (c *ClusterVersion) IsObserved() bool {
	return c.generation.IsKnown() && c.observedGeneration.Is(c.generation.Text)
}

// Stage returns how far the upgrade to the target is.
func (c *ClusterVersion) Stage(target Target) Stage {
	if target == (Target{}) || !c.Version.IsKnown() || target.Image != "" && !c.Image.IsKnown() {
		return StageUnknown
	}
	if (target.Version == "" || c.Version.Is(target.Version)) && (target.Image == "" || c.Image.Is(target.Image)) {
		switch {
		case c.State.Is(stateCompleted):
			return StageCompleted
		case c.State.Is(statePartial):
			return StagePartial
		}
		return StageUnknown
	}
	return c.stageBelow(target)
}

// stageBelow returns the stage if another release is the newest entry.
func (c *ClusterVersion) stageBelow(target Target) Stage {
	if c.TargetState.Quality == Missing {
		return StageNotAccepted
	}
	version := target.Version
	if version == "" {
		version = c.TargetVersion.Text
	}
	newest, err := semver.Parse(c.Version.Text)
	if err != nil {
		return StageUnknown
	}
	wanted, err := semver.Parse(version)
	if err != nil || target.Image != "" && !c.TargetVersion.Is(version) {
		return StageUnknown
	}
	switch isNewer := newest.GT(wanted); {
	case c.TargetState.Is(stateCompleted) && isNewer:
		return StageCompleted
	case c.TargetState.Is(statePartial) && isNewer:
		return StageSuperseded
	case c.TargetState.IsKnown():
		return StageNotAccepted
	}
	return StageUnknown
}
