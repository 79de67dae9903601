// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

const (
	rulesFile      = "alerts.yaml"
	settleTimeout  = 30 * time.Second
	settleInterval = 100 * time.Millisecond
)

// Fire makes an alert fire and returns when Prometheus reports it. Several alerts may share a name
// if their labels differ. While Prometheus is down, Fire returns immediately, and the alert fires
// after the next start.
func (m *Monitoring) Fire(ctx context.Context, alert alerting.Alert) error {
	if allErrs := alert.Validate(nil); len(allErrs) > 0 {
		return fmt.Errorf("firing alert %q: %w", alert.Name, allErrs.ToAggregate())
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alerts = addAlert(m.alerts, alert)
	if err := m.apply(ctx); err != nil {
		return fmt.Errorf("firing alert %q: %w", alert.Name, err)
	}
	return nil
}

// Resolve resolves all alerts with a name and returns when Prometheus no longer reports them. While
// Prometheus is down, it returns immediately.
func (m *Monitoring) Resolve(ctx context.Context, name string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	rest := slices.DeleteFunc(slices.Clone(m.alerts), func(a alerting.Alert) bool { return a.Name == name })
	if len(rest) == len(m.alerts) {
		return fmt.Errorf("resolving alert %q: it does not fire", name)
	}
	m.alerts = rest
	if err := m.apply(ctx); err != nil {
		return fmt.Errorf("resolving alert %q: %w", name, err)
	}
	return nil
}

// addAlert appends an alert unless the list contains it.
func addAlert(alerts []alerting.Alert, alert alerting.Alert) []alerting.Alert {
	if slices.ContainsFunc(alerts, func(a alerting.Alert) bool { return a.LabelSet().Equal(alert.LabelSet()) }) {
		return alerts
	}
	return append(alerts, alert)
}

func (m *Monitoring) apply(ctx context.Context) error {
	if !m.prometheus.process.Running() {
		return nil
	}
	if err := m.writeRules(); err != nil {
		return err
	}
	if err := m.reload(ctx); err != nil {
		return err
	}
	return m.waitUntilSettled(ctx)
}

func (m *Monitoring) writeRules() error {
	rules := make([]any, 0, len(m.alerts))
	for _, alert := range m.alerts {
		rules = append(rules, map[string]any{"alert": alert.Name, "labels": alert.Labels, "expr": "vector(1)"})
	}
	text, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "devcluster", "rules": rules}}})
	if err == nil {
		err = os.WriteFile(m.path("prometheus", rulesFile), text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("writing the rules: %w", err)
	}
	return nil
}

// waitUntilSettled waits until exactly the expected alerts fire in Prometheus.
func (m *Monitoring) waitUntilSettled(ctx context.Context) error {
	desired := make([]string, 0, len(m.alerts))
	for _, alert := range m.alerts {
		desired = append(desired, alert.LabelSet().String())
	}
	slices.Sort(desired)
	client, err := api.NewClient(api.Config{Address: m.prometheus.url()})
	if err != nil {
		return fmt.Errorf("making a client of Prometheus: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	ticker := time.NewTicker(settleInterval)
	defer ticker.Stop()
	last := errors.New("no request was made yet")
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting until Prometheus shows what fires: %w; %w", context.Cause(ctx), last)
		case <-m.prometheus.process.Exited():
			return m.prometheus.process.Err()
		case <-ticker.C:
		}
		actual, err := firingAlerts(ctx, prometheus.NewAPI(client))
		if err == nil && slices.Equal(actual, desired) {
			return nil
		}
		if last = err; err == nil {
			last = fmt.Errorf("it shows %v, not %v", actual, desired)
		}
	}
}

// firingAlerts returns the sorted labels of the alerts that Prometheus reports as firing.
func firingAlerts(ctx context.Context, promAPI prometheus.API) ([]string, error) {
	value, _, _, err := promAPI.Query(ctx, `ALERTS{alertstate="firing"}`, time.Time{})
	if err != nil {
		return nil, err
	}
	vector, is := value.(model.Vector)
	if !is {
		return nil, fmt.Errorf("it answers with a %s", value.Type())
	}
	alerts := make([]string, 0, len(vector))
	for _, sample := range vector {
		delete(sample.Metric, model.MetricNameLabel)
		delete(sample.Metric, "alertstate")
		alerts = append(alerts, sample.Metric.String())
	}
	slices.Sort(alerts)
	return alerts, nil
}
