// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
)

// anEvent returns an Event about an object.
func anEvent(name, namespace string, about corev1.ObjectReference, reason string, first, last time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, InvolvedObject: about, Reason: reason, Message: "message of " + name,
		Type: corev1.EventTypeNormal, FirstTimestamp: *ago(first), LastTimestamp: *ago(last),
	}
}

func nodeEvent(name, node string, first, last time.Duration) *corev1.Event {
	return anEvent(name, "default", corev1.ObjectReference{Kind: "Node", Name: node}, "NodeNotReady", first, last)
}

// makeReport runs the command on a cluster, and returns the page, what was printed, and the error.
func makeReport(t *testing.T, cluster *fakeCluster, args ...string) (page, printed string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "upgrade.html")
	printed, err = withProgram(t, func(p *Program, ctx context.Context) error {
		p.cluster = cluster.Cluster
		return p.writeReport(ctx, append([]string{file}, args...), false)
	})
	content, readErr := os.ReadFile(file)
	if (readErr == nil) != (err == nil) {
		t.Errorf("the file: %v, the command: %v", readErr, err)
	}
	return string(content), strings.ReplaceAll(printed, file, "FILE"), err
}

func TestReport(t *testing.T) {
	t.Parallel()
	upgrade := anUpgrade(upgradedRecord())
	own := corev1.ObjectReference{Kind: "UpgradeConfig", Name: "cluster", UID: upgrade.UID}
	other := corev1.ObjectReference{Kind: "UpgradeConfig", Name: "cluster", UID: "another"}
	newCluster := func(objects ...client.Object) *fakeCluster {
		return newFakeCluster(t, append(objects,
			anEvent("own", upgradeNamespace, own, "UpgradeStarted", time.Hour, time.Hour), anEvent("other", upgradeNamespace, other, "UpgradeStarted", time.Hour, time.Hour),
			nodeEvent("before", "worker-9", 5*time.Hour, 4*time.Hour), nodeEvent("first", "worker-0", 40*time.Minute, 40*time.Minute), nodeEvent("last", "worker-0", 30*time.Minute, 25*time.Minute),
		)...)
	}
	span := func(from, to time.Duration) []prometheus.Span {
		return []prometheus.Span{{Start: ago(from).Time, End: ago(to).Time}}
	}

	t.Run("from Prometheus", func(t *testing.T) {
		t.Parallel()
		cluster := newCluster(upgrade)
		var asked []string
		cluster.Spans = func(_ context.Context, query string, start, end time.Time, step time.Duration) ([]prometheus.Series, error) {
			asked = append(asked, query)
			if points := end.Sub(start) / step; points > maxPoints || !start.Equal(ago(time.Hour).Time) || !end.Equal(ago(5*time.Minute).Time) {
				t.Errorf("%s from %s to %s, %d points", query, start, end, points)
			}
			switch query {
			case cordonedQuery:
				return []prometheus.Series{{Labels: map[string]string{"node": "worker-1"}, Spans: span(30*time.Minute, 20*time.Minute)}}, nil
			case nodesQuery:
				return []prometheus.Series{{Spans: span(time.Hour, 5*time.Minute)}}, nil
			case notReadyQuery:
				return []prometheus.Series{{Labels: map[string]string{"node": "worker-1"}, Spans: span(25*time.Minute, 24*time.Minute)}}, nil
			}
			return []prometheus.Series{
				{Labels: map[string]string{"alertname": "Watchdog", "severity": "none"}, Spans: span(time.Hour, 5*time.Minute)},
				{Labels: map[string]string{"alertname": "KubePodNotReady", "namespace": "shop", "severity": "warning"}, Spans: span(30*time.Minute, 20*time.Minute)},
				{Labels: map[string]string{"alertname": "etcdNoLeader", "severity": "critical"}, Spans: span(30*time.Minute, 29*time.Minute)},
			}, nil
		}
		page, printed, err := makeReport(t, cluster)
		if err != nil || printed != "Wrote FILE: upgrade/cluster, 4.20.6, Upgraded.\n" {
			t.Errorf("printed %q, error %v", printed, err)
		}
		for _, want := range []string{"worker-1", "cordoned, ", "not ready, ", "KubePodNotReady in shop", "warning, ", "etcdNoLeader", "critical, ", "message of own", "ControlPlaneUpgraded"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		for _, wrong := range []string{"message of other", "worker-0", "worker-9", "Missing:", "Watchdog"} {
			if strings.Contains(page, wrong) {
				t.Errorf("the page has %q", wrong)
			}
		}
		slices.Sort(asked)
		if want := []string{alertsQuery, nodesQuery, cordonedQuery, notReadyQuery}; !slices.Equal(asked, want) {
			t.Errorf("the queries are %q", asked)
		}
	})
	t.Run("with gaps", func(t *testing.T) {
		t.Parallel()
		cluster := newCluster(upgrade)
		half := span(time.Hour, 40*time.Minute)
		cluster.Spans = func(_ context.Context, query string, _, _ time.Time, _ time.Duration) ([]prometheus.Series, error) {
			switch query {
			case nodesQuery:
				return []prometheus.Series{{Spans: append(slices.Clone(half), span(20*time.Minute, 5*time.Minute)...)}}, nil
			case alertsQuery:
				return []prometheus.Series{{Labels: map[string]string{"alertname": "Watchdog"}, Spans: half}}, nil
			}
			return nil, nil
		}
		page, _, err := makeReport(t, cluster)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"Missing: alerts: Prometheus has no data from 00:20:00 to 00:55:00 UTC", "Missing: nodes: Prometheus has no data from 00:20:00 to 00:40:00 UTC",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	})
	t.Run("without kube-state-metrics and without rules", func(t *testing.T) {
		t.Parallel()
		cluster := newCluster(upgrade)
		cluster.Spans = func(context.Context, string, time.Time, time.Time, time.Duration) ([]prometheus.Series, error) {
			return nil, nil
		}
		page, _, err := makeReport(t, cluster)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"Missing: alerts: Prometheus has no data from 00:00:00 to 00:55:00 UTC", "their Events are shown instead: no series kube_node_spec_unschedulable in Prometheus", "worker-0",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	})
	t.Run("without Prometheus", func(t *testing.T) {
		t.Parallel()
		cluster := newCluster(upgrade)
		cluster.Spans = func(context.Context, string, time.Time, time.Time, time.Duration) ([]prometheus.Series, error) {
			return nil, errors.New("the Route has no host")
		}
		page, _, err := makeReport(t, cluster, "upgrade/cluster")
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"Missing: alerts: the Route has no host", "Missing: when nodes were cordoned or not ready; their Events are shown instead", "worker-0", "events, 2026-11-23 00:20:00 UTC, 15m"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		if strings.Contains(page, "worker-9") {
			t.Error("the page has a node whose Events were before the upgrade")
		}
	})
	t.Run("without Events", func(t *testing.T) {
		t.Parallel()
		cluster := newCluster(upgrade)
		cluster.err = func(kind string) error {
			if kind == "Event" {
				return errors.New("no permission")
			}
			return nil
		}
		page, _, err := makeReport(t, cluster)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"Missing: the Events of the upgrade: listing Events in namespace managed-upgrade-operator: no permission", "Missing: alerts: there is no Prometheus to query",
			"Missing: the Events of nodes: listing Events in namespace default: no permission", "ControlPlaneUpgraded",
		} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
	})
	t.Run("of a schedule", func(t *testing.T) {
		t.Parallel()
		late := aJob("late")
		late.Spec.StartAfter = "2026-11-24T02:00:00Z"
		_, printed, err := makeReport(t, newCluster(aSchedule(), aJob("early", failedRecord()), late), "uc/tuesdays")
		if err != nil || printed != "Wrote FILE: upgradejob/early, 4.20.6, Failed.\n" {
			t.Errorf("printed %q, error %v", printed, err)
		}
	})
	t.Run("that has not started", func(t *testing.T) {
		t.Parallel()
		_, _, err := makeReport(t, newCluster(anUpgrade(pendingRecord())), "upgrade/cluster")
		if exitCode(err) != ExitActionRequired || !strings.Contains(fmt.Sprint(err), "oc update preview upgrade/cluster -n managed-upgrade-operator") {
			t.Errorf("error %v", err)
		}
	})
}

