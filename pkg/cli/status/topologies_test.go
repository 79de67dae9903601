// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

const mcoPrefix = "machineconfiguration.openshift.io/"

// topology is a cluster at 4.20.6 that tests can change before it is judged.
type topology struct {
	version   *configv1.ClusterVersion
	operators map[string]*configv1.ClusterOperator
	pools     map[string]*mcfgv1.MachineConfigPool
	nodes     map[string]*corev1.Node
	configs   map[string]*mcfgv1.MachineConfig
}

// newTopology returns a cluster with two operators and the standard pools but without nodes.
func newTopology() *topology {
	c := &topology{
		operators: map[string]*configv1.ClusterOperator{}, pools: map[string]*mcfgv1.MachineConfigPool{},
		nodes: map[string]*corev1.Node{}, configs: map[string]*mcfgv1.MachineConfig{},
	}
	for _, object := range clitest.HealthyObjects() {
		switch object := object.(type) {
		case *configv1.ClusterVersion:
			c.version = object
		case *configv1.ClusterOperator:
			c.operators[object.Name] = object
		}
	}
	c.addPool("master")
	c.addPool("worker")
	return c
}

func (c *topology) addPool(name string) {
	c.pools[name] = clitest.HealthyPool(name)
	c.pools[name].Status.MachineCount, c.pools[name].Status.UpdatedMachineCount = 0, 0
	for _, release := range []string{"1", "2"} {
		config := clitest.RenderedConfig(name)
		config.Name = "rendered-" + name + "-" + release
		if release == "2" {
			config.Annotations[mcoPrefix+"release-image-version"] = "4.20.7"
		}
		c.configs[config.Name] = config
	}
}

// add adds nodes to a pool. They may have additional roles.
func (c *topology) add(pool string, names []string, roles ...string) *topology {
	for _, name := range names {
		node := clitest.HealthyNode(name, pool)
		for _, role := range roles {
			node.Labels["node-role.kubernetes.io/"+role] = ""
		}
		c.nodes[name] = node
		c.pools[pool].Status.MachineCount++
		c.pools[pool].Status.UpdatedMachineCount++
	}
	return c
}

// standard returns a cluster with three nodes per role.
func standard() *topology {
	return newTopology().add("master", []string{"m0", "m1", "m2"}).add("worker", []string{"w0", "w1", "w2"})
}

// update starts the update to 4.20.7. All operators except machine-config are updated.
func (c *topology) update() *topology {
	started := metav1.NewTime(clitest.Now.Add(-20 * time.Minute))
	history := configv1.UpdateHistory{State: configv1.PartialUpdate, Version: "4.20.7", Image: "image-4.20.7", StartedTime: started}
	c.version.Status.History = append([]configv1.UpdateHistory{history}, c.version.Status.History...)
	c.version.Status.Desired = configv1.Release{Version: "4.20.7", Image: "image-4.20.7"}
	c.operators["network"].Status.Versions[0].Version = "4.20.7"
	for _, operator := range c.operators {
		for i := range operator.Status.Conditions {
			operator.Status.Conditions[i].LastTransitionTime = metav1.NewTime(clitest.Now.Add(-10 * time.Minute))
		}
	}
	for name, pool := range c.pools {
		pool.Spec.Configuration.Name = "rendered-" + name + "-2"
	}
	return c
}

// updated completes the update of the control plane and of the given nodes.
func (c *topology) updated(nodes ...string) *topology {
	newest := &c.version.Status.History[0]
	newest.State, newest.CompletionTime = configv1.CompletedUpdate, new(metav1.NewTime(clitest.Now.Add(-5*time.Minute)))
	c.operators["machine-config"].Status.Versions[0].Version = "4.20.7"
	for _, name := range nodes {
		annotations := c.nodes[name].Annotations
		to := strings.TrimSuffix(annotations[mcoPrefix+"currentConfig"], "1") + "2"
		annotations[mcoPrefix+"currentConfig"], annotations[mcoPrefix+"desiredConfig"] = to, to
	}
	return c
}

// reboot makes a node reboot into its pool's configuration.
func (c *topology) reboot(name string) *topology {
	annotations := c.nodes[name].Annotations
	annotations[mcoPrefix+"desiredConfig"] = strings.TrimSuffix(annotations[mcoPrefix+"currentConfig"], "1") + "2"
	annotations[mcoPrefix+"state"] = "Rebooting"
	return c
}

