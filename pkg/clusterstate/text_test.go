// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestConditionText(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		condition clusterstate.Condition
		text, why string
	}{
		"no reason and no message": {clusterstate.Condition{}, "no reason given", "no reason given"},
		"only a reason":            {clusterstate.Condition{Reason: "R"}, "R", "R"},
		"only a message":           {clusterstate.Condition{Message: "m"}, "m", "m"},
		"both":                     {clusterstate.Condition{Reason: "R", Message: "m"}, "m", "R: m"},
		"several lines are one":    {clusterstate.Condition{Message: "a:\n* b\n\n* c\t"}, "a: * b * c", "a: * b * c"},
		"control characters":       {clusterstate.Condition{Message: "a\x1b[31m\x00b\u202ec\u2028d"}, "a b c d", "a b c d"},
		"line feeds only":          {clusterstate.Condition{Message: "\n\n", Reason: "R"}, "R", "R"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tc.condition.MessageOrReason(); got != tc.text {
				t.Errorf("text: got %q, want %q", got, tc.text)
			}
			if got := tc.condition.ReasonAndMessage(); got != tc.why {
				t.Errorf("why: got %q, want %q", got, tc.why)
			}
		})
	}
}

// The name of an operator must be a whole word. Parts of longer names and capitalized words do not match.
func TestCondition_mentions_operators(t *testing.T) {
	t.Parallel()
	c := clusterstate.Condition{Message: "Cluster operators kube-apiserver, dns (etcd2), az09 are degraded; NETWORK: image-registry."}
	for name, want := range map[string]bool{
		"kube-apiserver": true, "dns": true, "etcd2": true, "az09": true, "image-registry": true, "degraded": true,
		"apiserver": false, "etcd": false, "image": false, "network": false, "kube": false, "": false,
	} {
		if got := c.Mentions(name); got != want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func TestVersion_waits_for_operators(t *testing.T) {
	t.Parallel()
	names, isFailing := clusterstate.Condition{Status: "False", Message: "waiting on dns"}, clusterstate.Condition{Status: "True", Message: "waiting on dns"}
	for name, tc := range map[string]struct {
		version clusterstate.Version
		want    bool
	}{
		"neither":     {clusterstate.Version{}, false},
		"progressing": {clusterstate.Version{Progressing: names}, true},
		"failing":     {clusterstate.Version{Failing: isFailing}, true},
		"not failing": {clusterstate.Version{Failing: names}, false},
		"another one": {clusterstate.Version{Failing: clusterstate.Condition{Status: "True", Message: "waiting on etcd"}}, false},
	} {
		if got := tc.version.WaitsFor("dns"); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}

func FuzzConditionText(f *testing.F) {
	f.Add("short")
	f.Add("a" + strings.Repeat("ä", 5000)) // the cut falls within a character
	f.Add(strings.Repeat(" x\n", 5000))
	f.Add(strings.Repeat("\xff", 5000))
	f.Add("\x1b[31m\x00\u202e")
	f.Fuzz(func(t *testing.T, message string) {
		got := clusterstate.Condition{Message: message}.MessageOrReason()
		if len(got) > 512+len("…") || !utf8.ValidString(got) || strings.ContainsFunc(got, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("of %d bytes, got %d: %q", len(message), len(got), got)
		}
	})
}

func TestCompare(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		from, to string
		want     clusterstate.ChangeType
		crosses  bool
	}{
		"the same version":                       {"4.4.6", "4.4.6", clusterstate.Same, false},
		"another build of the same version":      {"4.4.6+a", "4.4.6+b", clusterstate.Same, false},
		"a patch":                                {"4.4.5", "4.4.6", clusterstate.Patch, false},
		"patch numbers compared as numbers":      {"4.4.9", "4.4.10", clusterstate.Patch, false},
		"a release after its candidate":          {"4.4.6-rc.1", "4.4.6", clusterstate.Patch, false},
		"the next minor version":                 {"4.4.9", "4.5.0", clusterstate.Minor, true},
		"a candidate of the next minor version":  {"4.4.9", "4.5.0-rc.1", clusterstate.Minor, true},
		"the next major version":                 {"4.20.1", "5.0.0", clusterstate.Major, true},
		"an earlier patch":                       {"4.4.6", "4.4.5", clusterstate.Downgrade, false},
		"an earlier minor version":               {"4.4.6", "4.3.9", clusterstate.Downgrade, false},
		"a candidate of what is installed":       {"4.4.6", "4.4.6-rc.1", clusterstate.Downgrade, false},
		"an earlier major, a later minor number": {"5.0.0", "4.20.1", clusterstate.Downgrade, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := clusterstate.CompareVersions(tc.from, tc.to)
			if err != nil || got != tc.want || got.CrossesMinor() != tc.crosses {
				t.Errorf("got %s, crosses: %t, %v", got, got.CrossesMinor(), err)
			}
		})
	}
	for name, pair := range map[string][2]string{
		"a malformed desired version is named":   {"4.4.6", "v4.4"},
		"a malformed installed version is named": {"4.4", "4.4.6"},
		"a missing version is named":             {"", "4.4.6"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := clusterstate.CompareVersions(pair[0], pair[1])
			if err == nil || !strings.Contains(err.Error(), `"`+pair[0]+`"`) && !strings.Contains(err.Error(), `"`+pair[1]+`"`) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestValidateVersion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		version string
		valid   bool
	}{
		"release":              {"4.20.6", true},
		"candidate":            {"4.20.0-rc.1", true},
		"leading v":            {"v4.20.6", false},
		"without a patch part": {"4.20", false},
		"empty":                {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := clusterstate.ValidateVersion(tc.version); (err == nil) != tc.valid {
				t.Errorf("got %v, want valid %t", err, tc.valid)
			}
		})
	}
}
