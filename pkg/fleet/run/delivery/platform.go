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

// Stages of an upgrade. A target in the history counts as the newest entry, or below a newer release; below an older
// release, its entry belongs to an earlier upgrade.
const (
	StageUnknown     Stage = "Unknown"     // the feedback does not answer the question, and changes nothing
	StageNotAccepted Stage = "NotAccepted" // the target is not in the history, or was replaced after it had been the newest entry
	StagePartial     Stage = "Partial"     // the target is the newest entry, and is not complete
	StageCompleted   Stage = "Completed"
	StageSuperseded  Stage = "Superseded" // the target is Partial below a newer release
)

// States of entries in the history of a ClusterVersion.
const (
	stateCompleted = "Completed"
	statePartial   = "Partial"
)

// ClusterVersion holds what the agent reports about the ClusterVersion of the cluster.
type ClusterVersion struct {
	Version, State, Image                          Value  // of the newest entry of the history
	TargetState, TargetVersion                     Value  // of the newest entry of the target
	Message                                        string // of the condition Progressing; empty if it is not known
	Failing, ReleaseAccepted, Upgradeable, Invalid Condition

	// The rest is reported by the work of a preflight only.

	Channel     Value
	Installed   Value     // the newest complete release
	Offered     Value     // the target, if it is offered unconditionally
	Conditional Value     // the target, if it is offered with risks
	Recommended Condition // names the risks
	Hold        Value     // the reason, maybe empty, of the annotation that holds all upgrades of the cluster
	Mode        Value     // spec.desiredUpdate.mode

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

// ClusterVersion returns what the agent reports about the ClusterVersion. All values are missing if the work has none, or
// if it is not applied and available.
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
	Phase, Version            Value  // of the requested version: of the first entry of the history
	Message                   string // of the condition Progressing
	Accepted, Succeeded, Slow Condition
	HasSteps                  bool  // the agent reports a step
	Commenced                 Value // the status of the step that commits

	observation
}

// UpgradeConfig returns what the agent reports about the UpgradeConfig. All values are missing if the work has none, or if
// it is not applied and available.
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

// slow returns the condition Slow. An earlier release has neither Slow nor Ready: its Stalled says slow.
func (v values) slow() Condition {
	slow, ready := v.condition("Slow"), v.condition("Ready")
	if slow.Status.IsKnown() || ready.Status.IsKnown() {
		return slow
	}
	return v.condition("Stalled")
}
