// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Span is a period with samples of a series.
type Span struct{ Start, End time.Time }

// Series is a series with its spans, sorted and without overlaps.
type Series struct {
	Labels map[string]string
	Spans  []Span
}

// Spans returns when each series in the results of an expression had samples between start and end.
// It evaluates the expression once per step; a span ends with the last step that had a sample. It
// returns an error if the expression is invalid or its results are not vectors.
func (c *Client) Spans(ctx context.Context, expression string, start, end time.Time, step time.Duration) ([]Series, error) {
	value, _, _, err := c.api.QueryRange(ctx, expression, prometheus.Range{Start: start, End: end, Step: step})
	var apiErr *prometheus.Error
	switch {
	case errors.As(err, &apiErr):
		return nil, fmt.Errorf("querying Prometheus: the response is malformed: %s", text.Excerpt(apiErr.Msg))
	case err != nil:
		return nil, fmt.Errorf("querying Prometheus: %w", err)
	}
	matrix, ok := value.(model.Matrix)
	if !ok || matrix == nil || slices.Contains(matrix, nil) {
		return nil, errors.New("querying Prometheus: the response is not a matrix")
	}
	all := make([]Series, 0, len(matrix))
	for _, stream := range matrix {
		if len(stream.Values) > 0 {
			all = append(all, Series{Labels: stringMap(model.LabelSet(stream.Metric)), Spans: spansOf(stream.Values, step)})
		}
	}
	return all, nil
}

// spansOf joins samples that are one step apart.
func spansOf(samples []model.SamplePair, step time.Duration) []Span {
	var spans []Span
	for _, sample := range samples {
		at := sample.Timestamp.Time()
		if n := len(spans); n > 0 && at.Sub(spans[n-1].End) <= step+step/2 {
			spans[n-1].End = at
			continue
		}
		spans = append(spans, Span{Start: at, End: at})
	}
	return spans
}
