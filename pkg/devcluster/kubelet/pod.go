// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Delays in real time: the controllers that watch pods are real.
const (
	podStartDelay       = 500 * time.Millisecond // from scheduled to ready
	podCompletionDelay  = 2 * time.Second        // from created to ended, for pods that end by themselves
	podTerminationDelay = time.Second            // from deleted to gone, at most
	podRetryInterval    = 2 * time.Second        // between attempts to schedule
)

// ExitCode is an annotation: the exit code of a pod that ends by itself (its restart policy is not
// Always). It defaults to 0.
const ExitCode = "devcluster.openshift.io/exit-code"

// reconcilePod advances a pod: it is scheduled, started, completed, or terminated.
func (k *Kubelets) reconcilePod(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var pod corev1.Pod
	if err := k.client.Get(ctx, request.NamespacedName, &pod); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	now := k.clock.Now()
	switch {
	case pod.DeletionTimestamp != nil:
		return k.terminate(ctx, &pod, now)
	case pod.Spec.NodeName == "":
		return k.schedule(ctx, &pod)
	}
	if up, _, _ := k.State(pod.Spec.NodeName, now); !up {
		return reconcile.Result{RequeueAfter: k.options.PodRetry}, nil // its kubelet is down
	}
	switch pod.Status.Phase {
	case corev1.PodPending, "":
		return k.start(ctx, &pod, now)
	case corev1.PodRunning:
		return k.complete(ctx, &pod, now)
	default:
		return reconcile.Result{}, nil
	}
}

// schedule binds a pod to the node with the fewest pods that accepts it. It counts pods whose
// binding the cache does not show yet, so that pods created at the same time are spread.
func (k *Kubelets) schedule(ctx context.Context, pod *corev1.Pod) (reconcile.Result, error) {
	k.scheduling.Lock()
	defer k.scheduling.Unlock()
	var nodes corev1.NodeList
	if err := k.client.List(ctx, &nodes); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing nodes: %w", err)
	}
	var pods corev1.PodList
	if err := k.client.List(ctx, &pods); err != nil {
		return reconcile.Result{}, fmt.Errorf("listing pods: %w", err)
	}
	load := map[string]int{}
	for i := range pods.Items {
		load[cmp.Or(pods.Items[i].Spec.NodeName, k.scheduled[pods.Items[i].UID])]++
		if pods.Items[i].Spec.NodeName != "" {
			delete(k.scheduled, pods.Items[i].UID)
		}
	}
	candidates := slices.DeleteFunc(nodes.Items, func(node corev1.Node) bool { return !fits(pod, &node) })
	if len(candidates) == 0 {
		return reconcile.Result{RequeueAfter: k.options.PodRetry}, nil
	}
	chosen := slices.MinFunc(candidates, func(a, b corev1.Node) int {
		return cmp.Or(load[a.Name]-load[b.Name], cmp.Compare(a.Name, b.Name))
	})
	binding := &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: chosen.Name},
	}
	if err := k.client.SubResource("binding").Create(ctx, pod, binding); err != nil {
		return reconcile.Result{}, fmt.Errorf("binding pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	k.scheduled[pod.UID] = chosen.Name
	return reconcile.Result{}, nil
}

func fits(pod *corev1.Pod, node *corev1.Node) bool {
	ready := condition(node, corev1.NodeReady)
	if node.Spec.Unschedulable || ready == nil || ready.Status != corev1.ConditionTrue {
		return false
	}
	if !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(node.Labels)) {
		return false
	}
	for _, taint := range node.Spec.Taints {
		tolerates := func(toleration corev1.Toleration) bool {
			return (toleration.Key == "" && toleration.Operator == corev1.TolerationOpExists ||
				toleration.Key == taint.Key && (toleration.Operator == corev1.TolerationOpExists || toleration.Value == taint.Value)) &&
				(toleration.Effect == "" || toleration.Effect == taint.Effect)
		}
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !slices.ContainsFunc(pod.Spec.Tolerations, tolerates) {
			return false
		}
	}
	return true
}

// start makes a pod ready.
func (k *Kubelets) start(ctx context.Context, pod *corev1.Pod, now time.Time) (reconcile.Result, error) {
	if remaining := podStartDelay - now.Sub(pod.CreationTimestamp.Time); remaining > 0 {
		return reconcile.Result{RequeueAfter: remaining}, nil
	}
	before := pod.DeepCopy()
	stamp := metav1.NewTime(now.Truncate(time.Second))
	pod.Status.Phase = corev1.PodRunning
	pod.Status.StartTime = &stamp
	pod.Status.PodIP, pod.Status.HostIP = "10.128.0.1", "127.0.0.1"
	pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
	pod.Status.HostIPs = []corev1.HostIP{{IP: pod.Status.HostIP}}
	setReady(pod, true, stamp)
	pod.Status.ContainerStatuses = nil
	for _, container := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true, Started: new(true),
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp}},
		})
	}
	return reconcile.Result{}, k.patch(ctx, pod, before)
}

// complete ends a pod that ends by itself.
func (k *Kubelets) complete(ctx context.Context, pod *corev1.Pod, now time.Time) (reconcile.Result, error) {
	if pod.Spec.RestartPolicy == corev1.RestartPolicyAlways {
		return reconcile.Result{}, nil
	}
	if remaining := podCompletionDelay - now.Sub(pod.CreationTimestamp.Time); remaining > 0 {
		return reconcile.Result{RequeueAfter: remaining}, nil
	}
	before := pod.DeepCopy()
	ended := corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(now.Truncate(time.Second)), Reason: "Completed"}
	pod.Status.Phase = corev1.PodSucceeded
	if _, err := fmt.Sscanf(pod.Annotations[ExitCode], "%d", &ended.ExitCode); err != nil {
		if err := k.options.Run(ctx, pod); err != nil {
			ended.ExitCode, ended.Message = 1, err.Error()
		}
	}
	if ended.ExitCode != 0 {
		pod.Status.Phase, ended.Reason = corev1.PodFailed, "Error"
	}
	setReady(pod, false, ended.FinishedAt)
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.Started = false, new(false)
		status.State = corev1.ContainerState{Terminated: &ended}
	}
	return reconcile.Result{}, k.patch(ctx, pod, before)
}

// terminate removes a deleted pod, within its grace period. It waits for the kubelet of its node.
func (k *Kubelets) terminate(ctx context.Context, pod *corev1.Pod, now time.Time) (reconcile.Result, error) {
	if pod.Spec.NodeName != "" {
		if up, _, _ := k.State(pod.Spec.NodeName, now); !up {
			return reconcile.Result{RequeueAfter: k.options.PodRetry}, nil
		}
	}
	grace := time.Duration(ptr.Deref(pod.DeletionGracePeriodSeconds, 0)) * time.Second
	deleted := pod.DeletionTimestamp.Add(-grace)
	if remaining := min(grace, podTerminationDelay) - now.Sub(deleted); remaining > 0 {
		return reconcile.Result{RequeueAfter: remaining}, nil
	}
	err := k.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("deleting pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	return reconcile.Result{}, nil
}

func (k *Kubelets) patch(ctx context.Context, pod, before *corev1.Pod) error {
	if err := k.client.Status().Patch(ctx, pod, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patching the status of pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	return nil
}

func setReady(pod *corev1.Pod, ready bool, now metav1.Time) {
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}[ready]
	for _, kind := range []corev1.PodConditionType{corev1.PodInitialized, corev1.PodReady, corev1.ContainersReady} {
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: kind, Status: status, LastTransitionTime: now})
	}
}
