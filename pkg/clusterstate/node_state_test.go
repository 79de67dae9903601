// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// A node has the most severe state that applies.
func TestNodeStateOf(t *testing.T) {
	t.Parallel()
	node := clusterstate.Node{State: "Degraded", Cordoned: true, BeingDeleted: true, Drain: clusterstate.Drain{Active: true}, Updating: true}
	for _, step := range []struct {
		want clusterstate.NodeState
		next func()
	}{
		{clusterstate.NodeStateDegraded, func() { node.State = "Unreconcilable" }},
		{clusterstate.NodeStateDegraded, func() { node.State = "Working" }},
		{clusterstate.NodeStateNotReady, func() { node.Ready = true }},
		{clusterstate.NodeStateBeingDeleted, func() { node.BeingDeleted, node.Updating = false, false }},
		{clusterstate.NodeStateCordoned, func() { node.Updating = true }},
		{clusterstate.NodeStateDraining, func() { node.Drain.Active = false }},
		{clusterstate.NodeStateUpdating, func() { node.Updating, node.Cordoned = false, false }},
		{clusterstate.NodeStateIdle, func() {}},
	} {
		if got := clusterstate.NodeStateOf(&node); got != step.want {
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
		want clusterstate.NodeStep
	}{
		"not managed":                       {clusterstate.Node{Updating: true}, clusterstate.StepNone},
		"not being updated":                 {clusterstate.Node{DesiredConfig: "b"}, clusterstate.StepNone},
		"being drained":                     {clusterstate.Node{DesiredConfig: "b", Updating: true, Ready: true, Drain: active, DesiredDrain: "drain-b"}, clusterstate.StepDraining},
		"not ready while being drained":     {clusterstate.Node{DesiredConfig: "b", Updating: true, Drain: active, DesiredDrain: "drain-b", AppliedDrain: "uncordon-a"}, clusterstate.StepDraining},
		"drained":                           {clusterstate.Node{DesiredConfig: "b", Updating: true, Ready: true, DesiredDrain: "drain-b", AppliedDrain: "drain-b"}, clusterstate.StepUpdating},
		"rebooting, as it reports":          {clusterstate.Node{DesiredConfig: "b", Updating: true, Ready: true, State: "Rebooting"}, clusterstate.StepRebooting},
		"rebooting, as its silence shows":   {clusterstate.Node{DesiredConfig: "b", Updating: true, DesiredDrain: "drain-b", AppliedDrain: "drain-b"}, clusterstate.StepRebooting},
		"degraded and not ready":            {clusterstate.Node{DesiredConfig: "b", Updating: true, State: "Degraded", DesiredDrain: "drain-b", AppliedDrain: "drain-b"}, clusterstate.StepUpdating},
		"not ready, by a daemon of 4.10":    {clusterstate.Node{DesiredConfig: "b", Updating: true, State: "Working"}, clusterstate.StepUpdating},
		"being drained by a daemon of 4.10": {clusterstate.Node{DesiredConfig: "b", Updating: true, State: "Working", Drain: active}, clusterstate.StepDraining},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := clusterstate.NodeStepOf(&tc.node); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
