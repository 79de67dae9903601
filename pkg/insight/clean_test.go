// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight_test

import (
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

var received = time.Date(2026, 5, 14, 12, 0, 0, 0, time.UTC)

func TestClean_Text(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reported, summary, description string }{
		"plain":                   {"High CPU", "High CPU", "High CPU"},
		"lines":                   {" one\n\ttwo\r\nthree ", "one two three", "one\ntwo\nthree"},
		"control characters":      {"a\x00b\x07c\x7fd", "a b c d", "a b c d"},
		"ANSI colors":             {"\x1b[31mred\x1b[0m", "red", "red"},
		"ANSI cursor":             {"\x1b[2J\x1b[1;1Hhidden", "hidden", "hidden"},
		"ANSI title":              {"\x1b]0;owned\x07text", "text", "text"},
		"ANSI of eight bits":      {"\u009b31mred", "red", "red"},
		"bidirectional override":  {"a\u202eb\u2066c", "abc", "abc"},
		"zero width":              {"pay\u200bpal\u2060 \ufeffx", "paypal x", "paypal x"},
		"variation selectors":     {"a\ufe0fb", "ab", "ab"},
		"invisible letters":       {"a\u3164b\u115fc", "abc", "abc"},
		"invalid UTF-8":           {"a\xffb", "ab", "ab"},
		"wide characters":         {"節點 🚀", "節點 🚀", "節點 🚀"},
		"line separators":         {"a\u2028b\u2029c", "a b c", "a b c"},
		"a token":                 {"Authorization: Bearer abcdefghijklmnopqrstuvwxyz0123", "Authorization: [redacted]", "Authorization: [redacted]"},
		"an OpenShift token":      {"token sha256~abcdefghijklmnopqrstuvwxyz", "token [redacted]", "token [redacted]"},
		"a JSON web token":        {"x eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJl y", "x [redacted] y", "x [redacted] y"},
		"a key":                   {"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA\n-----END RSA PRIVATE KEY-----", "[redacted]", "[redacted]"},
		"nothing but white space": {" \n\t ", "The informer gives no summary.", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := insight.Clean("i", updatev1beta1.Insight{UID: "u", Impact: updatev1beta1.InsightImpact{Summary: c.reported, Description: c.reported}}, received)
			if got.Impact.Summary != c.summary || got.Impact.Description != c.description {
				t.Errorf("got %q and %q, want %q and %q", got.Impact.Summary, got.Impact.Description, c.summary, c.description)
			}
		})
	}
}

func TestClean_Level(t *testing.T) {
	t.Parallel()
	cases := map[updatev1beta1.Level]struct {
		level    updatev1beta1.Level
		reported string
	}{
		"status": {updatev1beta1.LevelStatus, ""}, "info": {updatev1beta1.LevelInfo, ""}, "warning": {updatev1beta1.LevelWarning, ""},
		"error": {updatev1beta1.LevelError, ""}, "critical": {updatev1beta1.LevelCritical, ""},
		"Critical": {updatev1beta1.LevelCritical, ""}, " ERROR": {updatev1beta1.LevelError, ""},
		"": {updatev1beta1.LevelWarning, ""}, "fatal": {updatev1beta1.LevelWarning, "fatal"}, "\x1b[31mfatal": {updatev1beta1.LevelWarning, "fatal"},
	}
	for reported, want := range cases {
		got := insight.Clean("i", updatev1beta1.Insight{UID: "u", Impact: updatev1beta1.InsightImpact{Level: reported}}, received).Impact
		if got.Level != want.level || got.ReportedLevel != want.reported {
			t.Errorf("%q: got %s (%q), want %s (%q)", reported, got.Level, got.ReportedLevel, want.level, want.reported)
		}
	}
}

func TestClean_Reference(t *testing.T) {
	t.Parallel()
	cases := map[string]bool{
		"https://docs.redhat.com/openshift/updates/mco-issues#HighCpu": true,
		"https://example.com:8443/a?b=c&d=%20":                         true,
		"http://example.com":                                           false, "javascript:alert(1)": false, "HTTPS://example.com": true, "ftp://example.com": false,
		"https://":         false,
		"https://u:p@x/":   false,
		"https://x/ y":     false,
		"https://x/\x1b":   false,
		"https://x/\u202e": false, "https://exаmple.com": false, "https:example.com": false, "//example.com": false, "https://x/$(id)`id`": false, "https://x/%zz": false,
		"https://x/" + strings.Repeat("a", 1024): false, "https://x/'; rm -rf": false, "": false,
	}
	for reported, kept := range cases {
		got := insight.Clean("i", updatev1beta1.Insight{UID: "u", Remediation: updatev1beta1.InsightRemediation{Reference: reported}}, received).Remediation.Reference
		if kept && got != reported || !kept && got != "" {
			t.Errorf("%q: got %q", reported, got)
		}
	}
}

