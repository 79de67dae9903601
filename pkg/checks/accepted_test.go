// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// A finding that an administrator has accepted for the update is noted and does not block a gate. Another
// finding about the same object still does.
func TestRunner_does_not_block_for_accepted_findings(t *testing.T) {
	t.Parallel()
	notReady := func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }
	pressed := func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeDiskPressure, Status: corev1.ConditionTrue})
	}
	for name, tc := range map[string]struct {
		changes  []func(*corev1.Node)
		accepted map[string]bool
		healthy  bool
		message  string
		notes    string
		calls    int
	}{
		"healthy":                          {healthy: true},
		"nothing accepted":                 {changes: []func(*corev1.Node){notReady}, message: "nodes not ready: a", calls: 1},
		"another object accepted":          {changes: []func(*corev1.Node){notReady}, accepted: map[string]bool{"node/b/NodeNotReady": true}, message: "nodes not ready: a", calls: 1},
		"accepted":                         {changes: []func(*corev1.Node){notReady}, accepted: map[string]bool{"node/a/NodeNotReady": true}, healthy: true, notes: "accepted in the UpdatePlan: nodes not ready: a", calls: 1},
		"accepted, with another finding":   {changes: []func(*corev1.Node){notReady, pressed}, accepted: map[string]bool{"node/a/NodeNotReady": true}, message: "nodes under pressure: a (disk)", notes: "accepted in the UpdatePlan: nodes not ready: a", calls: 1},
		"accepted, but it is not blocking": {accepted: map[string]bool{"node/a/NodeNotReady": true}, healthy: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			calls := 0
			runner := checks.Runner{
				Reader:  simulation.NewFakeClient(t, clusterVersion(), healthyOperator("dns"), pool("worker"), node("a", tc.changes...)),
				Sources: &checks.Sources{AlertsDisabled: true}, Options: checks.GateOptions{Checks: []string{"nodes"}},
				Accepted: func(context.Context) map[string]bool { calls++; return tc.accepted },
			}
			report := runner.Run(t.Context(), noon)
			if report.Err != nil || report.Healthy() != tc.healthy || report.Message() != tc.message || report.Notes() != tc.notes || calls != tc.calls {
				t.Errorf("healthy %t, %q, %q, %v; %d calls", report.Healthy(), report.Message(), report.Notes(), report.Err, calls)
			}
		})
	}
}
