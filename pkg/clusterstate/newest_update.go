// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Newest is the newest release that an upgrade may install without a decision by a person.
type Newest struct {
	// Release is its release; zero means none.
	Release Release
	// Excluded are the later releases that are offered, each with the reason for which it is
	// excluded.
	Excluded []Exclusion
}

// Exclusion is a release that is offered and excluded.
type Exclusion struct {
	Version string
	Reason  string
}

// NewestUpdate returns the highest version that is offered without known risks. With patchOnly, or while Upgradeable is
// not True, versions of another minor version are excluded. A version of which several images are offered is also
// excluded, as is one that does not follow the current one.
func (v Version) NewestUpdate(patchOnly bool) Newest { return v.newestUpdate(patchOnly, false) }

// reasonAdminAck is the reason for which the cluster version operator reports Upgradeable=False if nothing
// but acknowledgments of an administrator is missing. If something else is, the reason is another one.
const reasonAdminAck = "AdminAckRequired"

// WaitsForAcknowledgment reports whether the cluster is not upgradeable to another minor version for want
// of acknowledgments only.
func (v Version) WaitsForAcknowledgment() bool {
	return v.Upgradeable.IsFalse() && v.Upgradeable.Reason == reasonAdminAck
}

// NewestOnceAcknowledged is NewestUpdate of a cluster whose missing acknowledgments will be given.
func (v Version) NewestOnceAcknowledged() Newest {
	return v.newestUpdate(false, v.WaitsForAcknowledgment())
}

func (v Version) newestUpdate(patchOnly, acknowledged bool) Newest {
	current := cmp.Or(v.Current.Version, v.Installed)
	var newest Newest
	for _, version := range v.OfferedVersions() { // the latest first
		change, err := CompareVersions(current, version)
		if err != nil || change == Same || change == Downgrade {
			continue
		}
		update := v.AvailableUpdate(Target{Version: version})
		if reason := v.exclude(version, change, update, patchOnly, acknowledged); reason != "" {
			newest.Excluded = append(newest.Excluded, Exclusion{Version: version, Reason: reason})
			continue
		}
		newest.Release = Release{Version: version, Image: update.Image}
		break
	}
	return newest
}

// exclude returns why an offered release is not installed without a decision by a person.
func (v Version) exclude(version string, change ChangeType, update AvailableUpdate, patchOnly, acknowledged bool) string {
	switch {
	case update.Ambiguous:
		return "several images are offered"
	case update.Conditional || v.isOfferedConditionally(version):
		return "it has known risks"
	case change.CrossesMinor() && patchOnly:
		return "it is another minor version"
	case change.CrossesMinor() && v.MayLeaveMinor() != Yes && !acknowledged:
		return strings.TrimSuffix("it is another minor version, and Upgradeable="+text.Excerpt(v.Upgradeable.Status)+": "+v.Upgradeable.Reason, ": ")
	}
	return ""
}

// isOfferedConditionally reports whether any offer of a version has risks, even if another has none.
func (v Version) isOfferedConditionally(version string) bool {
	for _, o := range v.availableUpdates {
		if o.version == version && o.Conditional {
			return true
		}
	}
	return false
}

// UpdatesUnknown returns why it is not known which updates are available, or "" if it is known. A
// cluster without a channel has none.
func (v Version) UpdatesUnknown() string {
	switch {
	case v.RetrievedUpdates.IsTrue(), v.RetrievedUpdates.Reason == "NoChannel":
		return ""
	case v.RetrievedUpdates.Status == "":
		return "the cluster version operator has not reported them yet"
	}
	return v.RetrievedUpdates.ReasonAndMessage()
}

// IsLater reports whether a version follows another one. A malformed version follows none, and is
// followed by none.
func IsLater(version, than string) bool {
	a, err := semver.Parse(version)
	if err != nil {
		return false
	}
	b, err := semver.Parse(than)
	return err == nil && a.GT(b)
}
