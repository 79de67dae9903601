// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

func TestDrainDeadlines_First(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		timeout, pdbTimeout time.Duration
		want                time.Time
	}{
		"unprotected pods first": {time.Minute, time.Hour, noon.Add(time.Minute)},
		"protected pods first":   {time.Hour, time.Minute, noon.Add(time.Minute)},
		"protected pods never":   {time.Hour, -1, noon.Add(time.Hour)},
		"unprotected pods never": {-1, time.Hour, noon.Add(time.Hour)},
		"no pod ever":            {-1, -1, time.Time{}},
	} {
		if got := checks.NewDrainDeadlines(noon, tc.timeout, tc.pdbTimeout).First(); !got.Equal(tc.want) {
			t.Errorf("%s: got %s, want %s", name, got, tc.want)
		}
	}
}
