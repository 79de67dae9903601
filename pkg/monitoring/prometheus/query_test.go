// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
)

func TestQuery(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		options Options
		want    string
	}{
		"our own alerts never count": {
			want: `ALERTS{alertstate="firing",severity="critical",alertname!~"ManagedUpgrade.*"}`,
		},
		"what is ignored is matched as it is written": {
			options: Options{IgnoreAlerts: []string{"A.B", `"}`}, IgnoreNamespaces: []string{`a\b`, "c"}},
			want:    `ALERTS{alertstate="firing",severity="critical",alertname!~"A\\.B|\"\\}|ManagedUpgrade.*",namespace!~"a\\\\b|c"}`,
		},
		"the watchdog is asked for in the same request": {
			options: Options{Watchdog: "Watchdog"},
			want:    `ALERTS{alertstate="firing",severity="critical",alertname!~"ManagedUpgrade.*"} or ALERTS{alertstate="firing",alertname="Watchdog"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.options.query()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// No value breaks out of its matcher, and each matches itself and nothing else.
func FuzzQuery(f *testing.F) {
	for _, value := range []string{"A", `A"}`, `A\"} or vector(1) #`, "A|B", ".*", "a\nb", "`", "{{", `\`, "é\u202e", "(", "[", "'", "\x00", "\u2028"} {
		f.Add(value, "Other", value, value)
	}
	f.Fuzz(func(t *testing.T, first, second, namespace, watchdog string) {
		o := Options{HTTPClient: httpclient.Options{URL: "http://localhost"}, IgnoreAlerts: []string{first, second}, IgnoreNamespaces: []string{namespace}, Watchdog: watchdog}
		if _, err := New(o); err != nil {
			t.Skip()
		}
		selectors := parse(t, o.query())
		if watchdog != "" {
			last := len(selectors) - 1
			want := []matcher{{"alertstate", "=", "firing"}, {"alertname", "=", watchdog}}
			if diff := cmp.Diff(want, selectors[last]); diff != "" {
				t.Errorf("the watchdog (-want +got):\n%s", diff)
			}
			selectors = selectors[:last]
		}
		if len(selectors) != 1 || len(selectors[0]) != 4 {
			t.Fatalf("got %v of %s", selectors, o.query())
		}
		m := selectors[0]
		want := []matcher{{"alertstate", "=", "firing"}, {"severity", "=", "critical"}, {"alertname", "!~", m[2].value}, {"namespace", "!~", m[3].value}}
		if diff := cmp.Diff(want, m); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, alert := range []string{"", first, second, first + "x", "x" + second, "Other", "A", "ManagedUpgradeFailed", "NotManagedUpgrade"} {
			ignored := alert == first || alert == second || strings.HasPrefix(alert, OwnAlerts)
			if anchored(t, m[2].value).MatchString(alert) != ignored {
				t.Errorf("alert %q: must be ignored: %t, by %s", alert, ignored, o.query())
			}
		}
		for _, other := range []string{"", namespace, namespace + "x", "x" + namespace, "openshift-monitoring"} {
			if anchored(t, m[3].value).MatchString(other) != (other == namespace) {
				t.Errorf("namespace %q: must be ignored: %t, by %s", other, other == namespace, o.query())
			}
		}
	})
}

// anchored is how Prometheus reads a regular expression.
func anchored(t *testing.T, expression string) *regexp.Regexp {
	t.Helper()
	compiled, err := regexp.Compile("^(?s:" + expression + ")$")
	if err != nil {
		t.Fatal(err)
	}
	return compiled
}

type matcher struct{ label, operator, value string }

// cmp.Diff compares what is not exported by this.
func (m matcher) Equal(other matcher) bool { return m == other }

// parse reads selectors that are joined by or, and nothing but such.
func parse(t *testing.T, query string) (selectors [][]matcher) {
	t.Helper()
	for {
		rest, ok := strings.CutPrefix(query, "ALERTS{")
		if !ok {
			t.Fatalf("there is no selector at %q", query)
		}
		var matchers []matcher
		for more := true; more; {
			at := strings.IndexAny(rest, "=!")
			quote := strings.Index(rest, `"`)
			if at < 0 || quote < at {
				t.Fatalf("there is no matcher at %q", rest)
			}
			label, operator := rest[:at], rest[at:quote]
			if !slices.Contains([]string{"alertstate", "alertname", "severity", "namespace"}, label) || !slices.Contains([]string{"=", "!~"}, operator) {
				t.Fatalf("there is no matcher at %q", rest)
			}
			quoted, err := strconv.QuotedPrefix(rest[quote:])
			if err != nil {
				t.Fatalf("there is no string at %q", rest[quote:])
			}
			value, err := strconv.Unquote(quoted)
			if err != nil {
				t.Fatal(err)
			}
			matchers = append(matchers, matcher{label, operator, value})
			rest, more = strings.CutPrefix(rest[quote+len(quoted):], ",")
		}
		selectors = append(selectors, matchers)
		if rest == "}" {
			return selectors
		}
		if query, ok = strings.CutPrefix(rest, "} or "); !ok {
			t.Fatalf("there is more than selectors at %q", rest)
		}
	}
}
