// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/status"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// errBehind means that the cache is behind the API server.
var errBehind = errors.New("the cache is behind the API server")

// scope is one pass over one upgrade.
type scope struct {
	*Reconciler
	cache   *cache
	upgrade *fleetv1beta1.ManagedClustersUpgrade // as it is cached, or as this pass wrote it
	now     time.Time

	selection selection.Selection
	clusters  map[string]*clusterv1.ManagedCluster        // all of them
	runs      map[string]*fleetv1alpha1.ClusterUpgradeRun // of the upgrade, by cluster
	members   []status.Member

	dependencies admission.Dependencies
	plan         rollout.Plan
	decision     rollout.Decision
	wake         time.Time // when the next pass has something to do
	unrepaired   []string  // clusters whose agent has not applied the repair of a work that is to be deleted
}

// attempt returns the attempt that the spec requests.
func (s *scope) attempt() int32 { return admission.Attempt(s.upgrade) }

// wakeAt requests a pass at a time.
func (s *scope) wakeAt(at time.Time) {
	if at.After(s.now) && at.Before(s.wake) {
		s.wake = at
	}
}

// reconcile makes the pass: it reads, decides, admits, and publishes.
func (s *scope) reconcile(ctx context.Context) error {
	if err := s.ensureFinalizer(ctx); err != nil {
		return err
	}
	unplaced := selection.EnsurePlacement(ctx, s.client, s.upgrade, s.now)
	if apierrors.IsConflict(unplaced) {
		return unplaced // the cache is behind
	}
	if err := s.prepare(ctx, unplaced); err != nil {
		if errors.Is(err, errBehind) {
			return err
		}
		return errors.Join(err, s.publishStopped(ctx, fleetv1beta1.ReasonCannotObserve, err.Error()))
	}
	unchecked := s.preflight(ctx)
	s.decide()
	if len(s.decision.Admit) > 0 {
		if err := s.recordStart(ctx); err != nil {
			return err
		}
	}
	err := s.admit(ctx)
	s.decideAgain()
	for _, name := range s.decision.Removed {
		if s.runs[name] == nil {
			delete(s.cache.deselected, name)
		}
	}
	s.wakeAt(s.decision.Next)
	return errors.Join(unplaced, unchecked, err, s.publish(ctx))
}

// prepare reads what decides about admission, and makes the plan and the members of it.
func (s *scope) prepare(ctx context.Context, unplaced error) error {
	if err := s.read(ctx, unplaced); err != nil {
		return err
	}
	lost, err := s.lostRecords(ctx)
	if err != nil {
		return err
	}
	dependencies, err := admission.ReadDependencies(ctx, s.client, s.upgrade)
	if err != nil {
		return err
	}
	s.dependencies = dependencies
	s.listMembers()
	s.plan = s.fleet(lost).Plan(&s.cache.windows)
	if s.Image == "" && delivery.ApprovesOperators(s.upgrade) {
		s.plan.NoOperatorImage = "spec.ocpOperators needs the image of a Job, and the hub runs without --image: set --image in the arguments of the hub"
		if s.upgrade.Status.StartTime == nil { // immutable from then on
			s.plan.NoOperatorImage += ", or remove ocpOperators"
		}
	}
	return nil
}

// fleet returns what the plan and the members are made of.
func (s *scope) fleet(lost string) *admission.Fleet {
	return &admission.Fleet{
		Upgrade: s.upgrade, Selection: s.selection, Clusters: s.clusters, Runs: s.runs, Dependencies: s.dependencies,
		Deselected: s.cache.deselected, Refused: s.refused(), RecordsLost: lost, Now: s.now,
	}
}

// refused returns the clusters whose run was rejected lately, with the reason.
func (s *scope) refused() map[string]string {
	refused := map[string]string{}
	for name, r := range s.cache.refused {
		if !s.now.Before(r.until) {
			delete(s.cache.refused, name)
			continue
		}
		s.wakeAt(r.until)
		refused[name] = r.reason
	}
	return refused
}

