// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

func TestSamples(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer string
		want   []checks.Sample
		fails  bool
	}{
		"none":     {answer: emptyResult, want: []checks.Sample{}},
		"one":      {answer: `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"node":"a"},"value":[1,"2.5"]}]}}`, want: []checks.Sample{{Labels: map[string]string{"node": "a"}, Value: 2.5}}},
		"a scalar": {answer: `{"status":"success","data":{"resultType":"scalar","result":[1,"1"]}}`, fails: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := prometheus.New(serve(t, respondJSON(tc.answer)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := p.Samples(t.Context(), "x")
			if diff := cmp.Diff(tc.want, got); diff != "" || (err != nil) != tc.fails {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
