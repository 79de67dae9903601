// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"fmt"
	"net/http"
	"os"

	"sigs.k8s.io/yaml"
)

const interval = "1s" // of evaluations and scrapes, and the minimum between two notifications to Alertmanager about an alert

// lookback is how long Prometheus still returns a series that has no new samples, such as an alert
// that was resolved while Prometheus was down.
const lookback = "10s"

// StartPrometheus starts Prometheus with its previous address and data and waits until it reports
// exactly the expected alerts. It does nothing if Prometheus is running.
func (m *Monitoring) StartPrometheus(ctx context.Context) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.prometheus.process.Running() {
		return nil
	}
	if err := m.writeConfig(); err != nil {
		return err
	}
	if err := m.writeRules(); err != nil {
		return err
	}
	err := m.run(ctx, &m.prometheus, "prometheus",
		"--storage.tsdb.path="+m.path("prometheus", "data"),
		"--web.enable-lifecycle",
		"--rules.alert.resend-delay="+interval,
		"--query.lookback-delta="+lookback,
	)
	if err != nil {
		return err
	}
	return m.waitUntilSettled(ctx)
}

// StopPrometheus stops Prometheus: clients get "connection refused" until StartPrometheus. It does
// nothing if Prometheus is not running.
func (m *Monitoring) StopPrometheus() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.prometheus.process.Stop(grace)
}

// Scrape makes a running Prometheus scrape /metrics at these addresses once a second over HTTP.
// They replace the addresses of earlier calls.
func (m *Monitoring) Scrape(ctx context.Context, addresses ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.scraped = addresses
	if err := m.writeConfig(); err != nil {
		return err
	}
	return m.reload(ctx)
}

func (m *Monitoring) writeConfig() error {
	static := func(addresses ...string) []any {
		return []any{map[string]any{"targets": addresses}}
	}
	config, err := yaml.Marshal(map[string]any{
		"global":     map[string]any{"evaluation_interval": interval, "scrape_interval": interval, "scrape_timeout": interval},
		"rule_files": []string{rulesFile},
		"alerting":   map[string]any{"alertmanagers": []any{map[string]any{"static_configs": static(m.alertmanager.address)}}},
		"scrape_configs": []any{map[string]any{
			"job_name": "scraped", "honor_labels": true, "static_configs": static(m.scraped...),
		}},
	})
	if err == nil {
		err = os.WriteFile(m.path("prometheus", "config.yaml"), config, 0o600)
	}
	if err != nil {
		return fmt.Errorf("configuring Prometheus: %w", err)
	}
	return nil
}

// reload makes Prometheus reload its configuration and its rules.
func (m *Monitoring) reload(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, m.prometheus.url()+"/-/reload", http.NoBody)
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("reloading the configuration: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("reloading the configuration: Prometheus answers %s", response.Status)
	}
	return nil
}
