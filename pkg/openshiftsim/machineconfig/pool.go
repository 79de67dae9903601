// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"cmp"
	"context"
	"crypto/md5" //nolint:gosec // a name like the real one's, not a secret
	"fmt"
	"slices"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

const (
	rolePrefix   = "node-role.kubernetes.io/"
	versionLabel = "machineconfiguration.openshift.io/release-image-version"
)

// RenderedName returns the name of the MachineConfig for a pool and a release.
func RenderedName(pool, release string) string {
	return fmt.Sprintf("rendered-%s-%x", pool, md5.Sum([]byte(pool+" "+release))) //nolint:gosec // see above
}

// reconcilePool assigns the new configuration to the next nodes and updates the status.
func (s *Simulator) reconcilePool(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pool mcfgv1.MachineConfigPool
	if err := s.client.Get(ctx, request.NamespacedName, &pool); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	release, err := s.release(ctx)
	if err != nil || release == "" {
		return reconcile.Result{}, err
	}
	target := RenderedName(pool.Name, release)
	if pool.Spec.Configuration.Name != target {
		return reconcile.Result{}, s.render(ctx, &pool, release) // its event triggers the next reconcile
	}
	nodes, err := s.nodesOf(ctx, &pool)
	if err != nil {
		return reconcile.Result{}, err
	}
	if err := s.assignTarget(ctx, &pool, nodes, target); err != nil {
		return reconcile.Result{}, err
	}
	before := pool.DeepCopy()
	syncPoolStatus(&pool, nodes, s.options.Clock.Now())
	if equality.Semantic.DeepEqual(before.Status, pool.Status) {
		return reconcile.Result{}, nil
	}
	if err := s.client.Status().Patch(ctx, &pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return reconcile.Result{}, fmt.Errorf("patching the status of pool %s: %w", pool.Name, err)
	}
	return reconcile.Result{}, nil
}

// render creates the MachineConfig of a release and sets it in the pool's spec, even if the pool is
// paused and its nodes are not updated.
func (s *Simulator) render(ctx context.Context, pool *mcfgv1.MachineConfigPool, release string) error {
	if err := client.IgnoreAlreadyExists(s.client.Create(ctx, newRenderedConfig(pool.Name, release))); err != nil {
		return fmt.Errorf("creating the configuration of pool %s: %w", pool.Name, err)
	}
	before := pool.DeepCopy()
	pool.Spec.Configuration = configuration(pool.Name, release)
	if err := s.client.Patch(ctx, pool, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the configuration of pool %s: %w", pool.Name, err)
	}
	return nil
}

func newRenderedConfig(pool, release string) *mcfgv1.MachineConfig {
	return &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
		Name:        RenderedName(pool, release),
		Annotations: map[string]string{versionLabel: release},
	}}
}

func configuration(pool, release string) mcfgv1.MachineConfigPoolStatusConfiguration {
	reference := func(name string) corev1.ObjectReference {
		return corev1.ObjectReference{APIVersion: "machineconfiguration.openshift.io/v1", Kind: "MachineConfig", Name: name}
	}
	return mcfgv1.MachineConfigPoolStatusConfiguration{
		ObjectReference: reference(RenderedName(pool, release)),
		Source:          []corev1.ObjectReference{reference("00-" + pool)},
	}
}

// nodesOf returns the nodes of a pool, sorted by name. Nodes of custom pools also have the worker
// role but belong to the custom pool.
func (s *Simulator) nodesOf(ctx context.Context, pool *mcfgv1.MachineConfigPool) ([]corev1.Node, error) {
	var nodes corev1.NodeList
	if err := s.client.List(ctx, &nodes); err != nil {
		return nil, fmt.Errorf("listing nodes: %w", err)
	}
	var pools mcfgv1.MachineConfigPoolList
	if err := s.client.List(ctx, &pools); err != nil {
		return nil, fmt.Errorf("listing pools: %w", err)
	}
	members := slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool { return owner(&node, pools.Items) != pool.Name })
	slices.SortFunc(members, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return members, nil
}

// owner returns the name of a node's pool, or an empty string.
func owner(node *corev1.Node, pools []mcfgv1.MachineConfigPool) string {
	var names []string
	for i := range pools {
		selector, err := metav1.LabelSelectorAsSelector(pools[i].Spec.NodeSelector)
		if err == nil && selector.Matches(labels.Set(node.Labels)) {
			names = append(names, pools[i].Name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if name != Worker {
			return name // the control plane pool or a custom one
		}
	}
	return strings.Join(names, "")
}

// assignTarget assigns the configuration to as many nodes as may be unavailable.
func (s *Simulator) assignTarget(ctx context.Context, pool *mcfgv1.MachineConfigPool, nodes []corev1.Node, target string) error {
	if pool.Spec.Paused {
		return nil
	}
	free := maxUnavailable(pool, len(nodes)) - len(filter(nodes, unavailable))
	for i := range nodes {
		node := &nodes[i]
		if free <= 0 || node.Annotations[DesiredConfig] == target {
			continue
		}
		before := node.DeepCopy()
		annotate(node, DesiredConfig, target)
		if err := s.client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
			return fmt.Errorf("assigning a configuration to node %s: %w", node.Name, err)
		}
		free--
	}
	return nil
}

func maxUnavailable(pool *mcfgv1.MachineConfigPool, nodes int) int {
	if pool.Spec.MaxUnavailable == nil {
		return 1
	}
	limit, err := intstr.GetScaledValueFromIntOrPercent(pool.Spec.MaxUnavailable, nodes, false)
	if err != nil {
		return 1
	}
	return max(1, limit)
}

func filter(nodes []corev1.Node, is func(*corev1.Node) bool) []corev1.Node {
	var found []corev1.Node
	for i := range nodes {
		if is(&nodes[i]) {
			found = append(found, nodes[i])
		}
	}
	return found
}

func updated(target string) func(*corev1.Node) bool {
	return func(node *corev1.Node) bool {
		return node.Annotations[CurrentConfig] == target && node.Annotations[DesiredConfig] == target && node.Annotations[State] == StateDone
	}
}

func ready(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue && !node.Spec.Unschedulable
		}
	}
	return false
}

