// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// noon is when every drain starts.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

// drainedPod returns a pod of that name on a draining node.
func drainedPod(name string, change ...func(*checks.DrainedPod)) checks.DrainedPod {
	pod := checks.DrainedPod{Pod: clusterstate.Pod{Namespace: "shop", Name: name}, NodeReady: true}
	for _, c := range change {
		c(&pod)
	}
	return pod
}

func withPDBs(names ...string) func(*checks.DrainedPod) {
	return func(pod *checks.DrainedPod) { pod.PDBs = names }
}

func withTerminationDeadline(d time.Duration) func(*checks.DrainedPod) {
	return func(pod *checks.DrainedPod) { pod.TerminationDeadline = at(d) }
}

func withFinalizers(by ...string) func(*checks.DrainedPod) {
	return func(pod *checks.DrainedPod) { pod.Finalizers = by }
}

func keptByFinalizers(pod *checks.DrainedPod) { pod.KeptByFinalizers = true }

func inIgnoredNamespace(pod *checks.DrainedPod) { pod.IgnoredNamespace = true }

func TestDecide(t *testing.T) {
	t.Parallel()
	const (
		forPlain  = "it was still there nodeDrain.timeOut after the drain had begun"
		forBudget = "it was held by PodDisruptionBudget shop/a for longer than PDBForceDrainTimeout"
		forSpared = "it is in a namespace whose pods are never forced (nodeDrain.ignoreNamespaces)"
		forKept   = "it has ended and is kept by finalizers, which only their owners may remove: x/a, x/b"
		others    = 45 * time.Minute
		guarded   = 2 * time.Hour
		forEver   = -time.Hour
		noTime    = -1
	)
	// outcome is a plan in a comparable form.
	type outcome struct {
		Forced, Stuck []string
		Blocked       bool
		Next          time.Duration // from now on
	}
	cases := map[string]struct {
		after    time.Duration // since the start of the drain
		guarded  time.Duration // 0 means 2 hours
		guests   []checks.DrainedPod
		notReady bool // the node
		want     outcome
	}{
		"an empty node": {after: others, want: outcome{Next: recheckInterval}},
		"a pod before its time": {
			after: others - 20*time.Second, guests: []checks.DrainedPod{drainedPod("1")}, want: outcome{Next: 20 * time.Second},
		},
		"a pod whose time has come": {
			after: others, guests: []checks.DrainedPod{drainedPod("1")},
			want: outcome{Forced: []string{"1: " + forPlain}, Blocked: true, Next: recheckInterval},
		},
		"a guarded pod when the time of others has come": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", withPDBs("shop/a"))}, want: outcome{Next: recheckInterval},
		},
		"a guarded pod just before its time": {
			after: guarded - time.Second, guests: []checks.DrainedPod{drainedPod("1", withPDBs("shop/a"))}, want: outcome{Next: time.Second},
		},
		"a guarded pod whose time has come": {
			after: guarded, guests: []checks.DrainedPod{drainedPod("1", withPDBs("shop/a"))},
			want: outcome{Forced: []string{"1: " + forBudget}, Blocked: true, Next: recheckInterval},
		},
		"a pod that several budgets guard": {
			after: guarded, guests: []checks.DrainedPod{drainedPod("1", withPDBs("shop/e", "shop/a", "shop/c", "shop/b", "shop/d"))},
			want: outcome{Forced: []string{"1: it was held by PodDisruptionBudget shop/a, shop/b, shop/c and 2 more for longer than PDBForceDrainTimeout"}, Blocked: true, Next: recheckInterval},
		},
		"a guarded pod if its time is 0": {
			guarded: noTime, guests: []checks.DrainedPod{drainedPod("1"), drainedPod("2", withPDBs("shop/a"))},
			want: outcome{Forced: []string{"2: " + forBudget}, Blocked: true, Next: recheckInterval},
		},
		"a guarded pod for which no time is set": {
			after: 1000 * time.Hour, guarded: forEver, guests: []checks.DrainedPod{drainedPod("1", withPDBs("shop/a"))}, want: outcome{Next: recheckInterval},
		},
		"a guarded pod that has less time than others": {
			after: time.Minute, guarded: time.Minute, guests: []checks.DrainedPod{drainedPod("1"), drainedPod("2", withPDBs("shop/a"))},
			want: outcome{Forced: []string{"2: " + forBudget}, Blocked: true, Next: recheckInterval},
		},
		"a pod in its grace period": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", withTerminationDeadline(others+5*time.Second))},
			want: outcome{Blocked: true, Next: recheckInterval}, // a minute and five seconds exceeds the interval
		},
		"a pod just after its grace period": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", withTerminationDeadline(others-checks.TerminationSlack+5*time.Second))}, want: outcome{Blocked: true, Next: 5 * time.Second},
		},
		"a pod in a grace period of a day": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", withTerminationDeadline(24*time.Hour))}, want: outcome{Blocked: true, Next: recheckInterval},
		},
		"a pod that does not end": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", withTerminationDeadline(others-checks.TerminationSlack))},
			want: outcome{Forced: []string{"1: its grace period ended at 2026-03-01T12:44:00Z, and it has not terminated"}, Blocked: true, Next: recheckInterval},
		},
		"a pod that does not end on a node that is not ready": {
			after: others, notReady: true, guests: []checks.DrainedPod{drainedPod("1", withTerminationDeadline(others-checks.TerminationSlack)), drainedPod("2")},
			want: outcome{Forced: []string{"2: " + forPlain}, Stuck: []string{"1: " + checks.NodeNotReady}, Blocked: true, Next: recheckInterval},
		},
		"a pod that does not end, before the time of others": {
			after: others - 10*time.Second, guarded: noTime, guests: []checks.DrainedPod{drainedPod("1", withTerminationDeadline(-time.Hour))}, want: outcome{Next: 10 * time.Second},
		},
		"a guarded pod that does not end: its budget has let it go": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", withPDBs("shop/a"), withTerminationDeadline(0))},
			want: outcome{Forced: []string{"1: its grace period ended at 2026-03-01T12:00:00Z, and it has not terminated"}, Blocked: true, Next: recheckInterval},
		},
		"a pod that does not end and has finalizers, too": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", withTerminationDeadline(0), withFinalizers("x/b", "x/a"))},
			want: outcome{Forced: []string{"1: its grace period ended at 2026-03-01T12:00:00Z, and it has not terminated"}, Blocked: true, Next: recheckInterval},
		},
		"a pod that has ended and has finalizers": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", withTerminationDeadline(0), withFinalizers("x/b", "x/a"), keptByFinalizers)},
			want: outcome{Stuck: []string{"1: " + forKept}, Blocked: true, Next: recheckInterval},
		},
		"a pod with finalizers that was not deleted": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", withFinalizers("x/b"))},
			want: outcome{Forced: []string{"1: " + forPlain}, Blocked: true, Next: recheckInterval},
		},
		"pods of the platform before their time": {
			after: others - 20*time.Second, guests: []checks.DrainedPod{drainedPod("1", inIgnoredNamespace)}, want: outcome{Next: 20 * time.Second},
		},
		"pods of the platform after their time": {
			after: guarded, guests: []checks.DrainedPod{drainedPod("1", inIgnoredNamespace), drainedPod("2", inIgnoredNamespace, withPDBs("shop/a")), drainedPod("3", inIgnoredNamespace, withTerminationDeadline(0))},
			want: outcome{Stuck: []string{"1: " + forSpared, "2: " + forSpared, "3: " + forSpared}, Blocked: true, Next: recheckInterval},
		},
		"a pod of the platform in its grace period": {
			after: others, guests: []checks.DrainedPod{drainedPod("1", inIgnoredNamespace, withTerminationDeadline(others))}, want: outcome{Blocked: true, Next: recheckInterval},
		},
		"who is ending comes last, who is guarded before them": {
			after: guarded, guests: []checks.DrainedPod{drainedPod("1", withTerminationDeadline(0)), drainedPod("2", withPDBs("shop/a")), drainedPod("3"), drainedPod("4", withPDBs("shop/a")), drainedPod("5")},
			want: outcome{Forced: []string{
				"3: " + forPlain, "5: " + forPlain, "2: " + forBudget, "4: " + forBudget, "1: its grace period ended at 2026-03-01T12:00:00Z, and it has not terminated",
			}, Blocked: true, Next: recheckInterval},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := checks.DrainDeadlines{Unprotected: at(others), PDB: at(guarded)}
			switch {
			case tc.guarded == forEver:
				d.PDB = time.Time{}
			case tc.guarded == noTime:
				d.PDB = noon
			case tc.guarded > 0:
				d.PDB = at(tc.guarded)
			}
			for i := range tc.guests {
				tc.guests[i].NodeReady = !tc.notReady
			}
			p := decide(at(tc.after), d, tc.guests)
			got := outcome{Blocked: p.overdue, Next: p.next.Sub(at(tc.after))}
			for _, t := range p.toForce {
				got.Forced = append(got.Forced, t.Name+": "+t.reason)
			}
			for _, t := range p.cannotForce {
				got.Stuck = append(got.Stuck, t.Name+": "+t.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}
