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
)

const head = "apiVersion: config.upgrade.managed.openshift.io/v1alpha1\nkind: OperatorConfig\n"

// set is a file that sets one key.
func set(path, value string) string {
	section, key, nested := strings.Cut(path, ".")
	if !nested {
		return head + path + ": " + value + "\n"
	}
	return head + section + ":\n  " + key + ": " + value + "\n"
}

func TestWhatIsNotSetHasItsDefault(t *testing.T) {
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
	for name, text := range map[string]string{
		"nothing but the head":      head,
		"empty sections":            head + "controlPlane:\nworkers: {}\ncleanup: null\n",
		"comments":                  "# why\n" + head + "# controlPlane:\n#   slowAfter: 1h\n",
		"a document with its marks": "---\n" + head + "...\n",
		"JSON":                      `{"apiVersion": "config.upgrade.managed.openshift.io/v1alpha1", "kind": "OperatorConfig"}`,
	} {
		got, err := config.Parse([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestEveryDurationIsTakenWithinItsBoundsAndRefusedBeyondThem(t *testing.T) {
	t.Parallel()
	spans := 0
	for i, setting := range new(config.Config).Settings() {
		s, ok := setting.Value.(config.DurationSetting)
		if !ok {
			continue
		}
		spans++
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
		unit := "must be a duration with its unit, such as 90s, 30m or 2h30m"
		for value, want := range map[string]string{
			(s.Min - time.Nanosecond).String(): bounds,
			(s.Max + time.Nanosecond).String(): bounds,
			"-1h":                              bounds,
			"0s":                               bounds,
			"30":                               `is "30", ` + unit,
			`"30"`:                             `is "30", ` + unit,
			"0":                                bounds,
			"1d":                               `is "1d", ` + unit,
			"soon":                             `is "soon", ` + unit,
			"true":                             `is "true", ` + unit,
			"1h 30m":                           `is "1h 30m", ` + unit,
			"99999999999999999h":               `is "99999999999999999h", ` + unit,
			`""`:                               `is "", ` + unit,
			"":                                 `is "", ` + unit,
			"[1h]":                             `is "a list", ` + unit,
		} {
			if s.Min == 0 && (value == "0" || value == "0s") {
				continue
			}
			_, err := config.Parse([]byte(set(setting.Path, value)))
			checkRejected(t, err, setting.Path+": ", want)
		}
	}
	if spans < 6 {
		t.Fatalf("there are %d durations", spans)
	}
}

func TestExtraNodesMayNotTakeTheWholeWindow(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"scale:\n  timeout: 29m\n":                       "29m",
		"scale:\n  timeout: 30m\n":                       "scale.timeout: is 30m, must be shorter than upgradeWindow, which is 30m",
		"upgradeWindow: 1h\nscale:\n  timeout: 30m\n":    "30m",
		"scale:\n  timeout: 30m\nupgradeWindow: 1h\n":    "30m",
		"upgradeWindow: 15m\nscale:\n  timeout: 15m\n":   "scale.timeout: is 15m, must be shorter than upgradeWindow, which is 15m",
		"scale:\n  timeout: 3h\nupgradeWindow: 2h30m\n":  "scale.timeout: is 3h, must be shorter than upgradeWindow, which is 2h30m",
		"upgradeWindow: 10m\n":                           "5m",
		"upgradeWindow: 2h\n":                            "15m",
		"upgradeWindow: 10m\nscale:\n":                   "5m",
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

func TestEveryTextIsTakenIfItIsOneAndNotTooLong(t *testing.T) {
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
		text := "must be a text, in quotes if it is empty or could be something else"
		for value, want := range map[string]string{
			strings.Repeat("x", s.MaxLen+1): fmt.Sprintf("has %d bytes, must have 0 to %d", s.MaxLen+1, s.MaxLen),
			"":                              `is "", ` + text,
			"null":                          `is "null", ` + text,
			"{}":                            `is "", ` + text,
			"30":                            `is "30", ` + text,
			"true":                          `is "true", ` + text,
			"[plain]":                       `is "a list", ` + text,
		} {
			_, err := config.Parse([]byte(set(setting.Path, value)))
			checkRejected(t, err, setting.Path+": ", want)
		}
	}
	if texts < 4 {
		t.Fatalf("there are %d texts", texts)
	}
}

func TestEveryListIsTakenIfItIsOneOfTextsAndNotTooLong(t *testing.T) {
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
			"[" + strings.Repeat("x", s.MaxLen) + "]":    {strings.Repeat("x", s.MaxLen)},
			"[" + strings.Repeat("x,", s.MaxItems) + "]": slices.Repeat([]string{"x"}, s.MaxItems),
		} {
			want := config.Default()
			*want.Settings()[i].Value.(config.StringListSetting).Value = value
			checkParses(t, set(setting.Path, text), want)
		}
		list, text := "must be a list, such as [] or [one, another]", "must be a text, in quotes"
		for value, want := range map[string]string{
			"":                    `is "", ` + list,
			"null":                `is "null", ` + list,
			"{}":                  `is "", ` + list,
			"one":                 `is "one", ` + list,
			"[one, 30]":           `item 2 is "30", ` + text,
			"[{a: b, c: d}, one]": `item 1 is "keys", ` + text,
			"[[one]]":             `item 1 is "a list", ` + text,
			"[one, ~]":            `item 2 is "~", ` + text,
			"[30, true]":          `or could be something else; item 2 is "true", ` + text,
			`[one, ""]`:           fmt.Sprintf("item 2 has 0 bytes, must have 1 to %d", s.MaxLen),
			"[&a one, *a]":        `item 2 is "*a", ` + text,
			"[" + strings.Repeat("x", s.MaxLen+1) + "]":    fmt.Sprintf("item 1 has %d bytes, must have 1 to %d", s.MaxLen+1, s.MaxLen),
			"[" + strings.Repeat("x,", s.MaxItems+1) + "]": fmt.Sprintf("has %d items, must have %d at most", s.MaxItems+1, s.MaxItems),
		} {
			_, err := config.Parse([]byte(set(setting.Path, value)))
			checkRejected(t, err, setting.Path+": ", want)
		}
	}
	if lists < 3 {
		t.Fatalf("there are %d lists", lists)
	}
}

func TestEveryChoiceIsTakenOutOfItsNamesAlone(t *testing.T) {
	t.Parallel()
	choices := 0
	for i, setting := range new(config.Config).Settings() {
		s, ok := setting.Value.(config.EnumListSetting)
		if !ok {
			continue
		}
		choices++
		for text, value := range map[string][]string{"[]": {}, "[" + strings.Join(s.Allowed, ", ") + "]": s.Allowed} {
			want := config.Default()
			*want.Settings()[i].Value.(config.EnumListSetting).Value = value
			checkParses(t, set(setting.Path, text), want)
		}
		for value, want := range map[string]string{
			"[Dance]": `item 1 is "Dance", must be one of ` + strings.Join(s.Allowed, ", "),
			"[" + strings.ToLower(s.Allowed[0]) + "]": "must be one of " + strings.Join(s.Allowed, ", "),
			s.Allowed[0]: "must be a list, such as",
			"[30]":       `item 1 is "30", must be a text`,
			"[" + strings.Repeat("x,", len(s.Allowed)+1) + "]": fmt.Sprintf("must have %d at most", len(s.Allowed)),
		} {
			_, err := config.Parse([]byte(set(setting.Path, value)))
			checkRejected(t, err, setting.Path+": ", want)
		}
	}
	if choices < 1 {
		t.Fatalf("there are %d choices", choices)
	}
}

func checkParses(t *testing.T, text string, want config.Config) {
	t.Helper()
	got, err := config.Parse([]byte(text))
	if err != nil {
		t.Errorf("%q is refused: %v", text, err)
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%q (-want +got):\n%s", text, diff)
	}
}

func checkRejected(t *testing.T, err error, wants ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("it is taken, want it refused because of %q", wants)
		return
	}
	for _, want := range wants {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal does not say %q: %v", want, err)
		}
	}
}

