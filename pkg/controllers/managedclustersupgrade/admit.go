// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/status"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// refusedFor is how long a cluster whose run was rejected is held.
const refusedFor = time.Minute

// maxName bounds the part of a run's name that is the name of the upgrade.
const maxName = 200

// runName returns the name of the runs of an upgrade. It is the same in all clusters, so a run is
// never created twice.
func runName(upgrade *fleetv1beta1.ManagedClustersUpgrade) string {
	hash := sha256.Sum256([]byte(upgrade.UID))
	name := upgrade.Name[:min(len(upgrade.Name), maxName)]
	return strings.TrimRight(name, ".-") + "-" + hex.EncodeToString(hash[:4])
}

// admit writes the runs of the clusters that begin. A cluster whose run is rejected is held, and
// stops no other.
func (s *scope) admit(ctx context.Context) error {
	var errs []error
	admitted := s.decision.Admit
	if len(admitted) > maxAdmissions {
		admitted = admitted[:maxAdmissions]
		s.wakeAt(s.now.Add(decisionInterval))
	}
	members := make(map[string]*status.Member, len(s.members))
	for i := range s.members {
		members[s.members[i].Name] = &s.members[i]
	}
	for _, name := range admitted {
		run := s.newRun(members[name])
		err := s.writeRun(ctx, s.runs[name], run)
		switch {
		case err == nil:
			s.cache.written[name] = &written{run: run, at: s.now}
			s.runs[name] = run
		case apierrors.IsConflict(err):
			return errors.Join(append(errs, err)...) // the cache is behind
		case apierrors.IsAlreadyExists(err):
			errs = append(errs, s.adopt(ctx, run))
		case manager.IsRejected(err):
			s.cache.refused[name] = refusal{reason: err.Error(), until: s.now.Add(refusedFor)}
			s.wakeAt(s.now.Add(refusedFor))
		default: // it may have been served
			s.cache.written[name] = &written{run: run, at: s.now, unsure: true}
			s.runs[name] = run
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// writeRun creates the run of a cluster, or raises the attempt of the one that exists.
func (s *scope) writeRun(ctx context.Context, before, run *fleetv1alpha1.ClusterUpgradeRun) error {
	if before == nil {
		if err := s.client.Create(ctx, run); err != nil {
			return fmt.Errorf("creating the ClusterUpgradeRun of cluster %s: %w", run.Namespace, err)
		}
		return nil
	}
	updated := before.DeepCopy()
	updated.Spec = run.Spec
	if err := s.client.Patch(ctx, updated, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("raising the attempt of the ClusterUpgradeRun of cluster %s: %w", run.Namespace, err)
	}
	*run = *updated
	return nil
}

// adopt reads a run that exists although the cache does not hold it. One of another upgrade holds
// the cluster.
func (s *scope) adopt(ctx context.Context, run *fleetv1alpha1.ClusterUpgradeRun) error {
	existing := &fleetv1alpha1.ClusterUpgradeRun{}
	if err := s.live.Get(ctx, client.ObjectKeyFromObject(run), existing); err != nil {
		return client.IgnoreNotFound(fmt.Errorf("getting the ClusterUpgradeRun of cluster %s: %w", run.Namespace, err))
	}
	if !admission.Owns(s.upgrade, existing) {
		s.cache.refused[run.Namespace] = refusal{
			reason: fmt.Sprintf("ClusterUpgradeRun %s exists in its namespace and belongs to another upgrade: delete it", run.Name),
			until:  s.now.Add(refusedFor),
		}
		s.wakeAt(s.now.Add(refusedFor))
		return nil
	}
	s.cache.written[run.Namespace] = &written{run: existing, at: s.now}
	s.runs[run.Namespace] = existing
	return nil
}

// isWritten reads from the API server whether a run exists as it was written.
func (s *scope) isWritten(ctx context.Context, w *written) (bool, error) {
	existing := &fleetv1alpha1.ClusterUpgradeRun{}
	err := s.live.Get(ctx, client.ObjectKeyFromObject(w.run), existing)
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("getting the ClusterUpgradeRun of cluster %s: %w", w.run.Namespace, err)
	}
	if !admission.Owns(s.upgrade, existing) || existing.Spec.Attempt < w.run.Spec.Attempt {
		return false, nil
	}
	w.run = existing
	return true, nil
}

// newRun returns the run that begins the upgrade of a cluster, or that refuses it.
func (s *scope) newRun(m *status.Member) *fleetv1alpha1.ClusterUpgradeRun {
	spec := &s.upgrade.Spec
	strategy := &spec.UpgradeStrategy
	run := &fleetv1alpha1.ClusterUpgradeRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: m.Name, Name: runName(s.upgrade),
			Labels: map[string]string{fleetv1beta1.UpgradeLabel: string(s.upgrade.UID)},
		},
		Spec: fleetv1alpha1.ClusterUpgradeRunSpec{
			ManagedClustersUpgrade: fleetv1alpha1.UpgradeReference{Namespace: s.upgrade.Namespace, Name: s.upgrade.Name, UID: string(s.upgrade.UID)},
			Attempt:                s.attempt(),
			AdmissionTime:          metav1.Time{Time: s.now.Truncate(time.Second)},
			ClusterVersion:         spec.ClusterVersion.DeepCopy(),
			Canary:                 m.IsCanary(), Group: int32(m.Group) + 1,
			Timeouts: fleetv1alpha1.Timeouts{
				ClusterUpgrade: strategy.ClusterUpgradeTimeout, OperatorsUpgrade: strategy.OperatorsUpgradeTimeout,
				Apply: strategy.ApplyTimeout, Action: strategy.ActionTimeout, Failing: strategy.FailingTimeout, Stall: strategy.StallTimeout,
				Soak: strategy.MinSuccessTime,
			},
			Outcome: admission.Outcome(spec, s.clusters[m.Name]),
		},
	}
	if run.Spec.Outcome == nil { // the run starts at once, and would have to set them
		run.Finalizers = []string{fleetv1alpha1.Finalizer}
		if run.Spec.ClusterVersion != nil {
			run.Finalizers = append(run.Finalizers, fleetv1alpha1.WorksFinalizer)
		}
	}
	if m.IsCanary() {
		run.Spec.Timeouts.Soak = cmp.Or(strategy.MinSuccessTime, fleetv1beta1.DefaultCanarySoak)
	}
	return run
}
