// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// replacedTimeout is how long a cache may take to receive a write.
const replacedTimeout = time.Minute

// Replaced is the version of an object that the last write of this process replaced. The zero value
// means that it has not written the object.
type Replaced struct {
	version string
	at      time.Time
}

// Note notes a write at a time, which changed before to after. A write that changed nothing, of which
// the API server dropped all that is new, replaced nothing.
func (r *Replaced) Note(before, after client.Object, at time.Time) {
	if version := before.GetResourceVersion(); version != after.GetResourceVersion() {
		*r = Replaced{version, at}
	}
}

// IsBehind reports whether a cached object is still the replaced one. It stops reporting that after a minute, and if
// the clock was set back: a restored etcd may have brought the version back, and the API server refuses a write that is
// based on an outdated one.
func (r Replaced) IsBehind(cached client.Object, now time.Time) bool {
	age := now.Sub(r.at)
	return r.version != "" && r.version == cached.GetResourceVersion() && age >= 0 && age < replacedTimeout
}