func TestWhatIsSaidOfAFileIsShortAndShowsNoSecret(t *testing.T) {
	t.Parallel()
	var many strings.Builder
	for i := range 50000 {
		fmt.Fprintf(&many, "key%d: 1\n", i)
	}
	for name, tc := range map[string]struct{ text, want string }{
		"many keys":            {head + many.String(), "and perhaps more"},
		"a long value":         {set("upgradeWindow", strings.Repeat("9", 100_000)), `upgradeWindow: is "` + strings.Repeat("9", 64) + `…", must be a duration`},
		"a long key":           {head + "? " + strings.Repeat("k", 100_000) + "\n: 1\n", `"` + strings.Repeat("k", 64) + `…": there is no such key`},
		"a deep one":           {head + "a: " + strings.Repeat("{a: ", 3000) + "1" + strings.Repeat("}", 3000), "a.a.a: there is no such key"},
		"a key for a terminal": {head + `"a\e[2J\nb": 1`, `"a\x1b[2J\nb": there is no such key`},
		"a password":           {set("webhook", "https://me:secret@receiver"), `webhook: is "…", must hold keys`},
		"a token":              {set("externalDependencies.urls", "https://there/?token=secret"), `externalDependencies.urls: is "…", must be a list`},
		"a URL as a duration":  {set("webhook.timeout", "https://there/?token=secret"), `webhook.timeout: is "…", must be a duration`},
		"a URL as a key":       {head + "https://me:secret@receiver: 1", `"…": there is no such key`},
	} {
		_, err := config.Parse([]byte(tc.text))
		checkRejected(t, err, tc.want)
		switch message := strings.ReplaceAll(err.Error(), "\n", "; "); {
		case len(message) > 16<<10:
			t.Errorf("%s: %d bytes are said", name, len(message))
		case strings.Contains(message, "secret") || strings.ContainsFunc(message, unicode.IsControl):
			t.Errorf("%s: it is said that %s", name, message)
		}
	}
}

