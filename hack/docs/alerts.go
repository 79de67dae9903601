// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// ruleFiles contain the alerts of the operator, the Update Status Controller, and the hub.
var ruleFiles = []string{"deploy/operator/prometheus_rule.yaml", "deploy/update-status/prometheus_rule.yaml", "deploy/hub/prometheus_rule.yaml"}

// deployedRules contains the fields of a PrometheusRule that the list shows.
type deployedRules struct {
	Spec struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `json:"alert"`
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"rules"`
		} `json:"groups"`
	} `json:"spec"`
}

// alerts returns the list of deployed alerts. The pages about them are not generated.
func alerts() (string, error) {
	var page strings.Builder
	page.WriteString("# Alerts\n\nThe alerts never block an upgrade and are never silenced: the operator recognizes them by their prefix.\n")
	for _, file := range ruleFiles {
		data, err := os.ReadFile(file) //nolint:gosec // The files are constants.
		if err != nil {
			return "", err
		}
		var deployed deployedRules
		if err := yaml.Unmarshal(data, &deployed); err != nil {
			return "", err
		}
		fmt.Fprintf(&page, "\nAlerts in `%s`:\n\n| alert | severity | summary |\n| --- | --- | --- |\n", file)
		for _, group := range deployed.Spec.Groups {
			for _, r := range group.Rules {
				fmt.Fprintf(&page, "| [%s](%s.md) | %s | %s |\n", r.Alert, r.Alert, r.Labels["severity"], r.Annotations["summary"])
			}
		}
	}
	return page.String(), nil
}
