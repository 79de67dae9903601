// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// runHooks returns a step that runs the hooks of an event. The event tells hooks the state of the upgrade.
func (s base) runHooks(name maintenancev1beta1.HookEvent) engine.UpgradeStep {
	return s.runHooksOf(name, "")
}

// runHooksOf is runHooks for an event of a pool, which may be empty.
func (s base) runHooksOf(name maintenancev1beta1.HookEvent, pool string) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if s.Hooks == nil {
			return engine.Skip(maintenance.ReasonNoHooks, "this operator runs no hooks, since it works without scheduled maintenance"), nil
		}
		event := s.event(name, run)
		event.Pool = pool
		return s.Hooks.Event(s.owner, s.record, event)(ctx, run)
	}
}

// event returns an event with its reason and its message.
func (s base) event(name maintenancev1beta1.HookEvent, run engine.Run) hooks.Event {
	event := hooks.Event{Name: name, Reason: string(name), Message: upgradeTo(s.target.Version)}
	switch {
	case run.Failure != nil:
		event.Reason, event.Message = run.Failure.Reason, run.Failure.Type+": "+run.Failure.Message
	case s.hooksOnly():
		event.Reason, event.Message = engine.ReasonNoUpdate, "this UpgradeJob names no version"
	}
	return event
}

// hookItems returns the items of a step whose hooks may no longer be called: the current state of the hooks of
// the events, and the other recorded items.
func (s base) hookItems(step string, events ...maintenancev1beta1.HookEvent) func(context.Context) ([]history.StepItem, error) {
	return func(ctx context.Context) ([]history.StepItem, error) {
		var items []history.StepItem
		for _, event := range events {
			if s.Hooks == nil {
				break
			}
			current, err := s.Hooks.Items(ctx, s.owner, s.record, event)
			if err != nil {
				return nil, err
			}
			items = append(items, current...)
		}
		return append(items, s.recordedItems(step)...), nil
	}
}

// CreateHooksDone runs the hooks after the creation of an upgrade.
func (s base) CreateHooksDone() engine.Step {
	return s.hooksDone("CreateHooksDone", "Runs the hooks of event Create. The version is pinned.", maintenancev1beta1.EventCreate)
}

// StartHooksDone runs the hooks at the start of an upgrade.
func (s base) StartHooksDone() engine.Step {
	return s.hooksDone("StartHooksDone", "Runs the hooks of event Start.", maintenancev1beta1.EventStart)
}

// UpgradeStartHooksDone runs the hooks before the commit.
func (s base) UpgradeStartHooksDone() engine.Step {
	return s.hooksDone("UpgradeStartHooksDone", "Runs the hooks of event UpgradeStart.", maintenancev1beta1.EventUpgradeStart)
}

// hooksDone returns a step that runs the hooks of an event before the upgrade commences.
func (s base) hooksDone(name, doc string, event maintenancev1beta1.HookEvent) engine.Step {
	return engine.Step{Name: name, Doc: doc, Do: s.runHooks(event), Items: s.hookItems(name, event)}
}

// UpgradeCompleteHooksDone runs the hooks after the upgrade of the control plane.
func (s base) UpgradeCompleteHooksDone() engine.Step {
	do := s.runHooks(maintenancev1beta1.EventUpgradeComplete)
	if !s.hooksOnly() {
		do = s.delayed(stepCompleteHooksDone).KeepReleasing(do)
	}
	return engine.Step{
		Name: stepCompleteHooksDone,
		Doc:  "Runs the hooks of event UpgradeComplete. While they run, delayed machine config pools are unpaused as planned.",
		Do:   do,
	}
}

// FailureHooksDone runs the hooks after an unsuccessful upgrade.
func (s base) FailureHooksDone() engine.Step {
	return engine.Step{
		Name: stepFailureHooksDone,
		Doc:  "Runs the hooks of event Failure, or of event Skip if the upgrade was skipped. While they run, delayed machine config pools are unpaused as planned.",
		Do: s.keepReleasing(stepFailureHooksDone, func(ctx context.Context, run engine.Run) (engine.Result, error) {
			switch run.Outcome {
			case engine.OutcomeCancelled:
				return engine.Skip("Cancelled", "an upgrade that was cancelled has neither failed nor was it skipped"), nil
			case engine.OutcomeSkipped:
				return s.runHooks(maintenancev1beta1.EventSkip)(ctx, run)
			default:
				return s.runHooks(maintenancev1beta1.EventFailure)(ctx, run)
			}
		}),
	}
}

// SuccessHooksDone runs the hooks after a successful upgrade.
func (s base) SuccessHooksDone() engine.Step {
	return engine.Step{
		Name: "SuccessHooksDone",
		Doc:  "Runs the hooks of event Success. Skipped if the upgrade did not succeed.",
		Do:   ifSuccessful(s.runHooks(maintenancev1beta1.EventSuccess)),
	}
}

// FinishHooksDone runs the hooks after the end of an upgrade.
func (s base) FinishHooksDone() engine.Step {
	return engine.Step{
		Name: "FinishHooksDone",
		Doc:  "Runs the hooks of event Finish.",
		Do:   s.runHooks(maintenancev1beta1.EventFinish),
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
