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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// pollInterval is the interval between passes over all operators.
	pollInterval = 5 * time.Second
	// settleTime is how long the Subscriptions are observed before an InstallPlan with releases of
	// unknown Subscriptions is approved.
	settleTime = 10 * time.Second
	// failureGrace is how long OLM must report a failure before the operator counts as failed. OLM
	// retries an installation when its requirements change.
	failureGrace = 2 * time.Minute
	// quietPeriod is how long nothing must change before the result counts. OLM reports every release
	// as the newest until its next resolution.
	quietPeriod = time.Minute
	// maxFailures is the maximum number of operators in the error.
	maxFailures = 3
	// maxMessage is the maximum size, in bytes, of the message about an operator in the error. The
	// kubelet keeps the last 2 KiB of the output.
	maxMessage = 400
)

var (
	// ErrInterrupted is returned for a run that ended before its result was known. The next run
	// continues it.
	ErrInterrupted = errors.New("interrupted")
	// ErrNotUpgraded is returned for a run that ended although an operator was not upgraded.
	ErrNotUpgraded = errors.New("operators are not upgraded")
)

// Approver approves the upgrades of the selected operators and waits for their installation.
type Approver struct {
	// Client accesses the cluster without a cache.
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
	settling map[types.NamespacedName]time.Time // when each InstallPlan was first read
	quiet    quiet
	reported string
}

// quiet records since when a state has not changed.
type quiet struct {
	state string
	since time.Time
}

// failure is a failure of an operator reported by OLM.
type failure struct {
	message string
	since   time.Time
}

// Run returns nil once all selected operators are upgraded and OLM has offered nothing else for a
// while. It returns ErrNotUpgraded if operators have failed or the time is up, and ErrInterrupted
// if the context ends. It retries errors of the API server.
func (a *Approver) Run(ctx context.Context) error {
	a.deadline = a.Clock.Now().Add(a.Options.Timeout)
	a.quiet, a.reported = quiet{}, ""
	a.printed, a.failures, a.settling = map[types.NamespacedName]string{}, map[types.NamespacedName]failure{}, map[types.NamespacedName]time.Time{}
	fmt.Fprintf(a.Out, "Approving the upgrades of operators for %s.\n", a.Options.Timeout)
	for {
		result := a.pass(ctx)
		over := !a.Clock.Now().Before(a.deadline)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("%w: %s", ErrInterrupted, result.summary())
		case result.err == nil && len(result.waiting) == 0 && (over || a.isFinal(ctx, &result)):
			if len(result.failed) > 0 {
				return fmt.Errorf("%w: %s", ErrNotUpgraded, result.summary())
			}
			fmt.Fprintf(a.Out, "Operators upgraded: %d of %d.\n", result.total, result.total)
			return nil
		case over:
			return fmt.Errorf("%w within %s: %s", ErrNotUpgraded, a.Options.Timeout, result.summary())
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %s", ErrInterrupted, result.summary())
		case <-a.Clock.After(min(pollInterval, a.deadline.Sub(a.Clock.Now()))):
		}
	}
}

// isFinal reports whether the result of a pass counts before the time is up: OLM must have checked
// its catalogs since the upgrade of the platform, and nothing may have changed during the quiet
// period.
func (a *Approver) isFinal(ctx context.Context, result *outcome) bool {
	if result.total == 0 {
		return true
	}
	now, state := a.Clock.Now(), strings.Join(result.state, "\n")
	if a.quiet.state != state {
		a.quiet = quiet{state: state, since: now}
	}
	if end := a.quiet.since.Add(quietPeriod); now.Before(end) {
		a.print(types.NamespacedName{}, fmt.Sprintf("observing for %s whether OLM offers another release", quietPeriod))
		return false
	}
	stale, err := a.stale(ctx, result.concerned)
	if err != nil {
		stale = text.Sanitize(err.Error(), maxMessage)
	}
	if stale != "" {
		a.print(types.NamespacedName{}, stale)
	}
	return stale == ""
}

// stale describes a report by OLM that is older than the release of the platform, or returns an
// empty string. A new platform release brings new catalogs.
func (a *Approver) stale(ctx context.Context, concerned []*clusterstate.Subscription) (string, error) {
	version, err := clusterstate.GetClusterVersion(ctx, a.Client)
	var upgraded time.Time // zero if the cluster has no ClusterVersion
	switch {
	case client.IgnoreNotFound(err) != nil:
		return "", fmt.Errorf("reading when the platform was upgraded: %w", err)
	case len(version.Updates) > 0 && !version.Completed:
		return "waiting until the platform is upgraded to " + text.Reason(version.Current.Version), nil
	case len(version.Updates) > 0:
		upgraded = version.Updates[0].End
	}
	for _, s := range concerned {
		if !s.LastUpdated.After(upgraded) {
			return fmt.Sprintf("waiting for OLM to look at Subscription %s since the platform was upgraded", s.NamespacedName), nil
		}
		connected, err := clusterstate.CatalogConnected(ctx, a.Client, s.Catalog)
		if err != nil {
			return "", err
		}
		if !connected.After(upgraded) {
			return fmt.Sprintf("waiting for OLM to connect to CatalogSource %s since the platform was upgraded", s.Catalog), nil
		}
	}
	return "", nil
}

