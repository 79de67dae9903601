// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Newest is the newest release that an upgrade may install without asking a user.
type Newest struct {
	// Release is the release, or zero if there is none.
	Release Release
	// Excluded lists later offered releases with the reasons for their exclusion.
	Excluded []Exclusion
}

// Exclusion is an offered but excluded release.
type Exclusion struct {
	Version string
	Reason  string
	// Unknown is set if the release may turn out to be installable.
	Unknown bool
}

// Unknown explains why it is unknown whether there is a release, or returns "" if that is known.
func (n Newest) Unknown() string {
	at := slices.IndexFunc(n.Excluded, func(e Exclusion) bool { return e.Unknown })
	if at < 0 || n.Release != (Release{}) {
		return ""
	}
	return text.WithReason(text.Excerpt(n.Excluded[at].Version), n.Excluded[at].Reason)
}

// NewestUpdate returns the highest offered version without known risks. With patchOnly, or unless Upgradeable
// is True, it excludes other minor versions. It also excludes versions with several offered images and
// versions that are not newer than the current one.
func (v Version) NewestUpdate(patchOnly bool) Newest { return v.newestUpdate(patchOnly, false) }

// reasonAdminAck is the reason of Upgradeable=False if only administrator acknowledgments are missing. If
// anything else is wrong, the cluster version operator reports another reason.
const reasonAdminAck = "AdminAckRequired"

// WaitsForAcknowledgment reports whether only missing acknowledgments prevent updates to another minor
// version.
func (v Version) WaitsForAcknowledgment() bool {
	return v.Upgradeable.IsFalse() && v.Upgradeable.Reason == reasonAdminAck
}

// NewestOnceAcknowledged is like NewestUpdate but assumes that missing acknowledgments will be given.
func (v Version) NewestOnceAcknowledged() Newest {
	return v.newestUpdate(false, v.WaitsForAcknowledgment())
}

func (v Version) newestUpdate(patchOnly, acknowledged bool) Newest {
	current := cmp.Or(v.Current.Version, v.Installed)
	var newest Newest
	for _, version := range v.OfferedVersions() { // latest first
		change, err := CompareVersions(current, version)
		if err != nil || change == Same || change == Downgrade {
			continue
		}
		update := v.AvailableUpdate(Target{Version: version})
		if reason, unknown := v.exclude(version, change, update, patchOnly, acknowledged); reason != "" {
			newest.Excluded = append(newest.Excluded, Exclusion{version, reason, unknown})
			continue
		}
		newest.Release = Release{Version: version, Image: update.Image}
		break
	}
	return newest
}

// exclude explains why an offered release is not installed without asking a user, and reports whether that may
// change without a change of the offer.
func (v Version) exclude(version string, change ChangeType, update AvailableUpdate, patchOnly, acknowledged bool) (reason string, unknown bool) {
	hasRisks := func(unknown bool) bool {
		return slices.ContainsFunc(v.availableUpdates, func(o offer) bool { return o.version == version && o.Conditional && o.RisksUnknown == unknown })
	}
	switch {
	case update.Ambiguous:
		return "several images are offered", false
	case hasRisks(false):
		return "it has known risks", false
	case change.CrossesMinor() && patchOnly:
		return "it is another minor version", false
	case change.CrossesMinor() && v.MayLeaveMinor() != Yes && !acknowledged:
		reason := "it is another minor version, and Upgradeable=" + text.Excerpt(v.Upgradeable.Status) + ": " + v.Upgradeable.Reason
		return strings.TrimSuffix(reason, ": "), v.MayLeaveMinor() == Unknown
	case hasRisks(true):
		return "it is not known yet whether its risks apply", true
	}
	return "", false
}

// UpdatesUnknown explains why the available updates are unknown, or returns "" if they are known. A cluster
// without a channel has no updates.
func (v Version) UpdatesUnknown() string {
	switch {
	case v.RetrievedUpdates.IsTrue(), v.RetrievedUpdates.Reason == "NoChannel":
		return ""
	case v.RetrievedUpdates.Status == "":
		return "the cluster version operator has not reported them yet"
	}
	return v.RetrievedUpdates.ReasonAndMessage()
}

// IsLater reports whether a version is later than another. It returns false if either is malformed.
func IsLater(version, than string) bool {
	a, err := semver.Parse(version)
	if err != nil {
		return false
	}
	b, err := semver.Parse(than)
	return err == nil && a.GT(b)
}
