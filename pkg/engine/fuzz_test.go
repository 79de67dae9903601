// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// FuzzAnyRecordWithAnyTable passes random records and unrelated tables to the engine, lets saves fail and the clock
// jump. The engine never panics, never calls or loses a finished step, and comes to rest. It also checks the guarantees
// about every call (see world.check).
func FuzzAnyRecordWithAnyTable(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("any record with any table, and a few more bytes than it takes to have some of each"))
	f.Add([]byte{4, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33})
	f.Add([]byte{255, 254, 253, 252, 251, 250, 249, 248, 247, 246, 245, 244, 243, 242, 241, 240, 239, 238, 237, 236, 235, 234, 233, 232})
	f.Fuzz(func(t *testing.T, input []byte) {
		d := &dice{input}
		w := newWorld(t)
		book := d.table()
		if book.Validate() != nil {
			t.Skip("the table is not valid")
		}
		constraints := d.constraints()
		w.book, w.constraints = func() engine.Runbook { return book }, func() engine.Constraints { return constraints }
		w.store.put(d.record())
		for range 4 {
			before := withCurrentNames(book, w.store.load())
			summary := engine.Summarize(book, w.store.load(), w.clock.Now(), constraints)
			if _, err := engine.CurrentPhase(t.Context(), clock.RealClock{}, book, w.store.load()); err != nil && summary.Committed {
				t.Errorf("the record shows that it is committed: %v", err)
			}
			w.calls = nil
			fails := saveFault(d.roll(8))
			w.store.plan = only(w.store.saves+1+d.roll(3), min(fails, crashBefore))
			_, err := w.pass()
			w.restart()
			after := withCurrentNames(book, w.store.load())
			assertFinishedUnchanged(t, before, after)
			for _, c := range before.Conditions {
				if c.CompleteTime != nil && slices.Contains(w.calls, c.Type) {
					t.Errorf("%s is over and was called", c.Type)
				}
			}

			saves, next := w.store.saves, time.Time{}
			w.store.plan = func(int) saveFault { return serveSave }
			if err == nil { // nothing changes, so nothing is saved
				if next, err = w.pass(); err != nil || w.store.saves > saves {
					t.Errorf("nothing happened between two passes, and the second made %d saves, %v", w.store.saves-saves, err)
				}
			}
			switch {
			case !next.IsZero() && d.roll(2) == 0:
				w.advance(next)
			default:
				w.clock.SetTime(w.clock.Now().Add(d.duration()))
			}
		}
	})
}

// assertFinishedUnchanged checks that each finished step is still in the record, unchanged.
func assertFinishedUnchanged(t tester, before, after history.Record) {
	t.Helper()
	for _, c := range before.Conditions {
		if c.CompleteTime == nil {
			continue
		}
		same := func(other history.StepCondition) bool { return cmp.Equal(c, other) }
		if !slices.ContainsFunc(after.Conditions, same) {
			t.Errorf("a finished step was lost or changed: %+v is not in %q", c, lines(after))
		}
	}
}

// dice makes random choices from the bytes of the fuzzer. When the bytes are used up, it returns
// zeros.
type dice struct{ left []byte }

// roll returns a number from 0 to below-1.
func (d *dice) roll(below int) int {
	if len(d.left) == 0 {
		return 0
	}
	n := int(d.left[0])
	d.left = d.left[1:]
	return n % below
}

// pick returns one of the values; the first is the most likely.
func pick[T any](d *dice, these ...T) T { return these[d.roll(len(these))] }

func (d *dice) duration() time.Duration {
	return pick(d, 0, time.Second, -time.Second, time.Minute, -time.Minute, 5*time.Minute, time.Hour, -time.Hour, 48*time.Hour, -48*time.Hour, 1, -1)
}

func (d *dice) time() *metav1.Time {
	if d.roll(4) == 0 {
		return pick(d, nil, &metav1.Time{})
	}
	return &metav1.Time{Time: noon.Truncate(time.Second).Add(d.duration() * time.Duration(1+d.roll(50)))}
}

func (d *dice) result() engine.Result {
	return pick(d, engine.Done(""), engine.Done("so it is"), engine.Result{}, engine.Wait("NotYet", "a while"),
		engine.WaitFor(d.duration(), "NotYet", "a while"), engine.Skip("Ignored", ""), engine.Skip("", "left out"), engine.Fail("Broken", "it is broken"))
}

var pool = []string{"Alpha", "Beta", "Gamma", "Delta", "Epsilon", "Zeta", "Eta", "Theta"}

func (d *dice) constraints() engine.Constraints {
	c := engine.Constraints{Hold: pick(d, "", "", "paused"), Cancel: pick(d, "", "", "", "deleted")}
	if by := d.time(); by != nil {
		c.CommitBy = by.Time
	}
	return c
}

func (d *dice) table() engine.Runbook {
	book := engine.Runbook{MissedAs: pick(d, "", "Expired")}
	names := slices.Clone(pool)
	name := func() string { // an unused name
		i := d.roll(len(names))
		taken := names[i]
		names = slices.Delete(names, i, i+1)
		return taken
	}
	step := func() engine.Step {
		result, err := d.result(), pick(d, nil, nil, nil, errNoAnswer)
		so, unknown := d.roll(2) == 1, pick(d, nil, nil, nil, errStore)
		s := engine.Step{
			Name: name(), Doc: "It is made up.", FailAfter: max(0, d.duration().Truncate(time.Second)), SlowAfter: max(0, d.duration().Truncate(time.Second)),
			FailReason: pick(d, "", "NotYet", "CannotObserve"),
			Do:         func(context.Context, engine.Run) (engine.Result, error) { return result, err },
		}
		s.Reached = pick(d, func(context.Context) (bool, error) { return so, unknown }, nil)
		if len(names) > 4 && d.roll(3) == 0 {
			s.FormerNames = []string{name()}
		}
		return s
	}
	for range 1 + d.roll(4) {
		book.Steps = append(book.Steps, step())
	}
	commit := &book.Steps[d.roll(len(book.Steps))]
	if commit.Reached == nil {
		commit.Reached = always(false)
	}
	if commit.Commit = committing(commit.Reached); d.roll(8) == 7 {
		commit.Commit = nil
	}
	for _, steps := range []*[]engine.Step{&book.Cleanup, &book.Finally} {
		for range d.roll(3) {
			if len(names) > 0 {
				*steps = append(*steps, step())
			}
		}
	}
	return book
}

func (d *dice) record() history.Record {
	record := history.Record{Version: target, StartTime: d.time()}
	for range d.roll(10) {
		record.Conditions = append(record.Conditions, history.StepCondition{
			Type:      pick(d, append(slices.Clone(pool), "Stranger", "")...),
			Status:    pick(d, metav1.ConditionFalse, metav1.ConditionTrue, metav1.ConditionUnknown, "", "Maybe"),
			Reason:    pick(d, "NotYet", "Done", "Started", "", "CannotObserve"),
			Message:   pick(d, "", "a while", "so it is"),
			StartTime: d.time(), CompleteTime: pick(d, d.time(), nil), LastProbeTime: d.time(), LastTransitionTime: d.time(),
		})
	}
	return record
}
