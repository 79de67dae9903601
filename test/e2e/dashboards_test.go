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
	"os/exec"
	"path/filepath"
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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

// everything replaces the variables of dashboards by their value All.
var everything = strings.NewReplacer("$cluster", ".*", "$namespace", ".*", "$name", ".*")

// TestDashboards runs every expression of the dashboard of upgrades against a Prometheus that scrapes the operator during
// an upgrade. Each one has results.
func TestDashboards(t *testing.T) {
	t.Parallel()
	picture, speed := os.Getenv(pictureFolder) != "", timescale.Speed(fast)
	if picture {
		speed = 30 // for long lines
	}
	cluster := startCluster(t, openshiftsim.ClusterSpec{Version: installed, Speed: speed, Releases: releases(1), Monitoring: &alerting.Spec{}})
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

	samples := 1
	if picture {
		samples = 10 // so the results also have lines
	}
	eventually(t, 30*time.Second, "the upgrade is counted", func(context.Context) error {
		for expression, series := range query(t, "upgrades", cluster.Monitoring.PrometheusURL(), since, time.Time{}, time.Second).series { //nolint:contextcheck // it has a limit of its own
			if !strings.Contains(expression, "successes_total") {
				continue
			}
			counted := 0
			for _, value := range series[0].Values {
				if value.Value == 1 {
					counted++
				}
			}
			if counted < samples {
				return fmt.Errorf("%d samples of 1 success, want %d", counted, samples)
			}
		}
		return nil
	})
	queried := query(t, "upgrades", cluster.Monitoring.PrometheusURL(), since, time.Time{}, time.Second)
	drawDashboard(t, "upgrades", "an upgrade of a dev cluster", queried)
}

// query returns the results of every expression of a dashboard from since to until, where zero is now. It fails if an
// expression has none.
func query(t *testing.T, name, url string, since, until time.Time, step time.Duration) answered {
	t.Helper()
	connection, err := prometheusapi.NewClient(prometheusapi.Config{Address: url})
	mustSucceed(t, err)
	promAPI := prometheusv1.NewAPI(connection)
	out := answered{series: map[string]model.Matrix{}, since: since, step: step}
	for _, expression := range expressions(t, "grafana-"+name+".json") {
		eventually(t, 20*time.Second, "Prometheus has results of "+expression, func(ctx context.Context) error {
			if out.until = until; until.IsZero() {
				out.until = time.Now()
			}
			values, _, _, err := promAPI.QueryRange(ctx, expression, prometheusv1.Range{Start: since, End: out.until, Step: step})
			if err != nil {
				return fmt.Errorf("querying %s: %w", expression, err)
			}
			series, is := values.(model.Matrix)
			if !is || len(series) == 0 {
				return errors.New("there is no result")
			}
			out.series[expression] = series
			return nil
		})
	}
	return out
}

// TestDashboards_expressions compares the expressions for the console and for Grafana. They are valid, and the
// reference lists their metrics and labels.
func TestDashboards_expressions(t *testing.T) {
	t.Parallel()
	labels := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\w+ \\| (.*?) \\|").FindAllStringSubmatch(readFile(t, "../../docs/reference/metrics.md"), -1) {
		labels[row[1]] = row[2]
	}
	bin, err := controlplane.FindBinDir()
	mustSucceed(t, err)
	for _, name := range dashboardNames {
		console, grafana := expressions(t, "console-"+name+".json"), expressions(t, "grafana-"+name+".json")
		slices.Sort(console)
		slices.Sort(grafana)
		if diff := cmp.Diff(console, grafana); diff != "" || len(console) < 10 {
			t.Errorf("dashboard %s has %d expressions; of the console (-) and of Grafana (+):\n%s", name, len(console), diff)
		}
		rules := filepath.Join(t.TempDir(), "rules.yaml")
		var text strings.Builder
		text.WriteString("groups:\n- name: dashboard\n  rules:\n")
		for i, expression := range console {
			fmt.Fprintf(&text, "  - {record: expression%d, expr: %q}\n", i, expression)
			var known []string
			for _, metric := range regexp.MustCompile(`managed_upgrade_\w+`).FindAllString(expression, -1) {
				of, found := labels[regexp.MustCompile(`_seconds_(sum|count|bucket)$`).ReplaceAllString(metric, "_seconds")]
				if !found {
					t.Errorf("%s: the reference lists no metric %s", expression, metric)
				}
				known = append(known, of)
			}
			for _, by := range regexp.MustCompile(`by \(([\w, ]+)\)`).FindAllStringSubmatch(expression, -1) {
				for label := range strings.SplitSeq(by[1], ", ") {
					if !strings.Contains(strings.Join(known, " "), "`"+label+"`") {
						t.Errorf("%s: its metrics have no label %s", expression, label)
					}
				}
			}
		}
		mustSucceed(t, os.WriteFile(rules, []byte(text.String()), 0o600))
		if printed, err := exec.CommandContext(t.Context(), filepath.Join(bin, "promtool"), "check", "rules", rules).CombinedOutput(); err != nil {
			t.Errorf("promtool: %v\n%s", err, printed)
		}
	}
}

// expressions returns the expressions of a dashboard, wherever they are in it, with the value All of each variable.
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
					all = append(all, everything.Replace(text))
				}
				visit(value)
			}
		}
	}
	visit(dashboard)
	return all
}
