// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// driver runs a history of any kind: it lets time pass between actions, makes requests fail, and
// starts and ends the lives of the program.
type driver struct {
	random  *rand.Rand
	world   *simulation.World
	people  client.Client // client of the acting users
	program *simulation.Program
	leaders []*simulation.Process
	report  *Report

	faultRate  float64 // share of requests that fail in some way
	faultUntil time.Time
	trigger    *trigger
	calm       bool // there are no more failures

	interleavedUntil time.Time // end of the interleaving of two leaders' requests
	up               time.Time // when a process was last started because none was running
	downUntil        time.Time // end of the outage

	clockStepped bool
	disturbed    time.Time // end of failing requests and lagging caches
}

// trigger is an action that happens right before a request of the program.
type trigger struct {
	write int // number of writes until then
	do    func()
}

func newDriver(seed uint64, report *Report) *driver {
	return &driver{random: rand.New(rand.NewPCG(seed, 1)), report: report} //nolint:gosec // a history, not a secret
}

// action is an action in a history.
type action[H any] struct {
	name   string
	weight int
	do     func(H)
}

// play runs the actions of a history: the first action, followed by random ones. It reports whether
// the history continues.
func play[H any](d *driver, history H, first string, do func(), all []action[H]) bool {
	d.report.Actions = minActions + d.random.IntN(maxActions-minActions+1)
	d.act(first, do)
	for range d.report.Actions - 1 {
		if !d.wait(d.pause()) {
			return false
		}
		a := choose(d, all)
		d.act(a.name, func() { a.do(history) })
	}
	return d.wait(d.pause())
}

// choose returns a random action according to the weights.
func choose[H any](d *driver, all []action[H]) action[H] {
	sum := 0
	for _, a := range all {
		sum += a.weight
	}
	n := d.random.IntN(sum)
	for _, a := range all {
		if n -= a.weight; n < 0 {
			return a
		}
	}
	return all[0]
}

func (h *driver) act(name string, do func()) {
	h.world.Logf("action: %s", name)
	do()
}

// pause returns the time until the next action: often seconds, sometimes most of an hour.
func (h *driver) pause() time.Duration {
	switch h.random.IntN(10) {
	case 0, 1:
		return h.upTo(2 * time.Second)
	case 2, 3, 4:
		return h.upTo(time.Minute)
	case 5, 6, 7, 8:
		return h.upTo(6 * time.Minute)
	default:
		return h.upTo(40 * time.Minute)
	}
}

// wait lets time pass and reports whether the history continues.
func (h *driver) wait(d time.Duration) bool {
	if err := h.world.RunFor(d); err != nil {
		h.violate("run: %v", err)
	}
	return len(h.report.Violations) == 0
}

func (h *driver) violate(format string, args ...any) {
	text := h.world.Now().UTC().Format(time.TimeOnly) + " " + fmt.Sprintf(format, args...)
	h.world.Logf("VIOLATION: %s", text)
	h.report.Violations = append(h.report.Violations, text)
}

// upTo returns a random duration of up to d.
func (h *driver) upTo(d time.Duration) time.Duration {
	return time.Duration(h.random.Int64N(int64(d))).Truncate(time.Millisecond)
}

func (h *driver) startLeader() error {
	process, err := h.world.Start(h.program)
	if err == nil {
		h.leaders = append(h.leaders, process)
	}
	return err
}

func (h *driver) restartAfter(d time.Duration) {
	h.world.After(d, func() {
		if h.leader() != nil || h.world.Now().Before(h.downUntil) {
			return
		}
		h.up = h.world.Now()
		if err := h.startLeader(); err != nil {
			h.violate("restart: %v", err)
		}
	})
}

// leader returns the newest running process, or nil.
func (h *driver) leader() *simulation.Process {
	for _, leader := range slices.Backward(h.leaders) {
		if leader.Alive() {
			return leader
		}
	}
	return nil
}

// edit changes an object as a user would. The API server may reject the change.
func edit[T client.Object](h *driver, object T, key client.ObjectKey, change func(T)) {
	ctx := context.Background()
	if err := h.people.Get(ctx, key, object); err != nil {
		return
	}
	change(object)
	if err := h.people.Update(ctx, object); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line[:min(len(line), 200)]
}

func (h *driver) kill() { h.outage(0, 2*time.Minute) }

// outage kills all processes and starts one after a random time between least and least plus more.
// It never shortens an ongoing outage.
func (h *driver) outage(least, more time.Duration) {
	for _, leader := range h.leaders {
		leader.Kill()
	}
	down := least + h.upTo(more)
	if least > 0 {
		h.downUntil = h.world.Now().Add(down)
		h.disturbedUntil(h.downUntil)
	}
	h.restartAfter(down)
}

// twoLeaders starts a second process. The first one keeps running for a while.
func (h *driver) twoLeaders() {
	first := h.leader()
	if first == nil {
		return
	}
	if err := h.startLeader(); err != nil {
		h.violate("second leader: %v", err)
		return
	}
	h.world.After(h.upTo(5*time.Minute), func() {
		first.Kill()
		h.restartAfter(0)
	})
}

