// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

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
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/prometheus"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
)

// anEvent returns an Event about an object.
func anEvent(name, namespace string, about corev1.ObjectReference, reason string, first, last time.Duration) *corev1.Event {
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, InvolvedObject: about, Reason: reason, Message: "message of " + name,
		Type: corev1.EventTypeNormal, FirstTimestamp: *clitest.Ago(first), LastTimestamp: *clitest.Ago(last),
	}
}

func nodeEvent(name, node string, first, last time.Duration) *corev1.Event {
	return anEvent(name, "default", corev1.ObjectReference{Kind: "Node", Name: node}, "NodeNotReady", first, last)
}

// drainEvent returns one of the operator's Events about a node.
func drainEvent(name, node string, at time.Duration) *corev1.Event {
	e := anEvent(name, "default", corev1.ObjectReference{Kind: "Node", Name: node}, "DrainBlocked", at, at)
	e.Type, e.Source.Component = corev1.EventTypeWarning, notify.Component
	return e
}

// makeReport runs the command on a cluster and returns the page, the output, and the error.
func makeReport(t *testing.T, cluster *clitest.FakeCluster, args ...string) (page, printed string, err error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "upgrade.html")
	printed, err = withProgram(t, func(ctx context.Context, p *session.Session) error {
		p.Cluster = cluster.Cluster
		return (&reportOptions{Session: p, args: append([]string{file}, args...)}).writeReport(ctx)
	})
	content, readErr := os.ReadFile(file)
	if (readErr == nil) != (err == nil) {
		t.Errorf("the file: %v, the command: %v", readErr, err)
	}
	return string(content), strings.ReplaceAll(printed, file, "FILE"), err
}