func TestClean_Times(t *testing.T) {
	t.Parallel()
	acquired := map[string]struct{ reported, want time.Time }{
		"none":                 {time.Time{}, received},
		"earlier":              {received.Add(-time.Hour), received.Add(-time.Hour)},
		"a little in future":   {received.Add(30 * time.Second), received.Add(30 * time.Second)},
		"in the future":        {received.Add(2 * time.Minute), received},
		"far in the future":    {time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC), received},
		"years ago":            {received.AddDate(-2, 0, 0), received},
		"the epoch":            {time.Unix(0, 0), received},
		"in another time zone": {received.In(time.FixedZone("x", 3600)), received},
	}
	for name, c := range acquired {
		got := insight.Clean("i", updatev1beta1.Insight{UID: "u", AcquisitionTime: metav1.NewTime(c.reported)}, received).AcquisitionTime
		if got.Time != c.want {
			t.Errorf("acquired %s: got %s, want %s", name, got.Time, c.want)
		}
	}
	finish := map[string]bool{
		"15m": true, "0s": true, "2026-05-14T13:00:00Z": true, "2026-05-14T11:00:00Z": true, "336h": true,
		"-5m": false, "1000h": false, "9999999999h": false, "soon": false, "15": false, "2300-01-01T00:00:00Z": false, "1970-01-01T00:00:00Z": false,
		strings.Repeat("1h", 40): false,
	}
	for reported, kept := range finish {
		got := insight.Clean("i", updatev1beta1.Insight{UID: "u", Remediation: updatev1beta1.InsightRemediation{EstimatedFinish: reported}}, received)
		if kept != (got.Remediation.EstimatedFinish == reported) || !kept && got.Remediation.EstimatedFinish != "" {
			t.Errorf("finish %q: got %q", reported, got.Remediation.EstimatedFinish)
		}
	}
}

func TestClean_Identity(t *testing.T) {
	t.Parallel()
	clean := func(uid, summary string) updatev1beta1.Insight {
		return insight.Clean("i", updatev1beta1.Insight{UID: uid, Impact: updatev1beta1.InsightImpact{Summary: summary}}, received)
	}
	long := strings.Repeat("x", 300)
	switch {
	case clean(long+"a", "").UID == clean(long+"b", "").UID:
		t.Error("uids that are too long collide")
	case clean("", "a").UID == "" || clean("", "a").UID == clean("", "b").UID:
		t.Error("insights without a uid collide")
	case clean("a\u202eb", "").UID != "ab":
		t.Error("a uid has characters that are not printable")
	}
	forged := updatev1beta1.Insight{
		UID: "u", UUID: "forged", Flaps: 7, CausedBy: []string{"x"}, FirstObservedTime: metav1.NewTime(received), StaleSince: new(metav1.NewTime(received)),
	}
	if diff := cmp.Diff(insight.Clean("i", updatev1beta1.Insight{UID: "u"}, received), insight.Clean("i", forged, received)); diff != "" {
		t.Errorf("an informer sets fields of the controller:\n%s", diff)
	}
}

