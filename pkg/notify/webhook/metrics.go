// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

var (
	delivered = prometheus.NewDesc("managed_upgrade_notifications_delivered_total",
		"Number of notifications accepted by the webhook's receiver.", nil, nil)
	refused = prometheus.NewDesc("managed_upgrade_notifications_refused_total",
		"Number of notifications that the webhook's receiver rejected permanently. They are not retried.", nil, nil)
	failures = prometheus.NewDesc(metrics.NotificationFailures, metrics.NotificationFailuresHelp,
		nil, prometheus.Labels{"channel": "webhook"})
	pending = prometheus.NewDesc("managed_upgrade_notifications_pending",
		"Number of notifications waiting for the webhook's receiver.", nil, nil)
)

// Describe implements prometheus.Collector.
func (w *Webhook) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, to) }

// Collect implements prometheus.Collector.
func (w *Webhook) Collect(to chan<- prometheus.Metric) {
	w.mu.Lock()
	count, queued := w.counters, len(w.queue)
	w.mu.Unlock()
	to <- prometheus.MustNewConstMetric(delivered, prometheus.CounterValue, count.delivered)
	to <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, count.refused)
	to <- prometheus.MustNewConstMetric(failures, prometheus.CounterValue, count.failures)
	to <- prometheus.MustNewConstMetric(pending, prometheus.GaugeValue, float64(queued))
}