func TestReport_bad_input(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	existing := filepath.Join(folder, "existing.html")
	if err := os.WriteFile(existing, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"nothing":               {nil, "name the FILE to write"},
		"an upgrade for a file": {[]string{"upgrade/cluster"}, "name the FILE to write before it"},
		"an unknown kind":       {[]string{"a.html", "node/a"}, "upgrade/NAME, upgradejob/NAME, or uc/NAME"},
		"too much":              {[]string{"a.html", "upgrade/a", "upgrade/b"}, "upgrade/b"},
		"a folder":              {[]string{folder}, "is a folder: name a file"},
		"a file that exists":    {[]string{existing}, "replace it with --overwrite"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, append([]string{"report"}, tc.args...)...); got.code != ExitUsage || !strings.Contains(got.errOut, tc.want) {
				t.Errorf("exit code %d: %s", got.code, got.errOut)
			}
		})
	}
	upgrade := anUpgrade(upgradedRecord())
	to := func(file string, overwrite bool) (string, error) {
		return withProgram(t, func(p *Program, ctx context.Context) error {
			p.cluster = newFakeCluster(t, upgrade.DeepCopy()).Cluster
			return p.writeReport(ctx, []string{file}, overwrite)
		})
	}
	if _, err := to(filepath.Join(folder, "missing", "a.html"), false); exitCode(err) != ExitFailed || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a folder that does not exist: %v", err)
	}
	if content, err := os.ReadFile(existing); err != nil || string(content) != "precious" {
		t.Errorf("the existing file: %q, %v", content, err)
	}
	if _, err := to(existing, true); err != nil {
		t.Error(err)
	}
	if content, err := os.ReadFile(existing); err != nil || !strings.HasPrefix(string(content), "<!DOCTYPE html>") {
		t.Errorf("the overwritten file: %.40q, %v", content, err)
	}
	if printed, err := to("-", false); err != nil || !strings.HasPrefix(printed, "<!DOCTYPE html>") || strings.Contains(printed, "Wrote") {
		t.Errorf("standard output: %.40q, %v", printed, err)
	}
}
