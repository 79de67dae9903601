// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pause_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/pause"
)

// now is a Thursday.
var now = time.Date(2026, 5, 14, 12, 0, 0, 0, time.UTC)

func decode(tb testing.TB, value string) any {
	tb.Helper()
	if value == "" {
		return nil
	}
	var decoded any
	if err := json.Unmarshal([]byte(value), &decoded); err != nil {
		tb.Fatal(err)
	}
	return decoded
}

// expected is the expected result of a test case. An empty state expects that nothing pauses the
// update.
type expected struct {
	state   pause.State
	until   string // empty for no time
	message string // part of the message
}

var versionManagementCases = map[string]struct {
	management string
	want       expected
}{
	"absent":                            {"", expected{}},
	"empty":                             {`{}`, expected{}},
	"null parts":                        {`{"pausedUntil":null,"maintenanceWindow":null,"exclusions":null}`, expected{}},
	"paused without an end":             {`{"pausedUntil":"true"}`, expected{pause.Paused, "", "pausedUntil is true."}},
	"paused without an end, as YAML":    {`{"pausedUntil":true}`, expected{pause.Paused, "", "pausedUntil is true."}},
	"not paused":                        {`{"pausedUntil":"false"}`, expected{}},
	"paused until a future time":        {`{"pausedUntil":"2026-05-14T12:00:01Z"}`, expected{pause.PausedUntil, "2026-05-14T12:00:01Z", "pausedUntil is 2026-05-14T12:00:01Z."}},
	"paused until a time with a zone":   {`{"pausedUntil":"2026-05-14T15:00:00+02:00"}`, expected{pause.PausedUntil, "2026-05-14T13:00:00Z", "resumes at 2026-05-14T13:00:00Z."}},
	"paused until now":                  {`{"pausedUntil":"2026-05-14T12:00:00Z"}`, expected{}},
	"paused until a past time":          {`{"pausedUntil":"2026-05-14T11:59:59Z"}`, expected{}},
	"paused until a malformed time":     {`{"pausedUntil":"tomorrow"}`, expected{pause.Unknown, "", `pausedUntil is "tomorrow"`}},
	"paused until a day":                {`{"pausedUntil":"2026-05-15"}`, expected{pause.Unknown, "", "not \"true\""}},
	"paused until a number":             {`{"pausedUntil":1}`, expected{pause.Unknown, "", "is a number, not a string"}},
	"a string":                          {`"true"`, expected{pause.Unknown, "", "spec.versionManagement is a string, not an object"}},
	"a list":                            {`[]`, expected{pause.Unknown, "", "is a list, not an object"}},
	"an unknown field":                  {`{"freeze":true}`, expected{pause.Unknown, "", `unknown field "freeze"`}},
	"inside the window":                 {`{"maintenanceWindow":{"enforcing":true,"cron":"0 10 * * *","duration":"4h"}}`, expected{}},
	"when the window opens":             {`{"maintenanceWindow":{"enforcing":true,"cron":"0 12 * * *","duration":"4h"}}`, expected{}},
	"when the window closes":            {`{"maintenanceWindow":{"enforcing":true,"cron":"0 10 * * *","duration":"2h"}}`, expected{pause.PausedUntil, "2026-05-15T10:00:00Z", "Outside ClusterVersion maintenance window."}},
	"before the window":                 {`{"maintenanceWindow":{"enforcing":true,"cron":"0 22 * * 6","duration":"2h"}}`, expected{pause.PausedUntil, "2026-05-16T22:00:00Z", "resumes at 2026-05-16T22:00:00Z."}},
	"the window of a location":          {`{"maintenanceWindow":{"enforcing":true,"cron":"0 22 * * *","location":"Europe/Zurich","duration":"2h"}}`, expected{pause.PausedUntil, "2026-05-14T20:00:00Z", "Outside"}},
	"a window over midnight":            {`{"maintenanceWindow":{"enforcing":true,"cron":"0 13 * * *","duration":"23h30m"}}`, expected{}},
	"a window that never closes":        {`{"maintenanceWindow":{"enforcing":true,"cron":"* * * * *","duration":"1h"}}`, expected{}},
	"a window that never opens":         {`{"maintenanceWindow":{"enforcing":true,"cron":"0 0 30 2 *","duration":"1h"}}`, expected{pause.Paused, "", "Outside"}},
	"a window that is not enforced":     {`{"maintenanceWindow":{"enforcing":false,"cron":"0 22 * * *","duration":"2h"}}`, expected{}},
	"a window that does not enforce":    {`{"maintenanceWindow":{"cron":"0 22 * * *","duration":"2h"}}`, expected{}},
	"a window without cron":             {`{"maintenanceWindow":{"enforcing":true,"duration":"2h"}}`, expected{pause.Unknown, "", "maintenanceWindow"}},
	"a window with bad cron":            {`{"maintenanceWindow":{"enforcing":true,"cron":"often","duration":"2h"}}`, expected{pause.Unknown, "", "maintenanceWindow"}},
	"a window in no location":           {`{"maintenanceWindow":{"enforcing":true,"cron":"0 22 * * *","location":"Atlantis","duration":"2h"}}`, expected{pause.Unknown, "", "Atlantis"}},
	"a window without duration":         {`{"maintenanceWindow":{"enforcing":true,"cron":"0 22 * * *"}}`, expected{pause.Unknown, "", "duration is \"\""}},
	"a window of negative duration":     {`{"maintenanceWindow":{"enforcing":true,"cron":"0 22 * * *","duration":"-2h"}}`, expected{pause.Unknown, "", "duration is \"-2h\""}},
	"a window whose enforcing is text":  {`{"maintenanceWindow":{"enforcing":"true","cron":"0 22 * * *","duration":"2h"}}`, expected{pause.Unknown, "", "enforcing is a string"}},
	"inside an exclusion":               {`{"exclusions":[{"enforcing":true,"start":"2026-05-14T00:00:00Z","end":"2026-05-20T00:00:00Z"}]}`, expected{pause.PausedUntil, "2026-05-20T00:00:00Z", "Inside ClusterVersion exclusion window."}},
	"when an exclusion starts":          {`{"exclusions":[{"enforcing":true,"start":"2026-05-14T12:00:00Z","end":"2026-05-20T00:00:00Z"}]}`, expected{pause.PausedUntil, "2026-05-20T00:00:00Z", "Inside"}},
	"when an exclusion ends":            {`{"exclusions":[{"enforcing":true,"start":"2026-05-13T12:00:00Z","end":"2026-05-14T12:00:00Z"}]}`, expected{}},
	"before an exclusion":               {`{"exclusions":[{"enforcing":true,"start":"2026-05-15T00:00:00Z","end":"2026-05-20T00:00:00Z"}]}`, expected{}},
	"an exclusion that is not enforced": {`{"exclusions":[{"enforcing":false,"start":"2026-05-14T00:00:00Z","end":"2026-05-20T00:00:00Z"}]}`, expected{}},
	"exclusions that touch":             {`{"exclusions":[{"enforcing":true,"start":"2026-05-20T00:00:00Z","end":"2026-05-21T00:00:00Z"},{"enforcing":true,"start":"2026-05-14T00:00:00Z","end":"2026-05-20T00:00:00Z"}]}`, expected{pause.PausedUntil, "2026-05-21T00:00:00Z", "Inside"}},
	"an exclusion without end":          {`{"exclusions":[{"enforcing":true,"start":"2026-05-14T00:00:00Z"}]}`, expected{pause.Unknown, "", "exclusions[0].end"}},
	"an exclusion that ends too early":  {`{"exclusions":[{"enforcing":true,"start":"2026-05-14T00:00:00Z","end":"2026-05-13T00:00:00Z"}]}`, expected{pause.Unknown, "", "exclusions[0] ends before it starts"}},
	"exclusions that are no list":       {`{"exclusions":{}}`, expected{pause.Unknown, "", "exclusions is an object, not a list"}},
	"the window opens in an exclusion": {
		`{"maintenanceWindow":{"enforcing":true,"cron":"0 22 * * *","duration":"2h"},"exclusions":[{"enforcing":true,"start":"2026-05-14T18:00:00Z","end":"2026-05-15T06:00:00Z"}]}`,
		expected{pause.PausedUntil, "2026-05-15T22:00:00Z", "Outside ClusterVersion maintenance window."},
	},
	"the window is open when the exclusion ends": {
		`{"maintenanceWindow":{"enforcing":true,"cron":"0 22 * * *","duration":"8h"},"exclusions":[{"enforcing":true,"start":"2026-05-14T10:00:00Z","end":"2026-05-15T01:30:00Z"}]}`,
		expected{pause.PausedUntil, "2026-05-15T01:30:00Z", "Inside ClusterVersion exclusion window."},
	},
}

