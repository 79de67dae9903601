// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// OwnAlerts is the prefix of the names of the operator's own alerts. They report that an upgrade makes
// no progress, so they must not be what blocks it.
const OwnAlerts = "ManagedUpgrade"

var alertsCheck = Check{
	Name: NameAlerts,
	Doc:  "Critical alerts are firing, or pending after an upgrade.",
	Find: findAlerts,
}

func findAlerts(ctx context.Context, in Input) ([]Finding, error) {
	if in.Sources != nil && in.Sources.AlertsDisabled {
		return nil, nil
	}
	alerts, err := in.Sources.criticalAlerts(ctx, func(outdated []Alert) bool {
		return in.urgent && len(in.Options.blockingAlerts(outdated)) == 0
	})
	if err != nil {
		return nil, err
	}
	found := in.Options.blockingAlerts(alerts.value)
	in.retry.wait(retryAfter(alerts, in.urgent, len(found) > 0))
	return found, nil
}

// retryAfter returns when a newer result is available; 0 means that this one opens a gate.
func retryAfter[T any](r result[T], urgent, blocked bool) time.Duration {
	switch {
	case blocked || !r.fresh && !urgent:
		return r.repeatIn
	case !r.fresh:
		return r.urgentIn
	}
	return 0
}

// blockingAlerts returns a finding for each alert that counts.
func (o Options) blockingAlerts(alerts []Alert) []Finding {
	var found []Finding
	for _, alert := range alerts {
		if !o.counts(alert) {
			continue
		}
		name := text.Excerpt(alert.Name)
		if name == "" {
			name = "an alert without a name"
		}
		f := newFinding("AlertFiring", "critical alerts firing", Resource{Group: "monitoring.coreos.com", Kind: "Alert", Namespace: text.Excerpt(alert.Namespace), Name: name})
		if alert.Pending {
			f.Reason, f.Summary = "AlertPending", "critical alerts pending"
		}
		f.Remedy = "Resolve the cause of the alert, or exclude the alert from the health check."
		found = append(found, f)
	}
	return found
}

func (o Options) counts(alert Alert) bool {
	switch {
	case strings.HasPrefix(alert.Name, OwnAlerts) || text.MatchesAny(alert.Name, o.ExcludeAlerts):
		return false
	case alert.Pending && !o.PendingAlerts:
		return false
	case alert.Namespace == "":
		return true
	case len(o.AlertNamespaces) > 0 && !text.MatchesAny(alert.Namespace, o.AlertNamespaces):
		return false
	}
	return !text.MatchesAny(alert.Namespace, o.ExcludeNamespaces)
}
