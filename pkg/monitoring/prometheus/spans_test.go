// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

func TestSpans(t *testing.T) {
	t.Parallel()
	at := func(second int64) time.Time { return time.Unix(1600000000+second, 0) }
	matrix := func(values string) string {
		return `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"alertname":"A"},"values":[` + values + `]}]}}`
	}
	series := func(spans ...prometheus.Span) []prometheus.Series {
		return []prometheus.Series{{Labels: map[string]string{"alertname": "A"}, Spans: spans}}
	}
	for name, tc := range map[string]struct {
		answer  string
		want    []prometheus.Series
		wantErr string
	}{
		"one sample":     {answer: matrix(`[1600000000,"1"]`), want: series(prometheus.Span{Start: at(0), End: at(0)})},
		"without a gap":  {answer: matrix(`[1600000000,"1"],[1600000030,"1"],[1600000060,"1"]`), want: series(prometheus.Span{Start: at(0), End: at(60)})},
		"with a gap":     {answer: matrix(`[1600000000,"1"],[1600000060,"1"],[1600000090,"1"]`), want: series(prometheus.Span{Start: at(0), End: at(0)}, prometheus.Span{Start: at(60), End: at(90)})},
		"without values": {answer: matrix(``), want: []prometheus.Series{}},
		"no series":      {answer: `{"status":"success","data":{"resultType":"matrix","result":[]}}`, want: []prometheus.Series{}},
		"a vector":       {answer: emptyResult, wantErr: "not a matrix"},
		"null":           {answer: `{"status":"success","data":{"resultType":"matrix","result":null}}`, wantErr: "not a matrix"},
		"no JSON":        {answer: `<html>`, wantErr: "is not JSON"},
		"an error":       {answer: `{"status":"error","error":"query timed out"}`, wantErr: "query timed out"},
		"a warning":      {answer: strings.Replace(matrix(``), `"success"`, `"success","warnings":["a store failed"]`, 1), wantErr: "a store failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := prometheus.New(serve(t, respondJSON(tc.answer)))
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.Spans(t.Context(), "up", at(0), at(90), 30*time.Second)
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Fatalf("error %v, want %q", err, tc.wantErr)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