func (c *topology) objects() []client.Object {
	for i := range c.version.Status.Conditions {
		if progressing := &c.version.Status.Conditions[i]; progressing.Type == configv1.OperatorProgressing {
			newest := c.version.Status.History[0]
			progressing.Status, progressing.LastTransitionTime = configv1.ConditionTrue, newest.StartedTime
			if newest.CompletionTime != nil {
				progressing.Status, progressing.LastTransitionTime = configv1.ConditionFalse, *newest.CompletionTime
			}
		}
	}
	objects := []client.Object{c.version}
	for _, o := range c.operators {
		objects = append(objects, o)
	}
	for _, o := range c.pools {
		objects = append(objects, o)
	}
	for _, o := range c.nodes {
		objects = append(objects, o)
	}
	for _, o := range c.configs {
		objects = append(objects, o)
	}
	return objects
}

// change applies a change and returns the topology, for tables.
func (c *topology) change(apply func(*topology)) *topology {
	apply(c)
	return c
}

// The verdict is right for every topology and every kind of update.
func TestStatus_of_topologies(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cluster *topology
		code    session.ExitCode
		head    string
		// progress lists the sections without their details.
		progress []string
	}{
		"standard, idle":                             {standard(), session.ExitDone, "UP TO DATE  4.20.6", nil},
		"standard, control plane":                    {standard().update().reboot("m1"), session.ExitProgressing, "UPDATING  4.20.6 to 4.20.7", []string{"control plane 1 of 2 operators", "master 0 of 3 nodes", "worker 0 of 3 nodes"}},
		"standard, workers":                          {standard().update().updated("m0", "m1", "m2", "w0").reboot("w1"), session.ExitProgressing, "UPDATING  4.20.6 to 4.20.7", []string{"control plane 2 of 2 operators", "worker 1 of 3 nodes"}},
		"standard, updated":                          {standard().update().updated("m0", "m1", "m2", "w0", "w1", "w2"), session.ExitDone, "UP TO DATE  4.20.7", nil},
		"single node, idle":                          {newTopology().add("master", []string{"sno"}, "worker"), session.ExitDone, "UP TO DATE  4.20.6", nil},
		"single node, reboots":                       {newTopology().add("master", []string{"sno"}, "worker").update().reboot("sno"), session.ExitProgressing, "UPDATING  4.20.6 to 4.20.7", []string{"control plane 1 of 2 operators", "master 0 of 1 nodes"}},
		"single node, updated":                       {newTopology().add("master", []string{"sno"}, "worker").update().updated("sno"), session.ExitDone, "UP TO DATE  4.20.7", nil},
		"compact, idle":                              {newTopology().add("master", []string{"a", "b", "c"}, "worker"), session.ExitDone, "UP TO DATE  4.20.6", nil},
		"compact, control plane":                     {newTopology().add("master", []string{"a", "b", "c"}, "worker").update().reboot("b"), session.ExitProgressing, "UPDATING  4.20.6 to 4.20.7", []string{"control plane 1 of 2 operators", "master 0 of 3 nodes"}},
		"compact, updated":                           {newTopology().add("master", []string{"a", "b", "c"}, "worker").update().updated("a", "b", "c"), session.ExitDone, "UP TO DATE  4.20.7", nil},
		"custom pool is left":                        {standard().change(addInfra).update().updated("m0", "m1", "m2", "w0", "w1", "w2").reboot("i0"), session.ExitProgressing, "UPDATING  4.20.6 to 4.20.7", []string{"control plane 2 of 2 operators", "infra 0 of 2 nodes", "worker 3 of 3 nodes"}},
		"custom pool is paused":                      {standard().change(addInfra).update().updated("m0", "m1", "m2", "w0", "w1", "w2").change(func(c *topology) { c.pools["infra"].Spec.Paused = true }), session.ExitActionRequired, "WAITING  4.20.6 to 4.20.7", []string{"control plane 2 of 2 operators", "infra 0 of 2 nodes", "worker 3 of 3 nodes"}},
		"empty pool, idle":                           {standard().change(func(c *topology) { c.addPool("empty") }), session.ExitDone, "UP TO DATE  4.20.6", nil},
		"empty pool, updated":                        {standard().change(func(c *topology) { c.addPool("empty") }).update().updated("m0", "m1", "m2", "w0", "w1", "w2"), session.ExitDone, "UP TO DATE  4.20.7", nil},
		"empty pool that is paused":                  {standard().change(func(c *topology) { c.addPool("empty"); c.pools["empty"].Spec.Paused = true }), session.ExitDone, "UP TO DATE  4.20.6", nil},
		"no pools, although machine-config is there": {standard().change(func(c *topology) { clear(c.pools) }), session.ExitUnknown, "UNKNOWN", nil},
		"installation": {standard().change(func(c *topology) {
			newest := &c.version.Status.History[0]
			newest.State, newest.CompletionTime, newest.StartedTime = configv1.PartialUpdate, nil, metav1.NewTime(clitest.Now.Add(-10*time.Minute))
		}), session.ExitProgressing, "UPDATING  to 4.20.6", []string{"control plane 2 of 2 operators", "worker 3 of 3 nodes"}},
		"after an incomplete update": {standard().update().change(func(c *topology) {
			first := c.version.Status.History[0]
			first.Version, first.Image, first.CompletionTime = "4.20.8", "image-4.20.8", nil
			first.StartedTime = metav1.NewTime(clitest.Now.Add(-5 * time.Minute))
			c.version.Status.History[0].CompletionTime = &first.StartedTime
			c.version.Status.History = slices.Insert(c.version.Status.History, 0, first)
		}), session.ExitProgressing, "UPDATING  4.20.6 to 4.20.8", []string{"control plane 0 of 2 operators", "worker 0 of 3 nodes"}},
		"back to the release before": {standard().update().change(func(c *topology) {
			first := c.version.Status.History[0]
			first.Version, first.Image, first.StartedTime = "4.20.6", "image-4.20.6", metav1.NewTime(clitest.Now.Add(-5*time.Minute))
			c.version.Status.History = slices.Insert(c.version.Status.History, 0, first)
			c.version.Status.Desired = configv1.Release{Version: "4.20.6", Image: "image-4.20.6"}
		}), session.ExitProgressing, "UPDATING  back to 4.20.6", []string{"control plane 1 of 2 operators", "worker 3 of 3 nodes"}},
		"same version, another image": {standard().update().change(func(c *topology) {
			newest := &c.version.Status.History[0]
			newest.Version, newest.Image, c.version.Status.Desired.Version = "4.20.6", "multi-4.20.6", "4.20.6"
			c.operators["network"].Status.Versions[0].Version = "4.20.6"
			for _, config := range c.configs {
				config.Annotations[mcoPrefix+"release-image-version"] = "4.20.6"
				config.CreationTimestamp = metav1.NewTime(clitest.Now.Add(-100 * time.Hour))
				if strings.HasSuffix(config.Name, "2") {
					config.CreationTimestamp = metav1.NewTime(clitest.Now.Add(-15 * time.Minute))
				}
			}
		}), session.ExitProgressing, "UPDATING  4.20.6 to another image of it", []string{"control plane 1 of 2 operators", "worker 0 of 3 nodes"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(tc.cluster.objects()...).Build()
			cluster := &session.Cluster{Reader: notInstalled(reader), Clock: session.FixedClock(clitest.Now)}
			got := runStatus(t, cluster, statusOptions{}, "")
			if got.Code != tc.code || !strings.HasPrefix(got.Out, tc.head) {
				t.Errorf("exit code %d, want %d and %q", got.Code, tc.code, tc.head)
			}
			if diff := cmp.Diff(tc.progress, progressOf(got.Out)); diff != "" {
				t.Errorf("progress (-want +got):\n%s", diff)
			}
			if t.Failed() {
				t.Log(got.Out)
			}
		})
	}
}

// notInstalled returns a reader for a cluster without the Update Status Controller.
func notInstalled(reader client.WithWatch) client.Reader {
	return interceptor.NewClient(reader, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
			if _, is := object.(*updatev1beta1.UpdateStatus); is {
				return clitest.NoMatch("UpdateStatus")
			}
			return c.Get(ctx, key, object, opts...)
		},
	})
}

func addInfra(c *topology) {
	c.addPool("infra")
	c.add("infra", []string{"i0", "i1"}, "worker")
}

// progressOf returns the first two columns of the progress on a screen.
func progressOf(printed string) []string {
	var rows []string
	inside := false
	for line := range strings.Lines(printed) {
		label, rest := line[:min(len(line), screen.LabelWidth)], line[min(len(line), screen.LabelWidth):]
		inside = strings.HasPrefix(label, "Progress") || inside && strings.TrimSpace(label) == ""
		words := strings.Fields(rest)
		if at := slices.IndexFunc(words, func(w string) bool { return w == "operators" || w == "nodes" }); inside && at >= 0 {
			rows = append(rows, strings.Join(words[:at+1], " "))
		}
	}
	return rows
}
