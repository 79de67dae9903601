// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"strconv"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// AttemptRef identifies the attempt for which something is done outside of the record: alerts are
// silenced, nodes are added.
type AttemptRef struct {
	// Group and Kind identify the kind of object that requests the upgrade.
	Group, Kind string
	// UID, Namespace, and Name identify the object.
	UID, Namespace, Name string
	// Key identifies the attempt among the attempts of the object at one version, see AttemptKey.
	Key string
	// Version is the version that the attempt leads to; empty if it leads to none.
	Version string
}

// ID is unique among the attempts of the object.
func (a AttemptRef) ID() string { return a.Version + "/" + a.Key }

// AttemptKey returns the key of an attempt: the time at which it was to begin. It is never a
// counter, which a lost record would reset. A record without that time was written by an operator
// that made one attempt for a version, or counted them.
func AttemptKey(record history.Record) string {
	return cmp.Or(record.Key(), strconv.Itoa(int(record.Attempt)))
}
