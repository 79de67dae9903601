// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package aftermath finds leftovers of upgrades, on a dev cluster or in a simulation. No leftovers
// are acceptable, whatever has happened before.
package aftermath

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	dto "github.com/prometheus/client_model/go"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// Scene is the environment in which upgrades have run.
type Scene struct {
	// Objects reads the objects of the cluster without a cache.
	Objects client.Reader
	// Namespace is the namespace of the operator and of the lock.
	Namespace string
	// Now is the time of the cluster.
	Now time.Time
	// Series are the metrics of the leading operator; empty if no operator is running.
	Series []*dto.MetricFamily
	// Requests are the operator's requests, or nil if unknown.
	Requests *Requests
}

// Check returns an error that lists everything left behind: a lock without its upgrade, pools
// paused by a finished upgrade (unless its outcome says so), finalizers of upgrades and hook Jobs,
// metrics that do not match the objects, and versions requested more than once in an attempt.
// Objects of an upgrade in progress are not left behind.
func (s Scene) Check(ctx context.Context) error {
	upgrades, err := List(ctx, s.Objects)
	if err != nil {
		return err
	}
	errs := []error{s.checkLock(ctx, upgrades), s.checkPools(ctx, upgrades), s.checkHooks(ctx, upgrades), s.checkSeries(ctx, upgrades)}
	for i := range upgrades {
		errs = append(errs, upgrades[i].checkFinalizer())
	}
	if s.Requests != nil {
		errs = append(errs, s.Requests.check(upgrades))
	}
	return errors.Join(errs...)
}

// Upgrade is an object of either API group that requests an upgrade.
type Upgrade struct {
	metav1.ObjectMeta
	Kind, Group string
	Conditions  []metav1.Condition
	History     []history.Record

	finalizer string                // set while an attempt is in progress
	owner     maintenance.OwnerKind // owner of pools and hook Jobs
}

// String returns the kind and the name.
func (u *Upgrade) String() string { return u.Kind + " " + u.Name }

// List returns all UpgradeConfigs that represent an upgrade themselves, and all UpgradeJobs.
func List(ctx context.Context, objects client.Reader) ([]Upgrade, error) {
	var configs upgradev1alpha1.UpgradeConfigList
	var jobs maintenancev1beta1.UpgradeJobList
	if err := errors.Join(objects.List(ctx, &configs), objects.List(ctx, &jobs)); err != nil {
		return nil, fmt.Errorf("listing upgrades: %w", err)
	}
	var all []Upgrade
	for i := range configs.Items {
		all = append(all, *Of(&configs.Items[i]))
	}
	for i := range jobs.Items {
		all = append(all, *Of(&jobs.Items[i]))
	}
	return all, nil
}

// Of converts an object that requests an upgrade to an Upgrade. It returns nil for other kinds.
func Of(object client.Object) *Upgrade {
	switch o := object.(type) {
	case *upgradev1alpha1.UpgradeConfig:
		return &Upgrade{o.ObjectMeta, "UpgradeConfig", upgradev1alpha1.GroupVersion.Group, o.Status.Conditions, o.Status.History, upgradev1alpha1.Finalizer, maintenance.ConfigOwners()}
	case *maintenancev1beta1.UpgradeJob:
		return &Upgrade{o.ObjectMeta, "UpgradeJob", maintenancev1beta1.GroupVersion.Group, o.Status.Conditions, o.Status.History, maintenancev1beta1.Finalizer, maintenance.JobOwners()}
	}
	return nil
}

// InProgress returns the attempt that has started but not ended, or nil.
func (u *Upgrade) InProgress() *history.Record {
	i := slices.IndexFunc(u.History, func(r history.Record) bool { return r.StartTime != nil && r.CompleteTime == nil })
	if i < 0 {
		return nil
	}
	return &u.History[i]
}

// holdsLock reports whether the upgrade must hold the lock. An UpgradeJob runs hooks before it
// waits for the lock.
func (u *Upgrade) holdsLock() bool {
	current := u.InProgress()
	if current == nil || u.Group != maintenancev1beta1.GroupVersion.Group {
		return current != nil
	}
	return slices.ContainsFunc(current.Conditions, func(c history.StepCondition) bool {
		return c.Type == "LockAcquired" && c.Status == metav1.ConditionTrue
	})
}

