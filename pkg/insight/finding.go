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

// poolKinds are the kinds of pools of nodes, by API group.
var poolKinds = map[string][]string{
	"machineconfiguration.openshift.io": {"MachineConfigPool"},
	"machine.openshift.io":              {"MachineSet"},
	"cluster.x-k8s.io":                  {"MachineSet", "MachineDeployment"},
	"hypershift.openshift.io":           {"NodePool"},
}

// IsPool reports whether a reference is to a pool of nodes. A reference without an API group is to one
// if any group has such a kind.
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

// versions are the versions of the API groups that findings are about. Core objects have none.
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

// FromFinding returns the insight of a finding that a built-in informer made at that time. Its causes
// are the UIDs of findings: see Link.
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

// maxCauses bounds the causes of an insight.
const maxCauses = 16

// Link replaces the UIDs of the causes of insights of built-in informers by their UUIDs. A cause that
// is not among them is removed.
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
