// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// ActiveAlerts returns the firing and pending alerts of every namespace and severity, except the
// watchdog, with their labels, annotations, and start times. They are sorted. It returns an error
// if the alerts cannot be determined.
func (c *Client) ActiveAlerts(ctx context.Context) ([]clusterstate.Alert, error) {
	result, err := c.api.Alerts(ctx)
	var apiErr *prometheus.Error
	switch {
	case errors.As(err, &apiErr):
		err = fmt.Errorf("the response is malformed: %s", text.Excerpt(apiErr.Msg))
	case err == nil && result.Alerts == nil:
		err = errors.New("the response is not a list of alerts")
	}
	var alerts []clusterstate.Alert
	if err == nil {
		alerts, err = ActiveAlertsOf(result.Alerts, c.watchdog)
	}
	if err != nil {
		return nil, fmt.Errorf("getting the alerts of Prometheus: %w", err)
	}
	return alerts, nil
}

// ActiveAlertsOf returns the sorted alerts in a response of /api/v1/alerts, except the watchdog. If
// watchdog is not empty, the response must contain it.
func ActiveAlertsOf(all []prometheus.Alert, watchdog string) ([]clusterstate.Alert, error) {
	watchdogFiring := watchdog == ""
	alerts := make([]clusterstate.Alert, 0, len(all))
	for i := range all {
		alert := activeAlertOf(&all[i])
		if alert.Name != "" && alert.Name == watchdog {
			watchdogFiring = watchdogFiring || alert.Firing
			continue
		}
		alerts = append(alerts, alert)
	}
	if !watchdogFiring {
		return nil, noWatchdog(watchdog)
	}
	slices.SortStableFunc(alerts, func(a, b clusterstate.Alert) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace), a.Since.Compare(b.Since))
	})
	return alerts, nil
}

func activeAlertOf(alert *prometheus.Alert) clusterstate.Alert {
	var since time.Time
	if alert.ActiveAt.Year() > 1 { // Prometheus represents an unset time as a time in the year 1
		since = alert.ActiveAt
	}
	return clusterstate.Alert{
		Name: string(alert.Labels[model.AlertNameLabel]), Namespace: string(alert.Labels["namespace"]),
		Severity: strings.ToLower(string(alert.Labels["severity"])), Firing: alert.State == prometheus.AlertStateFiring, Since: since,
		Labels: stringMap(alert.Labels), Annotations: stringMap(alert.Annotations),
	}
}

func stringMap(set model.LabelSet) map[string]string {
	plain := make(map[string]string, len(set))
	for key, value := range set {
		plain[string(key)] = string(value)
	}
	return plain
}

func noWatchdog(name string) error {
	return fmt.Errorf("alert %s, which always fires where rules are evaluated, is not firing", name)
}
