// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"

	workv1 "open-cluster-management.io/api/work/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// Stage is how far the upgrade of a platform to a target is.
type Stage string

// The stages of an upgrade.
const (
	// StageUnknown means that the feedback does not answer the question. It changes nothing.
	StageUnknown Stage = "Unknown"
	// StageNotAccepted means that the history lacks the target, or has only an entry of an earlier upgrade: the release of
	// the newest entry is older. A caller that has observed the target as the newest entry knows that it was replaced.
	StageNotAccepted Stage = "NotAccepted"
	StagePartial     Stage = "Partial" // the target is the newest entry, and is not complete
	// StageCompleted means that the target is Completed as the newest entry or below a newer release.
	StageCompleted  Stage = "Completed"
	StageSuperseded Stage = "Superseded" // the target is Partial below a newer release
)

// The states of entries in the history of a ClusterVersion.
const (
	stateCompleted = "Completed"
	statePartial   = "Partial"
)

// ClusterVersion holds what the agent reports about the ClusterVersion of the cluster.
type ClusterVersion struct {
	// Version, State, and Image come from the newest entry of the history.
	Version, State, Image Value
	// TargetState and TargetVersion come from the newest entry of the target.
	TargetState, TargetVersion Value
	// Message is the message of the condition Progressing. It is empty if it is not known.
	Message string
	// Failing, ReleaseAccepted, Upgradeable, and Invalid are conditions of the cluster version operator.
	Failing, ReleaseAccepted, Upgradeable, Invalid Condition

	// Channel, Installed, Offered, Conditional, and Recommended are reported by the work of a preflight only. Installed is
	// the newest release that is complete. Offered is the target if it is offered unconditionally. Conditional is the target
	// if it is offered with risks; the condition Recommended names them.
	Channel, Installed, Offered, Conditional Value
	Recommended                              Condition
	// Hold is the reason of the annotation that holds all upgrades of the cluster, which may be empty. It is
	// reported by the work of a preflight only; missing means that there is no annotation.
	Hold Value
	// Mode is spec.desiredUpdate.mode, reported by the work of a preflight only; missing means that it is not set.
	Mode Value

	observation
}

// observation holds the generation of an object, and the generation that its operator has observed.
type observation struct{ generation, observedGeneration Value }

func (v values) observation() observation {
	return observation{v.read("generation", workv1.Integer), v.read("observedGeneration", workv1.Integer)}
}

// IsObserved reports whether the conditions of the object are about its present spec, and not an earlier target.
func (o *observation) IsObserved() bool {
	return o.generation.IsKnown() && o.observedGeneration.Is(o.generation.Text)
}

// ClusterVersion returns what the agent reports about the ClusterVersion. All its values are missing if
// the work has none, or if it is not applied and available.
func (f *Feedback) ClusterVersion() ClusterVersion {
	m := f.find("config.openshift.io", "ClusterVersion", "", "")
	if m == nil {
		return ClusterVersion{}
	}
	v := m.values
	return ClusterVersion{
		Version: v.name("version"), State: v.name("state"), Image: v.name("image"),
		TargetState: v.name("targetState"), TargetVersion: v.name("targetVersion"),
		Message: v.message("message"),
		Failing: v.condition("Failing"), ReleaseAccepted: v.condition("ReleaseAccepted"),
		Upgradeable: v.condition("Upgradeable"), Invalid: v.condition("Invalid"),
		Channel: v.name("channel"), Installed: v.name("installed"), Offered: v.name("offered"),
		Conditional: v.name("conditional"), Recommended: v.condition("Recommended"),
		Hold: v.read("hold", workv1.String), Mode: v.read("mode", workv1.String),
		observation: v.observation(),
	}
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
	version := cmp.Or(target.Version, c.TargetVersion.Text)
	change, err := clusterstate.CompareVersions(c.Version.Text, version)
	if err != nil || target.Image != "" && !c.TargetVersion.Is(version) {
		return StageUnknown
	}
	switch isNewer := change == clusterstate.Downgrade; {
	case c.TargetState.Is(stateCompleted) && isNewer:
		return StageCompleted
	case c.TargetState.Is(statePartial) && isNewer:
		return StageSuperseded
	case c.TargetState.IsKnown():
		return StageNotAccepted
	}
	return StageUnknown
}

// UpgradeConfig holds what the agent reports about the UpgradeConfig of the cluster.
type UpgradeConfig struct {
	// Phase and Version come from the first entry of the history, which belongs to the requested version.
	Phase, Version Value
	// Message is the message of the condition Progressing.
	Message string
	// Accepted, Succeeded, and Slow are conditions. The operator of the release before calls Slow Stalled.
	Accepted, Succeeded, Slow Condition
	// HasSteps reports whether the agent reports a step.
	HasSteps bool
	// Commenced is the status of the step that commits.
	Commenced Value

	observation
}

// UpgradeConfig returns what the agent reports about the UpgradeConfig. All its values are missing if
// the work has none, or if it is not applied and available.
func (f *Feedback) UpgradeConfig() UpgradeConfig {
	m := f.find("upgrade.managed.openshift.io", "UpgradeConfig", "", "")
	if m == nil {
		return UpgradeConfig{}
	}
	v := m.values
	return UpgradeConfig{
		Phase: v.name("phase"), Version: v.name("version"), Message: v.message("message"),
		Accepted: v.condition("Accepted"), Succeeded: v.condition("Succeeded"), Slow: v.slow(),
		HasSteps: v.name("stepStatuses").Quality != Missing, Commenced: v.name("commenced"),
		observation: v.observation(),
	}
}

// slow returns the condition Slow. In the release before, which has neither Slow nor Ready, Stalled meant slow.
func (v values) slow() Condition {
	slow, ready := v.condition("Slow"), v.condition("Ready")
	if slow.Status.IsKnown() || ready.Status.IsKnown() {
		return slow
	}
	return v.condition("Stalled")
}
