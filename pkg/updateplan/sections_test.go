// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

func TestArrange(t *testing.T) {
	t.Parallel()
	pool := func(kind, name string) updatev1beta1.ResourceReference {
		return updatev1beta1.ResourceReference{APIVersion: "machineconfiguration.openshift.io/v1", Kind: kind, Name: name}
	}
	node := func(name string) updatev1beta1.ResourceReference {
		return updatev1beta1.ResourceReference{APIVersion: "v1", Kind: "Node", Name: name}
	}
	about := func(uid string, scope updatev1beta1.ScopeType, pools []updatev1beta1.ResourceReference, resources ...updatev1beta1.ResourceReference) updatev1beta1.Insight {
		return updatev1beta1.Insight{UID: uid, UUID: uid, Scope: updatev1beta1.InsightScope{Type: scope, WorkerPool: pools, Resources: resources}}
	}
	const workers, control = updatev1beta1.ScopeWorkerPool, updatev1beta1.ScopeControlPlane
	all := []updatev1beta1.InformerInsights{
		{Name: "a", Insights: []updatev1beta1.Insight{
			about("control", control, nil, node("w")),
			about("named", workers, []updatev1beta1.ResourceReference{pool("MachineConfigPool", "x"), pool("MachineConfigPool", "y")}, node("w")),
			about("node", workers, nil, node("w"), node("m"), node("other")),
			about("nowhere", workers, nil),
			about("no-pool", workers, []updatev1beta1.ResourceReference{pool("Deployment", "x")}),
		}},
		{Name: "b", Insights: []updatev1beta1.Insight{about("second", workers, []updatev1beta1.ResourceReference{pool("MachineConfigPool", "x")}, node("w"))}},
	}
	for i := range 40 {
		all[1].Insights = append(all[1].Insights, about(fmt.Sprintf("many-%d", i), workers, []updatev1beta1.ResourceReference{pool("MachineConfigPool", fmt.Sprintf("many-%02d", i))}))
	}
	var status updatev1beta1.UpdatePlanStatus
	updateplan.Arrange(&status, all, func(name string) string { return map[string]string{"w": "worker", "m": "master"}[name] }, noon)
	got := map[string][]string{}
	add := func(section string, of []updatev1beta1.InformerInsights) {
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

// The controller counts the dropped insights. The count keeps the times when it was first published and needs
// no acceptance.
func TestArrange_counts_what_it_drops(t *testing.T) {
	t.Parallel()
	pool := func(name string) updatev1beta1.ResourceReference {
		return updatev1beta1.ResourceReference{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfigPool", Name: name}
	}
	// many returns insights about the pools, or about the control plane if none are given.
	many := func(count int, pools ...updatev1beta1.ResourceReference) (all []updatev1beta1.Insight) {
		scope := updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane}
		if len(pools) > 0 {
			scope = updatev1beta1.InsightScope{Type: updatev1beta1.ScopeWorkerPool, WorkerPool: pools}
		}
		for i := range count {
			of := insight(fmt.Sprintf("u%d", i), fmt.Sprintf("%s-%d", scope.Type, i), updatev1beta1.LevelWarning)
			of.Scope = scope
			all = append(all, of)
		}
		return all
	}
	for name, tc := range map[string]struct {
		all  []updatev1beta1.Insight
		want []string
	}{
		"as many as are kept":        {many(320), nil},
		"one more":                   {many(321), []string{"1 insights of informer a are not shown."}},
		"of two pools, each once":    {many(350, pool("x"), pool("y")), []string{"30 insights of informer a are not shown."}},
		"control plane and one pool": {append(many(326), many(321, pool("x"))...), []string{"7 insights of informer a are not shown."}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var status updatev1beta1.UpdatePlanStatus
			for _, now := range []time.Duration{0, time.Hour} { // the second pass finds the published insights
				updateplan.Arrange(&status, []updatev1beta1.InformerInsights{{Name: "a", Insights: tc.all}}, func(string) string { return "" }, noon.Add(now))
			}
			var got []string
			for _, of := range updateplan.Insights(&status) {
				if of.Informer != updatev1beta1.StatusControllerInformer {
					continue
				}
				got = append(got, of.Insight.Impact.Summary)
				if of.Insight.Impact.Reason != updatev1beta1.ReasonTruncated || updateplan.NeedsAcceptance(of.Insight.Impact.Level) {
					t.Errorf("impact: %+v", of.Insight.Impact)
				}
				if !of.Insight.FirstObservedTime.Time.Equal(noon) || !of.Insight.AcquisitionTime.Time.Equal(noon) {
					t.Errorf("observed at %s, acquired at %s", of.Insight.FirstObservedTime, of.Insight.AcquisitionTime)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("not shown (-want +got):\n%s", diff)
			}
		})
	}
}
