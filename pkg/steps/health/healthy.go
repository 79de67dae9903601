// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"cmp"
	"context"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// outdatedMessage is the message of a gate that only waits for a newer result.
const outdatedMessage = "nothing is wrong, but alerts must be queried again before the upgrade continues"

// WaitUntilHealthy waits, with the given reason, until no check has findings. The message lists all
// findings. If the options have a timeout, the step fails with that reason after it.
func WaitUntilHealthy(runner checks.Runner, reason string) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		report := runner.Run(ctx, run.Now)
		message := withNotes(cmp.Or(report.Message(), outdatedMessage), report)
		timeout := runner.Options.Timeout
		rest := timeout - run.Now.Sub(run.Since)
		switch {
		case report.Err == nil && report.Healthy():
			return healthy(report), nil
		case timeout > 0 && rest <= 0:
			return failUnlessConfirmedHealthy(ctx, runner, reason, report)
		case report.Err != nil:
			return engine.Result{}.NoLaterThan(report.RetryAfter).NoLaterThan(rest), report.Error()
		}
		return engine.Wait(reason, "%s", message).NoLaterThan(report.RetryAfter).NoLaterThan(rest), nil
	}
}

// failUnlessConfirmedHealthy fails at the timeout, after confirming the failure with the API
// server. The timeout also ends the wait for checks that cannot be completed.
func failUnlessConfirmedHealthy(ctx context.Context, runner checks.Runner, reason string, report checks.GateReport) (engine.Result, error) {
	report = runner.Confirm(ctx, report)
	if report.Err != nil {
		return engine.Fail(reason, "not healthy within %s: CouldNotBeDetermined: %v", runner.Options.Timeout, report.Error()), nil //nolint:nilerr // The timeout ends the wait.
	}
	switch message := report.Message(); {
	case message != "":
		return engine.Fail(reason, "not healthy within %s: %s", runner.Options.Timeout, withNotes(message, report)), nil
	case report.RetryAfter > 0:
		return engine.WaitFor(report.RetryAfter, reason, "%s", outdatedMessage), nil
	}
	return healthy(report), nil
}

// healthy returns the result of a gate that opens. The message includes findings that do not block.
func healthy(report checks.GateReport) engine.Result {
	return engine.Done("%s", withNotes("the cluster is healthy", report))
}

// withNotes appends findings that do not block.
func withNotes(message string, report checks.GateReport) string {
	if notes := report.Notes(); notes != "" {
		message += "; " + notes
	}
	return message
}

// PreCheckHealth is like WaitUntilHealthy, but ahead of time. It opens no gate, so the result of
// the last query for alerts is sufficient.
func PreCheckHealth(runner checks.Runner, reason string) engine.UpgradeStep {
	runner.Ahead = true
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		report := runner.Run(ctx, time.Time{})
		switch message := report.Message(); {
		case report.Err != nil:
			return engine.Result{}, report.Error()
		case message != "":
			return engine.Wait(reason, "%s", withNotes(message, report)), nil
		}
		return healthy(report), nil
	}
}

// IsHealthy reports whether no check has findings. Findings are confirmed with the API server,
// because the upgrade may fail because of them. If a query must not be sent again yet, its last
// result counts: IsHealthy opens no gate, and the upgrade must not fail because of the age of a
// result.
func IsHealthy(runner checks.Runner) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		report := runner.Confirm(ctx, runner.Run(ctx, time.Time{}))
		if report.Err != nil {
			return false, report.Error()
		}
		return report.Message() == "", nil
	}
}
