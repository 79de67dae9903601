// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"

	"github.com/blang/semver/v4"
)

// Newest is the newest release that an upgrade may install without a decision by a person.
type Newest struct {
	// Release is that release; zero means none.
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

// NewestUpdate returns the highest version that is offered without known risks. With patchOnly, or
// while Upgradeable is False, versions of another minor version are excluded. A version of which
// several images are offered is excluded, too, and so is one that does not follow the current one.
func (v Version) NewestUpdate(patchOnly bool) Newest {
	current := cmp.Or(v.Current.Version, v.Installed)
	var newest Newest
	for _, version := range v.OfferedVersions() { // the latest first
		change, err := CompareVersions(current, version)
		if err != nil || change == Same || change == Downgrade {
			continue
		}
		update := v.AvailableUpdate(Target{Version: version})
		if reason := v.exclude(version, change, update, patchOnly); reason != "" {
			newest.Excluded = append(newest.Excluded, Exclusion{Version: version, Reason: reason})
			continue
		}
		newest.Release = Release{Version: version, Image: update.Image}
		break
	}
	return newest
}

// exclude returns why an offered release is not installed without a decision by a person.
func (v Version) exclude(version string, change ChangeType, update AvailableUpdate, patchOnly bool) string {
	switch {
	case update.Ambiguous:
		return "several images are offered"
	case update.Conditional || v.isOfferedConditionally(version):
		return "it has known risks"
	case change.CrossesMinor() && patchOnly:
		return "it is another minor version"
	case change.CrossesMinor() && v.Upgradeable.IsFalse():
		return "it is another minor version, and Upgradeable=False"
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

// UpdatesUnknown returns why it is not known which updates are available; empty means that it is
// known. A cluster without a channel has none.
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
