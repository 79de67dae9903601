// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// noon is the start time of every drain.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

// drainedPod returns a pod of that name on a draining node.
func drainedPod(name string, change ...func(*clusterstate.DrainedPod)) clusterstate.DrainedPod {
	pod := clusterstate.DrainedPod{Pod: clusterstate.Pod{Namespace: "shop", Name: name}, NodeReady: true}
	for _, c := range change {
		c(&pod)
	}
	return pod
}

func withPDBs(names ...string) func(*clusterstate.DrainedPod) {
	return func(pod *clusterstate.DrainedPod) { pod.PDBs = names }
}

func withTerminationDeadline(d time.Duration) func(*clusterstate.DrainedPod) {
	return func(pod *clusterstate.DrainedPod) { pod.TerminationDeadline = at(d) }
}

func withFinalizers(by ...string) func(*clusterstate.DrainedPod) {
	return func(pod *clusterstate.DrainedPod) { pod.Finalizers = by }
}

func refusedEviction(pod *clusterstate.DrainedPod) { pod.Refused, pod.Refusal = true, "it migrates" }

func keptByFinalizers(pod *clusterstate.DrainedPod) { pod.KeptByFinalizers = true }

func inIgnoredNamespace(pod *clusterstate.DrainedPod) { pod.IgnoredNamespace = true }

