// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestAlertsQuery(t *testing.T) {
	t.Parallel()
	for watchdog, want := range map[string]string{
		"":         `group by (alertname, namespace, alertstate) (ALERTS{alertstate=~"firing|pending",severity="critical"})`,
		"Watchdog": `group by (alertname, namespace, alertstate) (ALERTS{alertstate=~"firing|pending",severity="critical"} or ALERTS{alertstate="firing",alertname="Watchdog"})`,
	} {
		if diff := cmp.Diff(want, alertsQuery(watchdog)); diff != "" {
			t.Errorf("watchdog %q (-want +got):\n%s", watchdog, diff)
		}
	}
}

// A name cannot escape from its matcher.
func FuzzAlertsQuery(f *testing.F) {
	for _, name := range []string{"A", `A"}`, `A\"} or vector(1) #`, "a\nb", "`", "{{", `\`, "é\u202e", "\x00", "\u2028"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		_, rest, found := strings.Cut(alertsQuery(name), ` or ALERTS{alertstate="firing",alertname=`)
		if !found {
			if name != "" {
				t.Fatal("the watchdog is missing")
			}
			return
		}
		quoted, err := strconv.QuotedPrefix(rest)
		if err != nil {
			t.Fatal(err)
		}
		if value, err := strconv.Unquote(quoted); err != nil || value != name || rest[len(quoted):] != "})" {
			t.Errorf("%q becomes %s, %v", name, rest, err)
		}
	})
}