func check(t *testing.T, got pause.Pause, want expected) {
	t.Helper()
	until := ""
	if !got.Until.IsZero() {
		until = got.Until.Format(time.RFC3339)
	}
	if got.State != want.state || until != want.until || !strings.Contains(got.Message, want.message) || (got.State == pause.NotPaused) != (got.Message == "") {
		t.Errorf("got %q until %q: %q, want %q until %q: …%q…", got.State, until, got.Message, want.state, want.until, want.message)
	}
}

func TestOf_VersionManagement(t *testing.T) {
	t.Parallel()
	for name, c := range versionManagementCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := pause.Subject{Kind: "ClusterVersion", VersionManagement: decode(t, c.management)}
			check(t, pause.Of(cluster, nil, now), c.want)

			pool := pause.Of(pause.Subject{Kind: "MachineSet"}, &cluster, now)
			check(t, pool, c.want)
			if known := c.want.state == pause.Paused || c.want.state == pause.PausedUntil; known != strings.HasPrefix(pool.Message, "Updates paused at cluster level.") {
				t.Errorf("message of a pool: %q", pool.Message)
			}

			own := pause.Of(pause.Subject{Kind: "MachineSet", VersionManagement: cluster.VersionManagement}, &pause.Subject{Kind: "ClusterVersion"}, now)
			c.want.message = strings.ReplaceAll(c.want.message, "ClusterVersion", "MachineSet")
			check(t, own, c.want)
		})
	}
}

