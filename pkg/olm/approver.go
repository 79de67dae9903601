// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// pollInterval is the time between two passes over all operators.
	pollInterval = 5 * time.Second
	// settleTime is how long the Subscriptions are observed before an InstallPlan is approved that has
	// releases of unknown Subscriptions.
	settleTime = 10 * time.Second
	// failureGrace is how long OLM may report a failure before the operator counts as failed: OLM
	// repeats an installation whose requirements change.
	failureGrace = 2 * time.Minute
	// maxFailures bounds how many operators the error names.
	maxFailures = 3
	// maxMessage bounds the message about an operator in the error, in bytes. The kubelet keeps the
	// last 2 KiB of the output.
	maxMessage = 400
)

var (
	// ErrInterrupted is a run that ended before its result was known. Another one continues it.
	ErrInterrupted = errors.New("interrupted")
	// ErrNotUpgraded is a run that ended while an operator was not upgraded.
	ErrNotUpgraded = errors.New("operators are not upgraded")
)

// Approver approves the upgrades of the selected operators and waits for them.
type Approver struct {
	// Client reads and writes the cluster without a cache.
	Client client.Client
	// Clock provides the time.
	Clock clock.Clock
	// Options select the operators.
	Options Options
	// Out receives the progress, one line per change.
	Out io.Writer

	deadline time.Time
	printed  map[types.NamespacedName]string
	failures map[types.NamespacedName]failure
	settling map[types.NamespacedName]time.Time // InstallPlans by when they were first read
}

// failure is what OLM reports about an operator.
type failure struct {
	message string
	since   time.Time
}

// Run returns nil once all selected operators are upgraded. It returns ErrNotUpgraded when all others
// are upgraded or have failed, or when the time is over, and ErrInterrupted if the context ends.
// Errors of the API server are retried.
func (a *Approver) Run(ctx context.Context) error {
	a.deadline = a.Clock.Now().Add(a.Options.Timeout)
	a.printed, a.failures, a.settling = map[types.NamespacedName]string{}, map[types.NamespacedName]failure{}, map[types.NamespacedName]time.Time{}
	fmt.Fprintf(a.Out, "Approving the upgrades of operators for %s.\n", a.Options.Timeout)
	for {
		result := a.pass(ctx)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %s", ErrInterrupted, result.summary())
		case result.err == nil && len(result.waiting) == 0 && len(result.failed) == 0:
			fmt.Fprintf(a.Out, "Operators upgraded: %d of %d.\n", result.total, result.total)
			return nil
		case result.err == nil && len(result.waiting) == 0:
			return fmt.Errorf("%w: %s", ErrNotUpgraded, result.summary())
		case !a.Clock.Now().Before(a.deadline):
			return fmt.Errorf("%w within %s: %s", ErrNotUpgraded, a.Options.Timeout, result.summary())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ErrInterrupted, result.summary())
		case <-a.Clock.After(min(pollInterval, a.deadline.Sub(a.Clock.Now()))):
		}
	}
}

// outcome is the result of one pass.
type outcome struct {
	err             error // that prevented the pass
	total           int
	waiting, failed []string // operators with their messages
}

// summary returns which operators are not upgraded, as one bounded line. Failures come first.
func (o *outcome) summary() string {
	if o.err != nil {
		return text.Sanitize(o.err.Error(), maxMessage)
	}
	open := slices.Concat(o.failed, o.waiting)
	named := open[:min(len(open), maxFailures)]
	summary := fmt.Sprintf("%d of %d: %s", len(open), o.total, strings.Join(named, "; "))
	if more := len(open) - len(named); more > 0 {
		summary += fmt.Sprintf("; and %d more", more)
	}
	return summary
}

// pass looks at each selected operator once, and approves what can be approved.
func (a *Approver) pass(ctx context.Context) outcome {
	all, err := listSubscriptions(ctx, a.Client)
	if err != nil {
		a.print(types.NamespacedName{}, text.Sanitize(err.Error(), maxMessage))
		return outcome{err: err}
	}
	var result outcome
	for i := range all {
		s := &all[i]
		if !a.Options.selects(s.name()) {
			continue
		}
		if !s.isManual() {
			a.print(s.name(), "skipped: OLM approves its upgrades automatically")
			continue
		}
		result.total++
		f := a.advance(ctx, s, all)
		a.print(s.name(), f.message)
		message := s.name().String() + ": " + text.Truncate(f.message, maxMessage)
		switch {
		case f.verdict == upgraded:
		case a.isFinal(s.name(), f):
			result.failed = append(result.failed, message)
		default:
			result.waiting = append(result.waiting, message)
		}
	}
	a.printMissing(all)
	return result
}

// advance judges one operator, and approves its InstallPlan.
func (a *Approver) advance(ctx context.Context, s *subscription, all []subscription) finding {
	var plan *installPlan
	var csv *clusterServiceVersion
	var err error
	if name := s.plan(); name.Name != "" && !s.isAtLatest() {
		plan, err = get[installPlan](ctx, a.Client, installPlanKind, name)
	}
	if current := s.Status.CurrentCSV; err == nil && current != "" && (s.isAtLatest() || plan != nil && plan.Spec.Approved) {
		csv, err = get[clusterServiceVersion](ctx, a.Client, csvKind, types.NamespacedName{Namespace: s.Metadata.Namespace, Name: current})
	}
	if err != nil {
		return findingf(waiting, "%s", text.Sanitize(err.Error(), maxMessage))
	}
	f := judge(&a.Options, s, all, plan, csv)
	if f.verdict != approvable {
		return f
	}
	if unknownCSVs(plan, all) && !a.isSettled(plan) {
		return findingf(waiting, "waiting for OLM to report which operators InstallPlan %s upgrades", plan.Metadata.Name)
	}
	if err := approve(ctx, a.Client, plan); err != nil { // a changed one is judged in the next pass
		return findingf(waiting, "%s", text.Sanitize(err.Error(), maxMessage))
	}
	return f
}

// isSettled reports whether an InstallPlan was first read long enough ago.
func (a *Approver) isSettled(plan *installPlan) bool {
	since, known := a.settling[plan.name()]
	if !known {
		since = a.Clock.Now()
		a.settling[plan.name()] = since
	}
	return a.Clock.Since(since) >= settleTime
}

// isFinal reports whether an operator has failed for good.
func (a *Approver) isFinal(name types.NamespacedName, f finding) bool {
	if f.verdict != failing {
		delete(a.failures, name)
		return f.verdict == refused
	}
	known := a.failures[name]
	if known.message != f.message {
		known = failure{message: f.message, since: a.Clock.Now()}
		a.failures[name] = known
	}
	return a.Clock.Since(known.since) >= failureGrace
}

// printMissing prints the operators of the list that the cluster does not have.
func (a *Approver) printMissing(all []subscription) {
	for _, name := range a.Options.Include {
		if !slices.ContainsFunc(all, func(s subscription) bool { return s.name() == name }) {
			a.print(name, "skipped: there is no such Subscription")
		}
	}
}

// print prints a message about an operator if it has changed. The empty name stands for all operators.
func (a *Approver) print(name types.NamespacedName, message string) {
	if a.printed[name] == message {
		return
	}
	a.printed[name] = message
	if name.Name != "" {
		message = name.String() + ": " + message
	}
	fmt.Fprintln(a.Out, message)
}
