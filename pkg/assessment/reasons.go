// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// The reasons of what only the assessment finds.
const (
	// ReasonOperatorStalled is an operator that is being updated and has not changed for too long.
	ReasonOperatorStalled = "OperatorStalled"
	// ReasonControlPlaneStalled is a control plane of which nothing is being updated any more.
	ReasonControlPlaneStalled = "ControlPlaneStalled"
	// ReasonDrainStalled is a drain that has not ended for too long, and that nothing ends.
	ReasonDrainStalled = "DrainStalled"
	// ReasonNodeStalled is a node that is being updated and has not changed for too long.
	ReasonNodeStalled = "NodeStalled"
	// ReasonPoolStalled is a pool of which no node is being updated, although nothing pauses it.
	ReasonPoolStalled = "PoolStalled"
)

func stalledReason(reason string) bool {
	return slices.Contains([]string{ReasonOperatorStalled, ReasonControlPlaneStalled, ReasonDrainStalled, ReasonNodeStalled, ReasonPoolStalled}, reason)
}

// row is what people read about a reason. In the texts, {name} is the name of the first object with
// its namespace, {namespace} and {object} are its parts, {names} those of all objects (three at most),
// and {node} and {more} are explained beside the functions that fill them.
type row struct {
	reason string
	// one and many are the clauses about one object and about several. An empty one means that the
	// summary of the insight is the clause.
	one, many string
	kind      v1beta1.RemedyType
	// text is one sentence; it ends with a colon if there is a command.
	text, command string
}

const (
	fixes     = v1beta1.RemedyFixes
	diagnoses = v1beta1.RemedyDiagnoses
	none      = v1beta1.RemedyNone
)

// rows has one line for each reason that the assessment finds itself or that a built-in informer
// reports.
var rows = []row{
	{ReasonOperatorStalled, "ClusterOperator {names} has not changed for too long", "ClusterOperators {names} have not changed for too long", diagnoses, "Find out what the operator waits for:", "oc describe clusteroperator {object}"},
	{ReasonControlPlaneStalled, "ClusterVersion has not changed for too long", "", diagnoses, "Find out what the cluster version operator waits for:", "oc describe clusterversion version"},
	{ReasonDrainStalled, "drain of node {names} cannot finish, and nothing forces it", "drains of nodes {names} cannot finish, and nothing forces them", diagnoses, "Find out which pods are still on the node:", "oc get pods --all-namespaces -o wide --field-selector spec.nodeName={object}"},
	{ReasonNodeStalled, "node {names} has not changed for too long", "nodes {names} have not changed for too long", diagnoses, "Find out why the node does not continue:", "oc describe node {object}"},
	{ReasonPoolStalled, "no node of pool {names} is being updated", "no nodes of pools {names} are being updated", diagnoses, "Find out why the pool does not continue:", "oc describe machineconfigpool {object}"},
	{v1beta1.ReasonPaused, "", "", diagnoses, "Find out who paused it:", ""},
	{ReasonOther, "{more} other findings", "{more} other findings", diagnoses, "See all insights:", "oc update status --details"},
}

var byReason = func() map[string]*row {
	index := make(map[string]*row, len(rows))
	for i := range rows {
		index[rows[i].reason] = &rows[i]
	}
	return index
}()
