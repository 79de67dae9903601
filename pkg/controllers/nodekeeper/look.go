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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
)

// trust is for how long a node is believed to be drained. To force many pods may
// take longer than that, if the API server is slow.
const trust = 10 * time.Second

// look is one look at one node that is being drained: it gathers what there is
// to know, decides, and then acts.
type look struct {
	*Reconciler

	node    *corev1.Node // as it is cached
	drain   cluster.Drain
	upgrade *upgrade
	log     logr.Logger
}

// take returns when to look again.
func (l *look) take(ctx context.Context, now time.Time, terms deadlines) (time.Time, error) {
	guests, err := l.gather(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if same, err := l.stillDraining(ctx); err != nil || !same {
		return now.Add(soon), err
	}
	p := decide(now, terms, guests)
	l.Metrics.Blocked(l.node.Name, p.blocked)
	return p.next, l.act(ctx, p)
}

// stillDraining asks the API server whether the node is being drained as the
// cache has it. It is asked after the pods were: so what is forced was on the
// node while that was drained, and not put there after the node was uncordoned.
func (l *look) stillDraining(ctx context.Context) (bool, error) {
	var node corev1.Node
	if err := l.Live.Get(ctx, client.ObjectKeyFromObject(l.node), &node); err != nil {
		return false, client.IgnoreNotFound(fmt.Errorf("getting node %s: %w", l.node.Name, err))
	}
	return node.UID == l.node.UID && cluster.DrainOf(&node).Equal(l.drain), nil
}

// gather returns the pods on the node, with what guards them. No more than their
// metadata is asked for, and nothing of pods on other nodes.
func (l *look) gather(ctx context.Context) ([]guest, error) {
	pods, err := cluster.ReadPodsOn(ctx, l.Live, l.node.Name)
	if err != nil {
		return nil, err
	}
	ignored := l.Config().IgnoreNamespaces
	budgets := map[string][]cluster.Budget{} // by namespace
	var guests []guest
	for _, pod := range pods {
		if _, known := budgets[pod.Namespace]; !known {
			if budgets[pod.Namespace], err = l.budgets(ctx, pod.Namespace); err != nil {
				return nil, err
			}
		}
		g := guest{Pod: pod, spared: cluster.Among(pod.Namespace, ignored)}
		for _, b := range budgets[pod.Namespace] {
			if b.Guards(pod) {
				g.budgets = append(g.budgets, b.Namespace+"/"+b.Name)
			}
		}
		guests = append(guests, g)
	}
	return guests, nil
}

// budgets returns those of a namespace, and tells of those that cannot be read.
func (l *look) budgets(ctx context.Context, namespace string) ([]cluster.Budget, error) {
	budgets, err := cluster.ReadBudgets(ctx, l.Client, namespace)
	if err != nil {
		return nil, err
	}
	var untold []error
	for _, b := range budgets {
		if b.Wrong != "" {
			untold = append(untold, l.tellUnreadable(ctx, b))
		}
	}
	return budgets, errors.Join(untold...)
}

// act does what was decided, as long as the node is being drained. Trouble with
// one pod is no reason to leave another.
func (l *look) act(ctx context.Context, p plan) error {
	var trouble []error
	known := l.Clock.Now()
	for _, t := range p.force {
		if now := l.Clock.Now(); now.Sub(known) > trust {
			if same, err := l.stillDraining(ctx); err != nil || !same {
				return errors.Join(append(trouble, err)...)
			}
			known = now
		}
		trouble = append(trouble, l.force(ctx, t))
	}
	for _, t := range p.stuck {
		trouble = append(trouble, l.tellStuck(ctx, t))
	}
	return errors.Join(trouble...)
}
