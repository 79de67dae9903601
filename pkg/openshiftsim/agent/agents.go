// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// VersionClaim is the ManagedCluster claim with the OpenShift version.
const VersionClaim = "version.openshift.io"

// fallbackVersion is the installed version of a cluster without a claim.
const fallbackVersion = "4.20.5"

// workers is the number of works that are handled concurrently.
const workers = 16

// Options configure Agents.
type Options struct {
	// Interval is the polling interval for the feedback of a work, without the agent's jitter of up to
	// 90 %.
	Interval time.Duration
	// Clock provides the current time.
	Clock clock.PassiveClock
}

// Agents simulates all clusters of a hub and their agents.
type Agents struct {
	options Options
	client  client.Client

	mu     sync.Mutex
	spokes map[string]*cluster
}

// AddToManager adds the agents to a manager. The manager's scheme must include the kinds of Open
// Cluster Management.
func AddToManager(mgr manager.Manager, options Options) error {
	a := &Agents{options: options, client: mgr.GetClient(), spokes: map[string]*cluster{}}
	err := ctrl.NewControllerManagedBy(mgr).Named("agents").For(&workv1.ManifestWork{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: workers}).Complete(a)
	if err != nil {
		return fmt.Errorf("preparing the agents: %w", err)
	}
	return nil
}

// Reconcile handles one work.
func (a *Agents) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	poll := reconcile.Result{RequeueAfter: wait.Jitter(a.options.Interval, 0.9)}
	managed, work := &clusterv1.ManagedCluster{}, &workv1.ManifestWork{}
	if err := a.client.Get(ctx, req.NamespacedName, work); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if err := a.client.Get(ctx, client.ObjectKey{Name: req.Namespace}, managed); err != nil {
		return poll, client.IgnoreNotFound(err) // a detached cluster has no agent
	}
	s, err := newScript(managed)
	if err != nil {
		return reconcile.Result{}, reconcile.TerminalError(err)
	}
	if s.unreachable {
		return poll, nil
	}
	c := a.spoke(managed)
	c.mu.Lock()
	defer c.mu.Unlock()
	now := a.options.Clock.Now()
	c.advance(&s, now)
	if work.DeletionTimestamp != nil {
		c.Delete(work)
		return reconcile.Result{}, a.patchFinalizer(ctx, work, controllerutil.RemoveFinalizer)
	}
	if !controllerutil.ContainsFinalizer(work, workv1.ManifestWorkFinalizer) {
		return poll, a.patchFinalizer(ctx, work, controllerutil.AddFinalizer)
	}
	c.Apply(work, now)
	c.advance(&s, now)
	if err := a.report(ctx, work, c.Apply(work, now)); err != nil {
		return reconcile.Result{}, err
	}
	return poll, a.claim(ctx, managed, c)
}

// spoke returns the simulation of a cluster. A new one starts at the release that its
// ManagedCluster claims.
func (a *Agents) spoke(managed *clusterv1.ManagedCluster) *cluster {
	a.mu.Lock()
	defer a.mu.Unlock()
	found := a.spokes[managed.Name]
	if found == nil {
		version := fallbackVersion
		for _, claim := range managed.Status.ClusterClaims {
			if claim.Name == VersionClaim {
				version = claim.Value
			}
		}
		found = newCluster(managed.Name, version, a.options.Clock.Now())
		a.spokes[managed.Name] = found
	}
	return found
}

// patchFinalizer adds or removes the agent's finalizer.
func (a *Agents) patchFinalizer(ctx context.Context, work *workv1.ManifestWork, change func(client.Object, string) bool) error {
	changed := work.DeepCopy()
	if !change(changed, workv1.ManifestWorkFinalizer) {
		return nil
	}
	err := a.client.Patch(ctx, changed, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{}))
	return ignoreBehind(err)
}

// report patches the status of a work if it has changed.
func (a *Agents) report(ctx context.Context, work *workv1.ManifestWork, status workv1.ManifestWorkStatus) error {
	if equality.Semantic.DeepEqual(work.Status, status) {
		return nil
	}
	changed := work.DeepCopy()
	changed.Status = status
	return ignoreBehind(a.client.Status().Patch(ctx, changed, client.MergeFromWithOptions(work, client.MergeFromWithOptimisticLock{})))
}

// claim publishes the installed release as a claim of the ManagedCluster if it has changed.
func (a *Agents) claim(ctx context.Context, managed *clusterv1.ManagedCluster, c *cluster) error {
	if c.Version() == nil {
		return nil
	}
	installed, _, completed := c.newest()
	if !completed {
		return nil
	}
	for i := range managed.Status.ClusterClaims {
		if claim := &managed.Status.ClusterClaims[i]; claim.Name == VersionClaim && claim.Value != installed {
			claims := append([]clusterv1.ManagedClusterClaim{}, managed.Status.ClusterClaims...)
			claims[i].Value = installed
			patch, err := json.Marshal(object{"status": object{"clusterClaims": claims}})
			if err != nil {
				return fmt.Errorf("encoding the claims: %w", err)
			}
			return client.IgnoreNotFound(a.client.Status().Patch(ctx, managed.DeepCopy(), client.RawPatch(types.MergePatchType, patch)))
		}
	}
	return nil
}

// ignoreBehind ignores errors caused by a stale cache, because the next change of the work triggers
// another reconcile.
func ignoreBehind(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
