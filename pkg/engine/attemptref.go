// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"strconv"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// AttemptRef identifies the attempt that silences alerts or adds nodes: things that its record does not list.
type AttemptRef struct {
	// Group and Kind identify the kind of the object that requests the upgrade.
	Group, Kind string
	// UID, Namespace, and Name identify the object.
	UID, Namespace, Name string
	// Key identifies the attempt among the attempts of the object at one version, see AttemptKey.
	Key string
	// Version is the target version, or empty if there is none.
	Version string
}

// ID is unique among the attempts of the object.
func (a AttemptRef) ID() string { return a.Version + "/" + a.Key }

// AttemptKey returns the key of an attempt, the time of its requested start. It is not a counter, because a
// lost record would reset a counter. Records without that time come from releases that counted attempts or made
// one attempt per version.
func AttemptKey(record history.Record) string {
	return cmp.Or(record.Key(), strconv.Itoa(int(record.Attempt)))
}
