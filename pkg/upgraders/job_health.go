// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"fmt"
	"time"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// jobHealthChecks are exactly the health checks of an UpgradeJob. A pool that a person paused always counts,
// because the upgrade could not complete. The settings of the operator narrow no check, and the alerts of every
// namespace count.
func (t Deps) jobHealthChecks(h maintenancev1beta1.HealthChecks) checks.Runner {
	options := checks.GateOptions{
		Checks:          []string{checks.NamePools},
		PausedPoolsOnly: true, IgnoreDelayedPools: true,
		ExcludeOperators: h.ExcludeOperators, ExcludeNamespaces: h.ExcludeNamespaces,
	}
	if isSet(h.CheckCriticalAlerts) {
		options.Checks = append(options.Checks, checks.NameAlerts)
		options.RequireAlerts = h.CheckCriticalAlerts != nil
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
	if len(h.Objects) > 0 {
		options.Checks = append(options.Checks, checks.NameObjects)
	}
	for i := range h.Objects {
		options.Objects = append(options.Objects, checks.ObjectCheck(h.Objects[i]))
	}
	options.Timeout = healthTimeout(h)
	return checks.Runner{Reader: t.Client, Live: t.Live, Sources: t.Sources, Options: options}
}

// jobPostHealthChecks are jobHealthChecks after an upgrade. They also wait for pending alerts, until their
// timeout, because a Prometheus that restarts starts the waiting time of each alert anew.
func (t Deps) jobPostHealthChecks(h maintenancev1beta1.HealthChecks) checks.Runner {
	runner := t.jobHealthChecks(h)
	runner.Options.PendingAlerts = true
	return runner
}

// healthTimeout returns how long the checks may fail, by default 30 minutes.
func healthTimeout(h maintenancev1beta1.HealthChecks) time.Duration {
	timeout, err := maintenance.Duration(h.Timeout)
	if err != nil || timeout <= 0 {
		return defaultHealthTimeout
	}
	return timeout
}

// defaultHealthTimeout is the default of the schema.
const defaultHealthTimeout = 30 * time.Minute

// isSet returns a boolean setting with the default true.
func isSet(value *bool) bool { return value == nil || *value }

// ReasonInvalidHealthChecks is the reason of health checks that cannot pass.
const ReasonInvalidHealthChecks = "InvalidHealthChecks"

// objectsProblem returns what is wrong with the first invalid condition on objects, or an empty string.
func (t Deps) objectsProblem(job *maintenancev1beta1.UpgradeJob) string {
	config := &job.Spec.Config
	for _, list := range []struct {
		field string
		of    []maintenancev1beta1.ObjectCheck
	}{
		{"preUpgradeHealthChecks", config.PreUpgradeHealthChecks.Objects}, {"postUpgradeHealthChecks", config.PostUpgradeHealthChecks.Objects},
	} {
		for i := range list.of {
			if key, err := checks.ObjectCheck(list.of[i]).Validate(t.Sources.Conditions); err != nil {
				return fmt.Sprintf("spec.config.%s.objects[%d].%s: %v", list.field, i, key, err)
			}
		}
	}
	return ""
}
