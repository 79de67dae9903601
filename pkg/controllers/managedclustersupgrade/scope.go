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

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

var errBehind = errors.New("the cache is behind the API server")

// scope is one pass over one upgrade.
type scope struct {
	*Reconciler
	admission.Fleet // with the upgrade as it is cached, or as this pass wrote it

	cache      *cache
	members    []admission.FleetMember
	byName     map[string]*admission.FleetMember
	unwatched  []fleetv1beta1.DepartedClusters // whose records are gone since no process watched, and that the status does not count yet
	plan       rollout.Plan
	decision   rollout.Decision
	wake       time.Time // when the next pass has something to do
	unrepaired []string  // clusters whose agent has not applied the repair of a work that will be deleted
}

func (s *scope) attempt() int32 { return admission.Attempt(s.Upgrade) }

func (s *scope) wakeAt(at time.Time) {
	if at.After(s.Now) && at.Before(s.wake) {
		s.wake = at
	}
}

// isAtRest reports whether the upgrade was complete, and its spec has not changed since: clusters that join later, and what
// others do with its clusters, do not concern it.
func isAtRest(upgrade *fleetv1beta1.ManagedClustersUpgrade) bool {
	c := apimeta.FindStatusCondition(upgrade.Status.Conditions, fleetv1beta1.ConditionComplete)
	return c != nil && c.Status == metav1.ConditionTrue && c.ObservedGeneration == upgrade.Generation &&
		upgrade.Spec.LateJoiners != fleetv1beta1.LateJoinersUpgrade
}

// reconcile makes the pass: it reads, decides, admits, and publishes.
func (s *scope) reconcile(ctx context.Context) error {
	if isAtRest(s.Upgrade) && len(s.cache.events) == 0 && s.cache.preflight.isOver() {
		return nil
	}
	if !controllerutil.ContainsFinalizer(s.Upgrade, fleetv1beta1.Finalizer) { // before anything is created
		if err := s.write(ctx, "adding the finalizer of", false, func(u *fleetv1beta1.ManagedClustersUpgrade) {
			controllerutil.AddFinalizer(u, fleetv1beta1.Finalizer)
		}); err != nil {
			return err
		}
	}
	unplaced := selection.EnsurePlacement(ctx, s.client, s.Upgrade, s.Now)
	if apierrors.IsConflict(unplaced) {
		return unplaced // the cache is behind
	}
	if err := s.prepare(ctx, unplaced); err != nil {
		if errors.Is(err, errBehind) {
			return err
		}
		return errors.Join(err, s.publishStopped(ctx, fleetv1beta1.ReasonCannotObserve, err.Error()))
	}
	if err := s.withdraw(ctx); err != nil {
		return err
	}
	unchecked := s.preflight(ctx)
	s.decide()
	if len(s.decision.Admit) > 0 {
		if err := s.fixCanaries(ctx); err != nil {
			return err
		}
		if err := s.recordStart(ctx); err != nil {
			return err
		}
	}
	err := s.admit(ctx)
	s.decideAgain()
	for _, name := range s.decision.Removed {
		if s.Runs[name] == nil {
			s.cache.of(name).DeselectedSince = time.Time{}
		} else if err := s.removePending(ctx, s.Runs[name]); err != nil {
			return err
		}
	}
	s.wakeAt(s.decision.Next)
	return errors.Join(unplaced, unchecked, err, s.publish(ctx))
}

// prepare reads what decides about admission, and makes the members and the plan.
func (s *scope) prepare(ctx context.Context, unplaced error) error {
	if err := s.read(ctx, unplaced); err != nil {
		return err
	}
	var err error
	if s.RecordsLost, err = s.lostRecords(ctx); err != nil {
		return err
	}
	if s.Dependencies, err = admission.ReadDependencies(ctx, s.client, s.Upgrade); err != nil {
		return err
	}
	if s.Locked, err = admission.Locked(ctx, s.client, s.Upgrade); err != nil {
		return err
	}
	s.cache.reopen(s.Now)
	s.listMembers()
	s.plan = s.Plan(s.members, &s.cache.windows)
	if s.Image == "" && delivery.ApprovesOperators(s.Upgrade) {
		s.plan.NoOperatorImage = "spec.ocpOperators needs the image of a Job, and the hub runs without --image: set --image in the arguments of the hub"
		if s.Upgrade.Status.StartTime == nil { // immutable from then on
			s.plan.NoOperatorImage += ", or remove ocpOperators"
		}
	}
	return nil
}

