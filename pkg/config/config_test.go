// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

const head = "apiVersion: config.upgrade.managed.openshift.io/v1alpha1\nkind: OperatorConfig\n"

// set returns a file that sets one key.
func set(path, value string) string {
	section, key, nested := strings.Cut(path, ".")
	if !nested {
		return head + path + ": " + value + "\n"
	}
	return head + section + ":\n  " + key + ": " + value + "\n"
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	want := config.Default()
	for _, s := range want.Settings() {
		if s.Doc == "" {
			t.Errorf("%s has no Doc", s.Path)
		}
		switch v := s.Value.(type) {
		case config.DurationSetting:
			if v.Value.Duration != v.Default || v.Default < v.Min || v.Default > v.Max {
				t.Errorf("%s is %s by default, want %s, between %s and %s", s.Path, v.Value, v.Default, v.Min, v.Max)
			}
		case config.StringSetting:
			if *v.Value != v.Default || len(v.Default) > v.MaxLen {
				t.Errorf("%s is %q by default, want %q, of %d bytes at most", s.Path, *v.Value, v.Default, v.MaxLen)
			}
		case config.StringListSetting:
			if *v.Value == nil || !slices.Equal(*v.Value, v.Default) {
				t.Errorf("%s is %v by default, want %v, and never nil", s.Path, *v.Value, v.Default)
			}
		}
	}
	files := map[string]string{
		"nothing but the head":      head,
		"empty sections":            head + "controlPlane:\nworkers: {}\ncleanup: null\n",
		"comments":                  "# why\n" + head + "# controlPlane:\n#   slowAfter: 1h\n",
		"a document with its marks": "---\n" + head + "...\n",
		"a document of comments":    "# why\n---\n" + head,
		"JSON":                      `{"apiVersion": "config.upgrade.managed.openshift.io/v1alpha1", "kind": "OperatorConfig"}`,
	}
	for _, s := range want.Settings() {
		files["null in "+s.Path] = set(s.Path, "null")
	}
	for name, text := range files {
		got, err := config.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestDurationSetting_bounds(t *testing.T) {
	t.Parallel()
	durations := 0
	for i, setting := range new(config.Config).Settings() {
		s, ok := setting.Value.(config.DurationSetting)
		if !ok {
			continue
		}
		durations++
		for _, value := range []time.Duration{s.Min, s.Default + time.Second, s.Max} {
			text, want := set(setting.Path, value.String()), config.Default()
			want.Settings()[i].Value.(config.DurationSetting).Value.Duration = value
			switch setting.Path {
			case "scale.timeout":
				text += "upgradeWindow: 168h\n"
				want.UpgradeWindow.Duration = 168 * time.Hour
			case "upgradeWindow":
				want.Scale.Timeout.Duration = min(15*time.Minute, value/2)
			}
			checkParses(t, text, want)
		}
		bounds := fmt.Sprintf("must be between %s and %s", config.Duration{Duration: s.Min}, config.Duration{Duration: s.Max})
		unit := "must be a duration with its unit, for example 90s, 30m, or 2h30m"
		for value, want := range map[string]string{
			(s.Min - time.Nanosecond).String(): bounds,
			(s.Max + time.Nanosecond).String(): bounds,
			"-1h":                              bounds,
			`"0"`:                              bounds,
			"30":                               `Invalid value: "30": ` + unit,
			`"30"`:                             `Invalid value: "30": ` + unit,
			"1d":                               `Invalid value: "1d": ` + unit,
			"soon":                             `Invalid value: "soon": ` + unit,
			"true":                             `Invalid value: "true": ` + unit,
			"1h 30m":                           `Invalid value: "1h 30m": ` + unit,
			"99999999999999999h":               `Invalid value: "99999999999999999h": ` + unit,
			`""`:                               `Invalid value: "": ` + unit,
			"[1h]":                             unit,
			"{minutes: 30}":                    unit,
		} {
			if s.Min == 0 && value == `"0"` {
				continue
			}
			_, err := config.Parse([]byte(set(setting.Path, value)))
			checkRejected(t, err, setting.Path+": ", want)
		}
	}
	if durations < 6 {
		t.Fatalf("%d durations", durations)
	}
}

func TestScaleTimeout_is_shorter_than_the_window(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"scale:\n  timeout: 29m\n":                       "29m",
		"scale:\n  timeout: 30m\n":                       `scale.timeout: Invalid value: "30m": must be shorter than upgradeWindow, which is 30m`,
		"upgradeWindow: 1h\nscale:\n  timeout: 30m\n":    "30m",
		"scale:\n  timeout: 30m\nupgradeWindow: 1h\n":    "30m",
		"upgradeWindow: 15m\nscale:\n  timeout: 15m\n":   `scale.timeout: Invalid value: "15m": must be shorter than upgradeWindow, which is 15m`,
		"scale:\n  timeout: 3h\nupgradeWindow: 2h30m\n":  `scale.timeout: Invalid value: "3h": must be shorter than upgradeWindow, which is 2h30m`,
		"upgradeWindow: 10m\n":                           "5m",
		"upgradeWindow: 2h\n":                            "15m",
		"upgradeWindow: 10m\nscale:\n":                   "5m",
		"upgradeWindow: 10m\nscale: {timeout: null}\n":   "5m",
		"upgradeWindow: 10m\nscale:\n  timeout: 9m59s\n": "9m59s",
	} {
		got, err := config.Parse([]byte(head + text))
		if strings.HasPrefix(want, "scale.timeout: ") {
			checkRejected(t, err, want)
			continue
		}
		if err != nil || got.Scale.Timeout.String() != want {
			t.Errorf("%q: scale.timeout is %s, want %s: %v", text, got.Scale.Timeout, want, err)
		}
	}
}

func TestStringSetting_bounds(t *testing.T) {
	t.Parallel()
	texts := 0
	for i, setting := range new(config.Config).Settings() {
		s, ok := setting.Value.(config.StringSetting)
		if !ok {
			continue
		}
		texts++
		for _, value := range []string{"", "plain", "30", strings.Repeat("x", s.MaxLen)} {
			want := config.Default()
			*want.Settings()[i].Value.(config.StringSetting).Value = value
			checkParses(t, set(setting.Path, strconv.Quote(value)), want)
		}
		for value, want := range map[string]string{
			strings.Repeat("x", s.MaxLen+1): fmt.Sprintf("Too long: may not be more than %d bytes", s.MaxLen),
			"{}":                            `Invalid value: "mapping": must be a string`,
			"30":                            `Invalid value: "number": must be a string`,
			"true":                          `Invalid value: "boolean": must be a string`,
			"[plain]":                       `Invalid value: "list": must be a string`,
		} {
			_, err := config.Parse([]byte(set(setting.Path, value)))
			checkRejected(t, err, setting.Path+": ", want)
		}
	}
	if texts < 4 {
		t.Fatalf("%d strings", texts)
	}
}

func TestStringListSetting_bounds(t *testing.T) {
	t.Parallel()
	lists := 0
	for i, setting := range new(config.Config).Settings() {
		s, ok := setting.Value.(config.StringListSetting)
		if !ok {
			continue
		}
		lists++
		for text, value := range map[string][]string{
			"[]":                        {},
			"[one, another]":            {"one", "another"},
			"\n    - one\n    - \"30\"": {"one", "30"},
			"[&a one, *a]":              {"one", "one"},
			"[" + strings.Repeat("x", s.MaxLen) + "]":    {strings.Repeat("x", s.MaxLen)},
			"[" + strings.Repeat("x,", s.MaxItems) + "]": slices.Repeat([]string{"x"}, s.MaxItems),
		} {
			want := config.Default()
			*want.Settings()[i].Value.(config.StringListSetting).Value = value
			checkParses(t, set(setting.Path, text), want)
		}
		for value, want := range map[string]string{
			"{}":               `: Invalid value: "mapping": must be a list`,
			"one":              `: Invalid value: "string": must be a list`,
			"[one, 30]":        `: Invalid value: "number": must be a string`,
			"[{a: b}]":         `: Invalid value: "mapping": must be a string`,
			"[[one]]":          `: Invalid value: "list": must be a string`,
			"[one, ~]":         "[1]: Required value: must not be empty",
			`[one, "", a, ""]`: "[1]: Required value: must not be empty; " + setting.Path + "[3]: Required value",
			"[" + strings.Repeat("x", s.MaxLen+1) + "]":    fmt.Sprintf("[0]: Too long: may not be more than %d bytes", s.MaxLen),
			"[" + strings.Repeat("x,", s.MaxItems+1) + "]": fmt.Sprintf(": Too many: %d: must have at most %d items", s.MaxItems+1, s.MaxItems),
		} {
			_, err := config.Parse([]byte(set(setting.Path, value)))
			checkRejected(t, err, setting.Path+want)
		}
	}
	if lists < 3 {
		t.Fatalf("%d lists", lists)
	}
}

func TestEnumListSetting_rejects_other_names(t *testing.T) {
	t.Parallel()
	enums := 0
	for i, setting := range new(config.Config).Settings() {
		s, ok := setting.Value.(config.EnumListSetting)
		if !ok {
			continue
		}
		enums++
		for text, value := range map[string][]string{"[]": {}, "[" + strings.Join(s.Allowed, ", ") + "]": s.Allowed} {
			want := config.Default()
			*want.Settings()[i].Value.(config.EnumListSetting).Value = value
			checkParses(t, set(setting.Path, text), want)
		}
		for value, want := range map[string]string{
			"[Dance]": `[0]: Unsupported value: "Dance": supported values: "` + s.Allowed[0] + `"`,
			"[" + strings.ToLower(s.Allowed[0]) + "]": "[0]: Unsupported value: ",
			s.Allowed[0]: `: Invalid value: "string": must be a list`,
			"[30]":       `: Invalid value: "number": must be a string`,
			"[" + strings.Repeat("x,", len(s.Allowed)+1) + "]": fmt.Sprintf(": Too many: %d: must have at most %d", len(s.Allowed)+1, len(s.Allowed)),
		} {
			_, err := config.Parse([]byte(set(setting.Path, value)))
			checkRejected(t, err, setting.Path+want)
		}
	}
	if enums < 1 {
		t.Fatalf("%d enums", enums)
	}
}

func checkParses(t *testing.T, text string, want config.Config) {
	t.Helper()
	got, err := config.Parse([]byte(text))
	if err != nil {
		t.Errorf("%q is rejected: %v", text, err)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q (-want +got):\n%s", text, diff)
	}
}

func checkRejected(t *testing.T, err error, wants ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("it is accepted, want it rejected because of %q", wants)
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not contain %q: %v", want, err)
		}
	}
}

