// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package report_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm/report"
)

// plans returns InstallPlans in n namespaces. Each is listed twice.
func plans(n int) []types.NamespacedName {
	var all []types.NamespacedName
	for i := range n {
		name := types.NamespacedName{Namespace: fmt.Sprintf("openshift-operators-%03d", i), Name: fmt.Sprintf("install-%05d", i)}
		all = append(all, name, name)
	}
	return all
}

func TestReport(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		operators int
		plans     []types.NamespacedName
		tooLong   bool
	}{
		"no operator":        {},
		"no InstallPlan yet": {operators: 1, plans: []types.NamespacedName{{Namespace: "a"}}},
		"one":                {operators: 1, plans: plans(1)},
		"many":               {operators: 300, plans: plans(300)},
		"too many":           {operators: 2000, plans: plans(2000), tooLong: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := report.New(tc.operators, tc.plans)
			annotations, err := want.Annotations()
			if err != nil || tc.tooLong {
				if !tc.tooLong || err == nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if len(annotations) != report.Parts+1 {
				t.Errorf("%d annotations: those of an earlier report would stay", len(annotations))
			}
			var parts []string
			for i := range report.Parts {
				part, _ := annotations[report.Part(i)].(string)
				if parts = append(parts, part); len(part) > 512 {
					t.Errorf("annotation %s has %d bytes", report.Part(i), len(part))
				}
			}
			got, err := report.Parse(fmt.Sprint(annotations[report.Annotation]), parts)
			if diff := cmp.Diff(want, got); err != nil || diff != "" {
				t.Errorf("%v (-written +read):\n%s", err, diff)
			}
		})
	}
}

// The hub grants permissions in the namespaces of a report, so only valid names are accepted.
func TestParse_rejects_what_is_no_name(t *testing.T) {
	t.Parallel()
	for _, tc := range [][]string{{""}, {"many"}, {"-1"}, {"1", "a"}, {"1", "/b"}, {"1", "A/b"}, {"1", "a/b/c"}, {"1", "a/*"}, {"1", strings.Repeat("a", 64) + "/b"}, {"1", strings.Repeat("a/ ", 401)}} {
		if got, err := report.Parse(tc[0], tc[1:]); err == nil {
			t.Errorf("%q: got %v", tc, got)
		}
	}
}