// remember sets the part of the fleet that the cache has.
func (s *scope) remember() {
	s.Records = make(map[string]admission.ClusterRecord, len(s.cache.clusters))
	s.Departed, s.CanariesGone = s.departed(), s.canariesGone()
	for name, r := range s.cache.clusters {
		if s.wakeAt(r.refusedUntil); !s.Now.Before(r.refusedUntil) {
			r.Refused, r.refusedUntil = "", time.Time{}
		}
		s.Records[name] = r.ClusterRecord
	}
}

// read reads the clusters, the runs, and the selection. That is unstable if its Placement could not be written.
func (s *scope) read(ctx context.Context, unplaced error) error {
	var err error
	if s.Clusters, err = admission.ReadClusters(ctx, s.client); err != nil {
		return err
	}
	if err := s.readRuns(ctx); err != nil {
		return err
	}
	options := s.Reconciler.Selection
	options.Now = s.Now
	selected, err := s.selectMembers(ctx, s.client, s.Upgrade, s.Clusters, options)
	if err != nil {
		return fmt.Errorf("selecting the clusters of ManagedClustersUpgrade %s: %w", client.ObjectKeyFromObject(s.Upgrade), err)
	}
	if unplaced != nil {
		selected.Unstable = unplaced.Error()
		selected.Reason = cmp.Or(selected.Reason, fleetv1beta1.ReasonPlacementNotFound)
		selected.Message = cmp.Or(selected.Message, selected.Unstable)
	}
	s.wakeAt(selected.UnstableUntil)
	s.Fleet.Selection = selected
	s.observeSelection()
	return nil
}

// readRuns lists the runs of the upgrade as the API server has had them last: the cache lacks what was written or read
// since. If the answer to a write was lost, or the cache is behind for too long, a run is read again.
func (s *scope) readRuns(ctx context.Context) error {
	list, err := admission.ListRuns(ctx, s.client, s.Upgrade)
	if err != nil {
		return err
	}
	s.Runs = make(map[string]*fleetv1alpha1.ClusterUpgradeRun, len(list))
	for i := range list {
		if run := &list[i]; !s.cache.gone[run.UID] {
			s.Runs[run.Namespace] = run
		}
	}
	if len(s.Runs) == len(list) {
		clear(s.cache.gone)
	}
	for _, name := range s.cache.names(func(r *record) bool { return r.written != nil }) {
		r, cached := s.cache.of(name), s.Runs[name]
		switch w := r.written; {
		case w.unsure:
			err = s.adopt(ctx, w.run)
		case cached != nil && !isOlder(cached, w.run):
			r.written = nil
		case s.Now.Sub(w.at) >= cacheTimeout:
			err = s.adopt(ctx, w.run)
		default:
			s.Runs[name] = w.run
		}
		if err != nil {
			return err
		}
		if r.written != nil {
			s.wakeAt(s.Now.Add(retryDelay))
		}
	}
	status := &s.Upgrade.Status
	if status.ClustersSummery != nil && !equality.Semantic.DeepEqual(status, s.cache.status) { // another process has written it
		err = s.confirmRuns(ctx)
	}
	if err == nil {
		s.cache.status = status
	}
	return err
}

// isOlder reports whether a run is an earlier version than another one. Versions that cannot be compared are equal.
func isOlder(run, than *fleetv1alpha1.ClusterUpgradeRun) bool {
	order, err := resourceversion.CompareResourceVersion(run.ResourceVersion, than.ResourceVersion)
	return err == nil && order < 0
}

