// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	fleetrun "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

const (
	maxPreflights    = 100             // bounds how many clusters are checked at a time
	preflightTimeout = 2 * time.Minute // how long the agent of a cluster may take for its answer
	recheckInterval  = 5 * time.Minute // when a blocked cluster is checked again: a remedy on it changes nothing here
)

// preflights is a dry run. A restart loses it: the clusters are checked again.
type preflights struct {
	generation int64
	results    map[string]answer    // by cluster, once its agent has answered or its time has expired
	started    map[string]time.Time // by cluster, while its agent must report
	created    map[string]time.Time // by cluster, while the cache may lack its work
	deleted    map[types.UID]bool   // works that the cache may still hold
	complete   bool                 // the last pass has left no cluster unchecked
}

// isOver reports whether nothing is left to check, and no work is left. A nil dry run is over.
func (p *preflights) isOver() bool {
	return p == nil || p.complete && len(p.started)+len(p.created)+len(p.deleted) == 0
}

type answer struct {
	admission.Preflight
	at time.Time
}

// workRequests requests a pass over the upgrade whose dry run a work belongs to, or over any upgrade that no longer exists.
func (r *Reconciler) workRequests(ctx context.Context, object client.Object) []reconcile.Request {
	requests := r.requestsOf(ctx, object.GetLabels()[fleetv1beta1.UpgradeLabel])
	return slices.DeleteFunc(requests, func(req reconcile.Request) bool { return req.Namespace != "" && !isPreflight(object) })
}

// removeOrphans deletes the runs of an upgrade that no longer exists, and its works that have no run: the API server may create
// one for another process only after the upgrade was deleted. Such a run has requested nothing, and would lock its cluster.
func (r *Reconciler) removeOrphans(ctx context.Context, uid types.UID) (reconcile.Result, error) {
	works, err := listWorks(ctx, r.client, uid)
	var runs fleetv1alpha1.ClusterUpgradeRunList
	if err == nil {
		err = r.client.List(ctx, &runs, client.MatchingLabels{fleetv1beta1.UpgradeLabel: string(uid)}, client.UnsafeDisableDeepCopy)
	}
	hasRun := map[string]bool{}
	for i := range runs.Items {
		hasRun[runs.Items[i].Namespace] = true
	}
	// A run removes its works.
	works = slices.DeleteFunc(works, func(work *workv1.ManifestWork) bool { return hasRun[work.Namespace] })
	if err != nil || len(works)+len(runs.Items) == 0 { // they were deleted before the upgrade was
		return reconcile.Result{}, err
	}
	var all fleetv1beta1.ManagedClustersUpgradeList
	if err := r.live.List(ctx, &all); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing the ManagedClustersUpgrades: %w", err)
	}
	if slices.ContainsFunc(all.Items, func(u fleetv1beta1.ManagedClustersUpgrade) bool { return u.UID == uid }) {
		return reconcile.Result{}, nil // the cache will follow
	}
	for i := range runs.Items {
		if run := &runs.Items[i]; run.DeletionTimestamp.IsZero() {
			err = errors.Join(err, client.IgnoreNotFound(r.client.Delete(ctx, run.DeepCopy(), client.Preconditions{UID: &run.UID})))
		}
	}
	for _, work := range works {
		if work.DeletionTimestamp.IsZero() {
			err = errors.Join(err, fleetrun.RemoveWork(ctx, r.client, work))
		}
	}
	switch {
	case apierrors.IsConflict(err):
		return reconcile.Result{RequeueAfter: retryDelay}, nil // the cache will follow
	case errors.Is(err, fleetrun.ErrRepairPending):
		return reconcile.Result{}, nil // the repair causes another pass
	}
	return reconcile.Result{}, err
}

