// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Intervals of a real kubelet: it renews its lease every 10 seconds and posts an unchanged status
// every 5 minutes.
const (
	leaseInterval  = 10 * time.Second
	leaseDuration  = 40 * time.Second
	statusInterval = 5 * time.Minute
)

// Register creates a node with its first status, like the kubelet of a machine that is up. If ready
// is false, the caller must have powered the node off; otherwise it becomes ready soon.
func Register(ctx context.Context, c client.Client, now time.Time, name string, ready bool, labels, annotations map[string]string, taints ...corev1.Taint) error {
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations, Labels: map[string]string{
		corev1.LabelHostname:   name,
		corev1.LabelOSStable:   "linux",
		corev1.LabelArchStable: "amd64",
	}}, Spec: corev1.NodeSpec{Taints: taints, ProviderID: "devcluster:///" + name}}
	maps.Copy(node.Labels, labels)
	if err := c.Create(ctx, node); err != nil {
		return fmt.Errorf("creating node %s: %w", name, err)
	}
	postStatus(node, ready, 0, now)
	if err := c.Status().Update(ctx, node); err != nil {
		return fmt.Errorf("creating the status of node %s: %w", name, err)
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: corev1.NamespaceNodeLease, Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}},
		},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &name, LeaseDurationSeconds: new(int32(leaseDuration.Seconds())), RenewTime: new(metav1.NewMicroTime(now)),
		},
	}
	if err := c.Create(ctx, lease); err != nil {
		return fmt.Errorf("creating the lease of node %s: %w", name, err)
	}
	return nil
}

// reconcileNode reports whether the node is up, and sets the taints of nodes that are down or
// cordoned.
func (k *Kubelets) reconcileNode(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := k.client.Get(ctx, request.NamespacedName, &node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := k.clock.Now()
	up, boots, remaining := k.State(node.Name, now)
	if err := k.syncStatus(ctx, &node, up, boots, now); err != nil {
		return reconcile.Result{}, err
	}
	if err := k.syncTaints(ctx, &node, now); err != nil {
		return reconcile.Result{}, err
	}
	next := k.options.StatusInterval
	if remaining > 0 {
		next = min(next, remaining)
	}
	if ready := condition(&node, corev1.NodeReady); up && ready != nil {
		next = min(next, max(time.Millisecond, k.options.StatusInterval-now.Sub(ready.LastHeartbeatTime.Time)))
	}
	return reconcile.Result{RequeueAfter: next}, nil
}

func (k *Kubelets) syncStatus(ctx context.Context, node *corev1.Node, up bool, boots int, now time.Time) error {
	before := node.DeepCopy()
	ready := condition(node, corev1.NodeReady)
	stale := ready == nil || now.Sub(ready.LastHeartbeatTime.Time) >= k.options.StatusInterval
	rebooted := up && node.Status.NodeInfo.BootID != bootID(node, boots) // even if the reboot ended between two reconciles
	changed := ready != nil && (rebooted || (ready.Status == corev1.ConditionTrue) != up)
	switch {
	case up && (stale || changed):
		postStatus(node, true, boots, now)
	case !up && (ready == nil || changed):
		postStatus(node, false, boots, now)
	default:
		return nil
	}
	if err := k.client.Status().Patch(ctx, node, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("patching the status of node %s: %w", node.Name, err)
	}
	return nil
}

// syncTaints sets the taints of the node lifecycle controller. They keep new pods off nodes that
// are cordoned or down.
func (k *Kubelets) syncTaints(ctx context.Context, node *corev1.Node, now time.Time) error {
	before := node.DeepCopy()
	ready := condition(node, corev1.NodeReady)
	up := ready != nil && ready.Status == corev1.ConditionTrue
	setTaint(node, corev1.TaintNodeUnschedulable, corev1.TaintEffectNoSchedule, node.Spec.Unschedulable, now)
	setTaint(node, corev1.TaintNodeUnreachable, corev1.TaintEffectNoSchedule, !up, now)
	setTaint(node, corev1.TaintNodeUnreachable, corev1.TaintEffectNoExecute, !up, now)
	setTaint(node, corev1.TaintNodeNotReady, corev1.TaintEffectNoSchedule, false, now) // an admission plugin sets it on new nodes
	if equality.Semantic.DeepEqual(before.Spec.Taints, node.Spec.Taints) {
		return nil
	}
	err := k.client.Patch(ctx, node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if err != nil {
		return fmt.Errorf("patching the taints of node %s: %w", node.Name, err)
	}
	return nil
}

func setTaint(node *corev1.Node, key string, effect corev1.TaintEffect, desired bool, now time.Time) {
	same := func(taint corev1.Taint) bool { return taint.Key == key && taint.Effect == effect }
	switch there := slices.ContainsFunc(node.Spec.Taints, same); {
	case desired && !there:
		node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: key, Effect: effect, TimeAdded: new(metav1.NewTime(now.Truncate(time.Second)))})
	case !desired && there:
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, same)
	}
}

