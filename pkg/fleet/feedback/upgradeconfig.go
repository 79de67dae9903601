// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package feedback

import (
	"encoding/json"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"
)

// maxSteps bounds the steps of an UpgradeConfig.
const maxSteps = 64

// UpgradeConfig is what the agent reports about the UpgradeConfig of the cluster.
type UpgradeConfig struct {
	// Phase and Version are those of the first entry of the history, which is that of the requested
	// version.
	Phase, Version Value
	// Step is the current step, and Message its message.
	Step    Value
	Message string
	// Accepted, Succeeded, and Stalled are conditions of the UpgradeConfig.
	Accepted, Succeeded, Stalled Condition
	// Steps are the steps in their order. They are empty unless the feature gate RawFeedbackJsonString
	// of the agent is on, and if they are longer than an agent reports.
	Steps []Step
	// FirstStep is the status of the first step if the agent reports no list: the gate is off, or there is
	// only one step.
	FirstStep Value
	// Commenced is the status of the step that commits.
	Commenced Value

	generation, observedGeneration Value
}

// Step is a step of the runbook on the cluster.
type Step struct {
	// Type and Status are those of the condition of the step.
	Type, Status string
	// CompleteTime is when the step was complete, by the clock of the cluster. Zero means not known.
	CompleteTime time.Time
}

// UpgradeConfig returns what the agent reports about the UpgradeConfig. All its values are missing if
// the work has none, or if it is not applied and available.
func (f *Feedback) UpgradeConfig() UpgradeConfig {
	m := f.find("upgrade.managed.openshift.io", "UpgradeConfig")
	if m == nil {
		return UpgradeConfig{}
	}
	v := m.values
	return UpgradeConfig{
		Phase: v.name(namePhase), Version: v.name(nameVersion), Step: v.name(nameStep), Message: v.message(nameMessage),
		Accepted: v.condition("Accepted"), Succeeded: v.condition("Succeeded"), Stalled: v.condition("Stalled"),
		Steps: v.steps(), FirstStep: v.name(nameStepStatuses), Commenced: v.name(nameCommenced),
		generation: v.read(nameGeneration, workv1.Integer), observedGeneration: v.read(nameObservedGeneration, workv1.Integer),
	}
}

// IsObserved reports whether the operator of the cluster is known to have observed the spec of the
// UpgradeConfig.
func (c *UpgradeConfig) IsObserved() bool {
	return c.generation.IsKnown() && c.observedGeneration.Is(c.generation.Text)
}

// steps returns the steps from three parallel lists. A step that is not complete has no time, and the
// list of times skips it: times are used only if there are as many as there are complete steps.
func (v values) steps() []Step {
	types, ok := v.list(nameStepTypes)
	statuses, sameLength := v.list(nameStepStatuses)
	if !ok || !sameLength || len(types) != len(statuses) || len(types) > maxSteps {
		return nil
	}
	steps := make([]Step, 0, len(types))
	var complete int
	for i := range types {
		steps = append(steps, Step{Type: types[i], Status: statuses[i]})
		if statuses[i] == "True" {
			complete++
		}
	}
	times, ok := v.list(nameStepCompleteTimes)
	if !ok || len(times) != complete {
		return steps
	}
	for i := range steps {
		if steps[i].Status != "True" {
			continue
		}
		if at, err := time.Parse(time.RFC3339, times[0]); err == nil {
			steps[i].CompleteTime = at
		}
		times = times[1:]
	}
	return steps
}

// list returns a list of strings, each of which identifies something.
func (v values) list(name string) ([]string, bool) {
	raw := v.read(name, workv1.JsonRaw)
	if !raw.IsKnown() {
		return nil, false
	}
	var list []string
	if err := json.Unmarshal([]byte(raw.Text), &list); err != nil {
		return nil, false
	}
	for _, item := range list {
		if item == "" || len(item) > maxName {
			return nil, false
		}
	}
	return list, true
}
