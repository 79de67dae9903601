// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"fmt"
	"strings"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// clause describes a link of a chain in one clause.
func (c *cluster) clause(from *chain, i int) string {
	l := &from.links[i]
	if from.group == "" {
		if clause := c.ownClause(from, i); clause != "" {
			return clause
		}
		if r, found := byReason[l.reason]; found && (l.count() > 0 || !strings.Contains(r.one, "{names}")) {
			clause := r.clause(len(l.objects), l.names(), l.count())
			if i == 0 && l.detail != "" {
				clause += ": " + strings.TrimSuffix(l.detail, ".")
			}
			return clause
		}
	}
	switch names := l.kindAndNames(); {
	case names == "":
		return l.summary
	case l.summary == "" && l.reason == "":
		return names + " waits"
	case l.summary == "":
		return names + ": " + l.reason
	default:
		return names + ": " + l.summary
	}
}

// ownClause returns a clause about objects whose facts say more than the insight does. If they do not, it
// returns "".
func (c *cluster) ownClause(from *chain, i int) string {
	l := &from.links[i]
	switch {
	case l.reason == updatev1beta1.ReasonPaused && l.summary != "":
		return strings.TrimSuffix(l.summary, ".")
	case l.kind == kindNode && strings.HasPrefix(l.reason, kindPod):
		return drainWaits.clause(len(l.objects), l.names(), l.count())
	case l.kind == kindBudget && l.reason != reasonSelectedByBudgets:
		return c.budgetClause(l)
	case l.kind == kindPod && i > 0:
		return plural(l, "pod %s cannot be evicted", "pods %s cannot be evicted")
	case l.kind == kindOperator && l.reason == "":
		return plural(l, "ClusterOperator %s waits for its nodes", "ClusterOperators %s wait for their nodes")
	case l.kind == kindOperator && i == 0 && len(l.objects) == 1 && !stalledReason(l.reason):
		return c.operatorClause(l.objects[0].name)
	case l.reason == "" && (l.kind == kindPool || from.section.pool != nil && l.kind == from.section.pool.Kind):
		clause := plural(l, "pool %s waits", "pools %s wait")
		if slots := from.section.slots; slots > 0 && from.section.pool != nil {
			return clause + ": " + text.Plural(int(slots), "node", "nodes") + " at a time"
		}
		return clause
	}
	return ""
}

func plural(l *link, one, many string) string {
	if len(l.objects) == 1 {
		return fmt.Sprintf(one, l.names())
	}
	return fmt.Sprintf(many, l.names())
}

// names joins the names of up to three objects.
func (l *link) names() string {
	names := make([]string, 0, len(l.objects))
	for _, v := range l.objects {
		names = append(names, v.fullName())
	}
	return text.JoinInPlace(names)
}

// kindAndNames returns the kind and names of the objects, or "" if there are none.
func (l *link) kindAndNames() string {
	if l.count() == 0 {
		return ""
	}
	names := make([]string, 0, len(l.objects))
	for _, v := range l.objects {
		if !v.none {
			names = append(names, strings.TrimSpace(v.kind+" "+v.fullName()))
		}
	}
	return text.JoinInPlace(names)
}

// budgetClause describes a PodDisruptionBudget, including its number of healthy pods.
func (c *cluster) budgetClause(l *link) string {
	clause := plural(l, "PodDisruptionBudget %s allows 0 disruptions", "PodDisruptionBudgets %s allow 0 disruptions")
	if len(l.objects) != 1 {
		return clause
	}
	for i := range c.in.Facts.PDBs {
		b := &c.in.Facts.PDBs[i]
		if b.Namespace != l.objects[0].namespace || b.Name != l.objects[0].name {
			continue
		}
		switch {
		case b.EvictionBlock() == clusterstate.BlockedBySyncError:
			return fmt.Sprintf("PodDisruptionBudget %s cannot be computed (%s)", l.names(), clean(b.SyncError))
		case b.Expected > 0 && b.Healthy < b.Desired:
			return clause + fmt.Sprintf(" (%d of %d required pods are healthy)", b.Healthy, b.Desired)
		case b.Expected > 0:
			return clause + fmt.Sprintf(" (%d of %d required)", b.Desired, b.Expected)
		}
	}
	return clause
}

// operatorClause describes an operator's problem with its reason and message, or returns "" if the operator
// reports none.
func (c *cluster) operatorClause(name string) string {
	for i := range c.in.Facts.Operators {
		o := &c.in.Facts.Operators[i]
		switch {
		case o.Name != name:
		case o.IsDegraded():
			return operatorState(name, "degraded", o.Degraded)
		case o.IsUnavailable():
			return operatorState(name, "not available", o.Available)
		}
	}
	return ""
}

func operatorState(name, state string, condition clusterstate.Condition) string {
	clause := "ClusterOperator " + name + " is " + state
	if reason := bounded(condition.Reason, maxDetail); reason != "" {
		clause += " (" + reason + ")"
	}
	if message := clean(condition.Message); message != "" {
		clause += ": " + message
	}
	return clause
}
