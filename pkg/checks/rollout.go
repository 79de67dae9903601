// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// rolloutNeeds lists the sources that show what is still being installed.
var rolloutNeeds = []FactSource{SourceClusterVersion, SourceOperators, SourcePools, SourceNodes}

func findRollout(in Facts, _ RulePhase) []Finding {
	if !in.Has(SourceClusterVersion) {
		return nil
	}
	found, err := in.unsettled()
	if err != nil {
		found = append(found, unknownFinding("RolloutUnknown", "unreadable/rollout", "it is unknown whether an update is still being installed", err))
	}
	return found
}

// Unsettled returns findings for what is still being installed, by the cluster version operator or on the
// nodes of the pools. It returns none if the cluster is settled. Both the health gates and the cleanup of an
// upgrade rely on it. Paused pools count as settled.
func Unsettled(ctx context.Context, r client.Reader, now time.Time) ([]Finding, error) {
	g := Runner{Reader: r}.gathering()
	g.facts.Now = now
	if !g.need(ctx, SourceClusterVersion) {
		return nil, errors.Join(g.errs...)
	}
	if updating, is := controlPlaneUpdating(g.facts.Version, now); is {
		return []Finding{updating}, nil
	}
	if !g.need(ctx, rolloutNeeds...) {
		return nil, errors.Join(g.errs...)
	}
	return g.facts.unsettled()
}

func (f Facts) unsettled() ([]Finding, error) {
	if updating, is := controlPlaneUpdating(f.Version, f.Now); is {
		return []Finding{updating}, nil
	}
	if !f.Has(SourceOperators) || !f.Has(SourcePools) || !f.Has(SourceNodes) {
		return nil, nil // reported by a gate
	}
	rollout, err := f.configRollout()
	if err != nil {
		return nil, err
	}
	var found []Finding
	for _, p := range rollout.Pending() {
		if p.RollingOut() {
			found = append(found, poolFinding("PoolUpdating", "machine config pools being updated", p.Pool))
		}
	}
	if len(found) == 0 && rollout.OperatorBehind != "" {
		finding := newFinding("MachineConfigOperatorBehind", rollout.OperatorBehind)
		finding.Key = "ClusterOperator/" + clusterstate.MachineConfigOperator
		found = append(found, finding)
	}
	return found, nil
}

// controlPlaneUpdating reports whether a release is being installed, and returns a finding if so. If the
// history contradicts the condition Progressing, the answer is unknown and counts as being installed.
func controlPlaneUpdating(version clusterstate.Version, now time.Time) (Finding, bool) {
	f := newFinding("ControlPlaneUpdating", "the cluster version operator is installing an update")
	f.Key = keyClusterVersion
	release, updating := version.UpdatingTo()
	switch contradiction := version.Contradiction(now); {
	case contradiction != "":
		f.Reason, f.Summary, f.Description = reasonControlPlaneUnknown, "it is unknown whether an update is being installed", contradiction
		return f, true
	case updating:
		f.Summary = fmt.Sprintf("the cluster is being updated to %s", release)
	case !version.Progressing.IsTrue():
		return Finding{}, false
	}
	f.Description = version.Progressing.MessageOrReason()
	return f, true
}

// Rollout is the progress of rolling out the installed release to the nodes.
type Rollout struct {
	// OperatorBehind explains why the machine config operator may still change the pools. It is empty if it
	// will not.
	OperatorBehind string
	// Pools lists all pools, sorted by name.
	Pools []clusterstate.PoolProgress
}

// Pending returns pools that are not updated or may have been skipped.
func (r Rollout) Pending() []*clusterstate.PoolProgress {
	return r.pools(func(p *clusterstate.PoolProgress) bool { return p.State() != clusterstate.PoolDone })
}

// Outdated returns pending pools that are degraded or have machines without the configuration of the
// installed release. It omits paused pools whose machines are all updated.
func (r Rollout) Outdated() []*clusterstate.PoolProgress {
	return r.pools(func(p *clusterstate.PoolProgress) bool { return !p.UpToDate() })
}