func mark(t *testing.T, value string) *clusterstate.PoolMark {
	t.Helper()
	parsed, ok := clusterstate.ParsePoolMark(value)
	if !ok {
		t.Fatalf("%q is no mark", value)
	}
	return &parsed
}

func TestOf(t *testing.T) {
	t.Parallel()
	const (
		night  = `{"maintenanceWindow":{"enforcing":true,"cron":"0 22 * * *","duration":"2h"}}`
		week   = `{"exclusions":[{"enforcing":true,"start":"2026-05-14T00:00:00Z","end":"2026-05-20T00:00:00Z"}]}`
		always = `{"pausedUntil":"true"}`
	)
	managed := func(value string) pause.Subject {
		return pause.Subject{Kind: "ClusterVersion", VersionManagement: decode(t, value)}
	}
	pool := func(paused bool, mark *clusterstate.PoolMark) pause.Subject {
		return pause.Subject{Kind: "MachineConfigPool", Pool: &clusterstate.Pool{Name: "worker", Paused: paused, Mark: mark}}
	}
	with := func(s pause.Subject, edit func(*pause.Subject)) pause.Subject {
		edit(&s)
		return s
	}
	started := func(s *pause.Subject) { s.Started = true }
	unreadable := func(s *pause.Subject) { s.Missing = "forbidden" }
	cases := map[string]struct {
		subject pause.Subject
		cluster *pause.Subject
		want    expected
	}{
		"a started control plane, outside its window":    {with(managed(night), started), nil, expected{}},
		"a started control plane, inside an exclusion":   {with(managed(week), started), nil, expected{}},
		"a started control plane, paused without an end": {with(managed(always), started), nil, expected{pause.Paused, "", "pausedUntil is true."}},
		"a pool outside the window of a started cluster": {pool(false, nil), new(with(managed(night), started)), expected{pause.PausedUntil, "2026-05-14T22:00:00Z", "Updates paused at cluster level. Outside ClusterVersion maintenance window."}},
		"an unreadable control plane":                    {with(managed(""), unreadable), nil, expected{pause.Unknown, "", "cannot be read: forbidden."}},
		"a pool of an unreadable control plane":          {pool(false, nil), new(with(managed(""), unreadable)), expected{pause.Unknown, "", "cannot be read: forbidden."}},
		"an unreadable pool":                             {with(pool(false, nil), unreadable), new(managed("")), expected{pause.Unknown, "", "cannot be read: forbidden."}},
		"a pool that is not paused":                      {pool(false, nil), new(managed("")), expected{}},
		"a pool that a user paused":                      {pool(true, nil), new(managed("")), expected{pause.Paused, "", "MachineConfigPool worker is paused."}},
		"a delayed pool before its release":              {pool(true, mark(t, "u/1/2026-05-15T22:00:00Z/2026-05-16T02:00:00Z")), new(managed("")), expected{pause.PausedUntil, "2026-05-15T22:00:00Z", "paused by an upgrade until 2026-05-15T22:00:00Z."}},
		"a delayed pool at its release":                  {pool(true, mark(t, "u/1/2026-05-14T12:00:00Z/2026-05-14T14:00:00Z")), new(managed("")), expected{pause.PausedUntil, "2026-05-14T14:00:00Z", "resumes by 2026-05-14T14:00:00Z."}},
		"a delayed pool that was not released":           {pool(true, mark(t, "u/1/2026-05-14T08:00:00Z/2026-05-14T12:00:00Z")), new(managed("")), expected{pause.Paused, "", "did not unpause it before"}},
		"a pool that a failed UpgradeJob keeps":          {pool(true, mark(t, "u/1/never/2026-05-14T08:00:00Z")), new(managed("")), expected{pause.Paused, "", "that failed"}},
		"a delayed pool that a user has unpaused":        {pool(false, mark(t, "u/1/2026-05-15T22:00:00Z/2026-05-16T02:00:00Z")), new(managed("")), expected{}},
		"a delayed pool, released outside of a window":   {pool(true, mark(t, "u/1/2026-05-16T02:00:00Z/2026-05-16T04:00:00Z")), new(managed(night)), expected{pause.PausedUntil, "2026-05-16T22:00:00Z", "MachineConfigPool worker is paused by an upgrade until"}},
		"a pool with an end, in a cluster without one":   {pool(true, mark(t, "u/1/2026-05-15T22:00:00Z/2026-05-16T02:00:00Z")), new(managed(always)), expected{pause.Paused, "", "Updates paused at cluster level. ClusterVersion spec.versionManagement.pausedUntil is true. MachineConfigPool worker"}},
		"a pool and a cluster whose windows never overlap": {with(pool(false, nil), func(s *pause.Subject) {
			s.VersionManagement = decode(t, `{"maintenanceWindow":{"enforcing":true,"cron":"0 3 * * *","duration":"2h"}}`)
		}), new(managed(night)), expected{pause.Paused, "", "Outside MachineConfigPool maintenance window."}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, pause.Of(c.subject, c.cluster, now), c.want)
		})
	}
}