func (u *Upgrade) checkFinalizer() error {
	has := slices.Contains(u.Finalizers, u.finalizer)
	if want := u.InProgress() != nil; has != want {
		return fmt.Errorf("%s: that it has a finalizer is %t, and that an attempt is in progress is %t", u, has, want)
	}
	return nil
}

func (s Scene) checkLock(ctx context.Context, upgrades []Upgrade) error {
	var want lock.Holder
	for i := range upgrades {
		if u := &upgrades[i]; u.holdsLock() {
			want = lock.Holder{Group: u.Group, Kind: u.Kind, Namespace: u.Namespace, Name: u.Name, UID: string(u.UID)}
		}
	}
	var lease coordinationv1.Lease
	err := s.Objects.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: lock.Name}, &lease)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("getting the lock: %w", err)
	}
	if got := lock.HolderOf(&lease); got != want {
		return fmt.Errorf("%s has the lock, want %s", holderName(got), holderName(want))
	}
	return nil
}

func holderName(holder lock.Holder) string {
	if holder == (lock.Holder{}) {
		return "no upgrade"
	}
	return fmt.Sprintf("%s (%s)", holder, holder.UID)
}

// checkPools returns an error if a pool still carries the mark of a finished upgrade, unless the
// outcome states that the pool remains paused. The mark of a deleted upgrade is valid until its
// release window closes.
func (s Scene) checkPools(ctx context.Context, upgrades []Upgrade) error {
	var pools mcfgv1.MachineConfigPoolList
	if err := s.Objects.List(ctx, &pools); err != nil {
		return fmt.Errorf("listing pools: %w", err)
	}
	var errs []error
	for i := range pools.Items {
		pool := &pools.Items[i]
		text, marked := pool.Annotations[clusterstate.AnnotationPausedBy]
		if !marked {
			continue
		}
		mark, valid := clusterstate.ParsePoolMark(text)
		of := slices.IndexFunc(upgrades, func(u Upgrade) bool { return string(u.UID) == mark.OwnerUID })
		excused := mark.Kept() || s.Now.Before(mark.ReleaseBefore)
		if of >= 0 {
			excused = upgrades[of].leavesPaused(mark)
		}
		if !valid || !excused {
			errs = append(errs, fmt.Errorf("pool %s is left with the mark %s, paused: %t", pool.Name, text, pool.Spec.Paused))
		}
	}
	return errors.Join(errs...)
}

// leavesPaused reports whether a pool with the mark of an upgrade may stay paused, because the
// upgrade is in progress or because of its outcome.
func (u *Upgrade) leavesPaused(mark clusterstate.PoolMark) bool {
	if u.InProgress() != nil {
		return true
	}
	return slices.ContainsFunc(u.History, func(r history.Record) bool {
		failed := u.owner.Number(r) == mark.Attempt && r.Phase == history.PhaseFailed && r.CommenceTime != nil
		return failed && (mark.Kept() || r.Reason == "UnpausingPoolsExpired" || r.Reason == "HookFailed")
	})
}

// checkHooks returns an error if a hook Job has a finalizer although its upgrade is not in
// progress.
func (s Scene) checkHooks(ctx context.Context, upgrades []Upgrade) error {
	var jobs batchv1.JobList
	if err := s.Objects.List(ctx, &jobs); err != nil {
		return fmt.Errorf("listing Jobs: %w", err)
	}
	var errs []error
	for i := range jobs.Items {
		job := &jobs.Items[i]
		if !slices.Contains(job.Finalizers, hooks.Finalizer) {
			continue
		}
		owner := metav1.GetControllerOf(job)
		if owner == nil || !slices.ContainsFunc(upgrades, func(u Upgrade) bool { return u.UID == owner.UID && u.InProgress() != nil }) {
			errs = append(errs, fmt.Errorf("hook Job %s is left with its finalizer", job.Name))
		}
	}
	return errors.Join(errs...)
}
