// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/status"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// recordStart records that clusters begin before the first one does: much of the spec cannot change
// from then on.
func (s *scope) recordStart(ctx context.Context) error {
	if s.upgrade.Status.StartTime != nil {
		return nil
	}
	started := s.upgrade.Status.DeepCopy()
	started.StartTime = &metav1.Time{Time: s.now.Truncate(time.Second)}
	return s.writeStatus(ctx, started)
}

// publish publishes the status, at most once a second, and only if it has changed. A run whose
// creation may have failed is not published: the status counts what has begun.
func (s *scope) publish(ctx context.Context) error {
	for _, w := range s.cache.written {
		if w.unsure {
			s.wakeAt(s.now.Add(retryDelay))
			return nil
		}
	}
	next := status.Compute(status.Fleet{
		Upgrade: s.upgrade, Members: s.members, Decision: s.decision, Now: s.now,
		Unstable: !s.selection.Stable(), Problem: rollout.Stop{Reason: s.selection.Reason, Message: s.selection.Message},
	})
	if equality.Semantic.DeepEqual(next, s.upgrade.Status) {
		s.writeEvents(ctx)
		s.noteCounted()
		return nil
	}
	if at := s.cache.published.Add(publishInterval); at.After(s.now) && at.Sub(s.now) <= publishInterval {
		s.wakeAt(at)
		return nil
	}
	s.publishTransitions(ctx, &next)
	if err := s.writeStatus(ctx, &next); err != nil {
		return err
	}
	s.cache.published = s.now
	s.noteCounted()
	return nil
}

// noteCounted notes which clusters the published status counts as begun.
func (s *scope) noteCounted() {
	m := s.cache
	m.begun, m.ignored, m.detached = map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, name := range s.decision.Ignored {
		m.ignored[name] = true
	}
	for i := range s.members {
		if name := s.members[i].Name; s.members[i].State != rollout.NotStarted && !m.ignored[name] {
			m.begun[name] = true
		}
	}
}

// writeStatus writes the status.
func (s *scope) writeStatus(ctx context.Context, next *fleetv1beta1.ManagedClustersUpgradeStatus) error {
	return s.write(ctx, "writing the status of", s.patchStatus, func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Status = *next })
}

// delete deletes the runs of an upgrade that is being deleted, and then removes its finalizer. Each
// run undoes what is not delivered before it goes; clusters that are being upgraded continue.
func (s *scope) delete(ctx context.Context) error {
	if !controllerutil.ContainsFinalizer(s.upgrade, fleetv1beta1.Finalizer) {
		return nil
	}
	if err := s.readRuns(ctx); err != nil {
		return err
	}
	if err := s.readRunsLive(ctx); err != nil {
		return err
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(s.runs)) {
		run := s.runs[name]
		if run.DeletionTimestamp != nil {
			continue
		}
		if err := client.IgnoreNotFound(s.client.Delete(ctx, run.DeepCopy(), client.Preconditions{UID: &run.UID})); err != nil {
			errs = append(errs, fmt.Errorf("deleting the ClusterUpgradeRun of cluster %s: %w", run.Namespace, err))
		}
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if len(s.runs) > 0 {
		return s.publishStopped(ctx, fleetv1beta1.ReasonDeleting,
			"the ManagedClustersUpgrade is being deleted; waiting until its ClusterUpgradeRuns are gone")
	}
	if err := s.deletePreflights(ctx, s.live); err != nil {
		return err
	}
	if len(s.unrepaired) > 0 {
		return s.publishStopped(ctx, fleetv1beta1.ReasonDeleting, "the ManagedClustersUpgrade is being deleted; waiting until the agents apply "+
			"the restored deleteOption of their ManifestWorks: "+text.JoinNames(s.unrepaired))
	}
	return s.write(ctx, "removing the finalizer of", s.patchObject, func(u *fleetv1beta1.ManagedClustersUpgrade) {
		controllerutil.RemoveFinalizer(u, fleetv1beta1.Finalizer)
	})
}

// readRunsLive reads the runs from the API server, with and without their label, before the
// finalizer is removed: the cache may lack a run.
func (s *scope) readRunsLive(ctx context.Context) error {
	if len(s.runs) > 0 {
		return nil
	}
	var list fleetv1alpha1.ClusterUpgradeRunList
	if err := s.live.List(ctx, &list); err != nil {
		return fmt.Errorf("listing the ClusterUpgradeRuns: %w", err)
	}
	for i := range list.Items {
		if admission.Owns(s.upgrade, &list.Items[i]) {
			s.runs[list.Items[i].Namespace] = &list.Items[i]
			s.wakeAt(s.now.Add(cacheTimeout))
		}
	}
	return nil
}

// publishStopped publishes that no cluster begins, and leaves the rest of the status as it is.
func (s *scope) publishStopped(ctx context.Context, reason, message string) error {
	next := s.upgrade.Status.DeepCopy()
	apimeta.SetStatusCondition(&next.Conditions, metav1.Condition{
		Type: fleetv1beta1.ConditionAdmitting, Status: metav1.ConditionFalse, Reason: reason,
		Message:            text.Truncate(message, status.MaxConditionMessage),
		ObservedGeneration: s.upgrade.Generation, LastTransitionTime: metav1.Time{Time: s.now.Truncate(time.Second)},
	})
	if equality.Semantic.DeepEqual(*next, s.upgrade.Status) {
		return nil
	}
	s.publishTransitions(ctx, next)
	return s.writeStatus(ctx, next)
}
