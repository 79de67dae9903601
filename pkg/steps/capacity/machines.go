// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"cmp"
	"context"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// facts are what is known of the Machines of extra MachineSets.
type facts struct {
	machines []machinev1beta1.Machine
	ready    map[string]bool // the nodes that there are, by name
}

func (e *ExtraNodes) facts(ctx context.Context, about engine.Subject) (facts, error) {
	var machines machinev1beta1.MachineList
	if err := e.Live.List(ctx, &machines, client.InNamespace(Namespace), client.MatchingLabels{cluster.LabelExtra: about.UID}); err != nil {
		return facts{}, fmt.Errorf("listing the extra Machines: %w", err)
	}
	nodes, err := cluster.ReadNodes(ctx, e.Client)
	if err != nil {
		return facts{}, err
	}
	ready := map[string]bool{}
	for _, node := range nodes {
		ready[node.Name] = node.Ready
	}
	return facts{machines: machines.Items, ready: ready}, nil
}

// nodeOf says which ready node a MachineSet has, or why it has none.
func (f facts) nodeOf(set machineSet) (node, why string) {
	for i := range f.machines {
		machine := &f.machines[i]
		if machine.Labels[labelMachineSet] != set.GetName() || machine.DeletionTimestamp != nil {
			continue
		}
		if why = f.missing(machine); why == "" {
			return machine.Status.NodeRef.Name, ""
		}
	}
	return "", cmp.Or(why, set.complaint(), fmt.Sprintf("its extra one, %s, has no Machine yet", set.GetName()))
}

// missing says why a Machine has no node that is ready; empty: it has one.
func (f facts) missing(machine *machinev1beta1.Machine) string {
	status := &machine.Status
	what := "has no node"
	if status.NodeRef != nil && status.NodeRef.Name != "" {
		ready, there := f.ready[status.NodeRef.Name]
		switch {
		case ready:
			return ""
		case there:
			what = fmt.Sprintf("has the node %s, which is not ready", status.NodeRef.Name)
		default:
			what = fmt.Sprintf("has the node %s, which is not there", status.NodeRef.Name)
		}
	}
	if why := complaint(string(ptr.Deref(status.ErrorReason, "")), ptr.Deref(status.ErrorMessage, "")); why != "" {
		return fmt.Sprintf("Machine %s %s: %s", machine.Name, what, why)
	}
	return fmt.Sprintf("Machine %s is %s and %s", machine.Name, cluster.Brief(cmp.Or(ptr.Deref(status.Phase, ""), "new")), what)
}

// complaint is what an object of the machine API reports as wrong, in one bounded line; empty: nothing.
func complaint(reason, message string) string {
	if reason == "" && message == "" {
		return ""
	}
	return cluster.Condition{Reason: reason, Message: message}.Why()
}