// confirmRuns reads the runs from the API server. The cache may be behind the one of another process, and the two would
// overwrite each other's statuses.
func (s *scope) confirmRuns(ctx context.Context) error {
	list, err := admission.ListRuns(ctx, s.live, s.Upgrade)
	if err != nil {
		return err
	}
	gone := maps.Clone(s.Runs)
	for i := range list {
		run := &list[i]
		if delete(gone, run.Namespace); s.Runs[run.Namespace] == nil || isOlder(s.Runs[run.Namespace], run) {
			s.note(&written{run: run})
		}
	}
	for _, run := range gone {
		s.lose(run)
	}
	return nil
}

// lose removes a run that the API server no longer has.
func (s *scope) lose(run *fleetv1alpha1.ClusterUpgradeRun) {
	s.cache.gone[run.UID], s.cache.of(run.Namespace).written = true, nil
	delete(s.Runs, run.Namespace)
}

// observeSelection notes since when members are not selected. A selection that may be incomplete changes nothing.
func (s *scope) observeSelection() {
	m, found := s.cache, &s.Fleet.Selection
	if !found.Stable() {
		if m.selected != nil {
			found.Members = m.selected
		}
		return
	}
	selected := make(map[string]bool, len(found.Members))
	for _, c := range found.Members {
		selected[c.Name] = true
	}
	if m.selected == nil {
		if found.Unstable = s.shrunk(selected); !found.Stable() {
			return
		}
		s.recallIgnored(selected)
	}
	for name := range selected {
		m.of(name).DeselectedSince = time.Time{}
	}
	known := slices.Collect(maps.Keys(s.Runs))
	for _, c := range m.selected {
		known = append(known, c.Name)
	}
	for _, name := range known {
		if r := m.of(name); r.DeselectedSince.IsZero() && !selected[name] {
			r.DeselectedSince = s.Now
		}
	}
	m.selected = append([]selection.SelectedCluster{}, found.Members...) // not nil
}

