// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
)

// noon is when every drain begins.
var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) time.Time { return noon.Add(d) }

// guestOf is a pod of that name on a node that is being drained.
func guestOf(name string, change ...func(*guest)) guest {
	g := guest{Pod: cluster.Pod{Namespace: "shop", Name: name}}
	for _, c := range change {
		c(&g)
	}
	return g
}

func guardedBy(names ...string) func(*guest) { return func(g *guest) { g.budgets = names } }

func goneBy(d time.Duration) func(*guest) { return func(g *guest) { g.GoneBy = at(d) } }

func kept(by ...string) func(*guest) { return func(g *guest) { g.Finalizers = by } }

func released(g *guest) { g.Released = true }

func isTied(g *guest) { g.Tied = true }

func isSpared(g *guest) { g.spared = true }

func TestWhatBecomesOfThePodsOnANode(t *testing.T) {
	t.Parallel()
	const (
		forPlain  = "it was there for longer than nodeDrain.timeOut after the drain had begun"
		forBudget = "it was held by PodDisruptionBudget shop/a for longer than PDBForceDrainTimeout"
		forSpared = "it is in a namespace that is never touched (nodeDrain.ignoreNamespaces)"
		forKept   = "it has ended and is kept by finalizers, which only their owners may remove: x/a, x/b"
		others    = 45 * time.Minute
		guarded   = 2 * time.Hour
		forEver   = -time.Hour
		noTime    = -1
	)
	// outcome is a plan as people would tell it.
	type outcome struct {
		Forced, Stuck []string
		Blocked       bool
		Next          time.Duration // from now on
	}
	cases := map[string]struct {
		after   time.Duration // since the drain began
		guarded time.Duration // 2 hours unless said otherwise
		guests  []guest
		want    outcome
	}{
		"an empty node": {after: others, want: outcome{Next: pace}},
		"a pod before its time": {
			after: others - 20*time.Second, guests: []guest{guestOf("1")}, want: outcome{Next: 20 * time.Second},
		},
		"a pod whose time has come": {
			after: others, guests: []guest{guestOf("1")},
			want: outcome{Forced: []string{"1: " + forPlain}, Blocked: true, Next: pace},
		},
		"a guarded pod when the time of others has come": {
			after: others, guests: []guest{guestOf("1", guardedBy("shop/a"))}, want: outcome{Next: pace},
		},
		"a guarded pod just before its time": {
			after: guarded - time.Second, guests: []guest{guestOf("1", guardedBy("shop/a"))}, want: outcome{Next: time.Second},
		},
		"a guarded pod whose time has come": {
			after: guarded, guests: []guest{guestOf("1", guardedBy("shop/a"))},
			want: outcome{Forced: []string{"1: " + forBudget}, Blocked: true, Next: pace},
		},
		"a pod that several budgets guard": {
			after: guarded, guests: []guest{guestOf("1", guardedBy("shop/e", "shop/a", "shop/c", "shop/b", "shop/d"))},
			want: outcome{Forced: []string{"1: it was held by PodDisruptionBudget shop/a, shop/b, shop/c and 2 more for longer than PDBForceDrainTimeout"}, Blocked: true, Next: pace},
		},
		"a guarded pod if its time is 0": {
			guarded: noTime, guests: []guest{guestOf("1"), guestOf("2", guardedBy("shop/a"))},
			want: outcome{Forced: []string{"2: " + forBudget}, Blocked: true, Next: pace},
		},
		"a guarded pod for which no time is set": {
			after: 1000 * time.Hour, guarded: forEver, guests: []guest{guestOf("1", guardedBy("shop/a"))}, want: outcome{Next: pace},
		},
		"a guarded pod that has less time than others": {
			after: time.Minute, guarded: time.Minute, guests: []guest{guestOf("1"), guestOf("2", guardedBy("shop/a"))},
			want: outcome{Forced: []string{"2: " + forBudget}, Blocked: true, Next: pace},
		},
		"a pod in its grace period": {
			after: others, guests: []guest{guestOf("1", goneBy(others+5*time.Second))},
			want: outcome{Blocked: true, Next: pace}, // a minute and five seconds is more than the pace
		},
		"a pod just after its grace period": {
			after: others, guests: []guest{guestOf("1", goneBy(others-margin+5*time.Second))}, want: outcome{Blocked: true, Next: 5 * time.Second},
		},
		"a pod in a grace period of a day": {
			after: others, guests: []guest{guestOf("1", goneBy(24*time.Hour))}, want: outcome{Blocked: true, Next: pace},
		},
		"a pod that does not end": {
			after: others, guests: []guest{guestOf("1", goneBy(others-margin))},
			want: outcome{Forced: []string{"1: its grace period was over at 2026-03-01T12:44:00Z, and it has not ended"}, Blocked: true, Next: pace},
		},
		"a pod that does not end, before the time of others": {
			after: others - 10*time.Second, guarded: noTime, guests: []guest{guestOf("1", goneBy(-time.Hour))}, want: outcome{Next: 10 * time.Second},
		},
		"a guarded pod that does not end: its budget has let it go": {
			after: others, guests: []guest{guestOf("1", guardedBy("shop/a"), goneBy(0))},
			want: outcome{Forced: []string{"1: its grace period was over at 2026-03-01T12:00:00Z, and it has not ended"}, Blocked: true, Next: pace},
		},
		"a pod that does not end and has finalizers, too": {
			after: others, guests: []guest{guestOf("1", goneBy(0), kept("x/b", "x/a"))},
			want: outcome{Forced: []string{"1: its grace period was over at 2026-03-01T12:00:00Z, and it has not ended"}, Blocked: true, Next: pace},
		},
		"a pod that has ended and has finalizers": {
			after: others, guests: []guest{guestOf("1", goneBy(0), kept("x/b", "x/a"), released)},
			want: outcome{Stuck: []string{"1: " + forKept}, Blocked: true, Next: pace},
		},
		"a pod with finalizers that was not deleted": {
			after: others, guests: []guest{guestOf("1", kept("x/b"))},
			want: outcome{Forced: []string{"1: " + forPlain}, Blocked: true, Next: pace},
		},
		"pods that come and go with the node": {
			after: 1000 * time.Hour, guests: []guest{guestOf("1", isTied), guestOf("2", isTied, guardedBy("shop/a")), guestOf("3", isTied, goneBy(0))},
			want: outcome{Next: pace},
		},
		"pods of the platform before their time": {
			after: others - 20*time.Second, guests: []guest{guestOf("1", isSpared)}, want: outcome{Next: 20 * time.Second},
		},
		"pods of the platform after their time": {
			after: guarded, guests: []guest{guestOf("1", isSpared), guestOf("2", isSpared, guardedBy("shop/a")), guestOf("3", isSpared, goneBy(0))},
			want: outcome{Stuck: []string{"1: " + forSpared, "2: " + forSpared, "3: " + forSpared}, Blocked: true, Next: pace},
		},
		"a pod of the platform in its grace period": {
			after: others, guests: []guest{guestOf("1", isSpared, goneBy(others))}, want: outcome{Blocked: true, Next: pace},
		},
		"who is ending comes last, who is guarded before them": {
			after: guarded, guests: []guest{guestOf("1", goneBy(0)), guestOf("2", guardedBy("shop/a")), guestOf("3"), guestOf("4", guardedBy("shop/a")), guestOf("5")},
			want: outcome{Forced: []string{
				"3: " + forPlain, "5: " + forPlain, "2: " + forBudget, "4: " + forBudget, "1: its grace period was over at 2026-03-01T12:00:00Z, and it has not ended",
			}, Blocked: true, Next: pace},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := deadlines{others: at(others), guarded: at(guarded)}
			switch {
			case tc.guarded == forEver:
				d.guarded = time.Time{}
			case tc.guarded == noTime:
				d.guarded = noon
			case tc.guarded > 0:
				d.guarded = at(tc.guarded)
			}
			p := decide(at(tc.after), d, tc.guests)
			got := outcome{Blocked: p.blocked, Next: p.next.Sub(at(tc.after))}
			for _, t := range p.force {
				got.Forced = append(got.Forced, t.Name+": "+t.why)
			}
			for _, t := range p.stuck {
				got.Stuck = append(got.Stuck, t.Name+": "+t.why)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("plan (-want +got):\n%s", diff)
			}
		})
	}
}

func TestWhenAPodMayHaveHadItsTime(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		d    deadlines
		want time.Time
	}{
		"the one of others":          {deadlines{others: at(1), guarded: at(2)}, at(1)},
		"the one of guarded pods":    {deadlines{others: at(2), guarded: at(1)}, at(1)},
		"guarded pods have for ever": {deadlines{others: at(2)}, at(2)},
	} {
		if got := tc.d.first(); !got.Equal(tc.want) {
			t.Errorf("%s: got %s", name, got)
		}
	}
}
