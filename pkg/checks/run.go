// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Report is the result of a run of the checks.
type Report struct {
	Findings []Finding
	// RetryAfter is when a source that limits its queries has a newer result; 0 means that there is
	// nothing to wait for. A report with RetryAfter does not open a gate.
	RetryAfter time.Duration
	// Err joins the errors of the checks that could not be completed.
	Err error
}

// Healthy reports whether everything was checked just now and nothing was found.
func (r Report) Healthy() bool { return r.Err == nil && r.RetryAfter == 0 && !anyBlocks(r.Findings) }

// Message names every finding that blocks.
func (r Report) Message() string { return Message(r.Findings) }

// Notes names every finding that does not block, such as an exclusion that matches nothing.
func (r Report) Notes() string { return joinFindings(r.Findings, false) }

// Error returns the error with what was found in spite of it; nil means that all checks were
// completed.
func (r Report) Error() error {
	switch message := r.Message(); {
	case r.Err == nil:
		return nil
	case message != "":
		return fmt.Errorf("checking the health of the cluster: %w; found so far: %s", r.Err, message)
	default:
		return fmt.Errorf("checking the health of the cluster: %w", r.Err)
	}
}

// Runner runs checks.
type Runner struct {
	// Reader reads from the cache, and Live from the API server.
	Reader, Live client.Reader
	Sources      *Sources
	Options      Options
	// Accepted returns the UIDs, see Finding.PlanUID, of the findings whose risk an administrator has
	// accepted for this update. Such a finding is noted and does not block. It is called only if
	// something blocks. Nil means that nothing is accepted.
	Accepted func(context.Context) map[string]bool
	// Ahead means that the result opens no gate, so that results of limited queries suffice
	// although they are outdated.
	Ahead bool
}

// Run runs the checks. The metrics observe them at the given time; zero means that they do not.
func (r Runner) Run(ctx context.Context, observeAt time.Time) Report {
	var report Report
	var errs []error
	retry := &retryTimer{}
	accepted := acceptances{runner: &r}
	for _, check := range enabled(r.Options) {
		in := Input{
			Reader: r.Reader, Live: r.Live, Sources: r.Sources, Options: r.Options,
			urgent: !r.Ahead && len(errs) == 0 && !anyBlocks(report.Findings), retry: retry,
		}
		found, err := check.Find(ctx, in)
		for i := range found {
			found[i].Informer = check.Name
		}
		accepted.apply(ctx, found)
		r.Sources.observe(check.Name, err == nil && !anyBlocks(found), observeAt)
		if report.Findings == nil {
			report.Findings = found
		} else {
			report.Findings = append(report.Findings, found...)
		}
		if err != nil {
			errs = append(errs, err)
		}
	}
	report.Err = errors.Join(errs...)
	if !r.Ahead {
		report.RetryAfter = retry.after
	}
	return report
}

// acceptances are the findings that are accepted in one run.
type acceptances struct {
	runner *Runner
	uids   map[string]bool
	known  bool
}

// apply lowers the level of the findings that are accepted, so that they do not block.
func (a *acceptances) apply(ctx context.Context, found []Finding) {
	if a.runner.Accepted == nil || !anyBlocks(found) {
		return
	}
	if !a.known {
		a.uids, a.known = a.runner.Accepted(ctx), true
	}
	for i := range found {
		if uid := found[i].PlanUID(); found[i].Level.Blocks() && uid != "" && a.uids[uid] {
			found[i].Level, found[i].Summary = LevelInfo, "accepted in the UpdatePlan: "+found[i].Summary
		}
	}
}

// Confirm returns a report of the API server itself: what a cache reports to be wrong may be
// outdated. A report without findings needs no confirmation.
func (r Runner) Confirm(ctx context.Context, report Report) Report {
	if report.Err != nil || !anyBlocks(report.Findings) {
		return report
	}
	r.Reader = r.Live
	return r.Run(ctx, time.Time{})
}

// retryTimer keeps the earliest of several times.
type retryTimer struct{ after time.Duration }

func (t *retryTimer) wait(after time.Duration) {
	if after > 0 && (t.after == 0 || after < t.after) {
		t.after = after
	}
}

func sameKind(a, b client.Object) bool { return reflect.TypeOf(a) == reflect.TypeOf(b) }