func TestErrors_are_bounded_and_show_no_secret(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	keys := 50_000
	if testing.Short() {
		keys = 5000
	}
	for i := range keys {
		fmt.Fprintf(&many, "key%d: 1\n", i)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"many keys":            {head + many.String(), "more"},
		"a long value":         {set("upgradeWindow", strings.Repeat("9", 100_000)), "upgradeWindow: Invalid value: "},
		"a long kind":          {"apiVersion: " + config.APIVersion + "\nkind: " + strings.Repeat("k", 100_000), `kind: Unsupported value: "` + strings.Repeat("k", 64) + `…"`},
		"a long key":           {head + "? " + strings.Repeat("k", 100_000) + "\n: 1\n", strings.Repeat("k", 64) + "…: Invalid value: unknown field"},
		"a deep one":           {head + "a: " + strings.Repeat("{a: ", 3000) + "1" + strings.Repeat("}", 3000), "a: Invalid value: unknown field"},
		"a key for a terminal": {head + `"a\e[2J\nb": 1`, `a\x1b[2J\nb: Invalid value: unknown field`},
		"a password":           {set("webhook", "https://me:secret@receiver"), `webhook: Invalid value: "string": must be a mapping`},
		"a token":              {set("externalDependencies.urls", "https://there/?token=secret"), `externalDependencies.urls: Invalid value: "string": must be a list`},
		"a URL as a duration":  {set("webhook.timeout", "https://there/?token=secret"), `webhook.timeout: Invalid value: "…": must be a duration`},
		"a URL as a key":       {head + "https://me:secret@receiver: 1", "…: Invalid value: unknown field"},
		"a URL as two keys":    {head + "https://me:secret@receiver: 1\nhttps://me:secret@receiver: 2", "…"},
		"many keys twice":      {head + many.String() + many.String(), "already set"},
	} {
		_, err := config.Parse([]byte(tc.text))
		checkRejected(t, err, tc.want)
		switch message := err.Error(); {
		case len(message) > 4<<10:
			t.Errorf("%s: the error has %d bytes", name, len(message))
		case strings.Contains(message, "secret") || strings.ContainsFunc(message, unicode.IsControl):
			t.Errorf("%s: the error is %s", name, message)
		}
	}
}

