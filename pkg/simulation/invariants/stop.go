// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package invariants

import (
	"fmt"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
)

// stop checks two statuses of one attempt: a stop persists, no more clusters start after it, and no
// failure is forgotten. Only the next attempt, or an answer of a user that applies, ends a stop.
func (f *Fleet) stop(before, upgrade *fleetv1beta1.ManagedClustersUpgrade) error {
	if before.Status.Attempt != upgrade.Status.Attempt || f.isAnswered(upgrade) ||
		upgrade.Status.Stop != nil && before.Status.Stop != nil && upgrade.Status.Stop.Annotations != before.Status.Stop.Annotations {
		return nil
	}
	was, is := before.Status.ClustersSummery, upgrade.Status.ClustersSummery
	if before.Status.Stop != nil && upgrade.Status.Stop == nil {
		return fmt.Errorf("the rollout had stopped (%s), and goes on in the same attempt", before.Status.Stop.Reason)
	}
	leaving := f.number(upgrade, func(run *fleetv1alpha1.ClusterUpgradeRun) bool { // nothing was written to them, or a user has forgotten them
		return run.Spec.Outcome != nil || isForgotten(upgrade, run)
	})
	stopped := isStopped(&before.Status) && isStopped(&upgrade.Status) || before.Status.Stop != nil
	if stopped && is.Total-is.Pending > was.Total-was.Pending+leaving {
		return fmt.Errorf("%d clusters had begun when the rollout had stopped, and %d have", was.Total-was.Pending, is.Total-is.Pending)
	}
	lost := f.gone[string(upgrade.UID)] // the hub reports these
	if failures := is.Failed + f.late(upgrade, before.Status.Attempt) + gone(upgrade) + leaving + lost; failures < was.Failed+gone(before) {
		return fmt.Errorf("%d clusters have failed, and %d had in the same attempt", failures, was.Failed+gone(before))
	}
	return nil
}

// AfterStop checks that no cluster starts after the status of the upgrade shows that its attempt
// has stopped, unless an answer of a user applies. before is the previous state of the run, or nil
// for a new run.
func (f *Fleet) AfterStop(upgrade *fleetv1beta1.ManagedClustersUpgrade, before, run *fleetv1alpha1.ClusterUpgradeRun) error {
	if !Begins(before, run) || run.Spec.ManagedClustersUpgrade.UID != string(upgrade.UID) {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	stop, shown := upgrade.Status.Stop, f.statuses[upgrade.UID]
	if stop == nil || upgrade.Status.Attempt != run.Spec.Attempt || shown == nil || f.isAnswered(upgrade) {
		return nil
	}
	return fmt.Errorf("cluster %s begins although the rollout has stopped: %s", run.Namespace, stop.Reason)
}

// Begins reports whether a change of a run admits its cluster. before is nil for a new run.
func Begins(before, run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return !run.Spec.AdmissionTime.IsZero() && (before == nil || before.Spec.Attempt != run.Spec.Attempt || before.Spec.AdmissionTime.IsZero())
}

// isAnswered reports whether a user has forgotten the failure of a cluster that has failed, or
// continues without a canary. Until the canaries are fixed, any cluster may be one.
func (f *Fleet) isAnswered(upgrade *fleetv1beta1.ManagedClustersUpgrade) bool {
	if !admission.AreCanariesFixed(upgrade) && upgrade.Annotations[fleetv1beta1.ContinueWithoutCanaryAnnotation] != "" {
		return true
	}
	return f.number(upgrade, func(run *fleetv1alpha1.ClusterUpgradeRun) bool {
		attempt := max(1, upgrade.Status.Attempt)
		failed := run.Status.State == fleetv1alpha1.StateFailed || run.Spec.Outcome != nil || isLate(run)
		return failed && Names(upgrade, fleetv1beta1.ForgetFailureAnnotation, run.Namespace, attempt) ||
			run.Spec.Canary && Names(upgrade, fleetv1beta1.ContinueWithoutCanaryAnnotation, run.Namespace, attempt)
	}) > 0
}

// hasBegun reports whether a cluster counts because it has started in the attempt that the status
// describes.
func hasBegun(upgrade *fleetv1beta1.ManagedClustersUpgrade, run *fleetv1alpha1.ClusterUpgradeRun) bool {
	failed := run.Status.State == fleetv1alpha1.StateFailed || isLate(run)
	switch {
	case run.Spec.Outcome != nil || run.Spec.AdmissionTime.IsZero():
		return false
	case failed && run.Spec.Attempt < max(1, upgrade.Status.Attempt, upgrade.Spec.Attempt):
		return false // a retry is pending
	}
	return !failed || !isForgotten(upgrade, run)
}

func isForgotten(upgrade *fleetv1beta1.ManagedClustersUpgrade, run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return Names(upgrade, fleetv1beta1.ForgetFailureAnnotation, run.Namespace, run.Spec.Attempt)
}

// Names reports whether an annotation of an upgrade has an entry for a cluster in an attempt. An
// entry without an attempt applies to the first one.
func Names(upgrade *fleetv1beta1.ManagedClustersUpgrade, annotation, cluster string, attempt int32) bool {
	entries := upgrade.Annotations[annotation]
	return strings.Contains(entries, fmt.Sprintf("%s@%d=", cluster, attempt)) || attempt == 1 && strings.Contains(entries, cluster+"=")
}

func isLate(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	return run.Status.Reason == fleetv1alpha1.ReasonLateSuccess
}

// late counts the clusters that were upgraded after they had failed, in the attempt or a later one.
func (f *Fleet) late(upgrade *fleetv1beta1.ManagedClustersUpgrade, attempt int32) int32 {
	n := int32(0)
	for of, last := range f.lateIn {
		if of.upgrade == string(upgrade.UID) && last >= max(1, attempt) {
			n++
		}
	}
	return n
}

func (f *Fleet) number(upgrade *fleetv1beta1.ManagedClustersUpgrade, is func(*fleetv1alpha1.ClusterUpgradeRun) bool) int32 {
	n := int32(0)
	for of, run := range f.runs {
		if of.upgrade == string(upgrade.UID) && is(run) {
			n++
		}
	}
	return n
}

// gone counts the failed clusters whose ManagedCluster no longer exists.
func gone(upgrade *fleetv1beta1.ManagedClustersUpgrade) int32 {
	n := int32(0)
	for _, group := range upgrade.Status.Departed {
		n += group.Failed
	}
	return n
}

// rest checks that a complete upgrade does not change until its spec does.
func rest(before, upgrade *fleetv1beta1.ManagedClustersUpgrade) error {
	c := apimeta.FindStatusCondition(before.Status.Conditions, fleetv1beta1.ConditionComplete)
	if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != upgrade.Generation || upgrade.Spec.LateJoiners == fleetv1beta1.LateJoinersUpgrade ||
		hasReason(&upgrade.Status, fleetv1beta1.ReasonDeleting) {
		return nil
	}
	if diff := *before.Status.ClustersSummery != *upgrade.Status.ClustersSummery; diff {
		return fmt.Errorf("the upgrade was complete with %+v, and has %+v", *before.Status.ClustersSummery, *upgrade.Status.ClustersSummery)
	}
	return nil
}
