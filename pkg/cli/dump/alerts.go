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

// alerts are the responses of /api/v1/alerts in a dump.
type alerts struct {
	err    error // nil if the responses are complete
	alerts []prometheusv1.Alert
}

var alertsField = regexp.MustCompile("\"alerts\"\\s*:\\s*\\[")

// isAlerts reports whether a broken text is a part of a response with alerts.
func isAlerts(content []byte) bool { return alertsField.Match(content) }

// addAlerts adds a response of /api/v1/alerts, and reports whether the value is one. Two responses come from two
// replicas of Prometheus: an alert that one of them reports counts.
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

// decodeAlerts decodes the data of a response.
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

// ActiveAlerts returns the alerts of the dump that fire or are pending. It implements
// checks.AlertSource.
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
