// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// twenty returns a table of 20 steps and 5 cleanup steps. All steps are done at once, except the last of the
// 20, whose answer is last.
func twenty(last engine.Result) engine.Runbook {
	answers := func(result engine.Result) engine.UpgradeStep {
		return func(context.Context, engine.Run) (engine.Result, error) { return result, nil }
	}
	no := func(context.Context) (bool, error) { return false, nil }
	book := engine.Runbook{}
	for i := range 20 {
		book.Steps = append(book.Steps, engine.Step{
			Name: fmt.Sprintf("Step%02d", i), FormerNames: []string{fmt.Sprintf("OldStep%02d", i)}, Doc: "A step.",
			Do: answers(engine.Done("done")), Reached: no,
			SlowAfter: time.Hour, FailAfter: 24 * time.Hour,
		})
	}
	book.Steps[9].Commit = committing(no)
	book.Steps[19].Do = answers(last)
	for i := range 5 {
		book.Cleanup = append(book.Cleanup, engine.Step{Name: fmt.Sprintf("Cleanup%02d", i), Doc: "A step.", Do: answers(engine.Done(""))})
	}
	return book
}

// measure runs the benchmark of an operation, and fails if the operation exceeds the limits of allocations and
// of processor time.
func measure(b *testing.B, maxAllocations float64, maxTime time.Duration, operation func()) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		operation()
	}
	allocations := testing.AllocsPerRun(100, operation)
	fastest := simulation.FastestPass(b, int(100*time.Millisecond/maxTime), operation)
	b.ReportMetric(float64(fastest.Nanoseconds())/1000, "best-µs")
	if allocations > maxAllocations || fastest > maxTime {
		b.Errorf("%v allocations and %s of processor time, limits %v and %s", allocations, fastest, maxAllocations, maxTime)
	}
}

// BenchmarkSteadyPass measures a pass of an upgrade that waits in the last of 20 steps.
func BenchmarkSteadyPass(b *testing.B) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	saves := 0
	e := &engine.Engine{Clock: clock, Save: func(context.Context, history.Record) error { saves++; return nil }}
	book := twenty(engine.Wait("Waiting", "for nodes"))
	record, _, err := e.Pass(b.Context(), book, history.Record{Version: "4.4.6"}, engine.Constraints{})
	if err != nil {
		b.Fatal(err)
	}
	clock.SetTime(clock.Now().Add(time.Second))
	saves = 0
	measure(b, 12, 50*time.Microsecond, func() {
		if _, _, err := e.Pass(b.Context(), book, record, engine.Constraints{}); err != nil {
			b.Fatal(err)
		}
	})
	if saves > 0 {
		b.Fatalf("passes in which nothing changed saved the record %d times", saves)
	}
}

// BenchmarkWholeUpgrade measures one pass over 20 steps that are all ready.
func BenchmarkWholeUpgrade(b *testing.B) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	saves := 0
	e := &engine.Engine{Clock: clock, Save: func(context.Context, history.Record) error { saves++; return nil }}
	book := twenty(engine.Done("done"))
	measure(b, 1300, 500*time.Microsecond, func() {
		saves = 0
		if _, next, err := e.Pass(b.Context(), book, history.Record{Version: "4.4.6"}, engine.Constraints{}); err != nil || !next.IsZero() {
			b.Fatal(next, err)
		}
	})
	b.ReportMetric(float64(saves), "saves/op")
}

// BenchmarkAssess measures the summary of an upgrade that waits in the last of 20 steps.
func BenchmarkAssess(b *testing.B) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	e := &engine.Engine{Clock: clock, Save: func(context.Context, history.Record) error { return nil }}
	book := twenty(engine.Wait("Waiting", "for nodes"))
	record, _, err := e.Pass(b.Context(), book, history.Record{Version: "4.4.6"}, engine.Constraints{})
	if err != nil {
		b.Fatal(err)
	}
	measure(b, 4, 20*time.Microsecond, func() {
		if engine.Summarize(book, record, clock.Now(), engine.Constraints{}).State != engine.Running {
			b.Fatal("not running")
		}
	})
}