// read reads the clusters, the runs, and the selection from the cache. The selection is unstable if
// the Placement of clusterSelector could not be written; unplaced nil means that it could.
func (s *scope) read(ctx context.Context, unplaced error) error {
	clusters, err := admission.ReadClusters(ctx, s.client)
	if err != nil {
		return err
	}
	s.clusters = clusters
	if err := s.readRuns(ctx); err != nil {
		return err
	}
	options := s.Selection
	options.Now = s.now
	selected, err := s.selectMembers(ctx, s.client, s.upgrade, s.clusters, options)
	if err != nil {
		return fmt.Errorf("selecting the clusters of ManagedClustersUpgrade %s: %w", client.ObjectKeyFromObject(s.upgrade), err)
	}
	if unplaced != nil {
		selected.Unstable = unplaced.Error()
		selected.Reason = cmp.Or(selected.Reason, fleetv1beta1.ReasonPlacementNotFound)
		selected.Message = cmp.Or(selected.Message, selected.Unstable)
	}
	s.wakeAt(selected.UnstableUntil)
	s.selection = selected
	s.observeSelection()
	return nil
}

// readRuns lists the runs of the upgrade, with those that were written and that the cache does not
// hold yet.
func (s *scope) readRuns(ctx context.Context) error {
	list, err := admission.ListRuns(ctx, s.client, s.upgrade)
	if err != nil {
		return err
	}
	s.runs = make(map[string]*fleetv1alpha1.ClusterUpgradeRun, len(list))
	for i := range list {
		s.runs[list[i].Namespace] = &list[i]
	}
	for _, name := range slices.Sorted(maps.Keys(s.cache.written)) {
		w, cached := s.cache.written[name], s.runs[name]
		if cached != nil && cached.Spec.Attempt >= w.run.Spec.Attempt {
			delete(s.cache.written, name)
			continue
		}
		if w.unsure || s.now.Sub(w.at) >= cacheTimeout {
			exists, err := s.isWritten(ctx, w)
			if err != nil {
				return err
			}
			if !exists {
				delete(s.cache.written, name)
				continue
			}
			w.unsure, w.at = false, s.now
		}
		s.runs[name] = w.run
		s.wakeAt(s.now.Add(retryDelay))
	}
	return nil
}

// observeSelection notes since when members are not selected. A selection that may be incomplete
// changes nothing.
func (s *scope) observeSelection() {
	m := s.cache
	if s.selection.Unstable != "" {
		if m.selected != nil {
			s.selection.Members = m.selected
		}
		return
	}
	selected := make(map[string]bool, len(s.selection.Members))
	for _, c := range s.selection.Members {
		selected[c.Name] = true
	}
	if m.selected == nil {
		if s.selection.Unstable = s.shrunk(selected); s.selection.Unstable != "" {
			return
		}
		s.recallIgnored(selected)
	}
	for name := range selected {
		delete(m.deselected, name)
	}
	deselect := func(name string) {
		if _, noted := m.deselected[name]; !noted && !selected[name] {
			m.deselected[name] = s.now
		}
	}
	for _, c := range m.selected {
		deselect(c.Name)
	}
	for name := range s.runs {
		deselect(name)
	}
	m.selected = s.selection.Members
	if m.selected == nil {
		m.selected = []selection.Member{}
	}
}

// shrunk describes by how much the first selection of this process is smaller than the published
// one; empty means that it is not, or that this is confirmed. The process does not know for how long
// clusters are deselected.
func (s *scope) shrunk(selected map[string]bool) string {
	confirmed := s.cache.started.Add(rollout.RemovalDelay)
	if !s.now.Before(confirmed) {
		return ""
	}
	found := len(selected)
	for name, run := range s.runs {
		state := status.StateOf(run, s.attempt())
		if !selected[name] && state != rollout.NotStarted && state != rollout.Failed {
			found++
		}
	}
	if found >= s.cache.expected {
		return ""
	}
	s.wakeAt(confirmed)
	return fmt.Sprintf("confirming for %s that %d of %d clusters are no longer selected",
		rollout.RemovalDelay, s.cache.expected-found, s.cache.expected)
}

