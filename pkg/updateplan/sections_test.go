// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

func TestArrange(t *testing.T) {
	t.Parallel()
	pool := func(kind, name string) v1beta1.ResourceReference {
		return v1beta1.ResourceReference{APIVersion: "machineconfiguration.openshift.io/v1", Kind: kind, Name: name}
	}
	node := func(name string) v1beta1.ResourceReference {
		return v1beta1.ResourceReference{APIVersion: "v1", Kind: "Node", Name: name}
	}
	about := func(uid string, scope v1beta1.ScopeType, pools []v1beta1.ResourceReference, resources ...v1beta1.ResourceReference) v1beta1.Insight {
		return v1beta1.Insight{UID: uid, UUID: uid, Scope: v1beta1.InsightScope{Type: scope, WorkerPool: pools, Resources: resources}}
	}
	const workers, control = v1beta1.ScopeWorkerPool, v1beta1.ScopeControlPlane
	all := []v1beta1.InformerInsights{
		{Name: "a", Insights: []v1beta1.Insight{
			about("control", control, nil, node("w")),
			about("named", workers, []v1beta1.ResourceReference{pool("MachineConfigPool", "x"), pool("MachineConfigPool", "y")}, node("w")),
			about("node", workers, nil, node("w"), node("m"), node("other")),
			about("nowhere", workers, nil),
			about("no-pool", workers, []v1beta1.ResourceReference{pool("Deployment", "x")}),
		}},
		{Name: "b", Insights: []v1beta1.Insight{about("second", workers, []v1beta1.ResourceReference{pool("MachineConfigPool", "x")})}},
	}
	for i := range 40 {
		all[1].Insights = append(all[1].Insights, about(fmt.Sprintf("many-%d", i), workers, []v1beta1.ResourceReference{pool("MachineConfigPool", fmt.Sprintf("many-%02d", i))}))
	}
	var status v1beta1.UpdatePlanStatus
	updateplan.Arrange(&status, all, func(name string) string { return map[string]string{"w": "worker", "m": "master"}[name] })
	got := map[string][]string{}
	add := func(section string, of []v1beta1.InformerInsights) {
		for i := range of {
			for j := range of[i].Insights {
				got[section] = append(got[section], of[i].Name+"/"+of[i].Insights[j].UID)
			}
		}
	}
	add("", status.ControlPlane.UpdateInformers)
	for i := range status.WorkerPools {
		add(status.WorkerPools[i].Name, status.WorkerPools[i].UpdateInformers)
	}
	if len(status.WorkerPools) != 32 || len(updateplan.Insights(&status)) != 46 {
		t.Errorf("%d pools, %d insights", len(status.WorkerPools), len(updateplan.Insights(&status)))
	}
	want := map[string][]string{"x": {"a/named", "b/second"}, "y": {"a/named"}, "worker": {"a/node"}}
	for name, list := range want {
		if diff := cmp.Diff(list, got[name]); diff != "" {
			t.Errorf("pool %s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff([]string{"a/control", "a/nowhere", "a/no-pool"}, got[""][:3]); diff != "" {
		t.Errorf("control plane (-want +got):\n%s", diff)
	}
}
