// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// GateReport is the result of the rules of a gate.
type GateReport struct {
	Findings []Finding
	// RetryAfter is the time until a rate-limited source can provide a newer result, including after an
	// error. It is 0 if there is nothing to wait for. A report with RetryAfter does not open a gate.
	RetryAfter time.Duration
	// Err joins the errors of the checks that could not be completed.
	Err error
}

// Healthy reports whether everything was checked just now without blocking findings or errors.
func (r GateReport) Healthy() bool {
	return r.Err == nil && r.RetryAfter == 0 && !anyBlocks(r.Findings)
}

// Message lists all blocking findings.
func (r GateReport) Message() string { return Message(r.Findings) }

// Notes lists all other findings, such as an exclusion that matches nothing.
func (r GateReport) Notes() string { return joinFindings(r.Findings, false) }

// Error returns the error together with the findings so far, or nil if all checks were completed.
func (r GateReport) Error() error {
	switch message := r.Message(); {
	case r.Err == nil:
		return nil
	case message != "":
		return fmt.Errorf("checking the health of the cluster: %w; found so far: %s", r.Err, message)
	default:
		return fmt.Errorf("checking the health of the cluster: %w", r.Err)
	}
}

// Runner applies the rules of a health gate.
type Runner struct {
	// Reader reads from the cache, and Live from the API server.
	Reader, Live client.Reader
	Sources      *Sources
	Options      GateOptions
	// Accepted returns the UIDs (see Finding.PlanUID) of findings that an administrator has accepted for this
	// update. Accepted findings are noted but do not block. It is called only if something blocks. If nil,
	// nothing is accepted.
	Accepted func(context.Context) map[string]bool
	// Ahead is set if the result does not open a gate. Outdated results of rate-limited queries are then
	// sufficient.
	Ahead bool
}

// Run applies the rules of the gates. Metrics record the results at observeAt, unless it is zero.
func (r Runner) Run(ctx context.Context, observeAt time.Time) GateReport {
	var report GateReport
	g := r.gathering()
	accepted := sync.OnceValue(func() map[string]bool { return r.Accepted(ctx) })
	for _, rule := range r.rules() {
		g.urgent = !r.Ahead && len(g.errs) == 0 && !anyBlocks(report.Findings)
		complete := g.need(ctx, rule.Needs...)
		found, unknown := splitUnknown(rule.Find(g.facts, Gate))
		g.errs = append(g.errs, unknown...)
		for i := range found {
			found[i].Informer = rule.Name
		}
		if r.Accepted != nil && anyBlocks(found) {
			accept(found, accepted())
		}
		r.Sources.observe(rule.Name, complete && len(unknown) == 0 && !anyBlocks(found), observeAt)
		report.Findings = append(report.Findings, found...)
	}
	report.Err = errors.Join(g.errs...)
	if !r.Ahead {
		report.RetryAfter = g.retry
	}
	return report
}

func (r Runner) rules() []Rule {
	return slices.DeleteFunc(rulesOf(Gate), func(rule Rule) bool {
		return len(r.Options.Checks) > 0 && !slices.Contains(r.Options.Checks, rule.Name)
	})
}

// splitUnknown separates findings from errors about facts that could not be determined.
func splitUnknown(all []Finding) (found []Finding, unknown []error) {
	found = slices.DeleteFunc(all, func(f Finding) bool {
		if f.Err != nil {
			unknown = append(unknown, f.Err)
		}
		return f.Err != nil
	})
	return found, unknown
}

// accept lowers the level of accepted findings, so they do not block.
func accept(found []Finding, accepted map[string]bool) {
	for i := range found {
		if found[i].Level.Blocks() && accepted[found[i].PlanUID()] {
			found[i].Level, found[i].Summary = LevelInfo, "accepted in the UpdatePlan: "+found[i].Summary
		}
	}
}

// Confirm repeats blocking checks against the API server, because the cache may be outdated. Without blocking
// findings, it returns the report unchanged.
func (r Runner) Confirm(ctx context.Context, report GateReport) GateReport {
	if report.Err != nil || !anyBlocks(report.Findings) {
		return report
	}
	r.Reader = r.Live
	return r.Run(ctx, time.Time{})
}
