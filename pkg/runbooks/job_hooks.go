// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"context"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// runHooks returns a step that runs the hooks of an event. The event tells hooks what has become of
// the upgrade.
func (s jobSteps) runHooks(name v1beta1.HookEvent) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		return s.Hooks.Event(s.job, s.record, s.event(name, run))(ctx, run)
	}
}

// event returns an event with its reason and its message.
func (s jobSteps) event(name v1beta1.HookEvent, run engine.Run) hooks.Event {
	event := hooks.Event{Name: name, Reason: string(name), Message: upgradeTo(s.target.Version)}
	switch {
	case run.Failure != nil:
		event.Reason, event.Message = run.Failure.Reason, run.Failure.Type+": "+run.Failure.Message
	case s.hooksOnly():
		event.Reason, event.Message = reasonNoUpdate, "this UpgradeJob names no version"
	}
	return event
}

// hookItems returns the items of a step whose hooks may no longer be called: the hooks of the events as
// they are now, and what else is recorded.
func (s jobSteps) hookItems(step string, events ...v1beta1.HookEvent) func(context.Context) ([]history.StepItem, error) {
	return func(ctx context.Context) ([]history.StepItem, error) {
		var items []history.StepItem
		for _, event := range events {
			current, err := s.Hooks.Items(ctx, s.job, s.record, event)
			if err != nil {
				return nil, err
			}
			items = append(items, current...)
		}
		return append(items, s.recordedItems(step)...), nil
	}
}

// CreateHooksDone runs the hooks of an UpgradeJob that was created.
func (s jobSteps) CreateHooksDone() engine.Step {
	return engine.Step{
		Name:  "CreateHooksDone",
		Doc:   "Runs the hooks of event Create. The version is pinned.",
		Do:    s.runHooks(v1beta1.EventCreate),
		Items: s.hookItems("CreateHooksDone", v1beta1.EventCreate),
	}
}

// StartHooksDone runs the hooks of an upgrade that starts.
func (s jobSteps) StartHooksDone() engine.Step {
	return engine.Step{
		Name:  "StartHooksDone",
		Doc:   "Runs the hooks of event Start.",
		Do:    s.runHooks(v1beta1.EventStart),
		Items: s.hookItems("StartHooksDone", v1beta1.EventStart),
	}
}

// UpgradeStartHooksDone runs the hooks of an upgrade that is about to commence.
func (s jobSteps) UpgradeStartHooksDone() engine.Step {
	return engine.Step{
		Name:  "UpgradeStartHooksDone",
		Doc:   "Runs the hooks of event UpgradeStart.",
		Do:    s.runHooks(v1beta1.EventUpgradeStart),
		Items: s.hookItems("UpgradeStartHooksDone", v1beta1.EventUpgradeStart),
	}
}

// UpgradeCompleteHooksDone runs the hooks of a control plane that is upgraded.
func (s jobSteps) UpgradeCompleteHooksDone() engine.Step {
	do := s.runHooks(v1beta1.EventUpgradeComplete)
	if !s.hooksOnly() {
		do = s.delayed(stepCompleteHooksDone).KeepReleasing(do)
	}
	return engine.Step{
		Name: stepCompleteHooksDone,
		Doc:  "Runs the hooks of event UpgradeComplete. Meanwhile, delayed machine config pools are unpaused in their time.",
		Do:   do,
	}
}

// FailureHooksDone runs the hooks of an upgrade that did not succeed.
func (s jobSteps) FailureHooksDone() engine.Step {
	return engine.Step{
		Name: stepFailureHooksDone,
		Doc:  "Runs the hooks of event Failure, or of event Skip if the upgrade was skipped. Meanwhile, delayed machine config pools are unpaused in their time.",
		Do: s.keepReleasing(stepFailureHooksDone, func(ctx context.Context, run engine.Run) (engine.Result, error) {
			switch run.Outcome {
			case engine.OutcomeCancelled:
				return engine.Skip("Cancelled", "an upgrade that was cancelled has neither failed nor was it skipped"), nil
			case engine.OutcomeSkipped:
				return s.runHooks(v1beta1.EventSkip)(ctx, run)
			default:
				return s.runHooks(v1beta1.EventFailure)(ctx, run)
			}
		}),
	}
}

// SuccessHooksDone runs the hooks of an upgrade that succeeded.
func (s jobSteps) SuccessHooksDone() engine.Step {
	return engine.Step{
		Name: "SuccessHooksDone",
		Doc:  "Runs the hooks of event Success. Skipped if the upgrade did not succeed.",
		Do:   ifSuccessful(s.runHooks(v1beta1.EventSuccess)),
	}
}

// FinishHooksDone runs the hooks of an upgrade that has ended.
func (s jobSteps) FinishHooksDone() engine.Step {
	return engine.Step{
		Name: "FinishHooksDone",
		Doc:  "Runs the hooks of event Finish.",
		Do:   s.runHooks(v1beta1.EventFinish),
	}
}

// ifSuccessful skips a final step if the upgrade did not succeed.
func ifSuccessful(do engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if run.Failure != nil {
			return engine.Skip("NotSuccessful", "the upgrade did not succeed"), nil
		}
		return do(ctx, run)
	}
}
