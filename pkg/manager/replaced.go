// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replacedTimeout limits how long a cache may take to receive a write.
const replacedTimeout = time.Minute

// Replaced is the version of an object that was replaced by this process's last write. The zero
// value indicates that the process has not written the object.
type Replaced struct {
	version string
	at      time.Time
}

// Note records a write that changed before to after. A write that changed nothing, for example
// because the API server dropped all new fields, replaced nothing.
func (r *Replaced) Note(before, after client.Object, at time.Time) {
	if version := before.GetResourceVersion(); version != after.GetResourceVersion() {
		*r = Replaced{version, at}
	}
}

// IsBehind reports whether a cached object is still the replaced version. It returns false after a
// minute, or if the clock was set back: a restored etcd may have brought the version back, and the
// API server rejects writes based on stale versions anyway.
func (r Replaced) IsBehind(cached client.Object, now time.Time) bool {
	age := now.Sub(r.at)
	return r.version != "" && r.version == cached.GetResourceVersion() && age >= 0 && age < replacedTimeout
}
