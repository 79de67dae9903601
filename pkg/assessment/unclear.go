// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// unclear explains why it is unknown whether a section makes progress although its sources were read: their
// reports are incomplete or contradictory. It returns "" if this is known.
func (c *cluster) unclear(s *section) string {
	switch rollout := c.rolloutOf(s); {
	case !s.observed && s.unobserved != "":
		o, _ := s.object()
		return strings.TrimPrefix(s.unobserved, o.kind+" "+o.fullName()+": ")
	case s.pending && s.active.Status == metav1.ConditionUnknown && s.active.Message != "":
		return strings.TrimSuffix(clean(s.active.Message), ".")
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

func (c *cluster) unclearPool(s *section, rollout *clusterstate.PoolProgress) string {
	if missing := c.in.Facts.MissingNodes(rollout); missing != "" {
		return missing
	}
	for i := range rollout.Nodes {
		node := rollout.Nodes[i].Node
		switch {
		case node.DesiredConfig == "":
			return "node " + node.Name + " has no annotation desiredConfig"
		case !node.Ready && node.ReadySince.IsZero():
			return "node " + node.Name + " does not report whether it is ready"
		}
	}
	if c.in.Previous != nil {
		return "" // the drain counts from its first observation
	}
	for _, p := range s.parts {
		if drain, found := c.in.Facts.Drains[p.name]; found && drain.Start.IsZero() {
			return "node " + p.name + " does not show since when it is drained"
		}
	}
	return ""
}

// summarizeUnknown names the section that cannot be judged.
func (c *cluster) summarizeUnknown() string {
	for _, s := range c.sections {
		if !c.incomplete && s.state == updatev1beta1.StateUnknown && s.unclear != "" {
			return bounded(s.title()+" cannot be judged: "+s.unclear, maxText)
		}
	}
	return "Too much data is missing to judge this cluster"
}

// managementField matches the field with the invalid value.
var managementField = regexp.MustCompile(`spec\.versionManagement[A-Za-z0-9.\[\]]*`)

// unclearNode matches the name of the node that makes a section unclear.
var unclearNode = regexp.MustCompile(`^node ([a-z0-9][-a-z0-9.]*) `)

// managedObject returns the object with the invalid field: the ClusterVersion if the message is about it, or
// the pool.
func managedObject(s *section) string {
	if s.pool == nil || strings.HasPrefix(s.unclear, kindVersion+" ") {
		return kindVersion + " " + clusterstate.VersionKey.Name
	}
	o, _ := s.object()
	return o.kind + " " + o.fullName()
}

// adviseUnclear returns a remedy for the first section that cannot be judged, or nil if there is none.
func (c *cluster) adviseUnclear() *updatev1beta1.Remedy {
	for _, s := range c.sections {
		switch {
		case s.state != updatev1beta1.StateUnknown || s.unclear == "":
		case managementField.MatchString(s.unclear):
			return &updatev1beta1.Remedy{Type: fixes, Text: "Correct " + managementField.FindString(s.unclear) + " of " + managedObject(s) + "."}
		case unclearNode.MatchString(s.unclear):
			return diagnose("See what the node shows:", "oc describe node "+unclearNode.FindStringSubmatch(s.unclear)[1])
		case s.controlPlane:
			return diagnose("See what it reports:", "oc get clusterversion,machineconfigpools")
		default:
			return diagnose("See its nodes:", "oc get nodes,machineconfigpools")
		}
	}
	return nil
}