// preflight checks the members of a dry run. It deletes the works of a finished one.
func (s *scope) preflight(ctx context.Context) error {
	if !s.Upgrade.Spec.DryRun || s.Upgrade.Spec.Cancelled {
		return s.endPreflight(ctx)
	}
	if p := s.cache.preflight; p == nil || p.generation != s.Upgrade.Generation {
		s.cache.preflight = &preflights{
			generation: s.Upgrade.Generation, results: map[string]answer{}, started: map[string]time.Time{},
			created: map[string]time.Time{}, deleted: map[types.UID]bool{},
		}
	}
	s.cache.swept = false
	works, err := listPreflights(ctx, s.client, s.Upgrade.UID)
	if err != nil {
		return err
	}
	s.forget(works)
	var errs []error
	complete := true
	for i := range s.members {
		m := &s.members[i]
		errs = append(errs, s.checkMember(ctx, m, works[m.Name]))
		delete(works, m.Name)
		complete = complete && m.Checked
	}
	s.cache.preflight.complete = complete
	for name := range works { // no longer selected
		errs = append(errs, s.deleteWork(ctx, works[name]))
	}
	return errors.Join(errs...)
}

// forget frees the slots of clusters that are no longer selected. A work is remembered until the cache follows.
func (s *scope) forget(works map[string]*workv1.ManifestWork) {
	p := s.cache.preflight
	maps.DeleteFunc(p.started, func(name string, _ time.Time) bool { return s.byName[name] == nil })
	maps.DeleteFunc(p.created, func(name string, at time.Time) bool { return s.byName[name] == nil && s.Now.Sub(at) >= cacheTimeout })
	cached := make(map[types.UID]bool, len(works))
	for _, work := range works {
		cached[work.UID] = true
	}
	maps.DeleteFunc(p.deleted, func(uid types.UID, _ bool) bool { return !cached[uid] })
}

// checkMember checks one cluster, and deletes its work, if there is one, once the result is known.
func (s *scope) checkMember(ctx context.Context, m *admission.FleetMember, work *workv1.ManifestWork) error {
	p := s.cache.preflight
	result := admission.Preflight{Checked: true} // of a cluster that has begun
	if m.State == rollout.NotStarted {
		result = s.CheckClaims(m)
	}
	known, is := p.results[m.Name]
	isPending := !result.Checked && (!is || s.isRechecked(m.Name, known))
	if is && !result.Checked {
		result = known.Preflight // it is published until the agent has answered again
	}
	var err error
	if isPending {
		var current admission.Preflight
		if current, err = s.askAgent(ctx, m, work); current.Checked {
			p.results[m.Name] = answer{current, s.Now}
			result, isPending = current, false
		}
	}
	m.Preflight = result
	if isPending {
		return err
	}
	delete(p.started, m.Name)
	if work != nil {
		err = errors.Join(err, s.deleteWork(ctx, work))
	}
	return err
}

// isRechecked reports whether a blocked cluster is being checked again, or will be now.
func (s *scope) isRechecked(name string, known answer) bool {
	p := s.cache.preflight
	if _, asked := p.started[name]; asked {
		return true
	}
	if known.Obstacle.Reason == "" {
		return false
	}
	at := known.at.Add(recheckInterval)
	s.wakeAt(at)
	return p.complete && !s.Now.Before(at)
}

// askAgent returns what the agent reports. It creates the work of a cluster if there is room for it.
func (s *scope) askAgent(ctx context.Context, m *admission.FleetMember, work *workv1.ManifestWork) (admission.Preflight, error) {
	p := s.cache.preflight
	started, asked := p.started[m.Name]
	if !asked {
		if len(p.started) >= maxPreflights {
			return admission.Preflight{}, nil
		}
		started = s.Now
		p.started[m.Name] = started
	}
	due, current := started.Add(preflightTimeout), work
	s.wakeAt(due)
	if work != nil && !s.isCurrent(work) {
		current = nil
	}
	result := s.Check(m, current, !s.Now.Before(due))
	switch {
	case result.Checked || current != nil:
		return result, nil
	case work != nil: // of an earlier dry run; its deletion causes another pass
		return result, s.deleteWork(ctx, work)
	}
	return result, s.createPreflight(ctx, m)
}

// isCurrent reports whether a work observes what the spec requests and what a check reads.
func (s *scope) isCurrent(work *workv1.ManifestWork) bool {
	return work.DeletionTimestamp.IsZero() && delivery.IsCurrentPreflight(work) && !s.cache.preflight.deleted[work.UID] &&
		work.Annotations[delivery.DryRunAnnotation] == strconv.FormatInt(s.Upgrade.Generation, 10)
}

