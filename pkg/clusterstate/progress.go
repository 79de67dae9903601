// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Awaited collects what the objects report that an update waits for: the operators that do not run the release,
// or the nodes that do not have the configuration. A node that is done is no longer among them.
type Awaited struct {
	phases, pods []string
	times        []time.Time // at which the objects show that they changed
}

// AwaitedOperators returns what the operators report that isUpdated does not report, and what the cluster version
// operator reports about its progress.
func AwaitedOperators(version Version, operators []ClusterOperator, isUpdated func(ClusterOperator) bool) Awaited {
	a := Awaited{phases: []string{version.Progressing.Message}}
	operators, _ = version.ReleaseOperators(operators)
	for i := range operators {
		o := &operators[i]
		if isUpdated(*o) {
			continue
		}
		a.phases = append(a.phases, o.Name, o.Version)
		for _, condition := range []Condition{o.Available, o.Degraded, o.Progressing} {
			a.phases = append(a.phases, condition.Status, condition.Reason, condition.Message)
			a.times = append(a.times, condition.Since)
		}
	}
	return a
}

// AddPool adds how many machines of a pool are done, and the nodes that are not, with the pods that are left on
// those that are being drained; none if they were not read.
func (a *Awaited) AddPool(p *PoolProgress, left func(Node) []DrainedPod) {
	a.phases = append(a.phases, fmt.Sprint(p.Pool.Name, p.Pool.Config, p.Pool.UpdatedMachines))
	for i := range p.Nodes {
		if p.Nodes[i].Updated() {
			continue
		}
		n := p.Nodes[i].Node
		a.phases = append(a.phases, fmt.Sprint(n.Name, NodeStepOf(n), n.DesiredConfig, n.State, n.Reason, n.DesiredDrain, n.AppliedDrain))
		for _, pod := range left(*n) {
			a.pods = append(a.pods, pod.Namespace+"/"+pod.Name)
		}
	}
}

// AddBuild adds the build of an OS image.
func (a *Awaited) AddBuild(build ImageBuild) {
	a.phases, a.times = append(a.phases, build.Name, build.Phase), append(a.times, build.Start)
}

// fingerprint identifies what is awaited; empty means nothing. It has two parts, of which the second one, about
// pods, is empty while they are not read.
func (a *Awaited) fingerprint() string {
	if len(a.phases) == 0 {
		return ""
	}
	fingerprint := fingerprintOf(a.phases) + "."
	if len(a.pods) > 0 {
		fingerprint += fingerprintOf(a.pods)
	}
	return fingerprint
}

func fingerprintOf(values []string) string {
	var all strings.Builder
	for _, value := range values {
		fmt.Fprintf(&all, "%d:%s", len(value), value)
	}
	return text.Hash(all.String(), 8)
}

// Progress remembers how an update in progress has advanced. It is the only answer to the question whether the update
// progresses: the steps of upgrades and the assessment of the update status use it.
type Progress struct {
	// Fingerprint identifies what the objects reported that the update waits for; empty means nothing is
	// remembered.
	Fingerprint string
	// Changed is when any of that last changed; zero if unknown.
	Changed time.Time
}

// Observe returns the progress after another look. What is not seen, before or now, shows no change.
func (p Progress) Observe(a Awaited, now time.Time) Progress {
	next := Progress{a.fingerprint(), p.Changed}
	for _, at := range a.times {
		if IsPlausible(at, now) && at.After(next.Changed) {
			next.Changed = at
		}
	}
	if differ(p.Fingerprint, next.Fingerprint) && now.After(next.Changed) {
		next.Changed = now
	}
	return next
}

// StuckAt returns when nothing has changed for as long as a limit, or zero if it is unknown.
func (p Progress) StuckAt(limit time.Duration) time.Time {
	if p.Changed.IsZero() {
		return time.Time{}
	}
	return p.Changed.Add(limit)
}

// IsStuck reports whether nothing has changed for as long as a limit.
func (p Progress) IsStuck(limit time.Duration, now time.Time) bool {
	at := p.StuckAt(limit)
	return !at.IsZero() && !now.Before(at)
}

// differ reports whether two fingerprints show a change.
func differ(last, now string) bool {
	before, after := strings.Split(last, "."), strings.Split(now, ".")
	return slices.ContainsFunc([]int{0, 1}, func(i int) bool {
		return i < len(before) && i < len(after) && before[i] != "" && after[i] != "" && before[i] != after[i]
	})
}
