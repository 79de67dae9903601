// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// Input holds everything that a verdict is based on, apart from the status.
type Input struct {
	// Facts are the facts that the status was computed from.
	Facts checks.Facts
	// Previous is the last assessment, or nil if there is none. It is the only memory: it records when parts
	// were first seen, how long nodes took, and the latest published end.
	Previous *updatev1beta1.Assessment
	// PreviousTime is when Previous was last confirmed, or zero if this is unknown.
	PreviousTime time.Time
	// Sources lists the Update Status Controller and the enabled informers in print order. A source with the
	// name of a required source replaces the one derived from the facts.
	Sources []updatev1beta1.Source
	// Resumes holds when waiting sections resume, by pool. The zero reference stands for the control plane.
	Resumes map[updatev1beta1.ResourceReference]time.Time
	// ControllerNamespace is the namespace of the Update Status Controller, used in commands. If empty, the
	// default namespace is used.
	ControllerNamespace string
	// ControllerForbidden is set if the user lacks permission to read what the Update Status Controller
	// publishes.
	ControllerForbidden bool
	// Now is the time of the verdict.
	Now time.Time
}

// Assess judges an update. It reads the sections of the status but not the assessment in it.
func Assess(status updatev1beta1.UpdateStatusStatus, in Input) updatev1beta1.Assessment {
	c := newCluster(status, in)
	for _, s := range c.sections {
		c.judge(s)
	}
	out := updatev1beta1.Assessment{
		FromRelease: c.from, Release: c.release, StartedTime: timePtr(c.started), InstalledTime: timePtr(c.installed),
		Sources: c.sources,
	}
	out.State = c.state()
	out.Since = c.since(out.State)
	out.LastChangeTime = timePtr(c.lastChange())
	out.Causes = c.causes()
	out.Watch = c.watch(out.State == updatev1beta1.StateStuck || out.State == updatev1beta1.StateWaiting)
	c.summarize(&out)
	out.Next = c.next(out.State)
	c.advise(&out)
	out.Estimate = c.estimate(out)
	for _, s := range c.sections {
		if s.printed() {
			out.Sections = append(out.Sections, s.result(c.now))
		}
	}
	if out.State == updatev1beta1.StateUnknown {
		out.LastKnown = c.lastKnown()
	}
	return out
}

// state returns the verdict on the cluster. Missing data takes precedence over everything except a stuck
// section.
func (c *cluster) state() updatev1beta1.AssessmentState {
	seen := map[updatev1beta1.AssessmentState]bool{}
	for _, s := range c.sections {
		seen[s.state] = true
	}
	switch {
	case seen[updatev1beta1.StateStuck]:
		return updatev1beta1.StateStuck
	case c.incomplete || seen[updatev1beta1.StateUnknown]:
		return updatev1beta1.StateUnknown
	case seen[updatev1beta1.StateProgressing]:
		return updatev1beta1.StateProgressing
	case seen[updatev1beta1.StateWaiting]:
		return updatev1beta1.StateWaiting
	case c.waitingUpgrade() != nil:
		return updatev1beta1.StateWaiting
	}
	return updatev1beta1.StateIdle
}

// since returns when the cluster entered the state, according to the last assessment, or now.
func (c *cluster) since(state updatev1beta1.AssessmentState) metav1.Time {
	if p := c.in.Previous; p != nil && p.State == state && plausible(p.Since.Time, c.now) {
		return p.Since
	}
	return published(c.now)
}

// lastChange returns the time of the latest change seen in a pending section, or zero if it is unknown.
func (c *cluster) lastChange() time.Time {
	var last time.Time
	for _, s := range c.sections {
		if s.pending {
			last = later(last, s.lastChange)
		}
	}
	return last
}

// published returns a time with the precision of the API server.
func published(t time.Time) metav1.Time {
	if t.IsZero() {
		return metav1.Time{}
	}
	return metav1.NewTime(t.UTC().Truncate(time.Second))
}

// timePtr returns a time for publishing, or nil if it is zero.
func timePtr(t time.Time) *metav1.Time {
	if t.IsZero() {
		return nil
	}
	return new(published(t))
}
