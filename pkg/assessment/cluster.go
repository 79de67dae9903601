// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"cmp"
	"slices"
	"strings"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// cluster holds the state of the update and its sections.
type cluster struct {
	in  Input
	now time.Time
	// past holds the updates that were observed until they ended, latest first.
	past []updatev1beta1.PastUpdate

	from, release      string
	started, installed time.Time
	// sameUpdate is set if the last assessment was about the same update.
	sameUpdate bool

	sections []*section
	// rollouts maps the names of MachineConfigPools to the progress of their nodes.
	rollouts map[string]*clusterstate.PoolProgress
	sources  []updatev1beta1.Source
	// covered is the set of facts that the first causes show.
	covered map[coveredFact]bool
	// incomplete is set if a required source is missing.
	incomplete bool
	// followUp is set if insights of the last update need attention.
	followUp bool
}

// newCluster builds the sections from the status, the facts, and the last assessment.
func newCluster(status updatev1beta1.UpdateStatusStatus, in Input) *cluster {
	c := &cluster{in: in, now: in.Now.UTC().Truncate(time.Second), past: status.PastUpdates, followUp: len(status.AfterUpdate) > 0}
	c.readSources()
	c.rollouts = in.Facts.RolloutsByPool()
	c.addControlPlane(status.ControlPlane)
	for i := range status.WorkerPools {
		c.addPool(&status.WorkerPools[i])
	}
	c.readUpdate()
	for _, s := range c.sections {
		s.readable, s.slots = c.isReadable(s), c.slotsOf(s)
		c.remember(s)
		if s.readable {
			c.readParts(s)
		}
	}
	for _, s := range c.sections {
		if s.readable {
			c.readChanges(s)
		}
	}
	return c
}

// readSources lists the required sources, then the others, and finally missing optional sources. The data is
// incomplete if a required source is not current.
func (c *cluster) readSources() {
	required := checks.Required()
	for _, name := range required {
		source := updatev1beta1.Source{Name: string(name), Current: true} // its time is the observedTime of the status
		if missing, is := c.in.Facts.Missing[name]; is {
			source.Current, source.Message = false, notRead(missing)
		} else if name == checks.SourceClusterVersion && c.in.Facts.Version.Progressing.IsTrue() {
			source.Detail = "progressing"
		}
		c.sources = append(c.sources, source)
	}
	for _, source := range c.in.Sources {
		source.Name, source.Message, source.Detail = bounded(source.Name, maxName), clean(source.Message), bounded(source.Detail, maxDetail)
		at := slices.IndexFunc(c.sources, func(s updatev1beta1.Source) bool { return s.Name == source.Name })
		switch {
		case source.Name == "":
		case at < 0 && len(c.sources) < maxSources:
			c.sources = append(c.sources, source)
		case at >= 0:
			// Data missing from the facts stays missing, even if another source reports it.
			source.Current = source.Current && c.sources[at].Current
			source.Message = cmp.Or(source.Message, c.sources[at].Message)
			c.sources[at] = source
		}
	}
	for i := range required {
		c.incomplete = c.incomplete || !c.sources[i].Current
	}
	for _, name := range c.in.Facts.MissingOptional() {
		if len(c.sources) < maxSources {
			c.sources = append(c.sources, updatev1beta1.Source{Name: string(name), Message: notRead(c.in.Facts.Missing[name])})
		}
	}
}

// notRead explains why a source is not current.
func notRead(missing checks.Missing) string {
	return cmp.Or(clean(missing.Message), clean(missing.Reason), "not read")
}

// isReadable reports whether the sources that show changes in a section are current.
func (c *cluster) isReadable(s *section) bool {
	needs := []checks.FactSource{checks.SourceNodes, checks.SourcePools}
	if s.controlPlane {
		needs = []checks.FactSource{checks.SourceClusterVersion, checks.SourceOperators}
	}
	for _, source := range c.sources {
		if slices.Contains(needs, checks.FactSource(source.Name)) && !source.Current {
			return false
		}
	}
	return true
}

// readUpdate determines which update is in progress and when it started. If the ClusterVersion cannot be
// read, it uses the values of the last assessment.
func (c *cluster) readUpdate() {
	version, previous := c.in.Facts.Version, c.in.Previous
	if len(version.Updates) == 0 {
		if previous != nil {
			c.from, c.release, c.sameUpdate = previous.FromRelease, previous.Release, true
			c.started, c.installed = text.TimeOf(previous.StartedTime), text.TimeOf(previous.InstalledTime)
		}
		return
	}
	newest := version.Updates[0]
	c.release = bounded(newest.Version, maxRelease)
	if c.mayContinue(newest) {
		c.started, c.from, c.sameUpdate = newest.Start, previous.FromRelease, true
		return
	}
	if !c.anyPending() && (newest.Completed || c.controlPlane().observed) {
		c.installed = newest.End
		c.sameUpdate = previous != nil && previous.Release == c.release && previous.StartedTime == nil
		return
	}
	if requested, is := version.PendingRequest(); is && newest.Completed {
		// The cluster version operator has not started to install it, so there is no start time.
		c.release, c.from = bounded(requested.String(), maxRelease), c.release
		c.sameUpdate = previous != nil && previous.Release == c.release && previous.StartedTime == nil
		return
	}
	c.started, c.from = newest.Start, bounded(fromRelease(version), maxRelease)
	c.sameUpdate = previous != nil && previous.Release == c.release && text.TimeOf(previous.StartedTime).Equal(c.started.Truncate(time.Second))
}

