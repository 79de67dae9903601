// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// For a cluster that cannot be judged, the screen shows the reason, the known progress, and what to do.
func TestStatus_that_is_unknown_says_what_is_known(t *testing.T) {
	t.Parallel()
	workers := func() *topology { return standard().update().updated("m0", "m1", "m2", "w0").reboot("w1") }
	conflict := func(c *topology) {
		addInfra(c)
		c.addPool("gpu")
		c.nodes["i0"].Labels["node-role.kubernetes.io/gpu"] = ""
		c.pools["gpu"].Status.MachineCount = 1
	}
	oneMore := func(pool string) func(*topology) { return func(c *topology) { c.pools[pool].Status.MachineCount++ } }
	unannotated := func(c *topology) { delete(c.nodes["w2"].Annotations, mcoPrefix+"desiredConfig") }
	unready := func(c *topology) { c.nodes["w2"].Status.Conditions = []corev1.NodeCondition{} }
	for name, tc := range map[string]struct {
		cluster              *topology
		head, progress, does string
	}{
		"a node is in two custom pools, idle":    {standard().change(conflict), "4.20.6. Pool gpu cannot be judged: node i0 is in several custom pools: gpu, infra.", "worker 3 of 3 nodes", "oc describe node i0"},
		"a node is in two custom pools, workers": {workers().change(conflict), "4.20.6 to 4.20.7. Pool gpu cannot be judged: node i0 is in several custom pools: gpu, infra.", "worker 1 of 3 nodes", "oc describe node i0"},
		"one machine too many, idle":             {standard().change(oneMore("worker")), "4.20.6. Pool worker cannot be judged: it has 4 machines, but 3 nodes are known.", "worker 3 of 3 nodes", "oc get nodes,machineconfigpools"},
		"one machine too many, workers":          {workers().change(oneMore("worker")), "4.20.6 to 4.20.7. Pool worker cannot be judged: it has 4 machines, but 3 nodes are known.", "worker 1 of 3 nodes", "oc get nodes,machineconfigpools"},
		"one machine too many, control plane":    {standard().update().reboot("m1").change(oneMore("master")), "4.20.6 to 4.20.7. Pool master cannot be judged: it has 4 machines, but 3 nodes are known.", "master 0 of 3 nodes", "oc get nodes,machineconfigpools"},
		"a node without an annotation":           {workers().change(unannotated), "4.20.6 to 4.20.7. Pool worker cannot be judged: node w2 has no annotation desiredConfig.", "worker 1 of 3 nodes", "oc describe node w2"},
		"a node without conditions":              {workers().change(unready), "4.20.6 to 4.20.7. Pool worker cannot be judged: node w2 does not report whether it is ready.", "worker 1 of 3 nodes", "oc describe node w2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.cluster.objects()...).Build()
			got := runStatus(t, &session.Cluster{Reader: notInstalled(reader), Clock: session.FixedClock(clitest.Now)}, statusOptions{}, "")
			words := strings.Join(strings.Fields(got.Out), " ")
			if got.Code != session.ExitUnknown || !strings.HasPrefix(words, "UNKNOWN "+tc.head+" Progress") || !strings.Contains(words, tc.progress) || !strings.Contains(got.Out, tc.does) {
				t.Errorf("exit code %d:\n%s\nwant %q, %q, %q", got.Code, got.Out, tc.head, tc.progress, tc.does)
			}
		})
	}
}

// Kinds that are not installed do not count as missing.
func TestStatus_does_not_list_kinds_that_are_not_installed(t *testing.T) {
	t.Parallel()
	required := []string{"ClusterVersion", "ClusterOperator", "Node", "MachineConfigPool", "MachineConfig", "Pod", "PodDisruptionBudget"}
	cluster := clitest.NewFakeCluster(t)
	cluster.Err = func(kind string) error {
		if slices.Contains(required, kind) {
			return nil
		}
		return clitest.NoMatch(kind)
	}
	if got := runStatus(t, cluster.Cluster, statusOptions{}, ""); got.Code != session.ExitDone || strings.Contains(got.Out, "Missing") {
		t.Errorf("exit code %d:\n%s", got.Code, got.Out)
	}
}

// The error names the node that does not exist.
func TestStatus_names_a_node_that_does_not_exist(t *testing.T) {
	t.Parallel()
	cluster := clitest.NewFakeCluster(t)
	if got := runStatus(t, cluster.Cluster, statusOptions{nodes: []string{"worker-9"}}, ""); got.Code != session.ExitFailed || !strings.Contains(got.ErrOut, `--node: there is no node "worker-9"`) {
		t.Errorf("%+v", got)
	}
}
