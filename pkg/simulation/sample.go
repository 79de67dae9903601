// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// shortSample is the number of repetitions that Sample keeps in short mode.
const shortSample = 5

// Sample returns the numbers from 1 to n, for repeating a test whose virtual time runs in a single
// goroutine. In short mode, it returns only a few of them (see Sampled).
func Sample(n int) []int {
	var numbers []int
	for i := range n {
		numbers = append(numbers, i+1)
	}
	return Sampled(numbers)
}

// Sampled returns the elements. In short mode, as used under the race detector, it returns only a
// few of them, evenly spaced from the first to the last.
func Sampled[T any](all []T) []T {
	if !testing.Short() || len(all) <= shortSample {
		return all
	}
	return spread(all, shortSample)
}

// spread returns n elements, evenly spaced from the first to the last.
func spread[T any](all []T, n int) []T {
	var few []T
	for i := range n {
		few = append(few, all[i*(len(all)-1)/(n-1)])
	}
	return few
}

// WriteFault is a fault in one write of a process.
type WriteFault struct {
	// Name describes the fault, such as "crash after write 3, patch UpgradeConfig/status".
	Name string
	// Write is the number of the write, starting at 1.
	Write int
	// Outcome is the outcome of the write.
	Outcome Outcome
}

// Plan returns a plan in which only that write fails.
func (f WriteFault) Plan(r Request) Fault {
	if r.Write != f.Write {
		return Fault{}
	}
	return Fault{Outcome: f.Outcome}
}

// outcomes lists the outcomes of failing writes with their names.
var outcomes = []struct {
	name    string
	outcome Outcome
}{
	{"refused", Refuse}, {"conflict", Conflict}, {"answer lost", LoseAnswer}, {"crash before", CrashBefore}, {"crash after", CrashAfter},
}

// WriteLog records the writes of a process in a run without faults.
type WriteLog struct {
	// Writes are the recorded writes in order.
	Writes []Request
}

// Plan records writes and serves all requests.
func (l *WriteLog) Plan(r Request) Fault {
	if r.IsWrite() {
		l.Writes = append(l.Writes, r)
	}
	return Fault{}
}

// Faults returns each fault of each write, limited to the selected outcomes if there are any. A
// crash before a write is the same as a crash after the previous one, since the process loses its
// memory; it is omitted unless time passed between the two. A creation never conflicts. In short
// mode, Faults returns only a few faults.
func (l *WriteLog) Faults(selected ...Outcome) []WriteFault {
	var faults []WriteFault
	var last time.Time
	for _, r := range l.Writes {
		for _, o := range outcomes {
			switch {
			case len(selected) > 0 && !slices.Contains(selected, o.outcome):
				continue
			case o.outcome == CrashBefore && r.Time.Sub(last) < time.Second, o.outcome == Conflict && r.Verb == "create":
				continue
			}
			name := fmt.Sprintf("%s write %d, %s %s", o.name, r.Write, r.Verb, r.what())
			faults = append(faults, WriteFault{Name: name, Write: r.Write, Outcome: o.outcome})
		}
		last = r.Time
	}
	return Sampled(faults)
}

// EachFault runs a test once without faults, requiring a minimum number of writes, and then once
// for each fault returned by Faults.
func EachFault(t *testing.T, writes int, run func(*testing.T, FaultPlan), selected ...Outcome) {
	t.Helper()
	log := &WriteLog{}
	run(t, log.Plan)
	if len(log.Writes) < writes {
		t.Fatalf("%d writes, want at least %d: %s", len(log.Writes), writes, log.Writes)
	}
	for _, fault := range log.Faults(selected...) {
		t.Run(fault.Name, func(t *testing.T) {
			t.Parallel()
			run(t, fault.Plan)
		})
	}
}
