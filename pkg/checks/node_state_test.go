// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// A node has the most severe of the states that apply.
func TestNodeStateOf(t *testing.T) {
	t.Parallel()
	node := clusterstate.Node{State: "Degraded", Cordoned: true, BeingDeleted: true, Drain: clusterstate.Drain{Active: true}, Updating: true}
	for _, step := range []struct {
		want checks.NodeState
		next func()
	}{
		{checks.NodeStateDegraded, func() { node.State = "Unreconcilable" }},
		{checks.NodeStateDegraded, func() { node.State = "Working" }},
		{checks.NodeStateNotReady, func() { node.Ready = true }},
		{checks.NodeStateBeingDeleted, func() { node.BeingDeleted, node.Updating = false, false }},
		{checks.NodeStateCordoned, func() { node.Updating = true }},
		{checks.NodeStateDraining, func() { node.Drain.Active = false }},
		{checks.NodeStateUpdating, func() { node.Updating, node.Cordoned = false, false }},
		{checks.NodeStateIdle, func() {}},
	} {
		if got := checks.NodeStateOf(node); got != step.want {
			t.Errorf("got %q, want %q: %+v", got, step.want, node)
		}
		step.next()
	}
}

func TestNodeStepOf(t *testing.T) {
	t.Parallel()
	active := clusterstate.Drain{Active: true}
	cases := map[string]struct {
		node clusterstate.Node
		want checks.NodeStep
	}{
		"not managed":                       {clusterstate.Node{Updating: true}, checks.StepNone},
		"not being updated":                 {clusterstate.Node{DesiredConfig: "b"}, checks.StepNone},
		"being drained":                     {clusterstate.Node{DesiredConfig: "b", Updating: true, Ready: true, Drain: active, DesiredDrain: "drain-b"}, checks.StepDraining},
		"not ready while being drained":     {clusterstate.Node{DesiredConfig: "b", Updating: true, Drain: active, DesiredDrain: "drain-b", AppliedDrain: "uncordon-a"}, checks.StepDraining},
		"drained":                           {clusterstate.Node{DesiredConfig: "b", Updating: true, Ready: true, DesiredDrain: "drain-b", AppliedDrain: "drain-b"}, checks.StepUpdating},
		"rebooting, as it reports":          {clusterstate.Node{DesiredConfig: "b", Updating: true, Ready: true, State: "Rebooting"}, checks.StepRebooting},
		"rebooting, as its silence shows":   {clusterstate.Node{DesiredConfig: "b", Updating: true, DesiredDrain: "drain-b", AppliedDrain: "drain-b"}, checks.StepRebooting},
		"degraded and not ready":            {clusterstate.Node{DesiredConfig: "b", Updating: true, State: "Degraded", DesiredDrain: "drain-b", AppliedDrain: "drain-b"}, checks.StepUpdating},
		"not ready, by a daemon of 4.10":    {clusterstate.Node{DesiredConfig: "b", Updating: true, State: "Working"}, checks.StepUpdating},
		"being drained by a daemon of 4.10": {clusterstate.Node{DesiredConfig: "b", Updating: true, State: "Working", Drain: active}, checks.StepDraining},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := checks.NodeStepOf(tc.node); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
