// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hub

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
)

func newTestHub(t *testing.T, o Options) *hub {
	t.Helper()
	h, err := newHub(o, logr.Discard(), clocktesting.NewFakeClock(metav1.Now().Time))
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestBinary_kinds_are_declared_consistently(t *testing.T) {
	t.Parallel()
	kinds, err := manager.Kinds(newTestHub(t, Options{}).binary().Controllers...)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds {
		if _, is := kind.Object.(*clusterv1.ManagedCluster); is && kind.Transform == nil {
			t.Error("whole ManagedClusters are cached")
		}
	}
}

// Events about runs that cannot be written are counted by the metric behind the alert
// ManagedUpgradeFleetNotificationsFailing.
func TestMetrics_count_events_of_runs(t *testing.T) {
	t.Parallel()
	h := newTestHub(t, Options{})
	h.runs.OnEventFailure()
	families, err := h.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == metrics.NotificationFailures && metric.GetLabel()[0].GetValue() == "events" && metric.GetCounter().GetValue() == 1 {
				return
			}
		}
	}
	t.Error("the failure is not exported")
}

func TestOptions_placements_of_other_namespaces(t *testing.T) {
	t.Parallel()
	for _, allow := range []bool{true, false} {
		if got := newTestHub(t, Options{AllowPlacementNamespaces: allow}).upgrades.Selection.OwnNamespaceOnly; got == allow {
			t.Errorf("--allow-placement-namespaces=%t: only the own namespace: %t", allow, got)
		}
	}
}

func TestCommand_help_lists_the_flags(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	command := Command("v1")
	command.SetOut(&out)
	command.SetArgs([]string{"--help"})
	if err := command.ExecuteContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, flag := range []string{"--allow-placement-namespaces", "--leader-elect", "--metrics-bind-address", "--health-probe-bind-address", "--webhook-url", "--webhook-token-file"} {
		if !strings.Contains(out.String(), flag+" ") {
			t.Errorf("--help lacks %s:\n%s", flag, out.String())
		}
	}
}
