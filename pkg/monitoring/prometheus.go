// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/endpoint"
)

// maxAnswer bounds an answer, in bytes: some ten thousand alerts.
const maxAnswer = 4 << 20

// Options are where the alerts are and which of them count.
type Options struct {
	// Endpoint is where the API is; its URL is without /api/v1.
	Endpoint endpoint.Options
	// IgnoreAlerts are names of alerts that do not count.
	IgnoreAlerts []string
	// IgnoreNamespaces are namespaces whose alerts do not count.
	IgnoreNamespaces []string
	// Watchdog is an alert that always fires. An answer without it is not
	// believed, because it comes from a Prometheus that does not evaluate its
	// rules, or has only begun to. Empty: there is none.
	Watchdog string
}

// Prometheus answers which critical alerts are firing.
type Prometheus struct {
	query    string
	watchdog string
	api      prometheus.API
}

// New checks the options. It does not connect yet.
func New(o Options) (*Prometheus, error) {
	for _, name := range slices.Concat(o.IgnoreAlerts, o.IgnoreNamespaces) {
		if name == "" || !utf8.ValidString(name) {
			return nil, fmt.Errorf("%q cannot be ignored, must be a name", name)
		}
	}
	o.Endpoint.MaxAnswer = maxAnswer
	to, err := endpoint.New(o.Endpoint)
	if err != nil {
		return nil, fmt.Errorf("the URL of Prometheus %w", err)
	}
	return &Prometheus{query: o.query(), watchdog: o.Watchdog, api: prometheus.NewAPI(strict{to})}, nil
}

// Firing names the critical alerts that are firing, sorted and each once. An
// error means that this could not be found out.
func (p *Prometheus) Firing(ctx context.Context) ([]string, error) {
	value, warnings, _, err := p.api.Query(ctx, p.query, time.Time{})
	var alerts []string
	var unread *prometheus.Error
	switch {
	case errors.As(err, &unread):
		err = fmt.Errorf("the answer cannot be read: %s", endpoint.Printable(unread.Msg))
	case err != nil:
	case len(warnings) > 0:
		err = fmt.Errorf("the answer has warnings: %s", endpoint.Printable(strings.Join(warnings, "; ")))
	default:
		alerts, err = p.names(value)
	}
	if err != nil {
		return nil, fmt.Errorf("asking Prometheus for alerts: %w", err)
	}
	return alerts, nil
}

// names are those of the alerts in an answer. Even the empty answer is a
// vector; what is none, or null, is not an answer.
func (p *Prometheus) names(value model.Value) ([]string, error) {
	vector, ok := value.(model.Vector)
	if !ok || vector == nil {
		return nil, errors.New("the answer is not a vector")
	}
	watched := p.watchdog == ""
	alerts := make([]string, 0, len(vector))
	for _, sample := range vector {
		if sample == nil {
			return nil, errors.New("the answer has a sample that is null")
		}
		if name := string(sample.Metric[model.AlertNameLabel]); name != "" && name == p.watchdog {
			watched = true
			continue
		}
		alerts = append(alerts, nameOf(sample.Metric))
	}
	if !watched {
		return nil, fmt.Errorf("alert %s is not firing, which always does where rules are evaluated", p.watchdog)
	}
	slices.Sort(alerts)
	return slices.Compact(alerts), nil
}

func nameOf(labels model.Metric) string {
	name := endpoint.Printable(string(labels[model.AlertNameLabel]))
	if name == "" {
		name = "an alert without a name"
	}
	if namespace := endpoint.Printable(string(labels["namespace"])); namespace != "" {
		name += " in namespace " + namespace
	}
	return name
}
