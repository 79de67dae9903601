// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterupgraderun

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	books "github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks/fleet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/fleet"
)

const (
	// maxHistory is the number of attempts in the history.
	maxHistory = 5
	// runbookType names the only runbook.
	runbookType = "ClusterUpgradeRun"
	// cancelTimeout is how long a deletion waits until a request is withdrawn.
	cancelTimeout = 10 * time.Minute
	// never is how often the record of a step is written that waits, and whose reason stays the same: there
	// are thousands of runs.
	never = -1
	// noVersion is the version in the record of a run that upgrades no platform.
	noVersion = "none"
)

// kind describes ClusterUpgradeRuns to the lifecycle.
type kind struct{ *Reconciler }

// GroupVersionKind returns that of ClusterUpgradeRuns.
func (kind) GroupVersionKind() schema.GroupVersionKind {
	return fleetv1alpha1.GroupVersion.WithKind("ClusterUpgradeRun")
}

// Finalizer returns the finalizer of an attempt in progress.
func (kind) Finalizer() string { return fleetv1alpha1.Finalizer }

// New returns an empty run.
func (kind) New() *fleetv1alpha1.ClusterUpgradeRun { return &fleetv1alpha1.ClusterUpgradeRun{} }

// HistoryKey returns the attempt.
func (kind) HistoryKey() lifecycle.HistoryKey { return lifecycle.ByAttempt }

// MaxHistory returns the number of attempts in the history.
func (kind) MaxHistory() int { return maxHistory }

// LockNamespace returns the namespace of the cluster.
func (kind) LockNamespace(run *fleetv1alpha1.ClusterUpgradeRun) string { return run.Namespace }

// List returns all runs.
func (kind) List(ctx context.Context, r client.Reader) ([]*fleetv1alpha1.ClusterUpgradeRun, error) {
	return list(ctx, r)
}

// ListOfLock returns the runs of a cluster.
func (kind) ListOfLock(ctx context.Context, r client.Reader, namespace string) ([]*fleetv1alpha1.ClusterUpgradeRun, error) {
	return list(ctx, r, client.InNamespace(namespace))
}

func list(ctx context.Context, r client.Reader, options ...client.ListOption) ([]*fleetv1alpha1.ClusterUpgradeRun, error) {
	var list fleetv1alpha1.ClusterUpgradeRunList
	if err := r.List(ctx, &list, options...); err != nil {
		return nil, fmt.Errorf("listing the ClusterUpgradeRuns: %w", err)
	}
	all := make([]*fleetv1alpha1.ClusterUpgradeRun, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return all, nil
}

// Status returns access to the status.
func (kind) Status(run *fleetv1alpha1.ClusterUpgradeRun) lifecycle.Status {
	return lifecycle.Status{
		Conditions: &run.Status.Conditions, ObservedGeneration: &run.Status.ObservedGeneration,
		NextTime: &run.Status.NextTime, History: &run.Status.History,
	}
}

// Request returns the attempt of the spec.
func (k kind) Request(run *fleetv1alpha1.ClusterUpgradeRun) lifecycle.Request {
	request := lifecycle.Request{
		Version: version(run), At: run.Spec.AdmissionTime.Time, Due: true, RunbookType: runbookType, Number: run.Spec.Attempt,
	}
	v := k.cache.view(client.ObjectKeyFromObject(run))
	upgrade := v.upgrade
	ref := &run.Spec.ManagedClustersUpgrade
	switch {
	case upgrade == nil:
		request.Paused = fmt.Sprintf("ManagedClustersUpgrade %s/%s does not exist", ref.Namespace, ref.Name)
	case upgrade.Spec.Cancelled:
		request.Cancelled = "spec.cancelled of the ManagedClustersUpgrade is true"
	case upgrade.Spec.Paused:
		request.Paused = "spec.paused of the ManagedClustersUpgrade is true"
	case v.held != "":
		request.Paused = v.held
	}
	return request
}

// version returns the version in the record.
func version(run *fleetv1alpha1.ClusterUpgradeRun) string {
	if run.Spec.ClusterVersion == nil {
		return noVersion
	}
	return cmp.Or(run.Spec.ClusterVersion.Version, run.Spec.ClusterVersion.Image)
}

// Plan returns how the attempt is carried out.
func (k kind) Plan(run *fleetv1alpha1.ClusterUpgradeRun, record history.Record, _ string, _ engine.UpgradeStep) lifecycle.Plan {
	v := k.cache.view(client.ObjectKeyFromObject(run))
	book := books.Upgrader{Client: k.client, Image: k.Image, ReplicaSets: k.ReplicaSets, Upgrade: v.upgrade, Creations: k.creations}
	table := book.Runbook(run, record, v.progress.at)
	if k.changeTable != nil {
		table = k.changeTable(table)
	}
	return lifecycle.Plan{
		Known: true, Type: runbookType,
		Book:   table,
		Window: -1, CancelTimeout: cancelTimeout,
		Heartbeat: never, MessageInterval: never,
		Retry: "raise spec.attempt of the ManagedClustersUpgrade",
	}
}

// Release removes the finalizer about works of the ClusterVersion, too, unless one is left. The garbage
// collector deletes the other works of a run that is deleted, except those of sets.
func (k kind) Release(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) error {
	cluster := fleet.Cluster{Client: k.client, Run: run}
	if !run.DeletionTimestamp.IsZero() {
		if err := cluster.UnlistActions(ctx); err != nil {
			return err
		}
	}
	if left, err := cluster.ProtectClusterVersion(ctx); err != nil || left {
		return err
	}
	controllerutil.RemoveFinalizer(run, fleetv1alpha1.WorksFinalizer)
	return nil
}

// Hold returns no reason: a cluster that is held is paused, by Request.
func (kind) Hold(context.Context) (string, error) { return "", nil }

// Observe returns nothing: the steps decide.
func (kind) Observe(context.Context, *fleetv1alpha1.ClusterUpgradeRun, history.Record) (lifecycle.Observation, error) {
	return lifecycle.Observation{}, nil
}

// CacheIsCurrent returns true: nothing is decided by Observe.
func (kind) CacheIsCurrent(context.Context) (bool, error) { return true, nil }