// outcome is the result of one pass.
type outcome struct {
	err             error // the error that prevented the pass
	total           int
	concerned       []*clusterstate.Subscription
	state           []string // OLM's report about each operator
	waiting, failed []string // operators with their messages
}

// summary lists the operators that are not upgraded on a single line of limited length, failures
// first.
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

// pass checks each selected operator once and approves what can be approved.
func (a *Approver) pass(ctx context.Context) outcome {
	all, err := clusterstate.ListSubscriptions(ctx, a.Client)
	if err != nil {
		a.print(types.NamespacedName{}, text.Sanitize(err.Error(), maxMessage))
		return outcome{err: err}
	}
	var result outcome
	for i := range all {
		s := &all[i]
		if !a.Options.selects(s.NamespacedName) {
			continue
		}
		f, concerned := a.advance(ctx, s, all)
		a.print(s.NamespacedName, f.message)
		if !concerned {
			continue
		}
		result.total++
		result.concerned, result.state = append(result.concerned, s), append(result.state, s.LastUpdated.String()+" "+f.message)
		message := s.String() + ": " + text.Truncate(f.message, maxMessage)
		switch {
		case f.verdict == upgraded:
		case a.hasFailed(s.NamespacedName, f):
			result.failed = append(result.failed, message)
		default:
			result.waiting = append(result.waiting, message)
		}
	}
	a.printMissing(all)
	if err := a.report(ctx, result.concerned); err != nil {
		a.print(types.NamespacedName{}, text.Sanitize(err.Error(), maxMessage))
		result.err = err
	}
	return result
}

// advance assesses an operator and approves its InstallPlan. It also reports whether the operator
// needs approvals; all others are upgraded by OLM alone.
func (a *Approver) advance(ctx context.Context, s *clusterstate.Subscription, all []clusterstate.Subscription) (finding, bool) {
	var plan *clusterstate.InstallPlan
	var csv *clusterstate.ClusterServiceVersion
	var err error
	if s.Plan.Name != "" {
		plan, err = clusterstate.GetInstallPlan(ctx, a.Client, s.Plan)
	}
	if err == nil && !isApprovedHere(s, all, plan) {
		return findingf(upgraded, "skipped: OLM approves its upgrades automatically"), false
	}
	if current := s.CurrentCSV; err == nil && current != "" && (plan == nil || plan.Approved) {
		csv, err = clusterstate.GetClusterServiceVersion(ctx, a.Client, types.NamespacedName{Namespace: s.Namespace, Name: current})
	}
	if err != nil {
		return findingf(waiting, "%s", text.Sanitize(err.Error(), maxMessage)), true
	}
	return a.approve(ctx, s, all, plan, csv), true
}

// approve assesses an operator and approves its InstallPlan if possible.
func (a *Approver) approve(ctx context.Context, s *clusterstate.Subscription, all []clusterstate.Subscription, plan *clusterstate.InstallPlan, csv *clusterstate.ClusterServiceVersion) finding {
	f := judge(&a.Options, s, all, plan, csv)
	if f.verdict != approvable {
		return f
	}
	if unknownCSVs(plan, all) && !a.isSettled(plan) {
		return findingf(waiting, "waiting for OLM to report which operators InstallPlan %s upgrades", plan.Name)
	}
	if err := approve(ctx, a.Client, plan); err != nil { // if it has changed, the next pass assesses it again
		return findingf(waiting, "%s", text.Sanitize(err.Error(), maxMessage))
	}
	return f
}

// isSettled reports whether an InstallPlan was first read long enough ago.
func (a *Approver) isSettled(plan *clusterstate.InstallPlan) bool {
	since, known := a.settling[plan.NamespacedName]
	if !known {
		since = a.Clock.Now()
		a.settling[plan.NamespacedName] = since
	}
	return a.Clock.Since(since) >= settleTime
}

// hasFailed reports whether an operator has failed permanently.
func (a *Approver) hasFailed(name types.NamespacedName, f finding) bool {
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

// printMissing prints the listed operators that do not exist on the cluster.
func (a *Approver) printMissing(all []clusterstate.Subscription) {
	for _, name := range a.Options.Include {
		if !slices.ContainsFunc(all, func(s clusterstate.Subscription) bool { return s.NamespacedName == name }) {
			a.print(name, "skipped: there is no such Subscription")
		}
	}
}

// print prints a message about an operator if the message has changed. An empty name stands for all
// operators.
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