func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		unprotected      = "it was still there nodeDrain.timeOut after the drain had started"
		heldByPDB        = "it was held by PodDisruptionBudget shop/a for longer than spec.timeout"
		namespaceIgnored = "it is in a namespace whose pods are never forced (nodeDrain.ignoreNamespaces)"
		keptByFinalizer  = "it has ended and is kept by finalizers, which only their owners may remove: x/a, x/b"
		timeout          = 45 * time.Minute
		pdbTimeout       = 2 * time.Hour
		unlimited        = -time.Hour
		immediate        = -1
	)
	// outcome is a plan in a comparable form.
	type outcome struct {
		Forced, CannotForce []string
		Evicted             []string // evicted again
		Overdue             bool
		Next                time.Duration // from now
	}
	cases := map[string]struct {
		after    time.Duration // since the start of the drain
		pdb      time.Duration // the PDB timeout; 0 sets 2 hours
		pods     []clusterstate.DrainedPod
		notReady bool // the node
		want     outcome
	}{
		"empty node": {after: timeout, want: outcome{Next: recheckInterval}},
		"unprotected pod before its deadline": {
			after: timeout - 20*time.Second, pods: []clusterstate.DrainedPod{drainedPod("1")}, want: outcome{Next: 20 * time.Second},
		},
		"unprotected pod at its deadline": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1")},
			want: outcome{Forced: []string{"1: " + unprotected}, Overdue: true, Next: recheckInterval},
		},
		"protected pod at the deadline of unprotected ones": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", withPDBs("shop/a"))}, want: outcome{Next: recheckInterval},
		},
		"protected pod before its deadline": {
			after: pdbTimeout - time.Second, pods: []clusterstate.DrainedPod{drainedPod("1", withPDBs("shop/a"))}, want: outcome{Next: time.Second},
		},
		"protected pod at its deadline": {
			after: pdbTimeout, pods: []clusterstate.DrainedPod{drainedPod("1", withPDBs("shop/a"))},
			want: outcome{Forced: []string{"1: " + heldByPDB}, Overdue: true, Next: recheckInterval},
		},
		"pod with several budgets": {
			after: pdbTimeout, pods: []clusterstate.DrainedPod{drainedPod("1", withPDBs("shop/e", "shop/a", "shop/c", "shop/b", "shop/d"))},
			want: outcome{Forced: []string{"1: it was held by PodDisruptionBudget shop/a, shop/b, shop/c and 2 more for longer than spec.timeout"}, Overdue: true, Next: recheckInterval},
		},
		"protected pod without a timeout": {
			pdb: immediate, pods: []clusterstate.DrainedPod{drainedPod("1"), drainedPod("2", withPDBs("shop/a"))},
			want: outcome{Forced: []string{"2: " + heldByPDB}, Overdue: true, Next: recheckInterval},
		},
		"protected pod with an unlimited timeout": {
			after: 1000 * time.Hour, pdb: unlimited, pods: []clusterstate.DrainedPod{drainedPod("1", withPDBs("shop/a"))}, want: outcome{Next: recheckInterval},
		},
		"protected pod with the shorter timeout": {
			after: time.Minute, pdb: time.Minute, pods: []clusterstate.DrainedPod{drainedPod("1"), drainedPod("2", withPDBs("shop/a"))},
			want: outcome{Forced: []string{"2: " + heldByPDB}, Overdue: true, Next: recheckInterval},
		},
		"terminating pod in its grace period": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", withTerminationDeadline(timeout+5*time.Second))},
			want: outcome{Overdue: true, Next: recheckInterval}, // a minute and five seconds exceeds the interval
		},
		"terminating pod just after its grace period": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", withTerminationDeadline(timeout-clusterstate.TerminationSlack+5*time.Second))}, want: outcome{Overdue: true, Next: 5 * time.Second},
		},
		"terminating pod with a grace period of a day": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", withTerminationDeadline(24*time.Hour))}, want: outcome{Overdue: true, Next: recheckInterval},
		},
		"hung pod": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", withTerminationDeadline(timeout-clusterstate.TerminationSlack))},
			want: outcome{Forced: []string{"1: it has not terminated, although its grace period ended at 2026-03-01T12:44:00Z"}, Overdue: true, Next: recheckInterval},
		},
		"hung pod, node not ready": {
			after: timeout, notReady: true, pods: []clusterstate.DrainedPod{drainedPod("1", withTerminationDeadline(timeout-clusterstate.TerminationSlack)), drainedPod("2")},
			want: outcome{Forced: []string{"2: " + unprotected}, CannotForce: []string{"1: " + clusterstate.NodeNotReady}, Overdue: true, Next: recheckInterval},
		},
		"hung pod before the deadline of unprotected ones": {
			after: timeout - 10*time.Second, pdb: immediate, pods: []clusterstate.DrainedPod{drainedPod("1", withTerminationDeadline(-time.Hour))}, want: outcome{Next: 10 * time.Second},
		},
		"hung pod that a budget selects": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", withPDBs("shop/a"), withTerminationDeadline(0))},
			want: outcome{Forced: []string{"1: it has not terminated, although its grace period ended at 2026-03-01T12:00:00Z"}, Overdue: true, Next: recheckInterval},
		},
		"hung pod with finalizers": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", withTerminationDeadline(0), withFinalizers("x/b", "x/a"))},
			want: outcome{Forced: []string{"1: it has not terminated, although its grace period ended at 2026-03-01T12:00:00Z"}, Overdue: true, Next: recheckInterval},
		},
		"ended pod with finalizers": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", withTerminationDeadline(0), withFinalizers("x/b", "x/a"), keptByFinalizers)},
			want: outcome{CannotForce: []string{"1: " + keptByFinalizer}, Overdue: true, Next: recheckInterval},
		},
		"running pod with finalizers": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", withFinalizers("x/b"))},
			want: outcome{Forced: []string{"1: " + unprotected}, Overdue: true, Next: recheckInterval},
		},
		"pod in an ignored namespace before its deadline": {
			after: timeout - 20*time.Second, pods: []clusterstate.DrainedPod{drainedPod("1", inIgnoredNamespace)}, want: outcome{Next: 20 * time.Second},
		},
		"pods in an ignored namespace after their deadlines": {
			after: pdbTimeout, pods: []clusterstate.DrainedPod{drainedPod("1", inIgnoredNamespace), drainedPod("2", inIgnoredNamespace, withPDBs("shop/a")), drainedPod("3", inIgnoredNamespace, withTerminationDeadline(0))},
			want: outcome{CannotForce: []string{"1: " + namespaceIgnored, "2: " + namespaceIgnored, "3: " + namespaceIgnored}, Overdue: true, Next: recheckInterval},
		},
		"terminating pod in an ignored namespace": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", inIgnoredNamespace, withTerminationDeadline(timeout))}, want: outcome{Overdue: true, Next: recheckInterval},
		},
		"refused pod before the deadline of guarded ones": {
			after: pdbTimeout - time.Second, pods: []clusterstate.DrainedPod{drainedPod("1", refusedEviction)},
			want: outcome{Evicted: []string{"1"}, Next: time.Second},
		},
		"refused pod at the deadline of guarded ones": {
			after: pdbTimeout, pods: []clusterstate.DrainedPod{drainedPod("1", refusedEviction)},
			want: outcome{Forced: []string{"1: its eviction was refused for longer than spec.timeout: it migrates"}, Overdue: true, Next: recheckInterval},
		},
		"refused pod with an unlimited timeout": {
			after: 1000 * time.Hour, pdb: unlimited, pods: []clusterstate.DrainedPod{drainedPod("1", refusedEviction)},
			want: outcome{Evicted: []string{"1"}, Next: recheckInterval},
		},
		"refused pod that a budget selects": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", refusedEviction, withPDBs("shop/a"))}, want: outcome{Next: recheckInterval},
		},
		"refused pod in an ignored namespace": {
			after: timeout, pods: []clusterstate.DrainedPod{drainedPod("1", refusedEviction, inIgnoredNamespace)}, want: outcome{Next: recheckInterval},
		},
		"order: unprotected, protected, terminating": {
			after: pdbTimeout, pods: []clusterstate.DrainedPod{drainedPod("1", withTerminationDeadline(0)), drainedPod("2", withPDBs("shop/a")), drainedPod("3"), drainedPod("4", withPDBs("shop/a")), drainedPod("5")},
			want: outcome{Forced: []string{
				"3: " + unprotected, "5: " + unprotected, "2: " + heldByPDB, "4: " + heldByPDB, "1: it has not terminated, although its grace period ended at 2026-03-01T12:00:00Z",
			}, Overdue: true, Next: recheckInterval},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := clusterstate.DrainDeadlines{Unprotected: at(timeout), PDB: at(pdbTimeout)}
			switch {
			case tc.pdb == unlimited:
				d.PDB = time.Time{}
			case tc.pdb == immediate:
				d.PDB = noon
			case tc.pdb > 0:
				d.PDB = at(tc.pdb)
			}
			for i := range tc.pods {
				tc.pods[i].NodeReady = !tc.notReady
			}
			p := decide(at(tc.after), d, "spec.timeout", tc.pods)
			got := outcome{Overdue: p.overdue, Next: p.next.Sub(at(tc.after))}
			for _, t := range p.toForce {
				got.Forced = append(got.Forced, t.Name+": "+t.reason)
			}
			for _, t := range p.toEvict {
				got.Evicted = append(got.Evicted, t.Name)
			}
			for _, t := range p.cannotForce {
				got.CannotForce = append(got.CannotForce, t.Name+": "+t.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
