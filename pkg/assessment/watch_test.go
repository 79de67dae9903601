// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
)

// TestWatch_of_informers checks that a third-party informer's report is shown, and that the informer is
// degraded.
func TestWatch_of_informers(t *testing.T) {
	t.Parallel()
	f := progressingCluster()
	f.insight(f.plane(), "mco", newInsight(updatev1beta1.LevelWarning, "HighCPU", "High control plane CPU during upgrade", before(time.Minute)))
	f.insight(f.plane(), updatev1beta1.StatusControllerInformer, newInsight(updatev1beta1.LevelWarning, updatev1beta1.ReasonInformerDegraded, "the informer is degraded", before(time.Minute), ref("UpdateInformer", "", "mco")))
	got := f.assess()
	for _, want := range []updatev1beta1.WatchedFact{
		{Message: "High control plane CPU during upgrade", UpdateInformer: "mco"}, {Message: "informer mco is degraded"},
	} {
		if !slices.ContainsFunc(got.Watch, func(fact updatev1beta1.WatchedFact) bool {
			return fact.Message == want.Message && fact.UpdateInformer == want.UpdateInformer
		}) {
			t.Errorf("watch lacks %+v: %+v", want, got.Watch)
		}
	}
	if got.State != progressing {
		t.Errorf("state %s", got.State)
	}
}

// TestWatch_names_nodes_that_are_down checks that three nodes are named and the others are counted.
func TestWatch_names_nodes_that_are_down(t *testing.T) {
	t.Parallel()
	f := nodeUnchanged("NodeRebooting", time.Minute)
	for _, name := range []string{"worker-0", "worker-1", "worker-3", "worker-4"} {
		f.node(name).Status.Conditions[0].Status, f.node(name).Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, at(before(3*time.Hour))
	}
	messages := strings.Join(watchedMessages(*f.computed(updatev1beta1.UpdateStatusStatus{}).Assessment), "\n")
	if !strings.Contains(messages, "nodes worker-0, worker-1, worker-3 and 1 more are not ready") {
		t.Errorf("watched: %s", messages)
	}
}

// TestWatch_keeps_facts_without_an_object checks that facts without an object are shown next to facts with
// the same reason that have one, and in the informer's own words if the reason is unknown.
func TestWatch_keeps_facts_without_an_object(t *testing.T) {
	t.Parallel()
	f := progressingCluster()
	for _, i := range []updatev1beta1.Insight{
		newInsight(updatev1beta1.LevelError, "NodeNotReady", "some nodes are down", before(time.Minute)),
		newInsight(updatev1beta1.LevelError, "NodeNotReady", "a node is down", before(time.Minute), ref("Node", "", "worker-1")),
		newInsight(updatev1beta1.LevelError, "PodHeldByBudget", "pods that cannot be evicted", before(time.Minute), ref("Node", "", "worker-2")),
		newInsight(updatev1beta1.LevelError, "Odd", "one", before(time.Minute), ref("Disk", "", "a")),
		newInsight(updatev1beta1.LevelError, "Odd", "two", before(time.Minute), ref("Disk", "", "b")),
	} {
		f.insight(f.plane(), checks.InformerAlerts, i)
	}
	messages := watchedMessages(f.assess())
	for _, want := range []string{"error: some nodes are down", "error: node worker-1 is not ready", "error: drain of node worker-2 waits for its pods", "error: one", "error: two"} {
		if !slices.Contains(messages, want) {
			t.Errorf("watch lacks %q: %q", want, messages)
		}
	}
}
