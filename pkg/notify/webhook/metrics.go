// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

var (
	delivered = prometheus.NewDesc("managed_upgrade_notifications_delivered_total",
		"Notifications that the receiver of the webhook has taken.", nil, nil)
	refused = prometheus.NewDesc("managed_upgrade_notifications_refused_total",
		"Notifications that the receiver of the webhook refused for good, and that are not tried again.", nil, nil)
	failures = prometheus.NewDesc(metrics.NotificationFailures, metrics.NotificationFailuresHelp,
		nil, prometheus.Labels{"channel": "webhook"})
	pending = prometheus.NewDesc("managed_upgrade_notifications_pending",
		"Notifications that wait for the receiver of the webhook.", nil, nil)
)

// Describe names the metrics.
func (w *Webhook) Describe(to chan<- *prometheus.Desc) { prometheus.DescribeByCollect(w, to) }

// Collect shows the metrics as they are now.
func (w *Webhook) Collect(to chan<- prometheus.Metric) {
	w.mu.Lock()
	count, queued := w.counters, len(w.queue)
	w.mu.Unlock()
	to <- prometheus.MustNewConstMetric(delivered, prometheus.CounterValue, count.delivered)
	to <- prometheus.MustNewConstMetric(refused, prometheus.CounterValue, count.refused)
	to <- prometheus.MustNewConstMetric(failures, prometheus.CounterValue, count.failures)
	to <- prometheus.MustNewConstMetric(pending, prometheus.GaugeValue, float64(queued))
}
