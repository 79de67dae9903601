// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"testing"
)

func TestCountDeparted(t *testing.T) {
	t.Parallel()
	var names []string
	var f fingerprint
	for i := range 3500 {
		names = append(names, fmt.Sprintf("store-%04d", i))
		f.add(names[i])
	}
	published := f.encode()
	if len(published) > 900 {
		t.Errorf("the fingerprint has %d bytes", len(published))
	}
	other := []string{"other-1", "other-2"}
	for name, tc := range map[string]struct {
		published       string
		present, others []string
		want            int
		ok              bool
	}{
		"all are present":                      {published, names, other, 0, true},
		"one is gone":                          {published, names[1:], other, 1, true},
		"three are gone":                       {published, names[3:], other, 3, true},
		"the record of one that exists":        {published, names[1:], append(other, names[0]), 0, false},
		"one is gone, and another record lost": {published, names[2:], append(other, names[0]), 0, false},
		"one was not published":                {published, append([]string{"new"}, names...), other, 0, false},
		"published by an earlier release":      {"", names[1:], other, 0, false},
		"invalid":                              {"AAAA", names, nil, 0, false},
	} {
		if got, ok := CountDeparted(tc.published, tc.present, tc.others); got != tc.want || ok != tc.ok {
			t.Errorf("%s: %d, %t, want %d, %t", name, got, ok, tc.want, tc.ok)
		}
	}
	if got := (&fingerprint{}).encode(); got != "" {
		t.Errorf("no clusters: %q", got)
	}
}
