// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks

import (
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// jobHealthChecks are the health checks that an UpgradeJob requests, and nothing else. A pool that
// a person paused always counts: the upgrade could not complete. The settings of the operator
// narrow none of them; the alerts of every namespace count.
func (t Deps) jobHealthChecks(h v1beta1.HealthChecks) checks.Runner {
	options := checks.Options{
		Checks:          []string{checks.NamePools},
		PausedPoolsOnly: true, IgnoreDelayedPools: true,
		ExcludeOperators: h.ExcludeOperators, ExcludeNamespaces: h.ExcludeNamespaces,
	}
	if isSet(h.CheckCriticalAlerts) {
		options.Checks = append(options.Checks, checks.NameAlerts)
	}
	if isSet(h.CheckDegradedOperators) {
		options.Checks = append(options.Checks, checks.NameOperators)
	}
	for _, alert := range h.ExcludeAlerts {
		options.ExcludeAlerts = append(options.ExcludeAlerts, alert.Alertname)
	}
	if len(h.CustomQueries) > 0 {
		options.Checks = append(options.Checks, checks.NameQueries)
	}
	for _, custom := range h.CustomQueries {
		options.Queries = append(options.Queries, custom.Query)
	}
	options.Timeout = healthTimeout(h)
	return checks.Runner{Reader: t.Client, Live: t.Live, Sources: t.Sources, Options: options}
}

// jobPostHealthChecks are jobHealthChecks after an upgrade. A Prometheus that restarts starts the
// waiting time of each alert anew, so pending alerts count, too.
func (t Deps) jobPostHealthChecks(h v1beta1.HealthChecks) checks.Runner {
	runner := t.jobHealthChecks(h)
	runner.Options.PendingAlerts = true
	return runner
}

// healthTimeout returns how long the checks may fail; 30 minutes if nothing valid is set.
func healthTimeout(h v1beta1.HealthChecks) time.Duration {
	timeout, err := maintenance.Duration(h.Timeout)
	if err != nil || timeout <= 0 {
		return defaultHealthTimeout
	}
	return timeout
}

// defaultHealthTimeout is the default of the schema.
const defaultHealthTimeout = 30 * time.Minute

// isSet returns the value of a switch that is on by default.
func isSet(value *bool) bool { return value == nil || *value }
