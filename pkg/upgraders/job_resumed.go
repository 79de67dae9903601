// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

// reasonAlreadyReached is the reason of a step that a retry leaves out because an earlier attempt has
// commenced.
const reasonAlreadyReached = "AlreadyReached"

const (
	// stepNotSuspended is the step, and the gate, that a suspension closes.
	stepNotSuspended = "NotSuspended"
	// stepUpgradeCommenced is the step that commits.
	stepUpgradeCommenced = "UpgradeCommenced"
)

// resumableSteps are the steps that a retry leaves out if an earlier attempt has commenced. An upgrade is never
// suspended once it has commenced.
var resumableSteps = []string{
	stepNotSuspended, "VersionStillAvailable", "ClusterUpgradeable", "PreChecksAccepted", "PreHealthCheck", stepPoolsPaused,
	"UpgradeStartHooksDone", stepUpgradeCommenced,
}

// hasCommencedBefore reports whether an earlier attempt at the UpgradeJob has commenced.
func hasCommencedBefore(job *maintenancev1beta1.UpgradeJob, record history.Record) bool {
	return slices.ContainsFunc(job.Status.History, func(r history.Record) bool {
		return r.Attempt < record.Attempt && r.CommenceTime != nil
	})
}

// unlessResumed lets a retry continue where an earlier attempt failed. If the cluster has the version, or is
// being updated to it, the retry leaves out the steps before the commit. The steps that failed run again: the
// update of the pools, and the health checks.
func (s jobSteps) unlessResumed(table []engine.Step) []engine.Step {
	if !hasCommencedBefore(s.job, s.record) {
		return table
	}
	for i := range table {
		step := &table[i]
		resumable := slices.Contains(resumableSteps, step.Name)
		if resumable {
			step.Do = s.ifResumed(s.resumedResult(step.Name), step.Do)
		}
		step.Gates = slices.Clone(step.Gates)
		for j := range step.Gates {
			if gate := &step.Gates[j]; resumable || gate.Name == stepNotSuspended {
				gate.Check = s.ifResumed(s.resumedResult(step.Name), gate.Check)
			}
		}
	}
	return table
}

// resumedResult returns the answer of a step that an earlier attempt has passed.
func (s jobSteps) resumedResult(step string) engine.Result {
	if step == stepUpgradeCommenced {
		return engine.Done("an earlier attempt has begun to install %s", s.target.Version)
	}
	return engine.Skip(reasonAlreadyReached, "an earlier attempt has begun to install %s", s.target.Version)
}

// ifResumed returns a step with this answer if an earlier attempt has commenced and the cluster shows that.
func (s jobSteps) ifResumed(answer engine.Result, do engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		commenced, err := controlplane.IsCommenced(s.Client, s.Live, s.target)(ctx)
		switch {
		case err != nil:
			return engine.Result{}, err
		case commenced:
			return answer, nil
		}
		return do(ctx, run)
	}
}
