// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"errors"
	"fmt"

	"github.com/blang/semver/v4"
)

// ChangeType classifies the change from one version to another.
type ChangeType int

const (
	// Same is no change, ignoring build metadata.
	Same ChangeType = iota
	// Patch is a change within a minor version.
	Patch
	// Minor is a change to a later minor version of the same major version.
	Minor
	// Major is a change to a later major version.
	Major
	// Downgrade is a change to an earlier version.
	Downgrade
)

// String returns the name of the change.
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
		return fmt.Sprintf("ChangeType(%d)", int(c))
	}
}

// CrossesMinor reports whether the change is to another minor version. Upgradeable=False blocks such updates.
func (c ChangeType) CrossesMinor() bool { return c == Minor || c == Major }

// CompareVersions classifies the change between two versions. An error names the malformed version.
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

// ChangeTo classifies the change from the installed version to the target. An error says which version is
// malformed.
func (v Version) ChangeTo(target Target) (ChangeType, error) {
	if v.Installed == "" {
		return Same, errors.New("the ClusterVersion has no completed update in its history, so the installed version is unknown")
	}
	if _, err := semver.Parse(v.Installed); err != nil {
		return Same, fmt.Errorf("the installed version %q in the history of the ClusterVersion is malformed: %w", sanitize(v.Installed), err)
	}
	change, err := CompareVersions(v.Installed, target.Version)
	if err != nil {
		return change, fmt.Errorf("comparing the desired version with the installed one: %w", err)
	}
	return change, nil
}

// ValidateVersion returns an error that names the version if it is malformed.
func ValidateVersion(version string) error {
	_, err := parse(version)
	return err
}

func parse(version string) (semver.Version, error) {
	v, err := semver.Parse(version)
	if err != nil {
		return semver.Version{}, fmt.Errorf("reading version %q: %w", sanitize(version), err)
	}
	return v, nil
}
