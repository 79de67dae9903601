// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

const ruleFile = "deploy/operator/prometheus_rule.yaml"

// alerts returns the list of the deployed alerts. Their pages are written by hand.
func alerts() (string, error) {
	data, err := os.ReadFile(ruleFile)
	if err != nil {
		return "", err
	}
	var deployed struct {
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
	if err := yaml.Unmarshal(data, &deployed); err != nil {
		return "", err
	}
	var page strings.Builder
	page.WriteString("# Alerts\n\nThe alerts of `" + ruleFile + "`. They never block an upgrade and are never silenced: the operator\nrecognizes them by their prefix.\n\n" +
		"| alert | severity | summary |\n| --- | --- | --- |\n")
	for _, group := range deployed.Spec.Groups {
		for _, r := range group.Rules {
			fmt.Fprintf(&page, "| [%s](%s.md) | %s | %s |\n", r.Alert, r.Alert, r.Labels["severity"], r.Annotations["summary"])
		}
	}
	return page.String(), nil
}