func (r Rollout) pools(are func(*clusterstate.PoolProgress) bool) []*clusterstate.PoolProgress {
	var some []*clusterstate.PoolProgress
	for i := range r.Pools {
		if are(&r.Pools[i]) {
			some = append(some, &r.Pools[i])
		}
	}
	return some
}

// UpToDate reports whether a pool, paused or not, has nothing to update. It returns false while the machine
// config operator may still change the pools.
func (r Rollout) UpToDate(pool string) bool {
	return r.OperatorBehind == "" && slices.ContainsFunc(r.Pools, func(p clusterstate.PoolProgress) bool { return p.Pool.Name == pool && p.UpToDate() })
}

// Complete reports whether the machines of all pools have the configuration of the installed release.
func (r Rollout) Complete() bool { return r.OperatorBehind == "" && len(r.Pending()) == 0 }

// GetRollout reads the state of the rollout.
//
// A pool that reports "updated" may simply not have started, so this counts only once the machine config operator
// reports the installed release and is not progressing. It reports a release only after it has rendered the release's
// configurations and the pools required by the control plane have theirs. By then, the other pools have their new
// spec.configuration. From then on, an outdated pool is always visible: the observed generation or the configuration in
// its status is behind its spec, or a node has another configuration. A node that joins later with the old
// configuration therefore counts even before the pool has counted it.
func GetRollout(ctx context.Context, r client.Reader) (Rollout, error) {
	g := Runner{Reader: r}.gathering()
	if !g.need(ctx, rolloutNeeds...) {
		return Rollout{}, errors.Join(g.errs...)
	}
	return g.facts.configRollout()
}

// configRollout returns the progress of rolling out the pools' configurations to their nodes.
func (f Facts) configRollout() (Rollout, error) {
	behind, err := f.operatorBehind()
	switch {
	case err != nil:
		return Rollout{}, err
	case len(f.Pools) == 0:
		return Rollout{}, errors.New("the cluster has no machine config pools, so the state of its nodes is unknown")
	}
	rollout := RolloutOf(f.Pools, f.Nodes)
	rollout.OperatorBehind = behind
	return rollout, nil
}

// RolloutOf returns the progress of rolling out the current configurations of the pools, regardless of their
// release.
func RolloutOf(pools []clusterstate.Pool, nodes []clusterstate.Node) Rollout {
	progress, _ := clusterstate.ProgressOf(pools, nodes, clusterstate.ConfigProgress)
	return Rollout{Pools: progress}
}

// IsInstalled reports whether the target is completely installed on the control plane and on the nodes of all
// pools. All code must use it to decide whether an upgrade has nothing to do.
func IsInstalled(ctx context.Context, r client.Reader, target clusterstate.Target) (bool, error) {
	g := Runner{Reader: r}.gathering()
	if !g.need(ctx, SourceClusterVersion) || g.facts.Version.Observe(target) != clusterstate.ObservedDone || !g.need(ctx, rolloutNeeds...) {
		return false, errors.Join(g.errs...)
	}
	rollout, err := g.facts.configRollout()
	return err == nil && rollout.Complete(), err
}

// operatorBehind explains why the machine config operator may still change the pools. It returns "" if it
// will not.
func (f Facts) operatorBehind() (string, error) {
	at := slices.IndexFunc(f.Operators, func(o clusterstate.ClusterOperator) bool { return o.Name == clusterstate.MachineConfigOperator })
	if at < 0 {
		return "", fmt.Errorf("the cluster has no cluster operator %s, so the state of its nodes is unknown", clusterstate.MachineConfigOperator)
	}
	operator, version := f.Operators[at], f.Version
	switch {
	case operator.HasRelease(version.Current.Version) != clusterstate.Yes:
		return fmt.Sprintf("the machine config operator is at %q, not at %s yet", operator.Version, version.Current), nil
	case operator.Progressing.IsTrue():
		return "the machine config operator is progressing: " + operator.Progressing.MessageOrReason(), nil
	}
	return "", nil
}
