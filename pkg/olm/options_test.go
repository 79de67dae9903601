// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
)

func TestParseOptions(t *testing.T) {
	t.Parallel()
	const ten = 10 * time.Minute
	for name, tc := range map[string]struct {
		timeout, include, exclude, report string
		want                              olm.Options
		wantError                         []string
	}{
		"the values of the proposal":   {timeout: "600", include: "openshift-gitops-operator,openshift-operator", want: olm.Options{Timeout: ten, Include: names("openshift-operator/openshift-gitops-operator")}},
		"empty lists":                  {timeout: "600", want: olm.Options{Timeout: ten}},
		"blanks only":                  {timeout: "600", include: " \n ", want: olm.Options{Timeout: ten}},
		"two of each":                  {timeout: "600", include: "a,b c,d", exclude: "e,f  g,h", want: olm.Options{Timeout: ten, Include: names("b/a", "d/c"), Exclude: names("f/e", "h/g")}},
		"the longest timeout":          {timeout: "604800", want: olm.Options{Timeout: 7 * 24 * time.Hour}},
		"no timeout":                   {wantError: []string{`WAITTIME: is ""`}},
		"zero":                         {timeout: "0", wantError: []string{`WAITTIME: is "0"`}},
		"a duration":                   {timeout: "10m", wantError: []string{`WAITTIME: is "10m", must be a number of seconds from 1 to 604800`}},
		"too long":                     {timeout: "604801", wantError: []string{"WAITTIME"}},
		"more than an integer":         {timeout: "99999999999999999999", wantError: []string{"WAITTIME"}},
		"a name without its namespace": {timeout: "600", include: "a,b c", wantError: []string{`INCLUDELIST: "c" must be`}},
		"a namespace without a name":   {timeout: "600", exclude: ",b", wantError: []string{`EXCLUDELIST: ",b" must be`}},
		"a blank after the comma":      {timeout: "600", include: "a, b", wantError: []string{`INCLUDELIST: "a," must be`}},
		"commas as separators":         {timeout: "600", include: "a,b,c,d", wantError: []string{`INCLUDELIST: "a,b,c,d" must be`}},
		"a Job to report to":           {timeout: "600", report: "approver-1,a", want: olm.Options{Timeout: ten, Report: names("a/approver-1")[0]}},
		"several Jobs to report to":    {timeout: "600", report: "a,b c,d", wantError: []string{"REPORT"}},
		"a Job without its namespace":  {timeout: "600", report: "a", wantError: []string{`REPORT: "a" must be`}},
		"several errors":               {include: "a", exclude: "b", wantError: []string{"WAITTIME", "INCLUDELIST", "EXCLUDELIST"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := map[string]string{olm.EnvTimeout: tc.timeout, olm.EnvInclude: tc.include, olm.EnvExclude: tc.exclude, olm.EnvReport: tc.report}
			got, err := olm.ParseOptions(func(name string) string { return env[name] })
			if (err != nil) != (len(tc.wantError) > 0) {
				t.Fatalf("got %v, want errors %q", err, tc.wantError)
			}
			for _, want := range tc.wantError {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}
