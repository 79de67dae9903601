// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxBodyBytes is the maximum size of a response in bytes, enough for about ten thousand alerts.
const maxBodyBytes = 4 << 20

// Options configure a client.
type Options struct {
	// HTTPClient configures the endpoint. Its URL must not include /api/v1.
	HTTPClient httpclient.Options
	// Watchdog is the name of an alert that always fires. A response without it is an error, because
	// it comes from a Prometheus that does not evaluate its rules or has just started. If it is empty,
	// responses are not checked.
	Watchdog string
}

// Client queries alerts.
type Client struct {
	watchdog string
	api      prometheus.API
}

// New returns a client, or an error if the options are invalid. It does not connect yet.
func New(o Options) (*Client, error) {
	o.HTTPClient.MaxBodyBytes = maxBodyBytes
	client, err := httpclient.New(o.HTTPClient)
	if err != nil {
		return nil, fmt.Errorf("the URL of Prometheus %w", err)
	}
	return &Client{watchdog: o.Watchdog, api: prometheus.NewAPI(strictClient{client})}, nil
}

// CriticalAlerts returns the firing and pending critical alerts of all namespaces, sorted and
// without duplicates. It returns an error if the alerts cannot be determined.
func (c *Client) CriticalAlerts(ctx context.Context) ([]clusterstate.Alert, error) {
	vector, err := c.query(ctx, alertsQuery(c.watchdog))
	var alerts []clusterstate.Alert
	if err == nil {
		alerts, err = c.alerts(vector)
	}
	if err != nil {
		return nil, fmt.Errorf("querying Prometheus for alerts: %w", err)
	}
	return alerts, nil
}

// HasSamples reports whether the result of an expression is a vector with samples. It returns an
// error if the expression is invalid or has another type.
func (c *Client) HasSamples(ctx context.Context, expression string) (bool, error) {
	vector, err := c.query(ctx, countQuery(expression))
	if err != nil {
		return false, fmt.Errorf("querying Prometheus: %w", err)
	}
	return len(vector) > 0, nil
}

// query returns the vector in a complete, successful response. An empty result is a vector as well,
// but null is not a result.
func (c *Client) query(ctx context.Context, expression string) (model.Vector, error) {
	value, _, _, err := c.api.Query(ctx, expression, time.Time{})
	var apiErr *prometheus.Error
	switch {
	case errors.As(err, &apiErr):
		return nil, fmt.Errorf("the response is malformed: %s", text.Excerpt(apiErr.Msg))
	case err != nil:
		return nil, err
	}
	vector, ok := value.(model.Vector)
	if !ok || vector == nil {
		return nil, errors.New("the response is not a vector")
	}
	if slices.Contains(vector, nil) {
		return nil, errors.New("the response has a sample that is null")
	}
	return vector, nil
}

// alerts returns the alerts in a response, except the watchdog. The response must contain the
// watchdog.
func (c *Client) alerts(vector model.Vector) ([]clusterstate.Alert, error) {
	watchdogFiring := c.watchdog == ""
	alerts := make([]clusterstate.Alert, 0, len(vector))
	for _, sample := range vector {
		labels := sample.Metric
		if name := string(labels[model.AlertNameLabel]); name != "" && name == c.watchdog {
			watchdogFiring = true
			continue
		}
		alerts = append(alerts, clusterstate.Alert{
			Name: string(labels[model.AlertNameLabel]), Namespace: string(labels["namespace"]), Severity: "critical", Firing: labels["alertstate"] != "pending",
		})
	}
	if !watchdogFiring {
		return nil, noWatchdog(c.watchdog)
	}
	compare := func(a, b clusterstate.Alert) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(firingFirst(a), firingFirst(b)))
	}
	slices.SortFunc(alerts, compare)
	return slices.CompactFunc(alerts, func(a, b clusterstate.Alert) bool { return compare(a, b) == 0 }), nil
}

func firingFirst(a clusterstate.Alert) int {
	if a.Firing {
		return 0
	}
	return 1
}