// postStatus sets the status that a kubelet posts, or the status of a node whose kubelet has
// stopped posting.
func postStatus(node *corev1.Node, up bool, boots int, now time.Time) {
	stamp := metav1.NewTime(now.Truncate(time.Second))
	set := func(kind corev1.NodeConditionType, status corev1.ConditionStatus, reason, message string) {
		if !up {
			status, reason, message = corev1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."
		}
		c := condition(node, kind)
		if c == nil {
			node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{Type: kind})
			c = &node.Status.Conditions[len(node.Status.Conditions)-1]
		}
		if c.Status != status {
			c.LastTransitionTime = stamp
		}
		if up || c.LastHeartbeatTime.IsZero() {
			c.LastHeartbeatTime = stamp
		}
		c.Status, c.Reason, c.Message = status, reason, message
	}
	set(corev1.NodeMemoryPressure, corev1.ConditionFalse, "KubeletHasSufficientMemory", "kubelet has sufficient memory available")
	set(corev1.NodeDiskPressure, corev1.ConditionFalse, "KubeletHasNoDiskPressure", "kubelet has no disk pressure")
	set(corev1.NodePIDPressure, corev1.ConditionFalse, "KubeletHasSufficientPID", "kubelet has sufficient PID available")
	set(corev1.NodeReady, corev1.ConditionTrue, "KubeletReady", "kubelet is posting ready status")
	if !up {
		return
	}
	node.Status.Capacity = corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("8"),
		corev1.ResourceMemory: resource.MustParse("32Gi"),
		corev1.ResourcePods:   resource.MustParse("250"),
	}
	node.Status.Allocatable = node.Status.Capacity
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeHostName, Address: node.Name},
		{Type: corev1.NodeInternalIP, Address: "127.0.0.1"},
	}
	id := strings.ReplaceAll(string(node.UID), "-", "")
	node.Status.NodeInfo = corev1.NodeSystemInfo{
		MachineID: id, SystemUUID: string(node.UID), BootID: bootID(node, boots),
		KubeletVersion: "v1.33.5", KubeProxyVersion: "v1.33.5", ContainerRuntimeVersion: "cri-o://1.33.5",
		OperatingSystem: "linux", Architecture: "amd64", OSImage: "Red Hat Enterprise Linux CoreOS (simulated)", KernelVersion: "5.14.0",
	}
}

func bootID(node *corev1.Node, boots int) string { return fmt.Sprintf("%s-%d", node.UID, boots) }

// IsReady reports whether the node has posted that it is ready since its last boot.
func (k *Kubelets) IsReady(node *corev1.Node, now time.Time) bool {
	up, boots, _ := k.State(node.Name, now)
	ready := condition(node, corev1.NodeReady)
	return up && ready != nil && ready.Status == corev1.ConditionTrue && node.Status.NodeInfo.BootID == bootID(node, boots)
}

func condition(node *corev1.Node, kind corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == kind {
			return &node.Status.Conditions[i]
		}
	}
	return nil
}

// heartbeat renews the leases of all nodes that are up until the context ends.
func (k *Kubelets) heartbeat(ctx context.Context) error {
	ticker := time.NewTicker(leaseInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-ticker.C:
			var nodes corev1.NodeList
			if err := k.client.List(ctx, &nodes); err != nil {
				continue // the API server is down, so there are no heartbeats
			}
			for i := range nodes.Items {
				k.renew(ctx, nodes.Items[i].Name, now)
			}
		}
	}
}

func (k *Kubelets) renew(ctx context.Context, name string, now time.Time) {
	if up, _, _ := k.State(name, now); !up {
		return
	}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: corev1.NamespaceNodeLease, Name: name}}
	patch := fmt.Sprintf(`{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	_ = k.client.Patch(ctx, lease, client.RawPatch("application/merge-patch+json", []byte(patch))) // the next heartbeat retries
}
