// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
)

// Reasons of steps that wait.
const (
	reasonListed       = "Listed"       // a set must create the work
	reasonApplied      = "Applied"      // the agent has applied an action, and does not report that all its objects are available
	reasonApplyFailing = "ApplyFailing" // the agent cannot apply a work
	reasonConflict     = "Conflict"     // another client has written in the meantime, or the cache is behind
	reasonForeignWork  = "ForeignWork"  // the name of a work is in use
	reasonNoFeedback   = "NoFeedback"   // the feedback does not show how far the upgrade is
	reasonRequested    = "Requested"    // the agent has applied the request, and the cluster has not accepted it
	reasonUpgrading    = "Upgrading"
	reasonInstallPlans = "InstallPlans" // the Job is complete, and its InstallPlans decide
	reasonSoaking      = "Soaking"
)

// Reasons of steps that have nothing to do. The first two are about a needless withdrawal.
const (
	reasonNothingDelivered = "NothingDelivered"
	reasonTargetAccepted   = "TargetAccepted"
	ReasonNoAction         = "NoAction"
	ReasonNoClusterVersion = "NoClusterVersion"
	ReasonNoOperators      = "NoOperators"
	ReasonNoSoak           = "NoSoak"
)

const (
	retryAfter   = time.Second      // when a step is called again because the cache is behind
	foreignRetry = 30 * time.Second // when a step tries again to create a work whose name is in use
)

// Cluster has the steps of the run of one cluster.
type Cluster struct {
	Client      client.Client // reads from the cache, and writes to the API server
	Run         *fleetv1alpha1.ClusterUpgradeRun
	Record      history.Record // of the attempt, as it is stored
	Image       string         // of the Job that approves operators
	ReplicaSets bool           // ManifestWorkReplicaSets deliver the actions
	Writes      *Writes        // of all runs of the process
	Watched     time.Time      // since when the process looks at the run
}

// ErrNoUpgrade is a run whose ManagedClustersUpgrade does not exist.
var ErrNoUpgrade = errors.New("it does not exist")

// Upgrade returns the ManagedClustersUpgrade of a run.
func Upgrade(ctx context.Context, r client.Reader, run *fleetv1alpha1.ClusterUpgradeRun) (*fleetv1beta1.ManagedClustersUpgrade, error) {
	ref := &run.Spec.ManagedClustersUpgrade
	key := client.ObjectKey{Namespace: ref.Namespace, Name: ref.Name}
	upgrade, err := get[fleetv1beta1.ManagedClustersUpgrade](ctx, r, "ManagedClustersUpgrade", key)
	if err == nil && (upgrade == nil || string(upgrade.UID) != ref.UID) {
		return nil, fmt.Errorf("getting ManagedClustersUpgrade %s: %w", key, ErrNoUpgrade)
	}
	return upgrade, err
}

// work returns a work; nil if it does not exist.
func (c *Cluster) work(ctx context.Context, name string) (*workv1.ManifestWork, error) {
	key := client.ObjectKey{Namespace: c.Run.Namespace, Name: name}
	work, err := get[workv1.ManifestWork](ctx, c.Client, "ManifestWork", key)
	if err == nil {
		work = c.Writes.newer(key, work)
	}
	if err != nil || work == nil || !delivery.IsOfReplicaSet(work) {
		return work, err
	}
	return work, c.identify(ctx, work)
}

// pointer is the type of a pointer to an object of a kind.
type pointer[T any] interface {
	*T
	client.Object
}

// get returns an object; nil if it does not exist.
func get[T any, P pointer[T]](ctx context.Context, r client.Reader, kind string, key client.ObjectKey) (P, error) {
	object := P(new(T))
	switch err := r.Get(ctx, key, object); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("getting %s %s: %w", kind, strings.TrimPrefix(key.String(), "/"), err)
	}
	return object, nil
}

// Delivered returns a work, and its form; nil if this attempt did not deliver it.
func (c *Cluster) Delivered(ctx context.Context, name string) (*workv1.ManifestWork, delivery.Form, error) {
	work, err := c.work(ctx, name)
	form := c.formOf(work)
	if err != nil || form == "" {
		return nil, "", err
	}
	return work, form, nil
}

