// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
)

// Bootstrap creates the pools and nodes of a cluster installed with a release.
func Bootstrap(ctx context.Context, c client.Client, now time.Time, pools []Pool, release string) error {
	for _, pool := range pools {
		if err := bootstrapPool(ctx, c, pool, release); err != nil {
			return err
		}
		for i := range pool.Nodes {
			if err := bootstrapNode(ctx, c, now, pool.Name, fmt.Sprintf("%s-%d", pool.Name, i), release); err != nil {
				return err
			}
		}
	}
	return nil
}

func bootstrapPool(ctx context.Context, c client.Client, pool Pool, release string) error {
	if err := c.Create(ctx, newRenderedConfig(pool.Name, release)); err != nil {
		return fmt.Errorf("creating the configuration of pool %s: %w", pool.Name, err)
	}
	configs := &metav1.LabelSelector{MatchLabels: map[string]string{"machineconfiguration.openshift.io/role": pool.Name}}
	if pool.Name != Master && pool.Name != Worker {
		configs = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{
			Key: "machineconfiguration.openshift.io/role", Operator: metav1.LabelSelectorOpIn, Values: []string{Worker, pool.Name},
		}}}
	}
	object := &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: pool.Name, Labels: map[string]string{
			"pools.operator.machineconfiguration.openshift.io/" + pool.Name: "",
		}},
		Spec: mcfgv1.MachineConfigPoolSpec{
			MachineConfigSelector: configs,
			NodeSelector:          &metav1.LabelSelector{MatchLabels: map[string]string{rolePrefix + pool.Name: ""}},
			Paused:                pool.Paused,
			MaxUnavailable:        pool.MaxUnavailable,
			Configuration:         configuration(pool.Name, release),
		},
	}
	if err := c.Create(ctx, object); err != nil {
		return fmt.Errorf("creating pool %s: %w", pool.Name, err)
	}
	return nil
}

func bootstrapNode(ctx context.Context, c client.Client, now time.Time, pool, name, release string) error {
	labels := map[string]string{rolePrefix + pool: ""}
	var taints []corev1.Taint
	switch pool {
	case Master:
		labels[rolePrefix+"control-plane"] = ""
		taints = []corev1.Taint{{Key: rolePrefix + Master, Effect: corev1.TaintEffectNoSchedule}}
	case Worker:
	default:
		labels[rolePrefix+Worker] = ""
	}
	return kubelet.Register(ctx, c, now, name, true, labels, configAnnotations(RenderedName(pool, release)), taints...)
}

// configAnnotations returns the annotations of a node with a configuration.
func configAnnotations(config string) map[string]string {
	return map[string]string{
		CurrentConfig: config, DesiredConfig: config, State: StateDone, Reason: "",
		DesiredDrain: "uncordon-" + config, LastAppliedDrain: "uncordon-" + config,
	}
}

// AddNode creates the node of a new worker if it does not exist. Its labels select its pool, and it
// gets the pool's configuration.
func AddNode(ctx context.Context, c client.Client, now time.Time, name string, labels map[string]string, taints []corev1.Taint, ready bool) error {
	labels = maps.Clone(labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[rolePrefix+Worker] = ""
	var pools mcfgv1.MachineConfigPoolList
	if err := c.List(ctx, &pools); err != nil {
		return fmt.Errorf("listing pools: %w", err)
	}
	pool := owner(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: labels}}, pools.Items)
	at := slices.IndexFunc(pools.Items, func(p mcfgv1.MachineConfigPool) bool { return p.Name == pool })
	if at < 0 {
		return fmt.Errorf("finding the pool of node %s: no pool %q", name, pool)
	}
	err := kubelet.Register(ctx, c, now, name, ready, labels, configAnnotations(pools.Items[at].Status.Configuration.Name), taints...)
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}
