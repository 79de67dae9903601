// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// poolKinds maps API groups to the kinds of node pools.
var poolKinds = map[string][]string{
	"machineconfiguration.openshift.io": {"MachineConfigPool"},
	"machine.openshift.io":              {"MachineSet"},
	"cluster.x-k8s.io":                  {"MachineSet", "MachineDeployment"},
	"hypershift.openshift.io":           {"NodePool"},
}

// IsPool reports whether a reference names a node pool. Without an API group, the kind alone decides.
func IsPool(ref updatev1beta1.ResourceReference) bool {
	if group := Group(ref.APIVersion); group != "" {
		return slices.Contains(poolKinds[group], ref.Kind)
	}
	for _, kinds := range poolKinds {
		if slices.Contains(kinds, ref.Kind) {
			return true
		}
	}
	return false
}

// versions holds the version of each API group that findings refer to. Core objects have an empty group.
var versions = map[string]string{
	"":                                  "v1",
	"config.openshift.io":               "v1",
	"machineconfiguration.openshift.io": "v1",
	"machine.openshift.io":              "v1beta1",
	"cluster.x-k8s.io":                  "v1beta1",
	"hypershift.openshift.io":           "v1beta1",
	"policy":                            "v1",
	"monitoring.coreos.com":             "v1",
	"upgrade.managed.openshift.io":      "v1alpha1",
	"managedupgrade.appuio.io":          "v1beta1",
	"operators.coreos.com":              "v1alpha1",
}

// Reference returns a reference to an object.
func Reference(r checks.Resource) updatev1beta1.ResourceReference {
	version, known := versions[r.Group]
	if !known {
		version = "v1"
	}
	if r.Group != "" {
		version = r.Group + "/" + version
	}
	return updatev1beta1.ResourceReference{APIVersion: version, Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
}

// FromFinding converts a finding made by a built-in informer at the given time to an insight. Its causes are
// the UIDs of other findings until Link replaces them.
func FromFinding(informer string, f checks.Finding, at time.Time) updatev1beta1.Insight {
	scope := updatev1beta1.InsightScope{Type: updatev1beta1.ScopeType(f.Scope)}
	for _, resource := range f.Resources {
		ref := Reference(resource)
		if f.Scope == checks.ScopeWorkerPool && IsPool(ref) {
			scope.WorkerPool = append(scope.WorkerPool, ref)
		} else {
			scope.Resources = append(scope.Resources, ref)
		}
	}
	description := f.Description
	if f.Remedy != "" {
		description = strings.TrimPrefix(description+"\n"+f.Remedy, "\n")
	}
	if f.Since.After(at.Add(text.MaxClockSkew)) {
		note := "Its time, " + text.FormatTime(f.Since) + ", is in the future: the clocks of the cluster differ."
		description = strings.TrimPrefix(description+"\n"+note, "\n")
	}
	made := Clean(informer, updatev1beta1.Insight{
		UID: f.UID(), AcquisitionTime: metav1.NewTime(at), Scope: scope,
		Impact: updatev1beta1.InsightImpact{
			Level: updatev1beta1.Levels[min(max(int(f.Level), 0), len(updatev1beta1.Levels)-1)], Type: string(f.Type), Reason: f.Reason, Summary: f.Summary, Description: description,
		},
		Remediation: updatev1beta1.InsightRemediation{Reference: f.Reference},
	}, at)
	if !f.Since.IsZero() && !f.Since.After(at) {
		made.FirstObservedTime = metav1.NewTime(f.Since.UTC().Truncate(time.Second))
	}
	made.CausedBy = slices.Clone(f.CausedBy)
	return made
}

// maxCauses limits the causes of an insight.
const maxCauses = 16

// Link replaces the causes of built-in insights, which are UIDs, with UUIDs. It removes causes that are not
// among the insights.
func Link(insights ...[]updatev1beta1.Insight) {
	uuids := map[string][]string{}
	for _, list := range insights {
		for i := range list {
			uuids[list[i].UID] = append(uuids[list[i].UID], list[i].UUID)
		}
	}
	for _, list := range insights {
		for i := range list {
			var causes []string
			for _, uid := range list[i].CausedBy {
				causes = append(causes, uuids[uid]...)
			}
			slices.Sort(causes)
			causes = slices.Compact(causes)
			list[i].CausedBy = slices.Clip(causes[:min(len(causes), maxCauses)])
			if len(causes) == 0 {
				list[i].CausedBy = nil
			}
		}
	}
}
