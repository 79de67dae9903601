// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"testing"
	"time"
)

// shortSample is the number of repetitions that Sample keeps with -short.
const shortSample = 5

// Sample returns the numbers from 1 to n: the repetitions of a test whose virtual time runs in one
// goroutine. With -short there are a few of them, as in Sampled.
func Sample(n int) []int {
	var numbers []int
	for i := range n {
		numbers = append(numbers, i+1)
	}
	return Sampled(numbers)
}

// Sampled returns the elements. With -short, as under the race detector, it returns a few of them,
// evenly spread from the first to the last.
func Sampled[T any](all []T) []T {
	if !testing.Short() || len(all) <= shortSample {
		return all
	}
	return spread(all, shortSample)
}

// spread returns n elements, evenly spread from the first to the last.
func spread[T any](all []T, n int) []T {
	var few []T
	for i := range n {
		few = append(few, all[i*(len(all)-1)/(n-1)])
	}
	return few
}

// WriteFault is a fault of one write of a process.
type WriteFault struct {
	// Name describes the fault, as in "crash after write 3, patch UpgradeConfig/status".
	Name string
	// Write is the number of the write, from 1.
	Write int
	// Outcome describes what becomes of it.
	Outcome Outcome
}

// Plan returns the plan that has the write fail, and nothing else.
func (f WriteFault) Plan(r Request) Fault {
	if r.Write != f.Write {
		return Fault{}
	}
	return Fault{Outcome: f.Outcome}
}

// outcomes lists what may become of a write that fails, by name.
var outcomes = []struct {
	name    string
	outcome Outcome
}{
	{"refused", Refuse}, {"conflict", Conflict}, {"answer lost", LoseAnswer}, {"crash before", CrashBefore}, {"crash after", CrashAfter},
}

// WriteLog records the writes of a process in a run without faults.
type WriteLog struct {
	// Writes are the writes in their order.
	Writes []Request
}

// Plan records the writes and serves all requests.
func (l *WriteLog) Plan(r Request) Fault {
	if r.IsWrite() {
		l.Writes = append(l.Writes, r)
	}
	return Fault{}
}

// Faults returns each fault of each write with one of the outcomes; no outcome means all. A crash
// before a write equals one after the write before, since the process loses what it knows: it is left
// out unless time has passed in between. A creation never conflicts. With -short there are a few
// faults.
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

// EachFault runs a test without faults, in which the process makes at least so many writes, and then once
// for each fault that Faults returns.
func EachFault(t *testing.T, writes int, run func(*testing.T, Plan), selected ...Outcome) {
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