func TestClean_Scope(t *testing.T) {
	t.Parallel()
	ref := func(name string) updatev1beta1.ResourceReference {
		return updatev1beta1.ResourceReference{Kind: "Node", Name: name}
	}
	cases := map[string]struct{ reported, want updatev1beta1.InsightScope }{
		"unknown type":            {updatev1beta1.InsightScope{Type: "Moon"}, updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane}},
		"unknown type, with pool": {updatev1beta1.InsightScope{WorkerPool: []updatev1beta1.ResourceReference{ref("a")}}, updatev1beta1.InsightScope{Type: updatev1beta1.ScopeWorkerPool, WorkerPool: []updatev1beta1.ResourceReference{ref("a")}}},
		"a name for a shell":      {updatev1beta1.InsightScope{Resources: []updatev1beta1.ResourceReference{ref("$(rm -rf /);`x`\n'")}}, updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane, Resources: []updatev1beta1.ResourceReference{ref("??rm?-rf?/???x???")}}},
		"a name out of sight":     {updatev1beta1.InsightScope{Resources: []updatev1beta1.ResourceReference{ref("a\u202eb\u200b")}}, updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane, Resources: []updatev1beta1.ResourceReference{ref("ab")}}},
		"nothing":                 {updatev1beta1.InsightScope{Resources: []updatev1beta1.ResourceReference{{APIVersion: "v1"}}}, updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane}},
		"twice":                   {updatev1beta1.InsightScope{Resources: []updatev1beta1.ResourceReference{ref("b"), ref("a"), ref("b")}}, updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane, Resources: []updatev1beta1.ResourceReference{ref("a"), ref("b")}}},
	}
	for name, c := range cases {
		if diff := cmp.Diff(c.want, insight.Clean("i", updatev1beta1.Insight{UID: "u", Scope: c.reported}, received).Scope); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestFromFinding(t *testing.T) {
	t.Parallel()
	since := received.Add(-time.Hour)
	got := insight.FromFinding("builtin-nodes", checks.Finding{
		Scope: checks.ScopeWorkerPool, Level: checks.LevelError, Type: checks.TypeUpdateStalled, Reason: "NodeDegraded", Summary: "Node is degraded", Description: "disk full",
		Resources: []checks.Resource{{Kind: "Node", Name: "worker-1"}, {Group: "machineconfiguration.openshift.io", Kind: "MachineConfigPool", Name: "worker"}},
		Since:     since, Remedy: "Free the disk.", CausedBy: []string{"x"},
	}, received)
	want := updatev1beta1.Insight{
		UID: "NodeDegraded/Node/worker-1/MachineConfigPool/worker", UUID: got.UUID, AcquisitionTime: metav1.NewTime(received), FirstObservedTime: metav1.NewTime(since),
		Scope: updatev1beta1.InsightScope{
			Type:       updatev1beta1.ScopeWorkerPool,
			WorkerPool: []updatev1beta1.ResourceReference{{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: "worker"}},
			Resources:  []updatev1beta1.ResourceReference{{APIVersion: "v1", Kind: "Node", Name: "worker-1"}},
		},
		Impact:   updatev1beta1.InsightImpact{Level: updatev1beta1.LevelError, Type: "Update Stalled", Reason: "NodeDegraded", Summary: "Node is degraded", Description: "disk full\nFree the disk."},
		CausedBy: []string{"x"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for ahead, note := range map[time.Duration]string{
		time.Minute: "disk full", time.Minute + time.Second: "disk full\nIts time, " + received.Add(time.Minute+time.Second).UTC().Format(time.RFC3339) + ", is in the future: the clocks of the cluster differ.",
	} {
		early := insight.FromFinding("builtin-nodes", checks.Finding{Description: "disk full", Since: received.Add(ahead)}, received)
		if early.Impact.Description != note || !early.FirstObservedTime.IsZero() {
			t.Errorf("%s ahead: got %q, first observed at %s", ahead, early.Impact.Description, early.FirstObservedTime)
		}
	}
	cause, other := got, got
	cause.UID, cause.UUID, cause.CausedBy = "x", "0123", nil
	other.CausedBy = []string{"unknown"}
	effects := []updatev1beta1.Insight{got, other}
	insight.Link([]updatev1beta1.Insight{cause}, effects)
	if diff := cmp.Diff([][]string{{"0123"}, nil}, [][]string{effects[0].CausedBy, effects[1].CausedBy}); diff != "" {
		t.Errorf("causes (-want +got):\n%s", diff)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("uid", "warning", "summary", "description", "https://example.com", "15m", "Node", "worker-1", int64(0))
	f.Add("", "fatal", "\x1b[31m\u202e", strings.Repeat("a\u200b", 5000), "javascript:x", "-1s", "\x00", "$(id)", int64(1)<<60)
	f.Add(strings.Repeat("ü", 300), "", strings.Repeat("節", 300), "\xff\xfe", "https://[::1", "9e99h", strings.Repeat("k", 100), strings.Repeat("n", 1000), int64(-1)<<60)
	f.Fuzz(func(t *testing.T, uid, level, summary, description, reference, finish, kind, name string, acquired int64) {
		reported := updatev1beta1.Insight{
			UID: uid, AcquisitionTime: metav1.NewTime(time.Unix(acquired, 0)),
			Scope:       updatev1beta1.InsightScope{Type: updatev1beta1.ScopeType(kind), Resources: []updatev1beta1.ResourceReference{{APIVersion: description, Kind: kind, Namespace: summary, Name: name}}},
			Impact:      updatev1beta1.InsightImpact{Level: updatev1beta1.Level(level), Type: summary, Reason: summary, Summary: summary, Description: description},
			Remediation: updatev1beta1.InsightRemediation{Reference: reference, EstimatedFinish: finish},
		}
		got := insight.Clean("informer", reported, received)
		again := insight.Clean("informer", got, received)
		again.Impact.ReportedLevel = got.Impact.ReportedLevel
		if diff := cmp.Diff(got, again); diff != "" {
			t.Errorf("cleaned twice:\n%s", diff)
		}
		for name, c := range map[string]struct {
			text string
			max  int
		}{
			"uid": {got.UID, 253}, "summary": {got.Impact.Summary, 256}, "description": {got.Impact.Description, 4096}, "reference": {got.Remediation.Reference, 1024},
			"level": {got.Impact.ReportedLevel, 64}, "type": {got.Impact.Type, 128}, "reason": {got.Impact.Reason, 128}, "finish": {got.Remediation.EstimatedFinish, 64},
		} {
			odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) || unicode.Is(unicode.Cf, r) }
			if len(c.text) > c.max || !utf8.ValidString(c.text) || strings.ContainsFunc(c.text, odd) {
				t.Errorf("%s: %q", name, c.text)
			}
		}
		if got.UID == "" || got.Impact.Summary == "" || len(got.UUID) != 32 || got.AcquisitionTime.After(received.Add(time.Minute)) {
			t.Errorf("got %+v", got)
		}
	})
}
