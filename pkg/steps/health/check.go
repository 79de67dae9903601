// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// check looks for one kind of trouble and says what it has found, one sentence
// for each group, in a fixed order. Nothing found is health.
type check func(context.Context, client.Reader) ([]string, error)

// namedCheck is a check with its name in the metrics.
type namedCheck struct {
	name string
	run  check
}

// checks are what is asked, in the order of the message.
func checks(noForceNamespaces []string) []namedCheck {
	return []namedCheck{
		{"version", newCheck(clusterstate.GetClusterVersion, checkVersion)},
		{"operators", newCheck(clusterstate.ListClusterOperators, checkOperators)},
		{"pools", newCheck(clusterstate.ListPools, checkPools)},
		{"nodes", newCheck(clusterstate.ListNodes, checkNodes)},
		{"budgets", newCheck(readBudgetsIn(noForceNamespaces), checkBudgets)},
	}
}

// newCheck makes a check of facts and of what is wrong with them.
func newCheck[Facts any](read func(context.Context, client.Reader) (Facts, error), evaluate func(Facts) []string) check {
	return func(ctx context.Context, r client.Reader) ([]string, error) {
		facts, err := read(ctx, r)
		if err != nil {
			return nil, err
		}
		return evaluate(facts), nil
	}
}

// runChecks asks all checks and for the alerts. What cannot be found out is all named
// too. See Alerts for again, and for who observes it at that time: zero is nobody.
func runChecks(ctx context.Context, r client.Reader, alerts *Alerts, noForceNamespaces []string, now time.Time) (found []string, retryAfter time.Duration, err error) {
	var errs []error
	for _, check := range checks(noForceNamespaces) {
		problems, err := check.run(ctx, r)
		alerts.observe(check.name, err == nil && len(problems) == 0, now)
		found = append(found, problems...)
		errs = append(errs, err)
	}
	firing, retryAfter, err := alerts.check(ctx)
	alerts.observe("alerts", err == nil && len(firing) == 0, now)
	found = append(found, formatGroup("alerts firing", firing)...)
	errs = append(errs, err)
	if err = errors.Join(errs...); err != nil {
		err = fmt.Errorf("checking the health of the cluster: %w", err)
	}
	if err != nil && len(found) > 0 {
		err = fmt.Errorf("%w; found so far: %s", err, strings.Join(found, "; "))
	}
	return found, retryAfter, err
}

// formatGroup is what is wrong with several things in the same way.
func formatGroup(label string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{label + ": " + text.JoinNames(names)}
}
