// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/schedule"
)

// makePlan makes the plan of the spec and of its surroundings.
func (s *scope) makePlan(ctx context.Context) error {
	spec := &s.upgrade.Spec
	lost, err := s.lostRecords(ctx)
	if err != nil {
		return err
	}
	s.plan = rollout.Plan{
		Type:           rollout.Type(spec.UpgradeStrategy.RolloutType),
		MaxConcurrency: spec.UpgradeStrategy.MaxConcurrency, MaxFailures: spec.UpgradeStrategy.MaxFailures,
		RequireCanaries: spec.UpgradeStrategy.CanaryClusters != nil,
		Paused:          spec.Paused, Cancelled: spec.Cancelled, DryRun: spec.DryRun,
		RecordsLost:       lost,
		SelectionUnstable: s.selection.Unstable,
		Window:            s.window(),
	}
	return s.readDependencies(ctx)
}

// readDependencies reads the upgrades that must be complete first.
func (s *scope) readDependencies(ctx context.Context) error {
	for i := range s.upgrade.Spec.DependsOn {
		dependency := &s.upgrade.Spec.DependsOn[i]
		other := &fleetv1beta1.ManagedClustersUpgrade{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: s.upgrade.Namespace, Name: dependency.Name}, other)
		switch {
		case apierrors.IsNotFound(err):
			s.plan.DependencyMissing = fmt.Sprintf("spec.dependsOn: there is no ManagedClustersUpgrade %s in this namespace", dependency.Name)
			continue
		case err != nil:
			return fmt.Errorf("getting ManagedClustersUpgrade %s, on which %s depends: %w", dependency.Name, s.upgrade.Name, err)
		case isComplete(other):
			continue
		case dependency.PerCluster:
			if err := s.readPreceding(ctx, other); err != nil {
				return err
			}
		default:
			s.plan.DependencyIncomplete = fmt.Sprintf("waiting until ManagedClustersUpgrade %s is complete", dependency.Name)
		}
	}
	cycle, err := s.cycle(ctx, s.upgrade, nil, map[string]bool{})
	if err != nil {
		return err
	}
	if cycle != nil {
		s.plan.DependencyIncomplete = "spec.dependsOn forms a cycle: " + strings.Join(cycle, ", ")
	}
	return nil
}

// isComplete reports whether all clusters of an upgrade are complete, by a status that reflects its
// spec.
func isComplete(upgrade *fleetv1beta1.ManagedClustersUpgrade) bool {
	status := &upgrade.Status
	return status.ObservedGeneration == upgrade.Generation && apimeta.IsStatusConditionTrue(status.Conditions, fleetv1beta1.ConditionComplete)
}

// readPreceding reads on which clusters the other upgrade is complete.
func (s *scope) readPreceding(ctx context.Context, other *fleetv1beta1.ManagedClustersUpgrade) error {
	var list fleetv1alpha1.ClusterUpgradeRunList
	if err := s.client.List(ctx, &list, client.MatchingLabels{fleetv1beta1.UpgradeLabel: string(other.UID)}, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the ClusterUpgradeRuns of ManagedClustersUpgrade %s: %w", other.Name, err)
	}
	complete := make(map[string]bool, len(list.Items))
	for i := range list.Items {
		run := &list.Items[i]
		complete[run.Namespace] = run.Status.State == fleetv1alpha1.StateComplete && run.Status.Attempt == run.Spec.Attempt
	}
	s.preceding = append(s.preceding, preceding{name: other.Name, complete: complete})
	return nil
}

// cycle returns the names of upgrades that depend on each other, from that of the scope back to
// itself; nil means that there are none. It reads each upgrade that is not visited yet once. An
// upgrade that is complete waits for none.
func (s *scope) cycle(ctx context.Context, at *fleetv1beta1.ManagedClustersUpgrade, path []string, visited map[string]bool) ([]string, error) {
	path = append(slices.Clone(path), at.Name)
	for i := range at.Spec.DependsOn {
		name := at.Spec.DependsOn[i].Name
		if name == s.upgrade.Name {
			return append(path, name), nil
		}
		if visited[name] {
			continue
		}
		visited[name] = true
		next := &fleetv1beta1.ManagedClustersUpgrade{}
		err := s.client.Get(ctx, client.ObjectKey{Namespace: s.upgrade.Namespace, Name: name}, next)
		if apierrors.IsNotFound(err) || err == nil && isComplete(next) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("getting ManagedClustersUpgrade %s: %w", name, err)
		}
		if found, err := s.cycle(ctx, next, path, visited); found != nil || err != nil {
			return found, err
		}
	}
	return nil, nil
}

// maxOverlaps bounds how many starts of windows are joined to one window.
const maxOverlaps = 100

// window returns the state of the windows; nil means that there are none. A window that cannot be
// read never opens.
func (s *scope) window() *rollout.Window {
	windows := s.upgrade.Spec.UpgradeStrategy.Windows
	if len(windows) == 0 {
		return nil
	}
	state := &rollout.Window{Until: s.now}
	for range maxOverlaps {
		end := s.openUntil(state.Until)
		if end.IsZero() {
			break
		}
		state.Open, state.Until = true, end
	}
	if state.Open {
		return state
	}
	state.Until = time.Time{}
	for i := range windows {
		parsed, _ := s.parse(&windows[i])
		if start, found := parsed.Next(s.now); found && (state.Until.IsZero() || start.Before(state.Until)) {
			state.Until = start
		}
	}
	return state
}

// openUntil returns the latest end of the windows that are open at a time; zero means that none is.
func (s *scope) openUntil(at time.Time) time.Time {
	var latest time.Time
	windows := s.upgrade.Spec.UpgradeStrategy.Windows
	for i := range windows {
		parsed, duration := s.parse(&windows[i])
		start, found := parsed.Next(at.Add(-duration))
		if end := start.Add(duration); found && !start.After(at) && end.After(latest) {
			latest = end
		}
	}
	return latest
}

// parse returns the schedule and the duration of a window; one that cannot be read has no start.
func (s *scope) parse(w *fleetv1beta1.AdmissionWindow) (schedule.Schedule, time.Duration) {
	key := windowKey{cron: w.Cron, location: w.Location}
	if w.ISOWeek != nil {
		key.week = *w.ISOWeek
	}
	parsed, found := s.memory.windows[key]
	if !found {
		parsed.schedule, parsed.err = schedule.Parse(key.cron, key.week, key.location)
		s.memory.windows[key] = parsed
	}
	duration, err := time.ParseDuration(string(w.Duration))
	if err != nil || parsed.err != nil {
		return schedule.Schedule{}, 0
	}
	return parsed.schedule, duration
}
