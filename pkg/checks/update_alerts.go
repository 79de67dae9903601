// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// findUpdateAlerts returns one finding per alert name and object. An alert does not prove that the update is
// blocked, so its level is at most warning.
func findUpdateAlerts(f Facts) []Finding {
	if !f.Has(SourceAlerts) || !f.Updating() {
		return nil
	}
	var found []Finding
	for i := range f.Alerts {
		if alert := &f.Alerts[i]; alert.ConcernsUpdate(f.NewestUpdate().Start) {
			found = append(found, alertFinding(alert))
		}
	}
	return eachUID(found, func(same []Finding) Finding {
		one := same[0]
		for i := range same {
			if since := same[i].Since; one.Since.IsZero() || !since.IsZero() && since.Before(one.Since) {
				one.Since = since
			}
		}
		if len(same) > 1 {
			one.Description = strings.TrimSpace(one.Description + fmt.Sprintf(" (%d alerts)", len(same)))
		}
		return one
	})
}

// eachUID merges findings with the same UID and returns them sorted by UID.
func eachUID(found []Finding, merge func([]Finding) Finding) []Finding {
	byUID := map[string][]Finding{}
	for _, f := range found {
		byUID[f.UID()] = append(byUID[f.UID()], f)
	}
	var merged []Finding
	for _, uid := range slices.Sorted(maps.Keys(byUID)) {
		merged = append(merged, merge(byUID[uid]))
	}
	return merged
}

func alertFinding(alert *clusterstate.Alert) Finding {
	name := cmp.Or(text.Excerpt(alert.Name), unnamedAlert)
	finding := controlPlane.finding(LevelWarning, TypeUnknown, "AlertFiring", "alerts firing: "+name, alertResource(alert, unnamedAlert))
	finding.Since = alert.Since
	if url := alert.Annotations["runbook_url"]; strings.HasPrefix(url, "https://") {
		finding.Reference = url
	}
	if alert.IsCritical() {
		finding.Reason, finding.Summary = "CriticalAlertFiring", "critical alerts firing: "+name
		finding.Type = TypeClusterAvailability
	}
	for _, key := range []string{"summary", "message", "description"} {
		if value := alert.Annotations[key]; value != "" {
			finding.Description = text.Reason(value)
			break
		}
	}
	if budget := alert.Labels["poddisruptionbudget"]; budget != "" {
		finding.Type = TypeUpdateSpeed
		finding.Resources = append(finding.Resources, Resource{
			Group: policyv1.GroupName, Kind: "PodDisruptionBudget", Namespace: text.Excerpt(alert.Namespace), Name: text.Excerpt(budget),
		})
	}
	return finding
}

const unnamedAlert = "an alert without a name"

func alertResource(alert *clusterstate.Alert, unnamed string) Resource {
	return Resource{Group: "monitoring.coreos.com", Kind: "Alert", Namespace: text.Excerpt(alert.Namespace), Name: cmp.Or(text.Excerpt(alert.Name), unnamed)}
}
