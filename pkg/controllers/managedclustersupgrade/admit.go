// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

const refusedFor = time.Minute // how long a cluster whose run was rejected is held

// admit writes the runs of the clusters that begin. A cluster whose run is rejected is held, and does not stop others.
func (s *scope) admit(ctx context.Context) error {
	var errs []error
	admitted := s.decision.Admit
	if len(admitted) > maxAdmissions {
		admitted = admitted[:maxAdmissions]
		s.wakeAt(s.Now.Add(decisionInterval))
	}
	for _, name := range admitted {
		run := s.newRun(s.byName[name])
		err := s.writeRun(ctx, s.Runs[name], run)
		switch {
		case err == nil:
		case apierrors.IsConflict(err):
			return errors.Join(append(errs, err)...) // the cache is behind
		case manager.IsRejected(err):
			s.refuse(name, err.Error())
		default: // it may have been served
			s.note(&written{run: run, unsure: true})
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// note notes a written run until the cache holds it.
func (s *scope) note(w *written) {
	w.at = s.Now
	s.cache.of(w.run.Namespace).written, s.Runs[w.run.Namespace] = w, w.run
}

func (s *scope) refuse(cluster, reason string) {
	r := s.cache.of(cluster)
	r.Refused, r.refusedUntil = reason, s.Now.Add(refusedFor)
	s.wakeAt(r.refusedUntil)
}

// withdraw withdraws the admission of clusters that were held or locked for the stall timeout before their upgrade was
// requested: they are pending again, and others get their slots. A pause of the whole upgrade withdraws none: its runs seem to be
// held until they go on.
func (s *scope) withdraw(ctx context.Context) error {
	isPaused, withdrawn := s.plan.Paused || s.plan.DryRun || s.plan.Cancelled, false
	for i := range s.members {
		m := &s.members[i]
		r := s.cache.of(m.Name)
		if isPaused {
			r.waitingSince = time.Time{}
		}
		if r.waitingSince.IsZero() {
			continue
		}
		due := r.waitingSince.Add(s.plan.StallTimeout)
		if look := s.cache.started.Add(admission.NewsGrace / 2); due.Before(look) { // its agent may have acted while no hub ran
			due = look
		}
		if s.Now.Before(due) {
			s.wakeAt(due)
			continue
		}
		updated := m.Run.DeepCopy()
		updated.Spec.AdmissionTime = metav1.Time{}
		if err := s.writeRun(ctx, m.Run, updated); err != nil {
			return err
		}
		withdrawn = true
	}
	if withdrawn {
		s.listMembers()
	}
	return nil
}

// writeRun creates a run, or changes the spec of the one before. A run that exists beyond the cache is adopted.
func (s *scope) writeRun(ctx context.Context, before, run *fleetv1alpha1.ClusterUpgradeRun) error {
	var err error
	if before == nil {
		err = s.client.Create(ctx, run)
	} else {
		run.UID = before.UID
		updated := before.DeepCopy()
		updated.Spec = run.Spec
		if before.Spec.AdmissionTime.IsZero() {
			updated.Finalizers = run.Finalizers
		}
		if err = s.client.Patch(ctx, updated, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err == nil {
			*run = *updated
		}
	}
	switch {
	case apierrors.IsAlreadyExists(err):
		return s.adopt(ctx, run)
	case err != nil:
		return fmt.Errorf("writing the ClusterUpgradeRun of cluster %s: %w", run.Namespace, err)
	}
	s.note(&written{run: run})
	return nil
}

// adopt notes a run as the API server has it. One of another upgrade holds the cluster.
func (s *scope) adopt(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) error {
	existing := &fleetv1alpha1.ClusterUpgradeRun{}
	err := s.live.Get(ctx, client.ObjectKeyFromObject(run), existing)
	missing := apierrors.IsNotFound(err)
	if err = client.IgnoreNotFound(err); err != nil {
		return fmt.Errorf("getting the ClusterUpgradeRun of cluster %s: %w", run.Namespace, err)
	}
	s.cache.of(run.Namespace).written = nil
	switch {
	case missing:
		s.lose(run)
	case admission.Owns(s.Upgrade, existing):
		s.note(&written{run: existing})
	default:
		s.refuse(run.Namespace, fmt.Sprintf("ClusterUpgradeRun %s exists in its namespace and belongs to another upgrade: delete it", run.Name))
	}
	return nil
}

func (s *scope) newRun(m *admission.FleetMember) *fleetv1alpha1.ClusterUpgradeRun {
	spec := &s.Upgrade.Spec
	strategy := &spec.UpgradeStrategy
	mustObserve := m.IsCanary() || admission.HasFailedBefore(m.Run) // others wait for it, or its health is in doubt
	run := s.pendingRun(m)
	run.Spec.AdmissionTime = metav1.Time{Time: s.Now.Truncate(time.Second)}
	run.Spec.Timeouts = fleetv1alpha1.Timeouts{
		ClusterUpgrade: strategy.ClusterUpgradeTimeout, OperatorsUpgrade: strategy.OperatorsUpgradeTimeout,
		Apply: strategy.ApplyTimeout, Action: strategy.ActionTimeout, Failing: strategy.FailingTimeout, Stall: strategy.StallTimeout,
		Soak: strategy.MinSuccessTime,
	}
	run.Spec.Outcome = admission.Outcome(spec, s.Clusters[m.Name], mustObserve)
	if run.Spec.Outcome == nil { // the run starts at once, and would have to set them
		run.Finalizers = []string{fleetv1alpha1.Finalizer}
		if run.Spec.ClusterVersion != nil {
			run.Finalizers = append(run.Finalizers, fleetv1alpha1.WorksFinalizer)
		}
	}
	if mustObserve {
		run.Spec.Timeouts.Soak = cmp.Or(strategy.MinSuccessTime, fleetv1beta1.DefaultCanarySoak)
	}
	return run
}

func (s *scope) pendingRun(m *admission.FleetMember) *fleetv1alpha1.ClusterUpgradeRun {
	return &fleetv1alpha1.ClusterUpgradeRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Name, Name: admission.RunName(s.Upgrade), Labels: map[string]string{fleetv1beta1.UpgradeLabel: string(s.Upgrade.UID)},
		},
		Spec: fleetv1alpha1.ClusterUpgradeRunSpec{
			ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: s.Upgrade.Namespace, Name: s.Upgrade.Name, UID: string(s.Upgrade.UID)},
			Attempt:                s.attempt(), ClusterVersion: s.Upgrade.Spec.ClusterVersion.DeepCopy(),
			Canary: m.Canary && !m.Hub, Group: int32(m.Group) + 1,
		},
	}
}

// fixCanaries fixes the canaries before the first cluster begins: the run of each has the mark of one, and the status identifies
// them. A cluster can change its own labels, and they must not decide about others. A cluster that has begun in this attempt, or
// is being cleaned up, cannot get the mark: until it can, its label decides.
func (s *scope) fixCanaries(ctx context.Context) error {
	if s.Upgrade.Spec.UpgradeStrategy.CanaryClusters == nil || admission.AreCanariesFixed(s.Upgrade) {
		return nil
	}
	fixed := s.Upgrade.Status.DeepCopy()
	fixed.Canaries = admission.Canaries(s.Upgrade, s.members)
	for i := range s.members {
		m := &s.members[i]
		canary := m.Canary && !m.Hub
		switch {
		case canary == (m.Run != nil && m.Run.Spec.Canary):
		case s.mayMark(m):
			if err := s.writeRun(ctx, m.Run, s.pendingRun(m)); err != nil {
				return err
			}
		case canary, m.State == rollout.NotStarted:
			fixed.Canaries = nil
		}
	}
	if fixed.Canaries != nil {
		if err := s.writeStatus(ctx, fixed); err != nil {
			return err
		}
	}
	s.listMembers()
	s.decide()
	return nil
}

// mayMark reports whether the mark of a canary can change: the cluster is pending, or it is a canary that was complete before
// this attempt. Others wait for it, and it has not been observed since.
func (s *scope) mayMark(m *admission.FleetMember) bool {
	wasComplete := m.IsCanary() && m.State == rollout.Complete && m.Run.Spec.Attempt < s.attempt()
	return (m.State == rollout.NotStarted || wasComplete) && !m.CleaningUp
}

// removePending deletes a run that waits for its admission. Any other run stays, and one with a history: the cluster may have
// failed, and must be looked at.
func (s *scope) removePending(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) error {
	if !run.Spec.AdmissionTime.IsZero() || len(run.Status.History) > 0 || run.DeletionTimestamp != nil {
		return nil
	}
	preconditions := client.Preconditions{UID: &run.UID, ResourceVersion: &run.ResourceVersion}
	if err := s.client.Delete(ctx, run.DeepCopy(), preconditions); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("deleting the ClusterUpgradeRun of cluster %s, which has not begun: %w", run.Namespace, err)
	}
	s.cache.of(run.Namespace).written = nil
	delete(s.Runs, run.Namespace)
	return nil
}
