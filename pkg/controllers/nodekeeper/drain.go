// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// nodeStateTTL is for how long a node is believed to be drained. To force many pods may
// take longer than that, if the API server is slow.
const nodeStateTTL = 10 * time.Second

// drainScope is one look at one node that is being drained: it gathers what there is
// to know, decides, and then acts.
type drainScope struct {
	*Reconciler

	node    *corev1.Node // as it is cached
	drain   clusterstate.Drain
	upgrade *upgrade
	log     logr.Logger
}

// reconcile returns when to look again.
func (s *drainScope) reconcile(ctx context.Context, now time.Time, d deadlines) (time.Time, error) {
	pods, err := s.listPods(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if draining, err := s.stillDraining(ctx); err != nil || !draining {
		return now.Add(staleCacheRequeue), err
	}
	p := decide(now, d, pods)
	s.Metrics.SetBlocked(s.node.Name, p.overdue)
	return p.next, s.apply(ctx, p)
}

// stillDraining asks the API server whether the node is being drained as the
// cache has it. It is asked after the pods were: so what is forced was on the
// node while that was drained, and not put there after the node was uncordoned.
func (s *drainScope) stillDraining(ctx context.Context) (bool, error) {
	var node corev1.Node
	if err := s.Live.Get(ctx, client.ObjectKeyFromObject(s.node), &node); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting node %s: %w", s.node.Name, err))
	}
	return node.UID == s.node.UID && clusterstate.DrainState(&node).Equal(s.drain), nil
}

// listPods returns the pods on the node, with what guards them. No more than their
// metadata is asked for, and nothing of pods on other nodes.
func (s *drainScope) listPods(ctx context.Context) ([]podInfo, error) {
	pods, err := clusterstate.ListPodsOnNode(ctx, s.Live, s.node.Name)
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
		info := podInfo{Pod: pod, ignored: text.MatchesAny(pod.Namespace, ignored)}
		for _, b := range pdbs[pod.Namespace] {
			if b.Selects(pod) {
				info.pdbs = append(info.pdbs, b.Namespace+"/"+b.Name)
			}
		}
		infos = append(infos, info)
	}
	return infos, nil
}

// listPDBs returns those of a namespace, and tells of those that cannot be read.
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

// apply does what was decided, as long as the node is being drained. Trouble with
// one pod is no reason to leave another.
func (s *drainScope) apply(ctx context.Context, p plan) error {
	var errs []error
	verifiedAt := s.Clock.Now()
	for _, bp := range p.toForce {
		if now := s.Clock.Now(); now.Sub(verifiedAt) > nodeStateTTL {
			if draining, err := s.stillDraining(ctx); err != nil || !draining {
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
