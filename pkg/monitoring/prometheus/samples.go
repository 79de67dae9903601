// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// Samples returns the samples in the result of an expression. The result must be a vector. It
// returns an error if the expression is invalid or has another type.
func (c *Client) Samples(ctx context.Context, expression string) ([]checks.Sample, error) {
	vector, err := c.query(ctx, expression)
	if err != nil {
		return nil, fmt.Errorf("querying Prometheus: %w", err)
	}
	samples := make([]checks.Sample, len(vector))
	for i, sample := range vector {
		labels := make(map[string]string, len(sample.Metric))
		for name, value := range sample.Metric {
			labels[string(name)] = string(value)
		}
		samples[i] = checks.Sample{Labels: labels, Value: float64(sample.Value)}
	}
	return samples, nil
}