func unavailable(node *corev1.Node) bool {
	return !ready(node) || node.Annotations[CurrentConfig] != node.Annotations[DesiredConfig] || node.Annotations[State] != StateDone
}

func degraded(node *corev1.Node) bool { return node.Annotations[State] == StateDegraded }

// syncPoolStatus updates the status of the pool. The new configuration becomes the pool's
// configuration once all nodes have it.
func syncPoolStatus(pool *mcfgv1.MachineConfigPool, nodes []corev1.Node, now time.Time) {
	target := pool.Spec.Configuration.Name
	done := filter(nodes, updated(target))
	broken := filter(nodes, degraded)
	status := &pool.Status
	status.ObservedGeneration = pool.Generation
	status.MachineCount = len32(nodes)
	status.UpdatedMachineCount = len32(done)
	status.ReadyMachineCount = len32(filter(done, ready))
	status.UnavailableMachineCount = len32(filter(nodes, unavailable))
	status.DegradedMachineCount = len32(broken)
	if status.CertExpirys == nil {
		status.CertExpirys = []mcfgv1.CertExpiry{}
	}
	set := func(kind mcfgv1.MachineConfigPoolConditionType, holds bool, reason, message string) {
		setCondition(pool, kind, holds, reason, message, now)
	}
	all := len(filter(done, ready)) == len(nodes)
	switch {
	case all:
		status.Configuration = *pool.Spec.Configuration.DeepCopy()
		set(mcfgv1.MachineConfigPoolUpdated, true, "", "All nodes are updated with "+target)
		set(mcfgv1.MachineConfigPoolUpdating, false, "", "")
	case pool.Spec.Paused:
		set(mcfgv1.MachineConfigPoolUpdated, false, "", "")
		set(mcfgv1.MachineConfigPoolUpdating, false, "", "Pool is paused; will not update to "+target)
	default:
		set(mcfgv1.MachineConfigPoolUpdated, false, "", "")
		set(mcfgv1.MachineConfigPoolUpdating, true, "", "All nodes are updating to "+target)
	}
	set(mcfgv1.MachineConfigPoolRenderDegraded, false, "", "")
	if len(broken) == 0 {
		set(mcfgv1.MachineConfigPoolNodeDegraded, false, "", "")
		set(mcfgv1.MachineConfigPoolDegraded, false, "", "")
		return
	}
	var messages []string
	for i := range broken {
		messages = append(messages, fmt.Sprintf("Node %s is reporting: %q", broken[i].Name, broken[i].Annotations[Reason]))
	}
	set(mcfgv1.MachineConfigPoolNodeDegraded, true,
		fmt.Sprintf("%d nodes are reporting degraded status on sync", len(broken)), strings.Join(messages, ", "))
	set(mcfgv1.MachineConfigPoolDegraded, true, "", "")
}

func len32(nodes []corev1.Node) int32 {
	return int32(len(nodes))
}

func setCondition(pool *mcfgv1.MachineConfigPool, kind mcfgv1.MachineConfigPoolConditionType, holds bool, reason, message string, now time.Time) {
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[holds]
	index := slices.IndexFunc(pool.Status.Conditions, func(c mcfgv1.MachineConfigPoolCondition) bool { return c.Type == kind })
	if index < 0 {
		pool.Status.Conditions = append(pool.Status.Conditions, mcfgv1.MachineConfigPoolCondition{Type: kind})
		index = len(pool.Status.Conditions) - 1
	}
	condition := &pool.Status.Conditions[index]
	if condition.Status != status {
		condition.Status, condition.LastTransitionTime = status, metav1.NewTime(now.Truncate(time.Second))
	}
	condition.Reason, condition.Message = reason, message
}

func (s *Simulator) enqueueAllPools(ctx context.Context, _ client.Object) []reconcile.Request {
	var pools mcfgv1.MachineConfigPoolList
	if err := s.client.List(ctx, &pools); err != nil {
		return nil // the cache has not synced; events for the pools will follow
	}
	var requests []reconcile.Request
	for i := range pools.Items {
		requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&pools.Items[i])})
	}
	return requests
}

// remaining returns the remaining time of something that began at start and takes the given
// duration on a real cluster.
func (s *Simulator) remaining(duration timescale.Duration, start, now time.Time) time.Duration {
	return s.options.Speed.Scale(duration) - now.Sub(start)
}