// TestOf_ResumesWhenItSays checks that the update is paused before the reported time but not at
// that time.
func TestOf_ResumesWhenItSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		base := now
		exclusions := []any{}
		for range rapid.IntRange(0, 4).Draw(t, "exclusions") {
			start := base.Add(time.Duration(rapid.IntRange(-96, 96).Draw(t, "start")) * time.Hour)
			exclusions = append(exclusions, map[string]any{
				"enforcing": true, "start": start.Format(time.RFC3339),
				"end": start.Add(time.Duration(rapid.IntRange(1, 48).Draw(t, "length")) * time.Hour).Format(time.RFC3339),
			})
		}
		cron := rapid.SampledFrom([]string{"0 22 * * *", "30 2 * * 1,4", "0 */6 * * *", "15 1 1 * *"}).Draw(t, "cron")
		subject := pause.Subject{Kind: "ClusterVersion", VersionManagement: map[string]any{
			"maintenanceWindow": map[string]any{"enforcing": true, "cron": cron, "duration": rapid.SampledFrom([]string{"1h", "5h30m", "24h"}).Draw(t, "duration")},
			"exclusions":        exclusions,
		}}
		paused := pause.Of(subject, nil, base)
		if paused.State == pause.NotPaused {
			return
		}
		if paused.State != pause.PausedUntil || !paused.Until.After(base) {
			t.Fatalf("got %+v", paused)
		}
		if again := pause.Of(subject, nil, paused.Until); again.State != pause.NotPaused {
			t.Fatalf("at %s: %+v", paused.Until, again)
		}
		between := base.Add(time.Duration(rapid.Int64Range(0, int64(paused.Until.Sub(base))-1).Draw(t, "between")))
		if again := pause.Of(subject, nil, between); again.State != pause.PausedUntil || !again.Until.Equal(paused.Until) {
			t.Fatalf("at %s: %+v, first %+v", between, again, paused)
		}
	})
}

func FuzzOf(f *testing.F) {
	for _, c := range versionManagementCases {
		f.Add(c.management)
	}
	f.Fuzz(func(t *testing.T, management string) {
		var decoded any
		if json.Unmarshal([]byte(management), &decoded) != nil {
			return
		}
		subject := pause.Subject{Kind: "MachineSet", VersionManagement: decoded}
		got := pause.Of(subject, &pause.Subject{Kind: "ClusterVersion"}, now)
		if (got.State == pause.PausedUntil) != got.Until.After(now) || (got.State == pause.NotPaused) != (got.Message == "") {
			t.Errorf("got %+v", got)
		}
	})
}
