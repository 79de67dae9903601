// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package strict_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config/strict"
)

type file struct {
	URL   string   `json:"url"`
	Count int      `json:"count"`
	Share float64  `json:"share"`
	Names []string `json:"names"`
	Deep  struct {
		Open bool `json:"open"`
	} `json:"deep"`
	Items []struct {
		Name string `json:"name"`
	} `json:"items"`
}

func TestUnmarshal(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ text, want string }{
		"an empty file":            {"", ""},
		"YAML":                     {"url: a\ndeep: {open: true}\nitems: [{name: b}]", ""},
		"JSON":                     {`{"url": "a", "count": 1}`, ""},
		"a document with marks":    {"---\nurl: a\n...\n", ""},
		"a document of comments":   {"# why\n---\nurl: a", ""},
		"unknown fields":           {"x: 1\ndeep: {shut: 1, w: 2}\nitems: [{name: a, z: 1}]", "deep.shut: Invalid value: unknown field; deep.w: Invalid value: unknown field; items[0].z: Invalid value: unknown field; x: Invalid value: unknown field"},
		"another case":             {"URL: a", "URL: Invalid value: unknown field"},
		"a number for a string":    {"url: 1", `url: Invalid value: "number": must be a string, in quotes if it could be something else`},
		"a string for a number":    {"count: a", `count: Invalid value: "string": must be a whole number`},
		"a fraction":               {"count: 1.5", `count: Invalid value: "number": must be a whole number`},
		"a string for a share":     {"share: a", `share: Invalid value: "string": must be a number`},
		"a string for a boolean":   {"deep: {open: a}", `deep.open: Invalid value: "string": must be true or false`},
		"a string for a list":      {"names: a", `names: Invalid value: "string": must be a list`},
		"a mapping for a string":   {"names: [{a: b}]", `names: Invalid value: "mapping": must be a string`},
		"a boolean for a mapping":  {"deep: true", `deep: Invalid value: "boolean": must be a mapping`},
		"a list for the file":      {"[url]", `Invalid value: "list": must be a mapping`},
		"a sentence for the file":  {"nothing yet", `Invalid value: "string": must be a mapping`},
		"repeated keys":            {"url: a\nurl: b\ncount: 1\ncount: 2", `yaml: line 2: key "url" already set in map line 4: key "count" already set in map`},
		"no YAML":                  {"url: [", "yaml: line 1: did not find expected node content"},
		"several documents":        {"url: a\n---\nurl: b", "the file holds more than one document"},
		"a secret as a key":        {`"https://me:secret@there": 1`, "…: Invalid value: unknown field"},
		"a secret as a value":      {"count: https://me:secret@there", `count: Invalid value: "string": must be a whole number`},
		"a secret that is twice":   {"https://me:secret@there: 1\nhttps://me:secret@there: 2", "…"},
		"control characters":       {`"a\e[2J\nb": 1`, `a\x1b[2J\nb: Invalid value: unknown field`},
		"a key of any length":      {"? " + strings.Repeat("k", 10_000) + "\n: 1", strings.Repeat("k", 64) + "…: Invalid value: unknown field"},
		"aliases that expand much": {"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e]\ng: [*f,*f,*f,*f,*f,*f,*f,*f]", "yaml: document contains excessive aliasing"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var into file
			list, err := strict.Unmarshal([]byte(tc.text), &into)
			if err == nil {
				err = strict.Error(list)
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
				t.Errorf("got  %v\nwant %s", err, tc.want)
			}
		})
	}
}

func TestUnmarshal_keeps_unnamed_fields(t *testing.T) {
	t.Parallel()
	into := file{URL: "default", Count: 3}
	if list, err := strict.Unmarshal([]byte("count: 4\nurl: null\ndeep:"), &into); err != nil || len(list) > 0 {
		t.Fatal(err, list)
	}
	if into.URL != "default" || into.Count != 4 {
		t.Errorf("got %+v", into)
	}
}

func TestError_is_bounded(t *testing.T) {
	t.Parallel()
	if err := strict.Error(nil); err != nil {
		t.Errorf("no errors are %v", err)
	}
	var list field.ErrorList
	for i := range 13 {
		list = append(list, field.Required(field.NewPath("names").Index(i), ""))
	}
	want := "names[8]: Required value; names[9]: Required value; and 3 more"
	if err := strict.Error(list); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want it to end with %s", err, want)
	}
}