// isOwn reports whether a work belongs to the upgrade of the run. The work may be nil.
func (c *Cluster) isOwn(work *workv1.ManifestWork) bool {
	return work != nil && work.Labels[fleetv1beta1.UpgradeLabel] == c.Run.Spec.ManagedClustersUpgrade.UID
}

// formOf returns the form of a work; empty if this attempt did not deliver it.
func (c *Cluster) formOf(work *workv1.ManifestWork) delivery.Form {
	if !c.isOwn(work) {
		return ""
	}
	attempt, form, _ := strings.Cut(work.Annotations[delivery.Annotation], "/")
	if attempt != fmt.Sprint(c.Run.Spec.Attempt) {
		return ""
	}
	return delivery.Form(form)
}

// deliver writes a work unless this attempt has delivered it in that form, even if another release of the hub has built it
// differently. It returns the delivered work, or the result of a step that must wait for it. The work of another upgrade, kept
// to observe the cluster, is taken over: its run has ended, because this run has the lock of the cluster.
func (c *Cluster) deliver(ctx context.Context, desired *workv1.ManifestWork) (*workv1.ManifestWork, engine.Result, error) {
	c.own(desired)
	existing, err := c.work(ctx, desired.Name)
	if err != nil {
		return nil, engine.Result{}, err
	}
	key, bySet := client.ObjectKeyFromObject(desired), delivery.IsOfReplicaSet(desired)
	switch {
	case existing == nil && bySet:
		result, err := c.list(ctx, desired)
		return nil, result, err
	case existing == nil:
		err = c.Client.Create(ctx, desired)
	case !c.isOwn(existing) && !delivery.IsDelivered(existing):
		return nil, engine.Wait(reasonForeignWork, "ManifestWork %s does not belong to this upgrade: delete it", desired.Name), nil
	case !existing.DeletionTimestamp.IsZero():
		return nil, waitForDeletion(desired.Name), nil
	case c.isOwn(existing) && delivery.Of(existing) == delivery.Of(desired):
		return existing, engine.Result{}, nil
	case bySet || c.mustReplace(existing):
		return nil, waitForDeletion(desired.Name), c.remove(ctx, desired.Name)
	case desired.Name == delivery.PreflightName(c.Run.Namespace): // one spec for all attempts: its report may be of an earlier one
		if err = RemoveWork(ctx, c.Client, existing); err == nil {
			return nil, waitForDeletion(desired.Name), nil
		}
	case c.Writes.of(key, retryAfter).delivery == delivery.Of(desired):
		return nil, waitForChange(desired.Name), nil
	default:
		desired = delivery.Merge(existing, desired)
		err = c.Client.Patch(ctx, desired, client.MergeFromWithOptions(existing, client.MergeFromWithOptimisticLock{}))
	}
	switch {
	case apierrors.IsAlreadyExists(err): // the cache is behind, or the work lacks our label
		return nil, engine.WaitFor(foreignRetry, reasonForeignWork, "ManifestWork %s exists already; delete it unless it belongs to this upgrade", desired.Name), nil
	case apierrors.IsConflict(err):
		return nil, waitForChange(desired.Name), nil
	case err != nil:
		return nil, engine.Result{}, fmt.Errorf("writing ManifestWork %s/%s: %w", desired.Namespace, desired.Name, err)
	}
	c.Writes.note(key, desired, delivery.Of(desired))
	return nil, waitForAgent(desired.Name), nil
}

// apply delivers a work, waits until the agent has applied it, and returns what the agent reports about it.
func (c *Cluster) apply(ctx context.Context, desired *workv1.ManifestWork) (*delivery.Feedback, engine.Result, error) {
	work, result, err := c.deliver(ctx, desired)
	if err != nil || !result.IsZero() {
		return nil, result, err
	}
	f := delivery.Read(work)
	if !f.IsApplied() {
		result = waitForApply(work.Name, f)
	}
	return f, result, nil
}

// mustReplace reports whether the work of an earlier attempt must be deleted first: a set has one template for all attempts,
// and the Jobs of a failed action would stay failed.
func (c *Cluster) mustReplace(work *workv1.ManifestWork) bool {
	return slices.Contains(c.actions(), work.Name) && (delivery.IsOfReplicaSet(work) || isDegraded(work))
}

func isDegraded(work *workv1.ManifestWork) bool {
	state, _ := delivery.Read(work).Action()
	return state == fleetv1alpha1.ActionDegraded
}

