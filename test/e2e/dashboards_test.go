// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	prometheusapi "github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/monitoring"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
)

// TestDashboards runs every expression of the dashboards against a Prometheus that scrapes the
// operator during an upgrade. Each one has results, and its metrics are those of the reference.
func TestDashboards(t *testing.T) {
	t.Parallel()
	picture, speed := os.Getenv(pictureFile), timescale.Speed(fast)
	if picture != "" {
		speed = 30 // so that the lines are long
	}
	cluster := startCluster(t, devcluster.Spec{Version: installed, Speed: speed, Releases: releases(1), Monitoring: &monitoring.Spec{}})
	operator := startOperator(t, cluster, devcluster.OperatorOptions{Config: "alerts: {interval: 1s}"})
	var addresses []string
	for _, replica := range operator.Replicas() {
		addresses = append(addresses, replica.MetricsAddress())
	}
	if err := cluster.Monitoring.Scrape(t.Context(), addresses...); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	userClient := newUserClient(t, cluster)
	follow(t, userClient, applyUpgrade(t, userClient, upgradeTo(releases(1)[0].Version)), func(*history.Record) {})

	if picture != "" {
		time.Sleep(10 * time.Second) // so that the results have lines, too
	}

	console, grafana := expressions(t, "console.json"), expressions(t, "grafana.json")
	slices.Sort(console)
	slices.Sort(grafana)
	if diff := cmp.Diff(console, grafana); diff != "" || len(console) < 10 {
		t.Errorf("the dashboards have %d expressions; of the console (-) and of Grafana (+):\n%s", len(console), diff)
	}
	reference, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	connection, err := prometheusapi.NewClient(prometheusapi.Config{Address: cluster.Monitoring.PrometheusURL()})
	if err != nil {
		t.Fatal(err)
	}
	promAPI := prometheusv1.NewAPI(connection)
	answers := map[string]model.Matrix{}
	for _, expression := range console {
		for _, metric := range regexp.MustCompile(`managed_upgrade_\w+`).FindAllString(expression, -1) {
			metric = regexp.MustCompile(`_seconds_(sum|count|bucket)$`).ReplaceAllString(metric, "_seconds")
			if !strings.Contains(string(reference), "| `"+metric+"` |") {
				t.Errorf("%s: the reference lists no metric %s", expression, metric)
			}
		}
		eventually(t, 20*time.Second, "Prometheus has results of "+expression, func(ctx context.Context) error {
			values, _, _, err := promAPI.QueryRange(ctx, expression, prometheusv1.Range{Start: since, End: time.Now(), Step: time.Second})
			if err != nil {
				return fmt.Errorf("querying %s: %w", expression, err)
			}
			series, is := values.(model.Matrix)
			if !is || len(series) == 0 {
				return errors.New("there is no result")
			}
			if values := series[0].Values; strings.Contains(expression, "successes_total") && values[len(values)-1].Value != 1 {
				return fmt.Errorf("%s successes, want 1", values[len(values)-1].Value)
			}
			answers[expression] = series
			return nil
		})
	}
	if picture != "" {
		drawDashboard(t, picture, answers, since, time.Now())
	}
}

// expressions returns the expressions of a dashboard, wherever they are in it.
func expressions(t *testing.T, file string) []string {
	t.Helper()
	content, err := os.ReadFile("../../deploy/dashboards/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var dashboard any
	if err := json.Unmarshal(content, &dashboard); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var all []string
	var visit func(any)
	visit = func(node any) {
		switch node := node.(type) {
		case []any:
			for _, each := range node {
				visit(each)
			}
		case map[string]any:
			for key, value := range node {
				if text, is := value.(string); is && key == "expr" {
					all = append(all, text)
				}
				visit(value)
			}
		}
	}
	visit(dashboard)
	return all
}
