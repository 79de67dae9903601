// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"testing"
	"time"

	clocktesting "k8s.io/utils/clock/testing"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// A work may be as large as etcd allows, and many clusters start within two minutes: only the works that the cache may
// lack are kept.
func TestWrites_keep_no_work_that_the_cache_has(t *testing.T) {
	t.Parallel()
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	writes := &Writes{Clock: clock}
	first, second := client.ObjectKey{Name: "first"}, client.ObjectKey{Name: "second"}
	writes.note(first, &workv1.ManifestWork{}, "1/Apply")
	clock.SetTime(clock.Now().Add(cacheTimeout + time.Second))
	writes.note(second, &workv1.ManifestWork{}, "1/Apply")
	if kept := writes.last[first]; kept.work != nil || kept.delivery != "1/Apply" {
		t.Errorf("the first write is %+v, want its delivery alone", kept)
	}
	if writes.last[second].work == nil {
		t.Error("the second work is not kept, although the cache may lack it")
	}
	clock.SetTime(clock.Now().Add(removalTimeout))
	writes.note(second, &workv1.ManifestWork{}, "2/Apply")
	if len(writes.last) != 1 {
		t.Errorf("%d writes are kept, want the last one", len(writes.last))
	}
}