func TestErrors_name_the_key_and_valid_values(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"an empty file":                {"", []string{"apiVersion: Required value", "kind: Required value"}},
		"nothing but a comment":        {"# later\n", []string{"apiVersion: Required value", "kind: Required value"}},
		"another version":              {"apiVersion: config.upgrade.managed.openshift.io/v2\nkind: OperatorConfig\n", []string{`apiVersion: Unsupported value: "config.upgrade.managed.openshift.io/v2"`}},
		"another kind":                 {"apiVersion: config.upgrade.managed.openshift.io/v1alpha1\nkind: ConfigMap\n", []string{`kind: Unsupported value: "ConfigMap": supported values: "OperatorConfig"`}},
		"an unknown key":               {head + "upgradeWindows: 1h\n", []string{"upgradeWindows: Invalid value: unknown field"}},
		"an unknown key in a section":  {head + "controlPlane:\n  slowafter: 1h\n", []string{"controlPlane.slowafter: Invalid value: unknown field"}},
		"a key in the wrong case":      {head + "UpgradeWindow: 1h\n", []string{"UpgradeWindow: Invalid value: unknown field"}},
		"an unknown section":           {head + "nodes:\n  drain:\n    timeout: 1h\n", []string{"nodes: Invalid value: unknown field"}},
		"a path for a key":             {head + "workers.slowAfter: 1h\n", []string{"workers.slowAfter: Invalid value: unknown field"}},
		"a value instead of a section": {head + "controlPlane: 1h\n", []string{`controlPlane: Invalid value: "string": must be a mapping`}},
		"a list instead of a section":  {head + "controlPlane: [1h]\n", []string{`controlPlane: Invalid value: "list": must be a mapping`}},
		"an unknown mode":              {head + "preChecks: {mode: Maybe}\n", []string{`preChecks.mode: Unsupported value: "Maybe": supported values: "Ignore", "Require"`}},
		"a mode in the wrong case":     {head + "preChecks: {mode: require}\n", []string{`preChecks.mode: Unsupported value: "require": supported values: "Ignore", "Require"`}},
		"a mode that is no text":       {head + "preChecks: {mode: true}\n", []string{`preChecks.mode: Invalid value: "boolean": must be a string`}},
		"a mode for the section":       {head + "preChecks: Require\n", []string{`preChecks: Invalid value: "string": must be a mapping`}},
		"keys that are there twice":    {head + "upgradeWindow: 1h\nworkers: {slowAfter: 1h, slowAfter: 2h}\nupgradeWindow: 2h\n", []string{`line 4: key "slowAfter" already set`, `line 5: key "upgradeWindow" already set`}},
		"several documents":            {head + "---\n" + head, []string{"the file holds more than one document"}},
		"a list":                       {"- upgradeWindow: 1h\n", []string{`Invalid value: "list": must be a mapping`}},
		"a sentence":                   {"thirty minutes", []string{`Invalid value: "string": must be a mapping`}},
		"no YAML":                      {head + "workers: [\n", []string{"invalid configuration: yaml: line"}},
		"tabs":                         {head + "workers:\n\tslowAfter: 1h\n", []string{"invalid configuration: yaml: line"}},
		"everything at once": {
			"kind: Config\nworkers:\n  slowAfter: 0s\n  x: 1\nupgradeWindow: 5\nz: 1\npostUpgrade: {procedures: [Dance]}\n",
			[]string{
				"workers.x: Invalid value: unknown field; z: Invalid value: unknown field; apiVersion: Required value", `kind: Unsupported value: "Config"`,
				`workers.slowAfter: Invalid value: "0s"`, `upgradeWindow: Invalid value: "5"`, `postUpgrade.procedures[0]: Unsupported value: "Dance"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse([]byte(tc.text))
			checkRejected(t, err, tc.want...)
			golden.Texts(t, "", fmt.Sprint(err))
		})
	}
}

func TestMarshal_and_Parse_round_trip(t *testing.T) {
	t.Parallel()
	want := config.Default()
	want.UpgradeWindow.Duration, want.Scale.Timeout.Duration = 90*time.Second, 45*time.Second
	want.Workers.SlowAfter.Duration = 26*time.Hour + 5*time.Minute
	want.Alerts.URL, want.Alerts.IgnoreAlerts = "", []string{"30", "true"}
	text, err := yaml.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("after a round trip (-want +got):\n%s", diff)
	}
}

func TestDuration_is_marshaled_as_short_as_possible(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0:                              "0s",
		time.Second:                    "1s",
		90 * time.Second:               "1m30s",
		30 * time.Minute:               "30m",
		2 * time.Hour:                  "2h",
		2*time.Hour + 30*time.Minute:   "2h30m",
		10*time.Hour + 10*time.Second:  "10h0m10s",
		20*time.Minute + 0*time.Second: "20m",
	} {
		text, err := json.Marshal(config.Duration{Duration: d})
		if err != nil || string(text) != `"`+want+`"` {
			t.Errorf("%d is written as %s, want %q (%v)", d, text, want, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head))
	for _, s := range new(config.Config).Settings() {
		f.Add([]byte(set(s.Path, "1h")))
		f.Add([]byte(set(s.Path, "{a: [b, {c: *d}]}")))
	}
	f.Add([]byte("a: &a\n  b: *a\n<<: *a\n? [x]\n: y\n---\n...\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse(data)
		if err != nil {
			if diff := cmp.Diff(config.Config{}, c); diff != "" {
				t.Errorf("a rejected file leaves something behind: %s", diff)
			}
			return
		}
		for _, s := range c.Settings() {
			switch v := s.Value.(type) {
			case config.DurationSetting:
				if v.Value.Duration < v.Min || v.Value.Duration > v.Max {
					t.Errorf("%s is %s, which is not between %s and %s", s.Path, v.Value, v.Min, v.Max)
				}
			case config.StringSetting:
				if len(*v.Value) > v.MaxLen {
					t.Errorf("%s has %d bytes, more than %d", s.Path, len(*v.Value), v.MaxLen)
				}
			case config.StringListSetting:
				if len(*v.Value) > v.MaxItems || slices.Contains(*v.Value, "") {
					t.Errorf("%s is %q, of more than %d items or with an empty one", s.Path, *v.Value, v.MaxItems)
				}
			}
		}
		if c.APIVersion != config.APIVersion || c.Kind != config.Kind {
			t.Errorf("accepted although it is a %s %s", c.APIVersion, c.Kind)
		}
	})
}
