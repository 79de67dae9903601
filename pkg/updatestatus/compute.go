// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/assessment"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/readiness"
)

// Input holds everything that Compute needs.
type Input struct {
	Facts checks.Facts
	// Insights holds the answers of the UpdateInformers. Compute modifies it, which its copies see: it
	// applies the built-in informers and settles the state. If no informer was queried, use the zero Store.
	Insights insight.Store
	// Previous is the last published status. Its insights are restored only if Insights is the zero Store,
	// because a Store in use has already resolved what it does not contain.
	Previous updatev1beta1.UpdateStatusStatus
	// Acknowledged is the value of the annotation that lists the acknowledged insights.
	Acknowledged string
	// Sources lists the sources of the assessment that are not among the facts: the Update Status Controller
	// and the enabled informers.
	Sources []updatev1beta1.Source
	// ControllerNamespace is the namespace of the Update Status Controller, used in commands. If empty, the
	// default namespace is used.
	ControllerNamespace string
	// ControllerForbidden is set if the user lacks permission to read what the Update Status Controller
	// publishes.
	ControllerForbidden bool
}

// Compute returns the status. It keeps the transition times of unchanged conditions and the times when
// insights were first observed. Anything that cannot be observed is reported as unknown, never as healthy.
func Compute(in Input) updatev1beta1.UpdateStatusStatus {
	if in.Insights.IsZero() {
		in.Insights = insight.NewStore()
		in.Insights.Restore(in.Previous)
	}
	now := in.Facts.Now
	applyBuiltIn(in.Insights, in.Facts)

	c := &computation{Input: in, now: now, rollouts: in.Facts.RolloutsByPool(), resumes: map[updatev1beta1.ResourceReference]time.Time{}}
	c.addControlPlane()
	c.addPools()
	switch {
	case c.settled():
		in.Insights.EndUpdate(acknowledged(in.Acknowledged, in.Facts.NewestUpdate().End), now)
	case c.pending():
		in.Insights.BeginUpdate(now)
	}
	in.Insights.Settle(now)
	c.addInsights()

	status := updatev1beta1.UpdateStatusStatus{
		ControlPlane:      &updatev1beta1.ControlPlaneStatus{Section: c.controlPlane},
		WorkerPools:       c.workerPools(),
		ObservedTime:      new(metav1.NewTime(now.UTC().Truncate(time.Second))),
		RecentlyResolved:  in.Insights.RecentlyResolved(),
		AfterUpdate:       c.afterUpdate(),
		StartableReleases: in.Previous.StartableReleases,
	}
	status.PastUpdates = pastUpdates(in.Previous, in.Facts, c.settled())
	status.Assessment = new(c.assess(status))
	Fit(&status, in.Previous.ControlPlane, now)
	return status
}

func (c *computation) assess(status updatev1beta1.UpdateStatusStatus) updatev1beta1.Assessment {
	in := assessment.Input{Facts: c.Facts, Previous: c.Previous.Assessment, Sources: c.Sources, Resumes: c.resumes, ControllerNamespace: c.ControllerNamespace, ControllerForbidden: c.ControllerForbidden, Now: c.now}
	if observed := c.Previous.ObservedTime; observed != nil {
		in.PreviousTime = observed.Time
	}
	return assessment.Assess(status, in)
}

// computation is the state of one call of Compute.
type computation struct {
	Input

	now time.Time
	// rollouts maps pool names to the progress of their nodes. It is empty if they cannot be observed.
	rollouts     map[string]*clusterstate.PoolProgress
	controlPlane updatev1beta1.Section
	pools        []*pool
	// resumes holds when paused sections resume. The zero reference stands for the control plane.
	resumes map[updatev1beta1.ResourceReference]time.Time
	// named holds the pools that insights name, or nil until they are collected.
	named map[updatev1beta1.ResourceReference]bool
	// dropped counts the insights beyond the limits, by informer.
	dropped map[string]int
}

// settled reports whether it is certain that no update is in progress.
func (c *computation) settled() bool {
	return c.Facts.Complete() && isSettled(&c.controlPlane) && !slices.ContainsFunc(c.pools, func(p *pool) bool { return !isSettled(&p.status.Section) })
}

// pending reports whether it is certain that an update is in progress.
func (c *computation) pending() bool {
	isTrue := func(s *updatev1beta1.Section) bool {
		return meta.IsStatusConditionTrue(s.Conditions, updatev1beta1.ConditionUpdatePending)
	}
	return isTrue(&c.controlPlane) || slices.ContainsFunc(c.pools, func(p *pool) bool { return isTrue(&p.status.Section) })
}

func (c *computation) workerPools() []updatev1beta1.WorkerPoolStatus {
	var all []updatev1beta1.WorkerPoolStatus
	for _, p := range c.pools {
		all = append(all, p.status)
	}
	return all
}

// afterUpdate returns the retained insights. It returns none during an update, when the sections show them.
func (c *computation) afterUpdate() []updatev1beta1.RetainedInsight {
	if !c.settled() {
		return nil
	}
	return c.Insights.Retained()
}

// setCondition adds a condition to a section. If the status is the same as in the previous section, the
// condition keeps its transition time.
func (c *computation) setCondition(section *updatev1beta1.Section, previous []metav1.Condition, condition metav1.Condition) {
	if before := meta.FindStatusCondition(previous, condition.Type); before != nil {
		section.Conditions = append(section.Conditions, *before)
	}
	readiness.SetCondition(&section.Conditions, condition, 0, c.now.UTC())
}
