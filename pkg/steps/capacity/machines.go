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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// machineState is the state of the Machines of extra MachineSets.
type machineState struct {
	machines []machinev1beta1.Machine
	ready    map[string]bool // by the name of the node
}

func (e *ExtraNodes) readMachineState(ctx context.Context, attempt engine.AttemptRef) (machineState, error) {
	var machines machinev1beta1.MachineList
	if err := e.Live.List(ctx, &machines, client.InNamespace(Namespace), client.MatchingLabels{clusterstate.LabelExtraNodeOf: attempt.UID}); err != nil {
		return machineState{}, fmt.Errorf("listing the extra Machines: %w", err)
	}
	nodes, err := clusterstate.ListNodes(ctx, e.Client)
	if err != nil {
		return machineState{}, err
	}
	ready := map[string]bool{}
	for _, node := range nodes {
		ready[node.Name] = node.Ready
	}
	return machineState{machines: machines.Items, ready: ready}, nil
}

// nodeOf returns the ready node of a MachineSet, or the reason why it has none.
func (s machineState) nodeOf(set machineSet) (node, reason string) {
	for i := range s.machines {
		machine := &s.machines[i]
		if machine.Labels[labelMachineSet] != set.GetName() || machine.DeletionTimestamp != nil {
			continue
		}
		if reason = s.notReadyReason(machine); reason == "" {
			return machine.Status.NodeRef.Name, ""
		}
	}
	return "", cmp.Or(reason, set.errorMessage(), fmt.Sprintf("its extra MachineSet %s has no Machine yet", set.GetName()))
}

// notReadyReason returns the reason why a Machine has no ready node, or "" if it has one.
func (s machineState) notReadyReason(machine *machinev1beta1.Machine) string {
	status := &machine.Status
	state := "has no node"
	if status.NodeRef != nil && status.NodeRef.Name != "" {
		ready, exists := s.ready[status.NodeRef.Name]
		switch {
		case ready:
			return ""
		case exists:
			state = fmt.Sprintf("has the node %s, which is not ready", status.NodeRef.Name)
		default:
			state = fmt.Sprintf("has the node %s, which does not exist", status.NodeRef.Name)
		}
	}
	if reason := errorMessage(string(ptr.Deref(status.ErrorReason, "")), ptr.Deref(status.ErrorMessage, "")); reason != "" {
		return fmt.Sprintf("Machine %s %s: %s", machine.Name, state, reason)
	}
	return fmt.Sprintf("Machine %s is %s and %s", machine.Name, text.Reason(cmp.Or(ptr.Deref(status.Phase, ""), "new")), state)
}

// errorMessage returns the error that an object of the machine API reports, in one line of limited
// length; empty if it reports none.
func errorMessage(reason, message string) string {
	if reason == "" && message == "" {
		return ""
	}
	return clusterstate.Condition{Reason: reason, Message: message}.ReasonAndMessage()
}
