// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
)

// check looks for one kind of trouble and says what it has found, one sentence
// for each group, in a fixed order. Nothing found is health.
type check func(context.Context, client.Reader) ([]string, error)

// named is a check with its name in the metrics.
type named struct {
	name string
	ask  check
}

// checks are what is asked, in the order of the message.
func checks(unforced []string) []named {
	return []named{
		{"version", of(cluster.ReadVersion, versionTroubles)},
		{"operators", of(cluster.ReadOperators, operatorTroubles)},
		{"pools", of(cluster.ReadPools, poolTroubles)},
		{"nodes", of(cluster.ReadNodes, nodeTroubles)},
		{"budgets", of(budgetsIn(unforced), budgetTroubles)},
	}
}

// of makes a check of facts and of what is wrong with them.
func of[Facts any](read func(context.Context, client.Reader) (Facts, error), troubles func(Facts) []string) check {
	return func(ctx context.Context, r client.Reader) ([]string, error) {
		facts, err := read(ctx, r)
		if err != nil {
			return nil, err
		}
		return troubles(facts), nil
	}
}

// look asks all checks and for the alerts. What cannot be found out is all named
// too. See Alerts for again, and for who observes it at that time: zero is nobody.
func look(ctx context.Context, r client.Reader, alerts *Alerts, unforced []string, now time.Time) (found []string, again time.Duration, err error) {
	var unknown []error
	for _, check := range checks(unforced) {
		troubles, err := check.ask(ctx, r)
		alerts.observed(check.name, err == nil && len(troubles) == 0, now)
		found = append(found, troubles...)
		unknown = append(unknown, err)
	}
	firing, again, err := alerts.look(ctx)
	alerts.observed("alerts", err == nil && len(firing) == 0, now)
	found = append(found, group("alerts firing", firing)...)
	unknown = append(unknown, err)
	if err = errors.Join(unknown...); err != nil {
		err = fmt.Errorf("checking the health of the cluster: %w", err)
	}
	if err != nil && len(found) > 0 {
		err = fmt.Errorf("%w; found so far: %s", err, strings.Join(found, "; "))
	}
	return found, again, err
}

// group is what is wrong with several things in the same way.
func group(what string, names []string) []string {
	if len(names) == 0 {
		return nil
	}
	return []string{what + ": " + cluster.Names(names)}
}
