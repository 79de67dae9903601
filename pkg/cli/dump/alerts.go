// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package dump

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"

	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// alerts holds the responses of /api/v1/alerts in a dump.
type alerts struct {
	err    error // nil if the responses are complete
	alerts []prometheusv1.Alert
}

var alertsField = regexp.MustCompile("\"alerts\"\\s*:\\s*\\[")

// isAlerts reports whether a malformed text is part of an alerts response.
func isAlerts(content []byte) bool { return alertsField.Match(content) }

// addAlerts adds a response of /api/v1/alerts and reports whether the value is one. If there are two
// responses, they come from two Prometheus replicas, and an alert counts if either reports it.
func (d *Dump) addAlerts(name string, value map[string]any) bool {
	data, isData := value["data"].(map[string]any)
	if value["status"] == nil || !isData {
		return false
	}
	if _, found := data["alerts"]; !found {
		return false
	}
	if d.alerts == nil {
		d.alerts = &alerts{}
	}
	alerts, err := decodeAlerts(data)
	if value["status"] != "success" {
		err = errors.New("the status is not success")
	}
	if err != nil {
		d.alerts.err = fmt.Errorf("%s is broken: %w", name, err)
		d.problem(name, "Alert", "is broken: "+err.Error())
		return true
	}
	d.alerts.alerts = append(d.alerts.alerts, alerts...)
	return true
}

// decodeAlerts decodes the data field of a response.
func decodeAlerts(data map[string]any) ([]prometheusv1.Alert, error) {
	content, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	var decoded prometheusv1.AlertsResult
	if err := json.Unmarshal(content, &decoded); err != nil {
		return nil, err
	}
	if decoded.Alerts == nil {
		return nil, errors.New("alerts is null")
	}
	return decoded.Alerts, nil
}

// ActiveAlerts returns the firing and pending alerts in the dump. It implements checks.AlertSource.
func (d *Dump) ActiveAlerts(context.Context) ([]clusterstate.Alert, error) {
	switch {
	case d.alerts == nil:
		return nil, errNotDumped
	case d.alerts.err != nil:
		return nil, d.alerts.err
	default:
		return prometheus.ActiveAlertsOf(d.alerts.alerts, "")
	}
}