// shrunk describes how much smaller the first selection of this process is than the published one, until that is confirmed:
// the process does not know for how long clusters are deselected.
func (s *scope) shrunk(selected map[string]bool) string {
	confirmed := s.cache.started.Add(rollout.RemovalDelay)
	if !s.Now.Before(confirmed) {
		return ""
	}
	found := len(selected)
	for name, run := range s.Runs {
		state := admission.StateOf(run, s.attempt())
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

// recallIgnored keeps deselected failures ignored that the published status does not count: of clusters to which nothing was
// written, or that a person has forgotten.
func (s *scope) recallIgnored(selected map[string]bool) {
	published := &s.Upgrade.Status
	counted := published.ClustersSummery
	if counted == nil || published.Attempt != s.attempt() || published.ObservedGeneration != s.Upgrade.Generation {
		return
	}
	var deselected []string
	var begun, failed int32
	for name, run := range s.Runs {
		state := admission.StateOf(run, s.attempt())
		switch {
		case state == rollout.NotStarted:
			continue
		case state == rollout.Failed && !selected[name] && (run.Spec.Outcome != nil || admission.IsForgotten(s.Upgrade, name)):
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
		r := s.cache.of(name)
		r.DeselectedSince, r.ignored = s.Now.Add(-rollout.RemovalDelay), true
	}
}

// listMembers lists the members, and notes since when each cannot begin, and since when its run waits. A restart loses the
// former, and delays the stop of a rollout whose canary is not available.
func (s *scope) listMembers() {
	s.remember()
	s.members = s.Members()
	s.byName = make(map[string]*admission.FleetMember, len(s.members))
	for i := range s.members {
		m := &s.members[i]
		if news := s.cache.started.Add(admission.NewsGrace); !m.Deadline.IsZero() && m.Deadline.Before(news) {
			m.Deadline = news
		}
		s.byName[m.Name] = m
		s.cache.of(m.Name).observe(m, s.Now)
	}
	for name, r := range s.cache.clusters {
		if s.byName[name] == nil {
			if r.HeldSince, r.waitingSince, r.ended = (time.Time{}), (time.Time{}), 0; *r == (record{}) {
				delete(s.cache.clusters, name)
			}
		}
	}
}

// observe notes what a member shows.
func (r *record) observe(m *admission.FleetMember, now time.Time) {
	if r.HeldSince = cmp.Or(r.HeldSince, now); m.Hold == "" || m.HoldReason == fleetv1beta1.ReasonDependencyIncomplete {
		r.HeldSince = time.Time{}
	}
	m.HeldSince = r.HeldSince
	since := m.WaitsSince(now)
	if !since.IsZero() {
		since = cmp.Or(r.waitingSince, since)
	}
	r.waitingSince = since
	if r.begun != nil && m.State != rollout.NotStarted {
		r.begun = begunOf(m)
	}
}

// decide decides about admission. While the rollout does not go on, no cluster holds it up; an unstable selection passes, and the
// time stands still while a window is closed.
func (s *scope) decide() {
	s.decision = admission.Admit(s.plan, s.members, s.Now)
	s.cache.closed = time.Time{}
	switch {
	case s.decision.GoesOn, s.plan.SelectionUnstable != "":
	case s.decision.Stopped.Reason == fleetv1beta1.ReasonOutsideWindow:
		s.cache.closed = s.Now
	default:
		for _, r := range s.cache.clusters {
			r.HeldSince = time.Time{}
		}
	}
}

// reopen moves the time since which clusters are held by the time since the last pass, if the window was closed then.
func (m *cache) reopen(now time.Time) {
	if m.closed.IsZero() {
		return
	}
	for _, r := range m.clusters {
		if !r.HeldSince.IsZero() {
			r.HeldSince = r.HeldSince.Add(now.Sub(m.closed))
		}
	}
	m.closed = now
}

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

// lostRecords describes lost records of begun clusters, by the count of the published status, until the next attempt. The first
// pass of an attempt counts the clusters that have left the hub in the one before.
func (s *scope) lostRecords(ctx context.Context) (string, error) {
	published := &s.Upgrade.Status
	isRetry := published.Attempt != s.attempt()
	if published.ClustersSummery == nil {
		return "", nil
	}
	if stop := published.Stop; !isRetry && stop != nil && stop.Reason == fleetv1beta1.ReasonRecordsLost {
		return stop.Message, nil
	}
	if c := apimeta.FindStatusCondition(published.Conditions, fleetv1beta1.ConditionAdmitting); !isRetry && c != nil && c.Reason == fleetv1beta1.ReasonRecordsLost {
		return c.Message, nil // of a release without status.stop
	}
	begun := int(published.ClustersSummery.Total - published.ClustersSummery.Pending)
	if s.countRecords() >= begun {
		return "", nil
	}
	if err := s.confirmRuns(ctx); err != nil {
		return "", err
	}
	exist := s.countRecords()
	if exist >= begun || s.haveDeparted(int32(begun-exist)) || isRetry {
		return "", nil
	}
	return fmt.Sprintf("%d clusters had begun, and %d ClusterUpgradeRuns exist: check the clusters, then raise spec.attempt",
		begun, exist), nil
}

// countRecords counts the begun clusters with a record, and those whose record is gone with them.
func (s *scope) countRecords() int {
	s.observeDetached()
	n := len(s.cache.detached())
	for _, run := range s.Runs {
		if s.isCounted(run) {
			n++
		}
	}
	return n
}

// isCounted reports whether the published status counts the cluster of a run as begun, or may do so.
func (s *scope) isCounted(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	r, attempt := s.cache.of(run.Namespace), s.Upgrade.Status.Attempt
	if r.begun != nil || run.Spec.Attempt == attempt && admission.WasWithdrawn(run) {
		return true // the run may have failed since, in an earlier attempt
	}
	return !r.ignored && admission.StateOf(run, attempt) != rollout.NotStarted
}
