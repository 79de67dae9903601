// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// nodeStateTTL is how long a read of the node stays valid. Forcing many pods may take longer if the
// API server is slow.
const nodeStateTTL = 10 * time.Second

// drainScope is one pass over one draining node. It collects the facts, decides, and then acts.
type drainScope struct {
	*Reconciler

	node    *corev1.Node // from the cache
	drain   clusterstate.Drain
	attempt *Attempt
	log     logr.Logger
	now     time.Time
	d       clusterstate.DrainDeadlines

	refusals map[types.UID]string // in this pass
}

// reconcile returns the time of the next pass.
func (s *drainScope) reconcile(ctx context.Context) (time.Time, error) {
	lister := clusterstate.DrainedPods{Reader: s.Client, Live: s.Live, IgnoreNamespaces: s.Config().IgnoreNamespaces}
	pods, invalid, err := lister.List(ctx, s.node.Name, clusterstate.NodeOf(s.node).Ready)
	if err != nil {
		return time.Time{}, err
	}
	var errs []error
	for _, pdb := range invalid {
		errs = append(errs, s.publishInvalidPDB(ctx, pdb))
	}
	if current, err := s.isCurrent(ctx); err != nil || !current {
		return s.now.Add(staleCacheRequeue), errors.Join(append(errs, err)...)
	}
	before := s.drains.refusals(s.node.Name)
	for i := range pods {
		pods[i].Refusal, pods[i].Refused = before[pods[i].UID]
	}
	p := decide(s.now, s.d, s.attempt.PDBTimeoutField, pods)
	s.Metrics.SetBlocked(s.node.Name, p.overdue)
	errs = append(errs, s.apply(ctx, p))
	s.drains.setRefusals(s.node.Name, s.refusals)
	return p.next, errors.Join(errs...)
}

// isCurrent reports whether the drain and the readiness of the node on the API server still match
// the cache. It reads the node after the pods were listed, so the listed pods were on the node
// during the drain and were not scheduled to it after an uncordon.
func (s *drainScope) isCurrent(ctx context.Context) (bool, error) {
	var node corev1.Node
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.node), &node); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting node %s: %w", s.node.Name, err))
	}
	return node.UID == s.node.UID && clusterstate.DrainState(&node).Equal(s.drain) && clusterstate.NodeOf(&node).Ready == clusterstate.NodeOf(s.node).Ready, nil
}

// apply executes the plan while the node is still in the state that the plan is based on. An error
// for one pod does not stop it from handling the others.
func (s *drainScope) apply(ctx context.Context, p plan) error {
	var errs []error
	verifiedAt := s.Clock.Now()
	for _, bp := range slices.Concat(p.toForce, p.toEvict) {
		if now := s.Clock.Now(); now.Sub(verifiedAt) > nodeStateTTL {
			if current, err := s.isCurrent(ctx); err != nil || !current {
				return errors.Join(append(errs, err)...)
			}
			verifiedAt = now
		}
		errs = append(errs, s.force(ctx, bp))
	}
	for _, bp := range p.cannotForce {
		errs = append(errs, s.publishCannotForce(ctx, bp))
	}
	return errors.Join(errs...)
}
