// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
)

// Series is the value of one metric with one set of labels.
type Series struct {
	Name   string // without managed_upgrade_
	Labels map[string]string
	Values []string // the label values, sorted by label name
	Value  float64
}

// Gather returns the series of a registry, sorted by name and labels. The value of a histogram is its
// sample count.
func Gather(tb testing.TB, registry prometheus.Gatherer) []Series {
	tb.Helper()
	families, err := registry.Gather()
	if err != nil {
		tb.Fatal(err)
	}
	var all []Series
	for _, family := range families {
		for _, m := range family.GetMetric() {
			s := Series{Name: strings.TrimPrefix(family.GetName(), "managed_upgrade_"), Labels: map[string]string{}}
			for _, label := range m.GetLabel() {
				s.Labels[label.GetName()], s.Values = label.GetValue(), append(s.Values, label.GetValue())
			}
			s.Value = m.GetGauge().GetValue() + m.GetCounter().GetValue() + float64(m.GetHistogram().GetSampleCount())
			all = append(all, s)
		}
	}
	return all
}
