// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"fmt"

	"github.com/blang/semver/v4"
)

// ChangeType is what it means to go from one version to another.
type ChangeType int

const (
	// Same is no change. Build metadata makes no difference.
	Same ChangeType = iota
	// Patch stays within a minor version.
	Patch
	// Minor leads to a later minor version of the same major version.
	Minor
	// Major leads to a later major version.
	Major
	// Downgrade leads to an earlier version.
	Downgrade
)

// String names the change.
func (c ChangeType) String() string {
	switch c {
	case Same:
		return "no change"
	case Patch:
		return "patch update"
	case Minor:
		return "minor update"
	case Major:
		return "major update"
	case Downgrade:
		return "downgrade"
	default:
		return fmt.Sprintf("Change(%d)", int(c))
	}
}

// CrossesMinor says whether the change leads out of the minor version. Those
// are the updates that Upgradeable=False holds up.
func (c ChangeType) CrossesMinor() bool { return c == Minor || c == Major }

// CompareVersions says what it means to go from one version to another. A malformed
// version is an error that names it.
func CompareVersions(from, to string) (ChangeType, error) {
	a, err := parse(from)
	if err != nil {
		return Same, err
	}
	b, err := parse(to)
	if err != nil {
		return Same, err
	}
	switch order := b.Compare(a); {
	case order == 0:
		return Same, nil
	case order < 0:
		return Downgrade, nil
	case b.Major != a.Major:
		return Major, nil
	case b.Minor != a.Minor:
		return Minor, nil
	default:
		return Patch, nil
	}
}

func parse(version string) (semver.Version, error) {
	v, err := semver.Parse(version)
	if err != nil {
		return semver.Version{}, fmt.Errorf("reading version %q: %w", sanitize(version), err)
	}
	return v, nil
}