// mayContinue reports whether the update of the last assessment may still be in progress: it is the newest
// update, no section is known to be pending, and at least one section cannot be observed.
func (c *cluster) mayContinue(newest clusterstate.Update) bool {
	previous := c.in.Previous
	if c.anyPending() || previous == nil || previous.StartedTime == nil || previous.Release != c.release ||
		!previous.StartedTime.Time.Equal(newest.Start.Truncate(time.Second)) {
		return false
	}
	return slices.ContainsFunc(c.sections, func(s *section) bool { return !s.observed })
}

// fromRelease returns the release that the newest update replaces: the last one installed.
func fromRelease(version clusterstate.Version) string {
	for _, update := range version.Updates[1:] {
		if update.Completed {
			return update.Version
		}
	}
	if len(version.Updates) > 1 {
		return version.Updates[1].Version
	}
	return ""
}

func (c *cluster) anyPending() bool {
	return slices.ContainsFunc(c.sections, func(s *section) bool { return s.pending })
}

// controlPlane returns the section of the control plane.
func (c *cluster) controlPlane() *section { return c.sections[0] }

// addControlPlane adds one section for the control plane and one for its nodes.
func (c *cluster) addControlPlane(status *updatev1beta1.ControlPlaneStatus) {
	plane := &section{name: controlPlane, unit: unitOperators, controlPlane: true}
	c.sections = append(c.sections, plane)
	if status == nil {
		return
	}
	plane.read(&status.Section)
	nodes := &section{name: clusterstate.PoolMaster, unit: unitNodes, master: true, required: true, pending: plane.pending, observed: plane.observed, active: plane.active}
	pool := updatev1beta1.ResourceReference{APIVersion: mcpAPIVersion, Kind: kindPool, Name: clusterstate.PoolMaster}
	nodes.pool = &pool
	plane.insights = slices.DeleteFunc(plane.insights, func(i insight) bool {
		if isNodeInsight(i) {
			nodes.insights = append(nodes.insights, i)
			return true
		}
		return false
	})
	c.countMasters(nodes)
	c.sections = append(c.sections, nodes)
}

// countMasters counts the control plane nodes.
func (c *cluster) countMasters(s *section) {
	if rollout := c.rollouts[s.name]; rollout != nil && s.pending {
		s.total, s.updated, s.unavailable = count(rollout.Total()), count(rollout.Updated), count(rollout.Unavailable)
	}
}

func (c *cluster) addPool(status *updatev1beta1.WorkerPoolStatus) {
	name := bounded(status.Name, maxName)
	if name == "" || len(c.sections) >= maxSections {
		return
	}
	ref := updatev1beta1.ResourceReference{APIVersion: status.APIVersion, Kind: status.Kind, Namespace: status.Namespace, Name: status.Name}
	s := &section{name: name, pool: &ref, unit: unitNodes}
	s.read(&status.Section)
	s.required = status.Kind == kindPool && slices.ContainsFunc(c.in.Facts.Pools, func(p clusterstate.Pool) bool { return p.Name == name && p.Required() })
	if status.Kind == kindPool && (clusterstate.Pool{Name: name}).Role() == clusterstate.RoleControlPlane {
		// The status already has a separate section for these nodes.
		c.sections = slices.DeleteFunc(c.sections, func(other *section) bool {
			if other.master {
				s.insights = append(s.insights, other.insights...)
			}
			return other.master
		})
		s.master = true
	}
	c.sections = append(c.sections, s)
}

// isNodeInsight reports whether a built-in informer reported the insight about a node or its pool.
func isNodeInsight(i insight) bool {
	return i.informer == checks.InformerNodes && slices.ContainsFunc(i.Scope.Resources, func(r updatev1beta1.ResourceReference) bool {
		return r.Kind == kindNode || r.Kind == kindPool
	})
}

// builtIn reports whether an informer is part of the product. Other informers cannot report progress or
// explain the insights of built-in informers.
func builtIn(informer string) bool {
	return strings.HasPrefix(informer, updatev1beta1.BuiltInPrefix) || informer == updatev1beta1.StatusControllerInformer || informer == ""
}
