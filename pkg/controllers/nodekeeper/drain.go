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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// nodeStateTTL is how long the state of a node that was read counts. Forcing many pods may take
// longer if the API server is slow.
const nodeStateTTL = 10 * time.Second

// drainScope is one pass over one node that is being drained: it collects the facts, decides, and
// then acts.
type drainScope struct {
	*Reconciler

	node    *corev1.Node // as it is cached
	drain   clusterstate.Drain
	attempt *Attempt
	log     logr.Logger
}

// reconcile returns when the next pass is due.
func (s *drainScope) reconcile(ctx context.Context, now time.Time, d deadlines) (time.Time, error) {
	pods, err := s.listPods(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if current, err := s.isCurrent(ctx); err != nil || !current {
		return now.Add(staleCacheRequeue), err
	}
	p := decide(now, d, isReady(s.node), pods)
	s.Metrics.SetBlocked(s.node.Name, p.overdue)
	return p.next, s.apply(ctx, p)
}

// isCurrent reports whether the node is being drained, and is ready or not, as the cache holds. It
// reads the node from the API server after the pods were listed: so the pods that are forced were on
// the node while it was drained, and not scheduled to it after it was uncordoned.
func (s *drainScope) isCurrent(ctx context.Context) (bool, error) {
	var node corev1.Node
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.node), &node); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting node %s: %w", s.node.Name, err))
	}
	return node.UID == s.node.UID && clusterstate.DrainState(&node).Equal(s.drain) && isReady(&node) == isReady(s.node), nil
}

func isReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// listPods returns the pods on the node, with the budgets that select them. It reads only their
// metadata if the node is ready.
func (s *drainScope) listPods(ctx context.Context) ([]podInfo, error) {
	list := clusterstate.ListPodsOnNode
	if !isReady(s.node) { // whether a pod may be deleted depends on its grace period
		list = clusterstate.ListWholePodsOnNode
	}
	pods, err := list(ctx, s.Live, s.node.Name)
	if err != nil {
		return nil, err
	}
	ignored := s.Config().IgnoreNamespaces
	pdbs := map[string][]clusterstate.PDB{} // by namespace
	var infos []podInfo
	for _, pod := range pods {
		if _, ok := pdbs[pod.Namespace]; !ok {
			if pdbs[pod.Namespace], err = s.listPDBs(ctx, pod.Namespace); err != nil {
				return nil, err
			}
		}
		infos = append(infos, podInfo{
			Pod: pod, ignored: text.MatchesAny(pod.Namespace, ignored), pdbs: checks.SelectingPDBs(pod, pdbs[pod.Namespace]),
		})
	}
	return infos, nil
}

// listPDBs returns the budgets of a namespace, and publishes an Event about each whose selector is
// invalid.
func (s *drainScope) listPDBs(ctx context.Context, namespace string) ([]clusterstate.PDB, error) {
	pdbs, err := clusterstate.ListPDBs(ctx, s.Client, namespace)
	if err != nil {
		return nil, err
	}
	var errs []error
	for _, b := range pdbs {
		if b.SelectorError != "" {
			errs = append(errs, s.publishInvalidPDB(ctx, b))
		}
	}
	return pdbs, errors.Join(errs...)
}

// apply executes the plan as long as the state of the node is the one on which it is based. An error
// with one pod does not keep it from the others.
func (s *drainScope) apply(ctx context.Context, p plan) error {
	var errs []error
	verifiedAt := s.Clock.Now()
	for _, bp := range p.toForce {
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
