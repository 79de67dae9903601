// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// AvailableUpdate describes how the cluster version operator offers a release. It is zero if the release is
// not offered.
type AvailableUpdate struct {
	// Available reports whether the release is offered.
	Available bool
	// Conditional is set if the release is offered but not recommended because of its risks.
	Conditional bool
	// RisksUnknown is set if the cluster version operator could not yet evaluate whether the risks apply. It then
	// offers the release as if they did: after each of its restarts, and while Prometheus is unavailable.
	RisksUnknown bool
	// Listed is set if the release is in status.availableUpdates. It can then be requested by version alone,
	// unless that is ambiguous.
	Listed bool
	// Ambiguous is set if other images of the same version are also offered.
	Ambiguous bool
	// Risks lists the risks that must be accepted.
	Risks []Risk
	// Image is the pull spec of the release.
	Image string
	// Channels lists the channels that contain the release, according to the update service.
	Channels []string
}

// offer is one offered release.
type offer struct {
	version string
	AvailableUpdate
}

// Risk explains why a conditional update is not recommended.
type Risk struct {
	Name    string
	Message string
	URL     string
}

// String returns the message and URL as one line of limited length.
func (r Risk) String() string {
	return text.Reason(r.Message + " " + r.URL)
}

// UnacceptedRisks returns the risks that are not accepted for the target.
func (u AvailableUpdate) UnacceptedRisks(target Target) []Risk {
	var missing []Risk
	for _, risk := range u.Risks {
		if !slices.Contains(target.AcceptedRisks, risk.Name) {
			missing = append(missing, risk)
		}
	}
	return missing
}

// AvailableUpdate returns how the target is offered. Offers are identified by version and image. If no offer
// has the target's image, an offer with another image is returned. A release is no longer offered once its
// installation has started.
func (v Version) AvailableUpdate(target Target) AvailableUpdate {
	var found AvailableUpdate
	matches, images := false, map[string]bool{}
	for _, o := range v.availableUpdates {
		if o.version != target.Version {
			continue
		}
		images[digest(o.Image)] = true
		if match := !(Release{Image: o.Image}).HasOtherImage(target.Image); !found.Available || match && !matches {
			found, matches = o.AvailableUpdate, match
		}
	}
	found.Ambiguous = len(images) > 1
	return found
}

// OfferedVersions returns the offered versions, including conditional ones, latest first.
func (v Version) OfferedVersions() []string {
	versions := make([]string, 0, len(v.availableUpdates))
	for _, o := range v.availableUpdates {
		versions = append(versions, o.version)
	}
	slices.SortFunc(versions, func(a, b string) int {
		x, errX := semver.Parse(a)
		y, errY := semver.Parse(b)
		if errX != nil || errY != nil {
			return cmp.Compare(b, a)
		}
		return y.Compare(x)
	})
	return slices.Compact(versions)
}

// availableUpdates returns the offers in the status, recommended updates first. The cluster version operator
// lists a conditional update as recommended if its risks do not apply.
func availableUpdates(status *configv1.ClusterVersionStatus) []offer {
	all := make([]offer, 0, len(status.AvailableUpdates)+len(status.ConditionalUpdates))
	add := func(release *configv1.Release, u AvailableUpdate) {
		u.Available, u.Conditional, u.Image, u.Channels = true, len(u.Risks) > 0, release.Image, release.Channels
		all = append(all, offer{release.Version, u})
	}
	for i := range status.AvailableUpdates {
		add(&status.AvailableUpdates[i], AvailableUpdate{Listed: true})
	}
	for i := range status.ConditionalUpdates {
		update := &status.ConditionalUpdates[i]
		applicable := risks(update)
		switch {
		case isRecommended(update, metav1.ConditionTrue):
			add(&update.Release, AvailableUpdate{})
		case len(applicable) > 0:
			add(&update.Release, AvailableUpdate{Risks: applicable, RisksUnknown: !isRecommended(update, metav1.ConditionFalse)})
		}
		// The API promises at least one risk. Without one, nothing can be accepted knowingly, so the update
		// counts as not offered.
	}
	return all
}

func isRecommended(update *configv1.ConditionalUpdate, status metav1.ConditionStatus) bool {
	return hasStatus(update.Conditions, "Recommended", status)
}

// risks returns the risks that may apply to this cluster. A cluster version operator that does not evaluate
// each risk separately (as in 4.20) puts the name of the only one that applies into the reason.
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