// recallIgnored keeps deselected failures ignored that the published status does not count.
func (s *scope) recallIgnored(selected map[string]bool) {
	published := &s.upgrade.Status
	counted := published.ClustersSummery
	if counted == nil || published.Attempt != s.attempt() || published.ObservedGeneration != s.upgrade.Generation {
		return
	}
	var deselected []string
	var begun, failed int32
	for name, run := range s.runs {
		state := status.StateOf(run, s.attempt())
		switch {
		case state == rollout.NotStarted:
			continue
		case state == rollout.Failed && !selected[name]:
			deselected = append(deselected, name)
			continue
		case state == rollout.Failed:
			failed++
		}
		begun++
	}
	if begun < counted.Total-counted.Pending || failed < counted.Failed {
		return // the status may count one of them
	}
	for _, name := range deselected {
		s.cache.deselected[name] = s.now.Add(-rollout.RemovalDelay)
		s.cache.ignored[name] = true
	}
}

// listMembers lists the members: what is selected, what has a run, and what is to be removed.
func (s *scope) listMembers() { s.members = s.fleet("").Members() }

// decide decides which members begin.
func (s *scope) decide() { s.decision = admission.Decide(s.plan, s.members, s.now) }

// decideAgain decides about the members as they are after admission, for the status.
func (s *scope) decideAgain() {
	if len(s.decision.Admit) == 0 {
		return
	}
	removed := s.decision.Removed
	s.listMembers()
	s.decide()
	s.decision.Removed = removed
}

// lostRecords describes which records of begun clusters are gone; empty means none. The status that
// was published last counts them. It stays so until the next attempt.
func (s *scope) lostRecords(ctx context.Context) (string, error) {
	published := &s.upgrade.Status
	if published.ClustersSummery == nil || published.Attempt != s.attempt() {
		return "", nil
	}
	if c := apimeta.FindStatusCondition(published.Conditions, fleetv1beta1.ConditionAdmitting); c != nil && c.Reason == fleetv1beta1.ReasonRecordsLost {
		return c.Message, nil
	}
	s.observeDetached()
	begun := int(published.ClustersSummery.Total - published.ClustersSummery.Pending)
	exist := len(s.cache.detached)
	for _, run := range s.runs {
		if s.isCounted(run) {
			exist++
		}
	}
	if exist >= begun {
		return "", nil
	}
	runs, err := admission.ListRuns(ctx, s.live, s.upgrade)
	if err != nil {
		return "", err
	}
	live := len(s.cache.detached)
	for i := range runs {
		if s.isCounted(&runs[i]) {
			live++
		}
	}
	if live > exist {
		return "", errBehind
	}
	return fmt.Sprintf("%d clusters had begun, and %d ClusterUpgradeRuns exist: check the clusters, then raise spec.attempt",
		begun, exist), nil
}

// isCounted reports whether the published status counts the cluster of a run as begun, or may do so.
func (s *scope) isCounted(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	if s.cache.begun[run.Namespace] {
		return true // the run may have failed since, in an earlier attempt
	}
	return !s.cache.ignored[run.Namespace] && status.StateOf(run, s.attempt()) != rollout.NotStarted
}

// observeDetached notes the clusters whose run has gone with the cluster while this process watched.
// A cluster that is being deleted goes too.
func (s *scope) observeDetached() {
	for name := range s.cache.begun {
		cluster := s.clusters[name]
		switch {
		case s.runs[name] != nil:
			delete(s.cache.detached, name)
		case cluster == nil || cluster.DeletionTimestamp != nil:
			s.cache.detached[name] = true
		}
	}
}
