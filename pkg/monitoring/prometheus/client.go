// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxBodyBytes bounds an answer, in bytes: some ten thousand alerts.
const maxBodyBytes = 4 << 20

// Options are where the alerts are and which of them count.
type Options struct {
	// HTTPClient is where the API is; its URL is without /api/v1.
	HTTPClient httpclient.Options
	// IgnoreAlerts are names of alerts that do not count.
	IgnoreAlerts []string
	// IgnoreNamespaces are namespaces whose alerts do not count.
	IgnoreNamespaces []string
	// Watchdog is an alert that always fires. An answer without it is not
	// believed, because it comes from a Prometheus that does not evaluate its
	// rules, or has only begun to. Empty: there is none.
	Watchdog string
}

// Client answers which critical alerts are firing.
type Client struct {
	query    string
	watchdog string
	api      prometheus.API
}

// New checks the options. It does not connect yet.
func New(o Options) (*Client, error) {
	for _, name := range slices.Concat(o.IgnoreAlerts, o.IgnoreNamespaces) {
		if name == "" || !utf8.ValidString(name) {
			return nil, fmt.Errorf("%q cannot be ignored, must be a name", name)
		}
	}
	o.HTTPClient.MaxBodyBytes = maxBodyBytes
	client, err := httpclient.New(o.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("the URL of Prometheus %w", err)
	}
	return &Client{query: o.query(), watchdog: o.Watchdog, api: prometheus.NewAPI(strictClient{client})}, nil
}

// FiringAlerts names the critical alerts that are firing, sorted and each once. An
// error means that this could not be found out.
func (c *Client) FiringAlerts(ctx context.Context) ([]string, error) {
	value, warnings, _, err := c.api.Query(ctx, c.query, time.Time{})
	var alerts []string
	var apiErr *prometheus.Error
	switch {
	case errors.As(err, &apiErr):
		err = fmt.Errorf("the answer cannot be read: %s", text.Excerpt(apiErr.Msg))
	case err != nil:
	case len(warnings) > 0:
		err = fmt.Errorf("the answer has warnings: %s", text.Excerpt(strings.Join(warnings, "; ")))
	default:
		alerts, err = c.alertNames(value)
	}
	if err != nil {
		return nil, fmt.Errorf("asking Prometheus for alerts: %w", err)
	}
	return alerts, nil
}

// alertNames are those of the alerts in an answer. Even the empty answer is a
// vector; what is none, or null, is not an answer.
func (c *Client) alertNames(value model.Value) ([]string, error) {
	vector, ok := value.(model.Vector)
	if !ok || vector == nil {
		return nil, errors.New("the answer is not a vector")
	}
	watchdogFiring := c.watchdog == ""
	alerts := make([]string, 0, len(vector))
	for _, sample := range vector {
		if sample == nil {
			return nil, errors.New("the answer has a sample that is null")
		}
		if name := string(sample.Metric[model.AlertNameLabel]); name != "" && name == c.watchdog {
			watchdogFiring = true
			continue
		}
		alerts = append(alerts, alertName(sample.Metric))
	}
	if !watchdogFiring {
		return nil, fmt.Errorf("alert %s is not firing, which always does where rules are evaluated", c.watchdog)
	}
	slices.Sort(alerts)
	return slices.Compact(alerts), nil
}

func alertName(labels model.Metric) string {
	name := text.Excerpt(string(labels[model.AlertNameLabel]))
	if name == "" {
		name = "an alert without a name"
	}
	if namespace := text.Excerpt(string(labels["namespace"])); namespace != "" {
		name += " in namespace " + namespace
	}
	return name
}
