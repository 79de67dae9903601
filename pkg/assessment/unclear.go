// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
)

// unclear returns why it is unknown whether a section progresses although its sources were read: what
// they report is incomplete or contradictory. Empty means that it is known.
func (c *cluster) unclear(s *section) string {
	switch rollout := c.rolloutOf(s); {
	case !s.pending || !s.readable:
		return ""
	case s.controlPlane:
		return c.unclearControlPlane()
	case rollout != nil:
		return c.unclearPool(s, rollout)
	}
	return ""
}

func (c *cluster) unclearControlPlane() string {
	version := c.in.Facts.Version
	switch {
	case version.Failing.Status == "" || version.Progressing.Status == "":
		return "the ClusterVersion does not report whether it is failing and progressing"
	case len(c.rollouts) > 0 && c.rollouts[clusterstate.PoolMaster] == nil:
		return "there is no MachineConfigPool " + clusterstate.PoolMaster
	}
	return ""
}

func (c *cluster) unclearPool(s *section, rollout *informers.PoolRollout) string {
	if c.in.Facts.MissingMachines(*rollout) {
		return fmt.Sprintf("it has %d machines, but %d nodes are known", rollout.Pool.Machines, rollout.Total()+rollout.Joining)
	}
	for i := range rollout.Nodes {
		node := &rollout.Nodes[i].Node
		switch {
		case node.DesiredConfig == "":
			return "node " + node.Name + " has no annotation desiredConfig"
		case !node.Ready && node.ReadySince.IsZero():
			return "node " + node.Name + " does not report whether it is ready"
		}
	}
	if c.in.Previous != nil {
		return "" // what it shows of a drain counts from when the drain was first seen
	}
	for _, p := range s.parts {
		if drain, found := c.in.Facts.Drains[p.name]; found && drain.Start.IsZero() {
			return "node " + p.name + " does not show since when it is drained"
		}
	}
	return ""
}

// summarizeUnknown names what cannot be judged.
func (c *cluster) summarizeUnknown() string {
	for _, s := range c.sections {
		if c.incomplete || !s.observed {
			break
		}
		if s.state == v1beta1.StateUnknown && s.unclear != "" {
			return bounded(s.title()+" cannot be judged: "+s.unclear, maxText)
		}
	}
	return "Too much data is missing to judge this cluster"
}

// adviseUnclear shows what the first section that cannot be judged consists of; nil means that there is none.
func (c *cluster) adviseUnclear() *v1beta1.Remedy {
	for _, s := range c.sections {
		switch {
		case s.state != v1beta1.StateUnknown || s.unclear == "":
		case s.controlPlane:
			return &v1beta1.Remedy{Type: diagnoses, Text: "See what it reports:", Commands: []string{"oc get clusterversion,machineconfigpools"}}
		default:
			return &v1beta1.Remedy{Type: diagnoses, Text: "See its nodes:", Commands: []string{"oc get nodes,machineconfigpools"}}
		}
	}
	return nil
}
