// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

func findAlerts(in Facts, phase RulePhase) []Finding {
	switch {
	case phase == Plan:
		return in.planAlerts()
	case phase == Update:
		return findUpdateAlerts(in)
	case in.AlertsDisabled:
		return []Finding{alertsNotConfigured(in.Options.RequireAlerts)}
	}
	return in.Options.blockingAlerts(in.CriticalAlerts)
}

// alertsNotConfigured returns a finding for an operator without a source of alerts. It blocks if alerts are
// required.
func alertsNotConfigured(required bool) Finding {
	f := newFinding("AlertsNotConfigured", "alerts: not configured")
	f.Key, f.Level = "alerts", LevelInfo
	if required {
		f.Level, f.Summary = LevelError, "alerts cannot be checked, because the operator has no source of alerts (alerts.url)"
		f.Remedy = "Set alerts.url in the configuration of the operator, or omit checkCriticalAlerts."
	}
	return f
}

func (o GateOptions) blockingAlerts(alerts []clusterstate.Alert) []Finding {
	var found []Finding
	for i := range alerts {
		if !o.counts(alerts[i]) {
			continue
		}
		f := newFinding("AlertFiring", "critical alerts firing", alertResource(&alerts[i], unnamedAlert))
		if !alerts[i].Firing {
			f.Reason, f.Summary = "AlertPending", "critical alerts pending"
		}
		f.Remedy = "Resolve the cause of the alert, or exclude the alert from the health check."
		found = append(found, f)
	}
	return found
}

func (o GateOptions) counts(alert clusterstate.Alert) bool {
	switch {
	case !alert.ClosesGates(o.PendingAlerts) || text.MatchesAny(alert.Name, o.ExcludeAlerts):
		return false
	case alert.Namespace == "":
		return true
	case len(o.AlertNamespaces) > 0 && !text.MatchesAny(alert.Namespace, o.AlertNamespaces):
		return false
	}
	return !text.MatchesAny(alert.Namespace, o.ExcludeNamespaces)
}