// createPreflight creates the work of a cluster. A work that exists belongs to others, or the cache does not hold it yet.
func (s *scope) createPreflight(ctx context.Context, m *admission.FleetMember) error {
	p := s.cache.preflight
	if at, is := p.created[m.Name]; is && s.Now.Sub(at) < cacheTimeout {
		s.wakeAt(at.Add(cacheTimeout))
		return nil
	}
	work, err := delivery.PreflightWork(s.newRun(m))
	if err != nil {
		return fmt.Errorf("building the work that checks cluster %s: %w", m.Name, err)
	}
	work.Annotations[delivery.DryRunAnnotation] = strconv.FormatInt(s.Upgrade.Generation, 10)
	p.created[m.Name] = s.Now
	s.wakeAt(s.Now.Add(cacheTimeout))
	if err := s.client.Create(ctx, work); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating the work that checks cluster %s: %w", m.Name, err)
	}
	return nil
}

// deleteWork deletes a work, once, unless it was changed since it was read. If a user has edited a work so that its
// deletion would delete the ClusterVersion, it is deleted once the agent has applied its repair. The repair causes a pass.
func (s *scope) deleteWork(ctx context.Context, work *workv1.ManifestWork) error {
	if p := s.cache.preflight; !work.DeletionTimestamp.IsZero() || p != nil && p.deleted[work.UID] {
		return nil
	}
	err := fleetrun.RemoveWork(ctx, s.client, work)
	switch {
	case errors.Is(err, fleetrun.ErrRepairPending):
		s.unrepaired = append(s.unrepaired, work.Namespace)
		return nil
	case apierrors.IsConflict(err):
		return errBehind // it may have been edited so
	case err != nil:
		return err
	}
	if p := s.cache.preflight; p != nil {
		p.deleted[work.UID] = true
	}
	return nil
}

// endPreflight deletes all works of a finished dry run, also those that the cache does not hold yet.
func (s *scope) endPreflight(ctx context.Context) error {
	m := s.cache
	if m.swept {
		return nil
	}
	works, err := listPreflights(ctx, s.client, s.Upgrade.UID)
	if err != nil {
		return err
	}
	if err := s.deleteWorks(ctx, slices.Collect(maps.Values(works))); err != nil || len(s.unrepaired) > 0 {
		return err
	}
	if m.preflight != nil {
		for _, at := range m.preflight.created {
			if until := at.Add(cacheTimeout); until.After(s.Now) {
				s.wakeAt(until)
				return nil
			}
		}
	}
	m.preflight, m.swept = nil, true
	return nil
}

func (s *scope) deleteWorks(ctx context.Context, works []*workv1.ManifestWork) error {
	var errs []error
	for _, work := range works {
		errs = append(errs, s.deleteWork(ctx, work))
	}
	return errors.Join(errs...)
}

// listPreflights lists the works of the dry run of an upgrade, by cluster.
func listPreflights(ctx context.Context, from client.Reader, upgrade types.UID) (map[string]*workv1.ManifestWork, error) {
	list, err := listWorks(ctx, from, upgrade)
	works := map[string]*workv1.ManifestWork{}
	for _, work := range list {
		if isPreflight(work) {
			works[work.Namespace] = work
		}
	}
	return works, err
}

// listWorks lists the works that the hub has delivered for an upgrade and that the garbage collector does not delete with
// their runs.
func listWorks(ctx context.Context, from client.Reader, upgrade types.UID) ([]*workv1.ManifestWork, error) {
	var list workv1.ManifestWorkList
	own := client.MatchingLabels{fleetv1beta1.UpgradeLabel: string(upgrade)}
	if err := from.List(ctx, &list, own, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing the ManifestWorks of the upgrade: %w", err)
	}
	var works []*workv1.ManifestWork
	for i := range list.Items {
		work := &list.Items[i]
		if isPreflight(work) || delivery.IsDelivered(work) && delivery.HasClusterVersion(work) {
			works = append(works, work)
		}
	}
	return works, nil
}

// isPreflight reports whether a work is one of a dry run.
func isPreflight(work client.Object) bool {
	_, is := work.GetAnnotations()[delivery.DryRunAnnotation]
	return is
}
