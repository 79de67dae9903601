// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob

import (
	"context"
	"slices"
	"sync"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// observedPools is the state of the machine config pools in the last pass over an UpgradeJob.
type observedPools struct {
	uid             types.UID
	statuses        []maintenancev1beta1.MachineConfigPoolStatus
	reason, problem string // why the UpgradeJob does not suit them, or empty
}

// poolFacts keeps what passes have seen of the pools, for the status. The zero poolFacts is ready for use.
type poolFacts struct {
	mu    sync.Mutex
	byJob map[client.ObjectKey]observedPools
}

func (f *poolFacts) get(job *maintenancev1beta1.UpgradeJob) (observedPools, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	found, ok := f.byJob[client.ObjectKeyFromObject(job)]
	return found, ok && found.uid == job.UID
}

func (f *poolFacts) set(job *maintenancev1beta1.UpgradeJob, observed observedPools) {
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

// observePools reads the pools from the cache for the status of an UpgradeJob. If a pool cannot be read, its
// state stays, and the steps report the error. It returns when the state of a pool changes by time after the
// end of the UpgradeJob. Zero stands for never, and for a time that the lifecycle knows.
func (r *Reconciler) observePools(ctx context.Context, job *maintenancev1beta1.UpgradeJob) (next time.Time) {
	observed := observedPools{uid: job.UID}
	upgrader := r.Config().Upgrader
	var err error
	if isOver(job) {
		observed.statuses, next, err = upgrader.PoolStatusAfterEnd(ctx, job, *maintenance.LatestAttempt(job), r.Clock.Now())
		if err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "reading the machine config pools for the status")
			return time.Time{}
		}
		r.facts.set(job, observed)
		return next
	}
	if observed.reason, observed.problem, err = upgrader.ConfigProblem(ctx, job, r.Clock.Now()); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "reading the machine config pools for the status")
		return time.Time{}
	}
	if latest := maintenance.LatestAttempt(job); latest != nil {
		if observed.statuses, err = upgrader.PoolStatus(ctx, job, *latest, r.Clock.Now()); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "reading the machine config pools for the status")
			return time.Time{}
		}
	}
	r.facts.set(job, observed)
	return time.Time{}
}

// withPoolRequests returns the kinds, with poolChanged for machine config pools.
func (r *Reconciler) withPoolRequests(kinds []manager.Kind) []manager.Kind {
	for i := range kinds {
		if _, ok := kinds[i].Object.(*mcfgv1.MachineConfigPool); ok {
			kinds[i].Requests = r.poolChanged
		}
	}
	return kinds
}

// poolChanged returns a request for each unfinished UpgradeJob, and for the UpgradeJob that has marked the
// pool, whose status lists the pool until it is unpaused. It is called with the old and the new state of a
// changed pool.
func (r *Reconciler) poolChanged(ctx context.Context, obj client.Object) []reconcile.Request {
	requests := r.lifecycle.Active(ctx)
	pool, ok := obj.(*mcfgv1.MachineConfigPool)
	if !ok {
		return requests
	}
	mark, ok := clusterstate.ParsePoolMark(pool.Annotations[clusterstate.AnnotationPausedBy])
	if !ok {
		return requests
	}
	jobs, err := kind{r}.List(ctx, r.Client)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing the UpgradeJobs that a machine config pool may concern")
		return requests
	}
	for _, job := range jobs {
		request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(job)}
		if string(job.UID) == mark.OwnerUID && !slices.Contains(requests, request) {
			requests = append(requests, request)
		}
	}
	return requests
}