func (h *driver) stepClock() {
	leader := h.leader()
	if leader == nil {
		return
	}
	d := []time.Duration{time.Second, time.Minute, 25 * time.Minute, 24 * time.Hour}[h.random.IntN(4)]
	if h.random.IntN(2) == 0 {
		d = -d
	}
	h.clockStepped = true
	leader.Clock().Step(d)
	h.world.After(h.upTo(10*time.Minute), func() { leader.Clock().Step(-d) })
}

func (h *driver) failRequests() {
	h.faultRate = []float64{0.02, 0.1, 0.3, 0.9}[h.random.IntN(4)]
	h.faultUntil = h.world.Now().Add(h.upTo(6 * time.Minute))
	h.disturbedUntil(h.faultUntil.Add(2 * time.Minute))
}

// lag keeps changes of one of the kinds from the caches of the newest process for a while.
func (h *driver) lag(kinds ...string) {
	leader := h.leader()
	if leader == nil {
		return
	}
	d := h.upTo(3 * time.Minute)
	leader.Lag(kinds[h.random.IntN(len(kinds))], d)
	h.disturbedUntil(h.world.Now().Add(d))
}

func (h *driver) disturbedUntil(t time.Time) {
	if t.After(h.disturbed) {
		h.disturbed = t
	}
}

func (h *driver) alive() []*simulation.Process {
	var alive []*simulation.Process
	for _, p := range h.leaders {
		if p.Alive() {
			alive = append(alive, p)
		}
	}
	return alive
}

// maxStall is the maximum delay of a request in a suspended reconcile.
const maxStall = 2 * time.Minute

// interleave makes the requests of two leaders interleave for a while: a reconcile may be suspended
// at each request, and the other process continues.
func (h *driver) interleave(d time.Duration) {
	h.interleavedUntil = h.world.Now().Add(d)
	h.disturbedUntil(h.interleavedUntil)
}

// schedule randomly decides whether and for how long a reconcile is suspended at a request: usually
// just long enough for some requests of the other leader, sometimes for minutes. Requests for a
// release are suspended more often, because both leaders make them.
func (h *driver) schedule(r simulation.Request) simulation.Fault {
	if h.calm || h.world.Now().After(h.interleavedUntil) || r.Cached || len(h.alive()) < 2 {
		return simulation.Fault{}
	}
	contested := r.IsWrite() && (r.Kind == "ClusterVersion" || r.Kind == "ManifestWork")
	if goesOn := h.random.IntN(3); goesOn == 2 || goesOn == 1 && !contested {
		return simulation.Fault{}
	}
	h.report.Interleaved = true
	if h.random.IntN(10) == 0 {
		return simulation.Fault{Outcome: simulation.Stall, For: h.upTo(maxStall)}
	}
	return simulation.Fault{Outcome: simulation.Stall, For: h.upTo(4 * time.Second)}
}

// fault randomly decides whether and how a request of the program fails, or which of the kinds'
// caches starts to lag.
func (h *driver) fault(r simulation.Request, kinds []string) simulation.Fault {
	if suspended := h.schedule(r); suspended.Outcome != simulation.Serve {
		return suspended
	}
	if h.calm || h.faultRate == 0 || h.world.Now().After(h.faultUntil) || h.random.Float64() >= h.faultRate {
		return simulation.Fault{}
	}
	if !r.IsWrite() {
		if r.Cached { // caches never fail
			return simulation.Fault{}
		}
		return simulation.Fault{Outcome: simulation.Refuse, Err: apierrors.NewServiceUnavailable("simulated")}
	}
	switch h.random.IntN(8) {
	case 0, 1:
		return simulation.Fault{Outcome: simulation.Refuse}
	case 2:
		return simulation.Fault{Outcome: simulation.Conflict}
	case 3:
		return simulation.Fault{Outcome: simulation.LoseAnswer}
	case 4:
		return simulation.Fault{Outcome: simulation.CrashBefore}
	case 5:
		return simulation.Fault{Outcome: simulation.CrashAfter}
	case 6:
		return simulation.Fault{Outcome: simulation.Stall, For: h.upTo(20 * time.Second)}
	default:
		return simulation.Fault{Lag: []string{kinds[h.random.IntN(len(kinds))]}, LagFor: h.upTo(2 * time.Minute)}
	}
}

// pull runs the action that waits for this write.
func (h *driver) pull(r simulation.Request) {
	if !r.IsWrite() || h.trigger == nil {
		return
	}
	if h.trigger.write--; h.trigger.write <= 0 {
		do := h.trigger.do
		h.trigger = nil
		do()
	}
}

// settle waits until nothing is left to do and checks that this remains true. unrest describes what
// is left, or returns an empty string. It is asked only once a process has reacted to everything.
func (h *driver) settle(limit time.Duration, unrest func() string) {
	err := h.world.RunUntil(limit, func() bool {
		return len(h.report.Violations) > 0 || h.leader() != nil && h.world.Quiet() && unrest() == ""
	})
	if len(h.report.Violations) > 0 {
		return
	}
	if err != nil {
		h.violate("rest: %v: %s", err, unrest())
		return
	}
	if h.wait(10 * time.Minute) {
		if left := unrest(); left != "" {
			h.violate("rest: %s", left)
		}
	}
}

// firstOf returns the first n actions, or all actions if n is 0.
func firstOf[H any](all []action[H], n int) []action[H] {
	if n == 0 {
		return all
	}
	return all[:n]
}
