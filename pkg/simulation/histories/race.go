// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// race makes two leaders send the same request. Each is suspended at the request until the other
// one has read the ClusterVersion, and the first one to be served is suspended again before it
// saves its result.
type race struct {
	first, second int // lives of the processes in the order of their requests; zero until then
	saving        bool
}

// schedule returns how long the process that makes a request is suspended.
func (r *race) schedule(request simulation.Request, lease *coordinationv1.Lease) time.Duration {
	switch {
	case r == nil || !request.IsWrite() || lease == nil || !lock.AttemptOf(lease).Requested:
	case request.Kind == "ClusterVersion" && r.first == 0:
		r.first = request.Life
		return 10 * time.Second
	case request.Kind == "ClusterVersion" && r.second == 0 && request.Life != r.first:
		r.second = request.Life
		return 12 * time.Second
	case request.Kind == "UpgradeConfig" && request.Life == r.first && r.second != 0 && !r.saving:
		r.saving = true
		return 30 * time.Second
	}
	return 0
}
