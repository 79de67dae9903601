// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"time"

	configv1 "github.com/openshift/api/config/v1"
)

// Update is one entry of the history of the ClusterVersion.
type Update struct {
	Release

	// Completed reports that the release was completely installed. An update that is not completed
	// is in progress if it is the newest one; otherwise, another one replaced it.
	Completed bool
	// Start is when the installation began, and End when it was completed or another update replaced
	// it; zero if this is unknown, or it has not ended.
	Start, End time.Time
}

// Duration returns how long a completed update took; 0 means that this is unknown.
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

// The kinds of updates.
const (
	// UpdateInstallation is the installation of the cluster.
	UpdateInstallation UpdateKind = "Installation"
	// UpdatePatch, UpdateMinor, UpdateMajor, and UpdateDowngrade change the version.
	UpdatePatch     UpdateKind = "Patch"
	UpdateMinor     UpdateKind = "Minor"
	UpdateMajor     UpdateKind = "Major"
	UpdateDowngrade UpdateKind = "Downgrade"
	// UpdateMigration installs another image of the same version.
	UpdateMigration UpdateKind = "Migration"
	// UpdateOther is an update whose versions cannot be compared.
	UpdateOther UpdateKind = "Other"
)

// UpdateKind returns what the update with that index in Updates changes.
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
