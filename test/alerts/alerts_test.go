// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package alerts

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

const (
	metricsPage = "../../docs/reference/metrics.md"
	pagesFolder = "../../docs/alerts"
	pagesURL    = "https://github.com/managed-upgrade/managed-upgrade-operator/blob/main/docs/alerts/"
)

// ruleFiles are the alerts of the operator, of the Update Status Controller, and of the hub.
var ruleFiles = []string{"../../deploy/operator/prometheus_rule.yaml", "../../deploy/update-status/prometheus_rule.yaml", "../../deploy/hub/prometheus_rule.yaml"}

// groups is the part of a PrometheusRule that Prometheus reads.
type groups struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert         string            `json:"alert"`
	Expr          string            `json:"expr"`
	For           string            `json:"for,omitempty"`
	KeepFiringFor string            `json:"keep_firing_for,omitempty"`
	Labels        map[string]string `json:"labels"`
	Annotations   map[string]string `json:"annotations"`
}

func loadRules(t *testing.T) groups {
	t.Helper()
	var all groups
	for _, file := range ruleFiles {
		var object struct {
			Spec groups `json:"spec"`
		}
		unmarshal(t, file, &object)
		all.Groups = append(all.Groups, object.Spec.Groups...)
	}
	return all
}

// alerts returns the deployed alerts.
func alerts(t *testing.T) []rule {
	t.Helper()
	var all []rule
	for _, group := range loadRules(t).Groups {
		all = append(all, group.Rules...)
	}
	if len(all) == 0 {
		t.Fatal("got no alerts")
	}
	return all
}

func unmarshal(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

func TestAlertNamesHaveTheOperatorsPrefix(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, r := range alerts(t) {
		if !strings.HasPrefix(r.Alert, clusterstate.OwnAlerts) || seen[r.Alert] {
			t.Errorf("%s must have prefix %s and be unique", r.Alert, clusterstate.OwnAlerts)
		}
		seen[r.Alert] = true
	}
}

func TestAlertLabelsAndAnnotations(t *testing.T) {
	t.Parallel()
	for _, r := range alerts(t) {
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: unexpected severity %q", r.Alert, s)
		}
		if r.Labels["namespace"] == "" && !strings.Contains(r.Expr, "by (kind, namespace,") && !strings.Contains(r.Expr, "by (namespace,") {
			t.Errorf("%s has no namespace", r.Alert)
		}
		want := []string{"description", "runbook_url", "summary"}
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(r.Annotations))); diff != "" {
			t.Errorf("%s: annotations (-want +got):\n%s", r.Alert, diff)
		}
		if got := r.Annotations["runbook_url"]; got != pagesURL+r.Alert+".md" {
			t.Errorf("%s: unexpected runbook_url %s", r.Alert, got)
		}
		// The start is a value of the metrics, or the time since when Prometheus has observed the condition.
		since := strings.Contains(r.Annotations["description"], "{{ $value | humanize")
		if inWords := strings.NewReplacer("m", " minutes").Replace(r.For); !since && (r.For == "" || !strings.Contains(r.Annotations["description"], inWords)) {
			t.Errorf("%s: the description does not name the time since which the alert holds", r.Alert)
		}
	}
}

// pageHeadings are the sections of each page, in this order.
var pageHeadings = []string{"## Meaning", "## Impact", "## Diagnosis", "## Mitigation", "## Severity and escalation", "## The alert resolves"}

var heading = regexp.MustCompile(`(?m)^## .*$`)

func TestAlertPagesMatchTheAlerts(t *testing.T) {
	t.Parallel()
	var want, got []string
	severity := map[string]string{}
	for _, r := range alerts(t) {
		want = append(want, r.Alert)
		severity[r.Alert] = r.Labels["severity"]
	}
	pages, err := filepath.Glob(filepath.Join(pagesFolder, "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		if name == "README" { // the list of the alerts
			continue
		}
		got = append(got, name)
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if !strings.HasPrefix(text, "# "+name+"\n\n") {
			t.Errorf("%s does not start with the name of its alert", page)
		}
		if diff := cmp.Diff(pageHeadings, heading.FindAllString(text, -1)); diff != "" {
			t.Errorf("%s: headings (-want +got):\n%s", page, diff)
		}
		if !strings.Contains(text, "\n```sh\n") {
			t.Errorf("%s has no shell block", page)
		}
		if want := strings.ToUpper(severity[name][:1]) + severity[name][1:]; !regexp.MustCompile("\n## Severity and escalation\n\n" + want + `[.:] \S`).MatchString(text) {
			t.Errorf("%s does not name the severity %s, and whom to contact", page, severity[name])
		}
		if regexp.MustCompile(`(?m)^## .*\n+(## |\z)`).MatchString(text) {
			t.Errorf("%s has an empty section", page)
		}
	}
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-alerts +pages):\n%s", diff)
	}
}

