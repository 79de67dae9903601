// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"cmp"
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// readUpgrades reads the UpgradeConfigs and the UpgradeJobs.
func (g *gathering) readUpgrades(ctx context.Context) {
	g.read(SourceUpgradeConfigs, func() error {
		var list v1alpha1.UpgradeConfigList
		if err := g.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			g.facts.Upgrades = append(g.facts.Upgrades, upgradeOfConfig(&list.Items[i]))
		}
		return nil
	})
	g.read(SourceUpgradeJobs, func() error {
		var list v1beta1.UpgradeJobList
		if err := g.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			g.facts.Upgrades = append(g.facts.Upgrades, upgradeOfJob(&list.Items[i]))
		}
		return nil
	})
	slices.SortFunc(g.facts.Upgrades, func(a, b Upgrade) int {
		return cmp.Or(cmp.Compare(a.Resource.Kind, b.Resource.Kind), cmp.Compare(a.Resource.Namespace, b.Resource.Namespace), cmp.Compare(a.Resource.Name, b.Resource.Name))
	})
}

// readSchedules reads the UpgradeConfigs that create UpgradeJobs. While an update is in progress, they are
// not needed: an UpgradeJob shows what follows from them.
func (g *gathering) readSchedules(ctx context.Context) {
	if g.facts.Updating() {
		return
	}
	g.read(SourceSchedules, func() error {
		var list v1beta1.UpgradeConfigList
		if err := g.Reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		for i := range list.Items {
			if schedule, found := g.facts.scheduleOf(&list.Items[i]); found {
				g.facts.Schedules = append(g.facts.Schedules, schedule)
			}
		}
		slices.SortFunc(g.facts.Schedules, func(a, b Schedule) int {
			return cmp.Or(cmp.Compare(a.Resource.Namespace, b.Resource.Namespace), cmp.Compare(a.Resource.Name, b.Resource.Name))
		})
		return nil
	})
}

// scheduleOf returns the next start of an UpgradeConfig that creates UpgradeJobs, and whether there is
// one.
func (f Facts) scheduleOf(config *v1beta1.UpgradeConfig) (Schedule, bool) {
	if config.DeletionTimestamp != nil || maintenance.IsSuspended(config) {
		return Schedule{}, false
	}
	for _, next := range config.Status.NextPossibleSchedules { // the earliest first
		if next.SuspendedBy != "" || !next.Time.After(f.Now) {
			continue
		}
		return Schedule{
			Resource:   checks.Resource{Group: v1beta1.GroupVersion.Group, Kind: "UpgradeConfig", Namespace: config.Namespace, Name: config.Name},
			APIVersion: v1beta1.GroupVersion.String(), Start: next.Time.Time,
			To: f.Version.NewestUpdate(config.Spec.UpdatePolicy == v1beta1.UpdatePolicyPatchOnly).Release.Version,
		}, true
	}
	return Schedule{}, false
}

// upgradeOfConfig returns the facts of an UpgradeConfig. Its record is that of the desired version.
func upgradeOfConfig(config *v1alpha1.UpgradeConfig) Upgrade {
	spec, status := &config.Spec, &config.Status
	u := Upgrade{
		Resource:   checks.Resource{Group: v1alpha1.GroupVersion.Group, Kind: "UpgradeConfig", Namespace: config.Namespace, Name: config.Name},
		APIVersion: v1alpha1.GroupVersion.String(), UID: string(config.UID),
		To: spec.Desired.Version, Image: spec.Desired.Image,
		Paused: spec.Paused != nil && *spec.Paused, PDBTimeout: -1,
		Conditions: status.Conditions, NextTime: timeOf(status.NextTime), Phase: history.PhaseNew,
	}
	if start, err := time.Parse(time.RFC3339, spec.UpgradeAt); err == nil {
		u.Start = start
	}
	if minutes := spec.PDBForceDrainTimeout; minutes != nil {
		u.PDBTimeout = time.Duration(*minutes) * time.Minute
	}
	for i := range status.History {
		if status.History[i].Version == spec.Desired.Version {
			u.setRecord(&status.History[i])
			break
		}
	}
	return u
}

// upgradeOfJob returns the facts of an UpgradeJob. Its record is that of the latest attempt.
func upgradeOfJob(job *v1beta1.UpgradeJob) Upgrade {
	u := Upgrade{
		Resource:   checks.Resource{Group: v1beta1.GroupVersion.Group, Kind: "UpgradeJob", Namespace: job.Namespace, Name: job.Name},
		APIVersion: v1beta1.GroupVersion.String(), UID: string(job.UID),
		To: job.Spec.DesiredVersion.Version, Image: job.Spec.DesiredVersion.Image, PDBTimeout: -1,
		Conditions: job.Status.Conditions, NextTime: timeOf(job.Status.NextTime), Phase: history.PhaseNew,
	}
	if start, before, err := maintenance.Window(job); err == nil {
		u.Start, u.StartBefore = start, before
		if latest, err := maintenance.LatestStart(job); err == nil && !latest.Equal(start) { // a retry has a window of its own
			u.Start, u.StartBefore = latest, latest.Add(before.Sub(start))
		}
	}
	if after, err := maintenance.Duration(job.Spec.Config.ForceDrainAfter); err == nil && job.Spec.Config.ForceDrainAfter != "" {
		u.PDBTimeout = after
	}
	for _, pool := range job.Status.MachineConfigPools {
		u.Pools = append(u.Pools, UpgradePool{Name: pool.Name, State: pool.State, ReleaseAfter: timeOf(pool.ReleaseAfter)})
	}
	if record := maintenance.LatestAttempt(job); record != nil {
		u.setRecord(record)
	}
	return u
}

// setRecord sets the record of the latest attempt. Its step is the one that failed, or else the last
// one that runs.
func (u *Upgrade) setRecord(record *history.Record) {
	u.Record, u.Phase, u.From = record, record.Phase, record.PrecedingVersion
	for i := range record.Conditions {
		step := &record.Conditions[i]
		failed := step.CompleteTime != nil && step.Status == metav1.ConditionFalse
		if failed {
			u.Step = step
			return
		}
		if step.CompleteTime == nil {
			u.Step = step
		}
	}
}

func timeOf(t *metav1.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.Time
}
