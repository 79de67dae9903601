// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity_test

import (
	"context"
	"maps"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func replicas(n int32) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.Replicas = &n }
}

func role(name string) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Spec.Template.Labels[roleOf] = name }
}

func extraOf(uid string) func(*machinev1beta1.MachineSet) {
	return func(s *machinev1beta1.MachineSet) { s.Labels = map[string]string{clusterstate.LabelExtraNodeOf: uid} }
}

// names returns the names of MachineSets that are not being deleted. An extra MachineSet is shown
// as + and the name of its source.
func (w *world) names() []string {
	w.TB.Helper()
	sets := simulation.List(w.Harness, &machinev1beta1.MachineSetList{})
	var found []string
	for _, s := range sets.Items {
		name := s.Name
		if _, extra := s.Labels[clusterstate.LabelExtraNodeOf]; extra {
			name = "+" + s.Annotations["upgrade.managed.openshift.io/machineset"]
		}
		if s.DeletionTimestamp == nil {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

// extras returns the extra MachineSets by the names of their sources.
func (w *world) extras() map[string]*machinev1beta1.MachineSet {
	w.TB.Helper()
	sets := simulation.List(w.Harness, &machinev1beta1.MachineSetList{}, client.HasLabels{clusterstate.LabelExtraNodeOf})
	found := map[string]*machinev1beta1.MachineSet{}
	for i := range sets.Items {
		found[sets.Items[i].Annotations["upgrade.managed.openshift.io/machineset"]] = &sets.Items[i]
	}
	return found
}

// remaining returns the remaining extra MachineSets, Machines, and nodes.
func (w *world) remaining() []string {
	w.TB.Helper()
	found := slices.Sorted(maps.Keys(w.extras()))
	extra := client.HasLabels{clusterstate.LabelExtraNodeOf}
	for _, m := range simulation.List(w.Harness, &machinev1beta1.MachineList{}, extra).Items {
		found = append(found, m.Name)
	}
	for _, n := range simulation.List(w.Harness, &corev1.NodeList{}, extra).Items {
		found = append(found, n.Name)
	}
	return found
}

func (w *world) add() engine.UpgradeStep          { return w.operator.Add(testAttempt, true, timeout) }
func (w *world) remove() engine.UpgradeStep       { return w.operator.Remove() }
func (w *world) removeWithin() engine.UpgradeStep { return w.operator.RemoveWithin(timeout) }

// removeNow returns RemoveNow as a step.
func (w *world) removeNow() engine.UpgradeStep {
	return func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		return engine.Done(""), w.operator.RemoveNow(ctx, testAttempt)
	}
}
