// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// dumpAlerts is the last response of /api/v1/alerts in a dump.
type dumpAlerts struct {
	err    error // nil means that the response is complete
	alerts []dumpAlert
}

// dumpAlert is an alert as Prometheus returns it.
type dumpAlert struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	State       string            `json:"state"`
	ActiveAt    time.Time         `json:"activeAt"`
}

var alertsField = regexp.MustCompile("\"alerts\"\\s*:\\s*\\[")

// isAlerts reports whether a broken text is a part of a response with alerts.
func isAlerts(content []byte) bool { return alertsField.Match(content) }

// addAlerts adds a response of /api/v1/alerts, and reports whether the value is one. Two responses are
// those of two replicas of Prometheus: what one of them reports counts.
func (d *dump) addAlerts(name string, value map[string]any) bool {
	data, isData := value["data"].(map[string]any)
	if value["status"] == nil || !isData {
		return false
	}
	if _, found := data["alerts"]; !found {
		return false
	}
	if d.alerts == nil {
		d.alerts = &dumpAlerts{}
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
	d.count++
	return true
}

// decodeAlerts decodes the data of a response.
func decodeAlerts(data map[string]any) ([]dumpAlert, error) {
	content, err := json.Marshal(data)
	if err != nil {
		return nil, err
	}
	var decoded struct {
		Alerts *[]dumpAlert `json:"alerts"`
	}
	if err := json.Unmarshal(content, &decoded); err != nil {
		return nil, err
	}
	if decoded.Alerts == nil {
		return nil, errors.New("alerts is null")
	}
	return *decoded.Alerts, nil
}

// ActiveAlerts returns the alerts of the dump that fire or are pending. It implements
// informers.Prometheus.
func (d *dump) ActiveAlerts(context.Context) ([]clusterstate.Alert, error) {
	switch {
	case d.alerts == nil:
		return nil, errNotDumped
	case d.alerts.err != nil:
		return nil, d.alerts.err
	}
	var active []clusterstate.Alert
	for _, alert := range d.alerts.alerts {
		active = append(active, clusterstate.Alert{
			Name: alert.Labels["alertname"], Namespace: alert.Labels["namespace"], Severity: alert.Labels["severity"],
			Firing: alert.State == "firing", Since: alert.ActiveAt, Labels: alert.Labels, Annotations: alert.Annotations,
		})
	}
	return active, nil
}
