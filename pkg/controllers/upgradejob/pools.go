// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// observedPools is what the last pass over an UpgradeJob has found of the machine config pools.
type observedPools struct {
	uid      types.UID
	statuses []v1beta1.MachineConfigPoolStatus
	problem  string // why the UpgradeJob does not suit them; empty if it does
}

// poolFacts holds what passes have found of the pools, for the status. The zero poolFacts is ready for
// use.
type poolFacts struct {
	mu    sync.Mutex
	byJob map[client.ObjectKey]observedPools
}

func (f *poolFacts) get(job *v1beta1.UpgradeJob) (observedPools, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.byJob[client.ObjectKeyFromObject(job)]
	return found, ok && found.uid == job.UID
}

func (f *poolFacts) set(job *v1beta1.UpgradeJob, observed observedPools) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.byJob == nil {
		f.byJob = map[client.ObjectKey]observedPools{}
	}
	f.byJob[client.ObjectKeyFromObject(job)] = observed
}

func (f *poolFacts) delete(key client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.byJob, key)
}

// observePools reads the pools from the cache for the status of an UpgradeJob that is not over. What
// cannot be read stays as it was: the steps report the error.
func (r *Reconciler) observePools(ctx context.Context, job *v1beta1.UpgradeJob) {
	if isOver(job) {
		r.facts.delete(client.ObjectKeyFromObject(job))
		return
	}
	observed := observedPools{uid: job.UID}
	upgrader := r.Config().Upgrader
	var err error
	if observed.problem, err = upgrader.PoolProblem(ctx, job); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "reading the machine config pools for the status")
		return
	}
	if len(job.Status.History) > 0 {
		if observed.statuses, err = upgrader.PoolStatus(ctx, job, job.Status.History[0], r.Clock.Now()); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "reading the machine config pools for the status")
			return
		}
	}
	r.facts.set(job, observed)
}
