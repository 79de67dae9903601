// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// states maps names to clusters without missing facts.
var states = map[string]func(*cluster){
	"idle": func(c *cluster) {
		c.complete()
		for name := range c.nodes {
			role, _, _ := strings.Cut(name, "-")
			c.update(role, name)
		}
	},
	"operators are being updated": func(*cluster) {},
	"an operator is being updated": func(c *cluster) {
		c.setOperator("machine-config", configv1.OperatorProgressing, configv1.ConditionTrue, time.Minute)
	},
	"an operator is degraded": func(c *cluster) {
		c.setOperator("dns", configv1.OperatorDegraded, configv1.ConditionTrue, 40*time.Minute)
	},
	"an operator is unavailable": func(c *cluster) {
		c.setOperator("dns", configv1.OperatorAvailable, configv1.ConditionFalse, 40*time.Minute)
	},
	"the cluster version is failing": func(c *cluster) { setVersion(c, "Failing", configv1.ConditionTrue, "it does not work") },
	"the release is refused": func(c *cluster) {
		setVersion(c, "ReleaseAccepted", configv1.ConditionFalse, "the signature is missing")
	},
	"a node drains": func(c *cluster) { c.complete(); c.drain("worker", "worker-1", time.Minute) },
	"a node has drained for two hours": func(c *cluster) {
		c.complete()
		c.drain("worker", "worker-1", 2*time.Hour)
		c.addPod("a", "api", "worker-1")
		c.addPDB("shop", "api", "api", 0)
	},
	"a node is degraded": func(c *cluster) {
		c.complete()
		c.drain("worker", "worker-1", time.Hour)
		c.annotate("worker-1", "state", "Degraded", "reason", "no disk")
	},
	"a node of the control plane waits": func(c *cluster) { c.release(); c.drain("master", "master-1", 2*time.Hour) },
	"a node has not come back": func(c *cluster) {
		c.complete()
		c.drain("worker", "worker-1", time.Hour)
		c.annotate("worker-1", "state", "Rebooting")
		c.condition("worker-1", corev1.NodeReady, corev1.ConditionUnknown, 50*time.Minute)
	},
	"a pool is paused": func(c *cluster) { c.complete(); c.pools["worker"].Spec.Paused = true },
	"a pool is degraded": func(c *cluster) {
		c.complete()
		c.pools["worker"].Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolRenderDegraded, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}
	},
}

// losses returns changes that remove data from a cluster or make it contradict itself.
func losses(c *cluster) map[string]func(*cluster) {
	all := map[string]func(*cluster){
		"history":                     func(c *cluster) { c.version.Status.History = nil },
		"state of the update":         func(c *cluster) { c.version.Status.History[0].State = "" },
		"target":                      func(c *cluster) { c.version.Status.History[0].Version = "" },
		"start of the update":         func(c *cluster) { c.version.Status.History[0].StartedTime = metav1.Time{} },
		"earlier updates":             func(c *cluster) { c.version.Status.History = c.version.Status.History[:1] },
		"ClusterVersion's status":     func(c *cluster) { c.version.Status = configv1.ClusterVersionStatus{} },
		"ClusterVersion's conditions": func(c *cluster) { c.version.Status.Conditions = nil },
		"operators":                   func(c *cluster) { clear(c.operators) },
		"pools":                       func(c *cluster) { clear(c.pools) },
		"nodes":                       func(c *cluster) { clear(c.nodes) },
		"configurations":              func(c *cluster) { clear(c.configs) },
		"other objects":               func(c *cluster) { c.others = nil },
	}
	for name := range c.operators {
		all["conditions of operator "+name] = func(c *cluster) { c.operators[name].Status.Conditions = nil }
		all["versions of operator "+name] = func(c *cluster) { c.operators[name].Status.Versions = nil }
		all["sense of the version of operator "+name] = func(c *cluster) { c.operators[name].Status.Versions[0].Version = "odd" }
		for i, condition := range c.operators[name].Status.Conditions {
			all[string(condition.Type)+" of operator "+name] = func(c *cluster) { c.setOperator(name, condition.Type, "", 0) }
			for _, status := range []configv1.ConditionStatus{"", "Unknown", "Perhaps"} {
				all[string(condition.Type)+" of operator "+name+" is "+string(status)] = func(c *cluster) { c.operators[name].Status.Conditions[i].Status = status }
			}
		}
	}
	for name := range c.pools {
		all["selector of pool "+name] = func(c *cluster) { c.pools[name].Spec.NodeSelector = nil }
		all["sense of the selector of pool "+name] = func(c *cluster) {
			c.pools[name].Spec.NodeSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Odd"}}}
		}
		all["conditions of pool "+name] = func(c *cluster) { c.pools[name].Status.Conditions = nil }
		all["configuration of pool "+name] = func(c *cluster) { c.pools[name].Spec.Configuration.Name = "" }
	}
	for name := range c.configs {
		all["configuration "+name] = func(c *cluster) { delete(c.configs, name) }
		all["release of configuration "+name] = func(c *cluster) { c.configs[name].Annotations = nil }
	}
	for name, node := range c.nodes {
		all["conditions of node "+name] = func(c *cluster) { c.nodes[name].Status.Conditions = nil }
		all["labels of node "+name] = func(c *cluster) { c.nodes[name].Labels = nil }
		all["annotations of node "+name] = func(c *cluster) { c.nodes[name].Annotations = nil }
		all["node "+name] = func(c *cluster) { delete(c.nodes, name) }
		for annotation := range node.Annotations {
			all[annotation+" of node "+name] = func(c *cluster) { delete(c.nodes[name].Annotations, annotation) }
			all["sense of "+annotation+" of node "+name] = func(c *cluster) { c.nodes[name].Annotations[annotation] = "odd" }
		}
		all["times of the taints of node "+name] = func(c *cluster) {
			for i := range c.nodes[name].Spec.Taints {
				c.nodes[name].Spec.Taints[i].TimeAdded = nil
			}
		}
	}
	return all
}

// TestLosses_improve_no_verdict removes details of clusters, one at a time. The verdict may become worse or
// unknown. But a cluster with an unfinished update must never become idle, and a cluster that needs attention
// must never look as if it progresses.
func TestLosses_improve_no_verdict(t *testing.T) {
	t.Parallel()
	for happens, set := range states {
		t.Run(happens, func(t *testing.T) {
			t.Parallel()
			judge := func(lose func(*cluster)) updatev1beta1.AssessmentState {
				c := newCluster()
				set(c)
				for _, pool := range c.pools {
					pool.Status.MachineCount = 3
				}
				lose(c)
				return updatestatus.Compute(updatestatus.Input{Facts: c.facts(t)}).Assessment.State
			}
			before := judge(func(*cluster) {})
			t.Log(before)
			c := newCluster()
			set(c)
			for lost, lose := range losses(c) {
				after := judge(lose)
				if after == updatev1beta1.StateIdle && before != updatev1beta1.StateIdle || after == updatev1beta1.StateProgressing && before != updatev1beta1.StateProgressing && before != updatev1beta1.StateIdle {
					t.Errorf("%s becomes %s without %s", before, after, lost)
				}
			}
		})
	}
}