func TestReport(t *testing.T) {
	t.Parallel()
	upgrade := clitest.AnUpgrade(clitest.UpgradedRecord())
	own := corev1.ObjectReference{Kind: "UpgradeConfig", Name: "cluster", UID: upgrade.UID}
	other := corev1.ObjectReference{Kind: "UpgradeConfig", Name: "cluster", UID: "another"}
	newCluster := func(objects ...client.Object) *clitest.FakeCluster {
		return clitest.NewFakeCluster(t, append(objects,
			anEvent("own", clitest.Namespace, own, "UpgradeStarted", time.Hour, time.Hour), anEvent("other", clitest.Namespace, other, "UpgradeStarted", time.Hour, time.Hour),
			nodeEvent("before", "worker-9", 5*time.Hour, 4*time.Hour), nodeEvent("first", "worker-0", 40*time.Minute, 40*time.Minute), nodeEvent("last", "worker-0", 30*time.Minute, 25*time.Minute),
			drainEvent("earlier-drain", "worker-9", 2*time.Hour), drainEvent("drain", "worker-0", 35*time.Minute),
		)...)
	}
	span := func(from, to time.Duration) []prometheus.Span {
		return []prometheus.Span{{Start: clitest.Ago(from).Time, End: clitest.Ago(to).Time}}
	}

	t.Run("from Prometheus", func(t *testing.T) {
		t.Parallel()
		cluster := newCluster(upgrade)
		var asked []string
		cluster.Spans = func(_ context.Context, query string, start, end time.Time, step time.Duration) ([]prometheus.Series, error) {
			asked = append(asked, query)
			if points := end.Sub(start) / step; points > maxPoints || !start.Equal(clitest.Ago(time.Hour).Time) || !end.Equal(clitest.Ago(5*time.Minute).Time) {
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
		for _, want := range []string{"worker-1", "cordoned, ", "rebooting, ", "KubePodNotReady in shop", "warning, ", "etcdNoLeader", "critical, ", "message of own", "ControlPlaneUpgraded"} {
			if !strings.Contains(page, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		if own, drain := strings.Index(page, "message of own"), strings.Index(page, "message of drain"); drain < own {
			t.Errorf("the operator's Event about a node is at %d, but the Event about the upgrade at %d", drain, own)
		}
		for _, wrong := range []string{"message of other", "message of first", "message of earlier-drain", "worker-0", "worker-9", "Missing:", "Watchdog"} {
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
		for _, want := range []string{"Missing: alerts: the Route has no host", "Missing: when nodes were cordoned or not ready; their Events are shown instead", "worker-0", "not ready, 2026-11-23 00:20:00 UTC, 35m"} {
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
		cluster.Err = func(kind string) error {
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
		late := clitest.AJob("late")
		late.Spec.StartAfter = "2026-11-24T02:00:00Z"
		_, printed, err := makeReport(t, newCluster(clitest.ASchedule(), clitest.AJob("early", clitest.FailedRecord()), late), "uc/tuesdays")
		if err != nil || printed != "Wrote FILE: upgradejob/early, 4.20.6, Failed.\n" {
			t.Errorf("printed %q, error %v", printed, err)
		}
	})
	t.Run("that has not started", func(t *testing.T) {
		t.Parallel()
		_, _, err := makeReport(t, newCluster(clitest.AnUpgrade(clitest.PendingRecord())), "upgrade/cluster")
		if session.CodeOf(err) != session.ExitActionRequired || !strings.Contains(fmt.Sprint(err), "oc update preview upgrade/cluster -n managed-upgrade-operator") {
			t.Errorf("error %v", err)
		}
	})
}

// TestReport_of_a_dump uses separate files for Events and upgrades, as must-gather.sh saves them.
func TestReport_of_a_dump(t *testing.T) {
	t.Parallel()
	upgrade := clitest.AnUpgrade(clitest.UpgradedRecord())
	own := corev1.ObjectReference{Kind: "UpgradeConfig", Name: "cluster", UID: upgrade.UID}
	folder := t.TempDir()
	for name, objects := range map[string][]client.Object{
		"objects.yaml": {upgrade, clitest.ASchedule(), clitest.AJob("late")},
		"own.yaml":     {anEvent("own", clitest.Namespace, own, "UpgradeStarted", time.Hour, time.Hour)},
		"nodes.yaml":   {drainEvent("drain", "worker-0", 35*time.Minute), nodeEvent("first", "worker-0", 40*time.Minute, 40*time.Minute)},
	} {
		var documents []string
		for _, object := range objects {
			gvk, err := apiutil.GVKForObject(object, scheme.New())
			if err != nil {
				t.Fatal(err)
			}
			object.GetObjectKind().SetGroupVersionKind(gvk)
			document, err := yaml.Marshal(object)
			if err != nil {
				t.Fatal(err)
			}
			documents = append(documents, string(document))
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(strings.Join(documents, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got := run(t, "report", "-", "--replay", folder)
	for _, want := range []string{"message of own", "message of drain", "worker-0", "Missing: alerts: there is no Prometheus to query"} {
		if !strings.Contains(got.Out, want) {
			t.Errorf("exit code %d: the page lacks %q: %s", got.Code, want, got.ErrOut)
		}
	}
	if strings.Contains(got.Out, "Missing: the Events") || strings.Contains(got.Out, "message of first") {
		t.Errorf("the page: %s", got.Out)
	}
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
		"a file to serve":       {[]string{"--serve", "--overwrite"}, "--serve: writes no file"},
		"a file that exists":    {[]string{existing}, "replace it with --overwrite"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := run(t, append([]string{"report"}, tc.args...)...); got.Code != session.ExitUsage || !strings.Contains(got.ErrOut, tc.want) {
				t.Errorf("exit code %d: %s", got.Code, got.ErrOut)
			}
		})
	}
	upgrade := clitest.AnUpgrade(clitest.UpgradedRecord())
	to := func(file string, overwrite bool) (string, error) {
		return withProgram(t, func(ctx context.Context, p *session.Session) error {
			p.Cluster = clitest.NewFakeCluster(t, upgrade.DeepCopy()).Cluster
			return (&reportOptions{Session: p, ServeFlags: report.ServeFlags{Overwrite: overwrite}, args: []string{file}}).writeReport(ctx)
		})
	}
	if _, err := to(filepath.Join(folder, "missing", "a.html"), false); session.CodeOf(err) != session.ExitFailed || !errors.Is(err, os.ErrNotExist) {
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