// waitForChange waits until another client has finished its change, or the cache has followed.
func waitForChange(work string) engine.Result {
	return engine.WaitFor(retryAfter, reasonConflict, "ManifestWork %s has changed since it was read", work)
}

func waitForDeletion(work string) engine.Result {
	return engine.Wait(delivery.ReasonWorkDeleting, "ManifestWork %s of an earlier upgrade is being deleted", work)
}

func waitForAgent(work string) engine.Result {
	return engine.Wait(fleetv1alpha1.ReasonDelivered, "waiting until the agent applies ManifestWork %s", work)
}

// waitForApply waits for an agent. That it cannot apply a work has a reason of its own: it is saved at once.
func waitForApply(work string, f *delivery.Feedback) engine.Result {
	if f.Message == "" {
		return waitForAgent(work)
	}
	return engine.Wait(reasonApplyFailing, "the agent cannot apply ManifestWork %s: %s", work, f.Message)
}

// own makes the run the owner of a work, to end with it. A work with the ClusterVersion has no owner: the garbage
// collector would delete it even after an edit that makes it delete the ClusterVersion as well. The run has a
// finalizer for it.
func (c *Cluster) own(work *workv1.ManifestWork) {
	if delivery.HasClusterVersion(work) {
		return
	}
	work.OwnerReferences = []metav1.OwnerReference{{
		APIVersion: fleetv1alpha1.GroupVersion.String(), Kind: "ClusterUpgradeRun", Name: c.Run.Name, UID: c.Run.UID,
	}}
}

// agentReasons are the reasons of steps that wait for what the agent reports.
var agentReasons = []string{
	fleetv1alpha1.ReasonDelivered, reasonRequested, reasonUpgrading, reasonNoFeedback, reasonApplied, reasonInstallPlans, string(fleetv1alpha1.ActionProgressing),
}

// Heard says since when the hub does not hear of a cluster for whose agent a step waits. What it has reported is older.
func (c *Cluster) Heard(do engine.UpgradeStep) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		result, err := do(ctx, run)
		if err != nil || result.Passed() || result.Failed() || !slices.Contains(agentReasons, result.Reason()) {
			return result, err
		}
		_, silent, err := c.availableSince(ctx)
		if err != nil || silent.Reason() != fleetv1alpha1.ReasonUnreachable {
			return result, err
		}
		return engine.Wait(silent.Reason(), "%s; before: %s", silent.Message(), result.Message()), nil
	}
}

// ManagedCluster returns a cluster; nil if it does not exist.
func ManagedCluster(ctx context.Context, r client.Reader, name string) (*clusterv1.ManagedCluster, error) {
	return get[clusterv1.ManagedCluster](ctx, r, "ManagedCluster", client.ObjectKey{Name: name})
}

// attached returns the ManagedCluster. The result fails a step once the cluster has left the hub.
func (c *Cluster) attached(ctx context.Context) (*clusterv1.ManagedCluster, engine.Result, error) {
	cluster, err := ManagedCluster(ctx, c.Client, c.Run.Namespace)
	if err != nil {
		return nil, engine.Result{}, err
	}
	if reason := admission.Detached(cluster); reason != "" {
		return nil, engine.Fail(fleetv1alpha1.ReasonClusterDetached, "%s", reason), nil
	}
	return cluster, engine.Result{}, nil
}

// since returns since when a step has been waiting for a reason: not before it was recorded, and not before the cluster
// reports it. A report from the future, by a fast clock, does not count. Nor does a failed read in between end the
// wait: the cluster reports when it was last unavailable or failing.
func (c *Cluster) since(step, reason string, reported, now time.Time) time.Time {
	since := now
	if s := c.Record.Step(step); engine.LastAnswer(s).Reason == reason {
		if at := cmp.Or(s.ReasonTime, s.StartTime); at != nil {
			since = at.Time
		}
	}
	return latest(since, reported, now)
}

// failAfter waits for a reason that must not last, and fails after the limit.
func (c *Cluster) failAfter(limit time.Duration, step, reason string, condition *delivery.Condition, now time.Time, message string) engine.Result {
	due := c.afterNews(step, c.since(step, reason, condition.Since, now).Add(limit))
	if !now.Before(due) {
		return engine.Fail(reason, "%s", message)
	}
	return engine.WaitFor(due.Sub(now), reason, "%s", message)
}
