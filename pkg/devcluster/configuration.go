// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"fmt"
	"maps"
	"os"

	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
)

// configuration writes the operator's configuration file.
type configuration struct {
	file string
	urls map[string]string // default of the key "url", by section
}

func (c *Cluster) configuration() configuration {
	urls := map[string]string{"alerts": "", "alertmanager": "", "webhook": c.Sink.URL()}
	if c.Monitoring != nil {
		urls["alerts"], urls["alertmanager"] = c.Monitoring.PrometheusURL(), c.Monitoring.AlertmanagerURL()
	}
	return configuration{file: c.Path("operator.yaml"), urls: urls}
}

// Configure replaces the operator's configuration file. The operator reads it every 10 seconds.
// Missing URLs default as in OperatorOptions.Config.
func (o *Operator) Configure(text string) error {
	if err := o.config.write(text); err != nil {
		return fmt.Errorf("writing the operator's configuration: %w", err)
	}
	return nil
}

// write replaces the file atomically, since the operator may be reading it.
func (c configuration) write(text string) error {
	var settings map[string]any
	if err := yaml.Unmarshal([]byte(text), &settings); err != nil {
		return err
	}
	whole, err := yaml.Marshal(c.complete(settings))
	if err != nil {
		return err
	}
	next := c.file + ".next"
	if err := os.WriteFile(next, whole, 0o600); err != nil {
		return err
	}
	return os.Rename(next, c.file)
}

// complete adds the default URLs to a configuration.
func (c configuration) complete(settings map[string]any) map[string]any {
	whole := map[string]any{"apiVersion": config.APIVersion, "kind": config.Kind}
	maps.Copy(whole, settings)
	for section, url := range c.urls {
		keys := map[string]any{"url": url, "caFile": "", "tokenFile": ""}
		if settings, is := whole[section].(map[string]any); is || whole[section] == nil { // the operator reports any other value
			maps.Copy(keys, settings)
			whole[section] = keys
		}
	}
	return whole
}
