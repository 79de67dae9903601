// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// AvailableUpdate is how the cluster version operator offers a release. The zero Offer
// is none.
type AvailableUpdate struct {
	// Available says whether the release is offered at all.
	Available bool
	// Conditional says that it is offered, but not recommended, because of its risks.
	Conditional bool
	// Risks are the risks that must be accepted to take it.
	Risks []Risk
	// Image is the pull spec of the release.
	Image string
	// Channels are those that have the release, as far as it is said.
	Channels []string
}

// Risk is why a conditional update is not recommended.
type Risk struct {
	Name    string
	Message string
	URL     string
}

// String says in one bounded line what the risk is.
func (r Risk) String() string {
	return text.Reason(r.Message + " " + r.URL)
}

// UnacceptedRisks are the risks of the offer that the target does not accept.
func (u AvailableUpdate) UnacceptedRisks(target Target) []Risk {
	var missing []Risk
	for _, risk := range u.Risks {
		if !slices.Contains(target.AcceptedRisks, risk.Name) {
			missing = append(missing, risk)
		}
	}
	return missing
}

// availableUpdates collects what the status offers. A recommended offer of a version
// wins over a conditional one: the operator lists a conditional update whose
// risks do not apply in both places.
func availableUpdates(status *configv1.ClusterVersionStatus) map[string]AvailableUpdate {
	all := make(map[string]AvailableUpdate, len(status.AvailableUpdates)+len(status.ConditionalUpdates))
	for i := range status.AvailableUpdates {
		release := &status.AvailableUpdates[i]
		if _, known := all[release.Version]; !known {
			all[release.Version] = AvailableUpdate{Available: true, Image: release.Image, Channels: release.Channels}
		}
	}
	for i := range status.ConditionalUpdates {
		update := &status.ConditionalUpdates[i]
		if _, known := all[update.Release.Version]; known {
			continue
		}
		if isRecommended(update) {
			all[update.Release.Version] = AvailableUpdate{Available: true, Image: update.Release.Image, Channels: update.Release.Channels}
			continue
		}
		// The API promises at least one risk. Without any there is nothing that
		// somebody could accept knowingly, so it counts as not offered.
		if len(update.Risks) == 0 {
			continue
		}
		all[update.Release.Version] = AvailableUpdate{
			Available: true, Conditional: true, Image: update.Release.Image, Channels: update.Release.Channels, Risks: risks(update),
		}
	}
	return all
}

func isRecommended(update *configv1.ConditionalUpdate) bool {
	return hasStatus(update.Conditions, "Recommended", metav1.ConditionTrue)
}

// risks are those that are not known to leave this cluster alone. A cluster
// version operator that does not say of each risk whether it applies (that of
// 4.20 does not) gives the name of the only one that does as its reason.
func risks(update *configv1.ConditionalUpdate) []Risk {
	var only string
	for i := range update.Risks {
		if hasReason(update.Conditions, "Recommended", metav1.ConditionFalse, update.Risks[i].Name) {
			only = update.Risks[i].Name
		}
	}
	var apply []Risk
	for i := range update.Risks {
		risk := &update.Risks[i]
		if (only == "" || only == risk.Name) && !hasStatus(risk.Conditions, "Applies", metav1.ConditionFalse) {
			apply = append(apply, Risk{Name: risk.Name, Message: risk.Message, URL: risk.URL})
		}
	}
	return apply
}

func hasReason(conditions []metav1.Condition, name string, status metav1.ConditionStatus, reason string) bool {
	return slices.ContainsFunc(conditions, func(c metav1.Condition) bool {
		return c.Type == name && c.Status == status && c.Reason == reason
	})
}

func hasStatus(conditions []metav1.Condition, name string, status metav1.ConditionStatus) bool {
	for i := range conditions {
		if conditions[i].Type == name {
			return conditions[i].Status == status
		}
	}
	return false
}
