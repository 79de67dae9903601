// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSpreadHasBothEnds(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]int{2: {1, 11}, 3: {1, 6, 11}, 5: {1, 3, 6, 8, 11}} {
		if diff := cmp.Diff(want, spread([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, n)); diff != "" {
			t.Errorf("%d elements (-want +got):\n%s", n, diff)
		}
	}
}

// A crash before a write is the same as a crash after the previous write at the same time.
func TestFaultsOfWrites(t *testing.T) {
	t.Parallel()
	log := &WriteLog{}
	for i, r := range []Request{
		{Verb: "patch", Kind: "Lease", Write: 1, Time: Start},
		{Verb: "list", Kind: "Node", Time: Start},
		{Verb: "patch", Kind: "UpgradeJob", Subresource: "status", Write: 2, Time: Start},
		{Verb: "create", Kind: "Event", Write: 3, Time: Start.Add(time.Minute)},
	} {
		if fault := log.Plan(r); fault.Outcome != Serve {
			t.Errorf("request %d is not served", i)
		}
	}
	var got []string
	for _, fault := range log.Faults(CrashBefore, CrashAfter) {
		got = append(got, fault.Name)
		if planned := fault.Plan(Request{Write: fault.Write}).Outcome; planned != fault.Outcome {
			t.Errorf("%s: the plan is %d", fault.Name, planned)
		}
		if planned := fault.Plan(Request{Write: fault.Write + 1}).Outcome; planned != Serve {
			t.Errorf("%s: the plan for the next write is %d", fault.Name, planned)
		}
	}
	want := []string{
		"crash before write 1, patch Lease", "crash after write 1, patch Lease", "crash after write 2, patch UpgradeJob/status",
		"crash before write 3, create Event", "crash after write 3, create Event",
	}
	if diff := cmp.Diff(want, got); diff != "" && !testing.Short() {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(log.Faults()); !testing.Short() && n != 13 {
		t.Errorf("%d faults", n)
	}
}
