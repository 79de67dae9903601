// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"testing"
	"time"
)

func TestRequeueAfter(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		next time.Time
		want time.Duration
	}{
		"nothing requested":      {want: maxRequeue},
		"soon":                   {next: noon.Add(20 * time.Millisecond), want: 20 * time.Millisecond},
		"later than is good":     {next: noon.Add(time.Hour), want: maxRequeue},
		"now":                    {next: noon, want: minRequeue},
		"in the past":            {next: noon.Add(-time.Hour), want: minRequeue},
		"a nanosecond ago":       {next: noon.Add(-1), want: minRequeue},
		"exactly at the longest": {next: noon.Add(maxRequeue), want: maxRequeue},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := requeueAfter(c.next, noon); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
