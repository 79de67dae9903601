// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// Update is an entry in the history of the ClusterVersion.
type Update struct {
	Release

	// Completed is set if the release was completely installed. If not, the update is in progress if it is
	// the newest one, and was replaced otherwise.
	Completed bool
	// Start is when the installation began. End is when it completed or was replaced by another update. They
	// are zero if unknown or not reached.
	Start, End time.Time
}

// Duration returns how long a completed update took, or 0 if this is unknown.
func (u Update) Duration() time.Duration {
	if !u.Completed || u.Start.IsZero() || !u.End.After(u.Start) {
		return 0
	}
	return u.End.Sub(u.Start)
}

func updateOf(entry *configv1.UpdateHistory) Update {
	update := Update{
		Release:   Release{Version: entry.Version, Image: entry.Image},
		Completed: entry.State == configv1.CompletedUpdate,
		Start:     entry.StartedTime.Time,
	}
	if entry.CompletionTime != nil {
		update.End = entry.CompletionTime.Time
	}
	return update
}

// UpdateKind describes what an update changes.
type UpdateKind string

// Kinds of updates.
const (
	// UpdateInstallation is the initial installation of the cluster.
	UpdateInstallation UpdateKind = "Installation"
	// UpdatePatch, UpdateMinor, UpdateMajor, and UpdateDowngrade change the version.
	UpdatePatch     UpdateKind = "Patch"
	UpdateMinor     UpdateKind = "Minor"
	UpdateMajor     UpdateKind = "Major"
	UpdateDowngrade UpdateKind = "Downgrade"
	// UpdateMigration installs a different image of the same version.
	UpdateMigration UpdateKind = "Migration"
	// UpdateOther is an update between versions that cannot be compared.
	UpdateOther UpdateKind = "Other"
)

// UpdateKind returns the kind of the update at the given index of Updates.
func (v Version) UpdateKind(index int) UpdateKind {
	if index+1 >= len(v.Updates) {
		return UpdateInstallation
	}
	change, err := CompareVersions(v.Updates[index+1].Version, v.Updates[index].Version)
	if err != nil {
		return UpdateOther
	}
	switch change {
	case Patch:
		return UpdatePatch
	case Minor:
		return UpdateMinor
	case Major:
		return UpdateMajor
	case Downgrade:
		return UpdateDowngrade
	default:
		return UpdateMigration
	}
}