// documentedMetrics returns the documented metrics with their labels, and the one that Prometheus generates.
func documentedMetrics(t *testing.T) map[string][]string {
	t.Helper()
	page, err := os.ReadFile(metricsPage)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string][]string{"up": {}}
	for _, row := range regexp.MustCompile("(?m)^\\| `(\\w+)` \\| \\w+ \\| ([^|]*) \\|").FindAllStringSubmatch(string(page), -1) {
		all[row[1]] = regexp.MustCompile(`\w+`).FindAllString(row[2], -1)
	}
	if len(all) < 10 {
		t.Fatalf("%s lists %d metrics", metricsPage, len(all))
	}
	return all
}

// targetLabels are the labels that Prometheus adds to each series that it scrapes from a pod.
var targetLabels = []string{"namespace", "job", "pod", "instance", "service", "endpoint", "container"}

var (
	selector = regexp.MustCompile(`\b([a-z]\w*_\w+|up)\b(?:\s*\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping = regexp.MustCompile(`\bby \(([^)]*)\) \(`)
)

func TestAlertExpressionsUseDocumentedMetricsAndLabels(t *testing.T) {
	t.Parallel()
	metrics := documentedMetrics(t)
	for _, r := range alerts(t) {
		selectors := selector.FindAllStringSubmatch(r.Expr, -1)
		if len(selectors) == 0 {
			t.Errorf("%s selects no series", r.Alert)
		}
		aggregations := grouping.FindAllStringSubmatch(r.Expr, -1)
		if len(aggregations) > 0 && len(aggregations) != len(selectors) {
			t.Errorf("%s has %d aggregations of %d selectors", r.Alert, len(aggregations), len(selectors))
			continue
		}
		var own []string // the labels of the alert, as in the first aggregation
		for i, series := range selectors {
			var grouped []string
			if len(aggregations) > 0 {
				grouped = strings.Split(aggregations[i][1], ", ")
			}
			if i == 0 {
				own = grouped
			}
			labels, known := metrics[series[1]]
			if !known {
				t.Errorf("%s selects %s, which %s does not list", r.Alert, series[1], metricsPage)
			}
			for _, m := range matcher.FindAllStringSubmatch(series[2], -1) {
				if !slices.Contains(labels, m[1]) && !slices.Contains(targetLabels, m[1]) {
					t.Errorf("%s selects %s by label %s; the metric has %v", r.Alert, series[1], m[1], labels)
				}
			}
			for _, label := range grouped {
				if !slices.Contains(labels, label) {
					t.Errorf("%s groups %s by %s; the metric has %v", r.Alert, series[1], label, labels)
				}
			}
		}
		for _, reference := range regexp.MustCompile(`\$labels\.(\w+)`).FindAllStringSubmatch(r.Annotations["description"], -1) {
			if !slices.Contains(own, reference[1]) {
				t.Errorf("%s: the description names label %s; the alert has %v", r.Alert, reference[1], own)
			}
		}
	}
}

// cases is the part of promtool's test file that matters here.
type cases struct {
	Tests []struct {
		Name        string `json:"name"`
		InputSeries []struct {
			Series string `json:"series"`
		} `json:"input_series"`
		AlertRuleTest []struct {
			Alertname string `json:"alertname"`
			ExpAlerts []any  `json:"exp_alerts"`
		} `json:"alert_rule_test"`
	} `json:"tests"`
}

func TestAlertCasesCoverEachAlert(t *testing.T) {
	t.Parallel()
	var all cases
	unmarshal(t, "cases.yaml", &all)
	metrics, fires, silent := documentedMetrics(t), map[string]bool{}, map[string]bool{}
	for _, test := range all.Tests {
		for _, input := range test.InputSeries {
			series := selector.FindStringSubmatch(input.Series)
			if series == nil || series[0] != input.Series {
				t.Errorf("%s: %s is not a series", test.Name, input.Series)
				continue
			}
			labels, known := metrics[series[1]]
			if !known {
				t.Errorf("%s: unknown metric %s", test.Name, series[1])
			}
			var given []string
			for _, m := range matcher.FindAllStringSubmatch(series[2], -1) {
				given = append(given, m[1])
				if !slices.Contains(labels, m[1]) && !slices.Contains(targetLabels, m[1]) {
					t.Errorf("%s: %s has no label %s", test.Name, series[1], m[1])
				}
			}
			for _, label := range append(slices.Clone(labels), "pod") {
				if !slices.Contains(given, label) {
					t.Errorf("%s: %s lacks its label %s", test.Name, series[1], label)
				}
			}
		}
		for _, c := range test.AlertRuleTest {
			if len(c.ExpAlerts) > 0 {
				fires[c.Alertname] = true
			} else {
				silent[c.Alertname] = true
			}
		}
	}
	for _, r := range alerts(t) {
		if !fires[r.Alert] || !silent[r.Alert] {
			t.Errorf("%s: a case in which it fires: %t, in which it does not fire: %t", r.Alert, fires[r.Alert], silent[r.Alert])
		}
		delete(fires, r.Alert)
		delete(silent, r.Alert)
	}
	for name := range maps.Keys(silent) {
		t.Errorf("there are cases for %s, which is not an alert", name)
	}
}
