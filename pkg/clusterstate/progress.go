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

// Awaited collects reports about the objects that an update waits for: operators that do not run the release
// or nodes that lack the configuration. Completed nodes are not included.
type Awaited struct {
	phases, pods []string
	times        []time.Time // when the objects changed according to their reports
}

// AwaitedOperators returns the reports of the operators that are not updated and of the cluster version
// operator's progress.
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

// AddPool adds the number of completed machines of a pool, its other nodes, and the pods left on draining
// nodes. There are none if pods were not read.
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

// AddBuild adds an OS image build.
func (a *Awaited) AddBuild(build ImageBuild) {
	a.phases, a.times = append(a.phases, build.Name, build.Phase), append(a.times, build.Start)
}

// fingerprint identifies the collected reports. It is empty if there are none. It has two parts. The second
// one covers pods and is empty if they were not read.
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

// Progress tracks the progress of a running update. The steps of upgrades and the assessment both rely on it
// to decide whether the update makes progress.
type Progress struct {
	// Fingerprint identifies the last reports about what the update waits for. It is empty if nothing has
	// been recorded.
	Fingerprint string
	// Changed is when the reports last changed, or zero if this is unknown.
	Changed time.Time
}

// Observe returns the progress after another observation. Data that is missing now or was missing before does
// not count as a change.
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

// StuckAt returns when nothing will have changed for the duration of the limit, or zero if this is unknown.
func (p Progress) StuckAt(limit time.Duration) time.Time {
	if p.Changed.IsZero() {
		return time.Time{}
	}
	return p.Changed.Add(limit)
}

// IsStuck reports whether nothing has changed for the duration of the limit.
func (p Progress) IsStuck(limit time.Duration, now time.Time) bool {
	at := p.StuckAt(limit)
	return !at.IsZero() && !now.Before(at)
}

// differ reports whether two fingerprints indicate a change.
func differ(last, now string) bool {
	before, after := strings.Split(last, "."), strings.Split(now, ".")
	return slices.ContainsFunc([]int{0, 1}, func(i int) bool {
		return i < len(before) && i < len(after) && before[i] != "" && after[i] != "" && before[i] != after[i]
	})
}