func TestWhatIsWrongIsSaidWithItsKeyAndWhatIsRight(t *testing.T) {
	t.Parallel()
	const keys = "must be one of apiVersion, kind, upgradeWindow, controlPlane.slowAfter, "
	for name, tc := range map[string]struct {
		text string
		want []string
	}{
		"an empty file":                {"", []string{"apiVersion: is missing, must be config.upgrade.managed.openshift.io/v1alpha1", "kind: is missing, must be OperatorConfig"}},
		"nothing but a comment":        {"# later\n", []string{"apiVersion: is missing", "kind: is missing"}},
		"another version":              {"apiVersion: config.upgrade.managed.openshift.io/v2\nkind: OperatorConfig\n", []string{`apiVersion: is "config.upgrade.managed.openshift.io/v2", must be config.upgrade.managed.openshift.io/v1alpha1`}},
		"another kind":                 {"apiVersion: config.upgrade.managed.openshift.io/v1alpha1\nkind: ConfigMap\n", []string{`kind: is "ConfigMap", must be OperatorConfig`}},
		"an unknown key":               {head + "upgradeWindows: 1h\n", []string{"upgradeWindows: there is no such key, " + keys}},
		"an unknown key in a section":  {head + "controlPlane:\n  slowafter: 1h\n", []string{"controlPlane.slowafter: there is no such key, " + keys}},
		"a key in the wrong case":      {head + "UpgradeWindow: 1h\n", []string{"UpgradeWindow: there is no such key, " + keys}},
		"an unknown section":           {head + "nodes:\n  drain:\n    timeout: 1h\n", []string{"nodes.drain.timeout: there is no such key, " + keys}},
		"an unknown empty section":     {head + "nodes: {}\n", []string{"nodes: there is no such key, " + keys}},
		"a path for a key":             {head + "workers.slowAfter: 1h\n", []string{`"workers.slowAfter": there is no such key, ` + keys}},
		"keys below a setting":         {head + "upgradeWindow:\n  minutes: 30\n", []string{"upgradeWindow.minutes: there is no such key"}},
		"a value instead of a section": {head + "controlPlane: 1h\n", []string{`controlPlane: is "1h", must hold keys, such as controlPlane.slowAfter`}},
		"a list instead of a section":  {head + "controlPlane: [1h]\n", []string{`controlPlane: is "a list", must hold keys, such as controlPlane.slowAfter`}},
		"a key that is there twice":    {head + "upgradeWindow: 1h\nupgradeWindow: 2h\n", []string{"upgradeWindow: is in lines 3 and 4, must be there once"}},
		"a section that is there twice": {
			head + "workers:\n  slowAfter: 1h\nworkers:\n  slowAfter: 2h\n", []string{"workers.slowAfter: is in lines 4 and 6, must be there once"},
		},
		"an alias":          {head + "upgradeWindow: &w 1h\nworkers:\n  slowAfter: *w\n", []string{`workers.slowAfter: is "*w", must be a duration`}},
		"several documents": {head + "---\n" + head, []string{"there is more than one document, must be one"}},
		"a list":            {"- upgradeWindow: 1h\n", []string{"must be keys and their values, such as upgradeWindow: 30m"}},
		"a sentence":        {"thirty minutes", []string{"must be keys and their values, such as upgradeWindow: 30m"}},
		"no YAML":           {head + "workers: [\n", []string{"reading the configuration: yaml: line"}},
		"tabs":              {head + "workers:\n\tslowAfter: 1h\n", []string{"reading the configuration: yaml: line"}},
		"everything at once": {
			"kind: Config\nworkers:\n  slowAfter: 0s\n  x: 1\nupgradeWindow: 5\n",
			[]string{"apiVersion: is missing", "kind: is \"Config\"", "workers.slowAfter: is 0s", "workers.x: there is no such key", "upgradeWindow: is \"5\""},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := config.Parse([]byte(tc.text))
			checkRejected(t, err, tc.want...)
		})
	}
}

func TestAConfigurationIsWrittenAsItIsRead(t *testing.T) {
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
		t.Errorf("after writing and reading it (-want +got):\n%s", diff)
	}
}

func TestDurationsAreWrittenAsShortAsTheyCanBe(t *testing.T) {
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
				t.Errorf("a refused file leaves something behind: %s", diff)
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
			t.Errorf("taken although it is a %s %s", c.APIVersion, c.Kind)
		}
	})
}
