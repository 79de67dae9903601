// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

var alertsInformer = Informer{
	Name:     NameAlerts,
	Doc:      "Reports alerts that began to fire during the update, and those about PodDisruptionBudgets.",
	Requires: []Source{SourceClusterVersion, SourceAlerts},
	Find:     findAlerts,
}

// budgetAlertPrefix is the prefix of the names of the alerts about PodDisruptionBudgets.
const budgetAlertPrefix = "PodDisruptionBudget"

// findAlerts returns one finding for each object that alerts of one name are about. An alert says that
// something is wrong, and not that it holds the update, so that none is more than a warning.
func findAlerts(f Facts) []checks.Finding {
	if !f.Has(SourceAlerts) || !f.Updating() {
		return nil
	}
	var found []checks.Finding
	index, instances := map[string]int{}, []int{}
	for i := range f.Alerts {
		alert := &f.Alerts[i]
		if !f.isOfInterest(alert) {
			continue
		}
		finding := alertFinding(alert)
		at, known := index[finding.UID()]
		if !known {
			index[finding.UID()] = len(found)
			found, instances = append(found, finding), append(instances, 1)
			continue
		}
		instances[at]++
		if first := &found[at].Since; first.IsZero() || !finding.Since.IsZero() && finding.Since.Before(*first) {
			*first = finding.Since
		}
	}
	for i := range found {
		if instances[i] > 1 {
			found[i].Description = strings.TrimSpace(found[i].Description + fmt.Sprintf(" (%d alerts)", instances[i]))
		}
	}
	slices.SortStableFunc(found, func(a, b checks.Finding) int { return cmp.Compare(a.UID(), b.UID()) })
	return found
}

// isOfInterest reports whether an alert fires with a severity that matters, and began during the update
// or is about a budget. One whose time is unknown may have begun during it. The alerts of this product
// report what its other insights do.
func (f Facts) isOfInterest(alert *clusterstate.Alert) bool {
	if !alert.Firing || alert.Severity != "warning" && alert.Severity != "critical" || strings.HasPrefix(alert.Name, checks.OwnAlerts) {
		return false
	}
	start := f.NewestUpdate().Start
	return strings.HasPrefix(alert.Name, budgetAlertPrefix) || alert.Since.IsZero() || start.IsZero() || !alert.Since.Before(start)
}

func alertFinding(alert *clusterstate.Alert) checks.Finding {
	name := cmp.Or(text.Excerpt(alert.Name), "an alert without a name")
	finding := checks.Finding{
		Scope: checks.ScopeControlPlane, Level: checks.LevelWarning, Type: checks.TypeUnknown, Reason: "AlertFiring", Summary: "alerts firing: " + name,
		Since: alert.Since, Reference: alertReference(alert),
		Resources: []checks.Resource{{Group: "monitoring.coreos.com", Kind: "Alert", Namespace: text.Excerpt(alert.Namespace), Name: name}},
	}
	if alert.Severity == "critical" {
		finding.Reason, finding.Summary = "CriticalAlertFiring", "critical alerts firing: "+name
		finding.Type = checks.TypeClusterAvailability
	}
	for _, key := range []string{"summary", "message", "description"} {
		if value := alert.Annotations[key]; value != "" {
			finding.Description = text.Reason(value)
			break
		}
	}
	if budget := alert.Labels["poddisruptionbudget"]; budget != "" {
		finding.Type = checks.TypeUpdateSpeed
		finding.Resources = append(finding.Resources, checks.Resource{
			Group: policyv1.GroupName, Kind: "PodDisruptionBudget", Namespace: text.Excerpt(alert.Namespace), Name: text.Excerpt(budget),
		})
	}
	return finding
}

// alertReference returns the URL of the runbook of an alert, if it is one that may be shown.
func alertReference(alert *clusterstate.Alert) string {
	if url := alert.Annotations["runbook_url"]; strings.HasPrefix(url, "https://") {
		return url
	}
	return ""
}
