// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAddChannel(t *testing.T) {
	t.Parallel()
	full := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for name, tc := range map[string]struct {
		channels  []string
		requested string
		want      []string
	}{
		"no channel requested": {[]string{"a"}, "", []string{"a"}},
		"first channel":        {nil, "a", []string{"a"}},
		"channel again":        {[]string{"a", "b"}, "a", []string{"a", "b"}},
		"another channel":      {[]string{"a"}, "b", []string{"a", "b"}},
		"beyond the limit":     {full, "i", []string{"b", "c", "d", "e", "f", "g", "h", "i"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, addChannel(tc.channels, tc.requested)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	if full[0] != "a" {
		t.Error("the channels of the stored record were changed")
	}
}
