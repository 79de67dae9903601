// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"testing"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// building returns a cluster whose control plane is updated and whose workers wait for an image build.
func building(age time.Duration) *fixture {
	f := newFixture("4.20.6")
	f.history[0].StartedTime, f.history[0].CompletionTime = at(before(3*time.Hour)), new(at(before(2*time.Hour)))
	f.history[0].State = "Completed"
	f.addNodes(master, 3, 3)
	f.addNodes(worker, 3, 0)
	reconciled(f.plane())
	pending(f.pool())
	config := "rendered-" + worker + "-new"
	f.facts.ImageBuilds = map[string]clusterstate.ImageBuild{config: {Name: "worker-1", Config: config, Start: before(age), Phase: "Building,Running,"}}
	return f
}

// TestPool_waits_for_its_image checks what is shown for a pool whose OS image is being built. The pool is
// stuck if the build takes too long.
func TestPool_waits_for_its_image(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age  time.Duration
		want updatev1beta1.AssessmentState
	}{
		"for 12m": {12 * time.Minute, progressing}, "for 59m": {59 * time.Minute, progressing}, "for 60m": {60 * time.Minute, stuck},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := building(tc.age).assess()
			pool := got.Sections[1]
			if pool.Name != worker {
				t.Fatalf("section %s, want %s", pool.Name, worker)
			}
			if got.State != tc.want {
				t.Errorf("state %s, want %s", got.State, tc.want)
			}
			if tc.want == progressing && (pool.Detail != "OS image is being built" || !pool.DetailSince.Time.Equal(before(tc.age))) {
				t.Errorf("detail %q since %v, want the build", pool.Detail, pool.DetailSince)
			}
		})
	}
}

// TestStuck_pool_has_one_headline checks that the controller and a dump of the same cluster report the same
// pool and the same time of its last change.
func TestStuck_pool_has_one_headline(t *testing.T) {
	t.Parallel()
	cluster := func() *fixture {
		f := newFixture("4.20.6")
		f.history[0].CompletionTime, f.history[0].State = new(at(before(70*time.Minute))), "Completed"
		f.history[0].StartedTime = at(before(2 * time.Hour))
		f.addNodes(worker, 3, 1)
		f.drain("worker-1", before(64*time.Minute))
		f.shop("worker-1", before(64*time.Minute))
		reconciled(f.plane())
		pending(f.pool())
		return f
	}
	dump := cluster().assess()
	live := cluster().change(func(f *fixture) {
		earlier := cluster()
		earlier.now = before(64 * time.Minute)
		first := earlier.assess()
		first.Sections[1].LastChangeTime = ago(63 * time.Minute) // a pod left the node
		f.in.Previous = &first
	}).assess()
	const want = "Pool worker has made no progress"
	for since, got := range map[time.Duration]updatev1beta1.Assessment{64 * time.Minute: dump, 63 * time.Minute: live} {
		if got.State != stuck || got.Summary != want || got.SummarySince == nil || !got.SummarySince.Time.Equal(before(since)) {
			t.Errorf("%s, %q since %v, want %q for %v", got.State, got.Summary, got.SummarySince, want, since)
		}
	}
}
