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

// Delays in real time, because the controllers that watch pods are real.
const (
	podStartDelay       = 500 * time.Millisecond // from scheduled to ready
	podCompletionDelay  = 2 * time.Second        // from creation to completion, for pods that complete by themselves
	podTerminationDelay = time.Second            // from deletion to removal, at most
	podRetryInterval    = 2 * time.Second        // between scheduling attempts
)

// reconcilePod advances a pod: it schedules, starts, completes, or terminates it.
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

// schedule binds a pod to the eligible node with the fewest pods. To spread pods that are created
// at the same time, it also counts pods whose binding is not in the cache yet.
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

// start makes a pod ready unless its annotations or its environment prevent that.
func (k *Kubelets) start(ctx context.Context, pod *corev1.Pod, now time.Time) (reconcile.Result, error) {
	if remaining := podStartDelay - now.Sub(pod.CreationTimestamp.Time); remaining > 0 {
		return reconcile.Result{RequeueAfter: remaining}, nil
	}
	before := pod.DeepCopy()
	stamp := metav1.NewTime(now.Truncate(time.Second))
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &stamp
	}
	b, err := behaviorOf(pod)
	switch {
	case err != nil:
	case b.local && k.local != nil:
		err = k.local.start(ctx, pod)
	default:
		err = checkArgumentSizes(pod)
	}
	switch {
	case err != nil:
		end(pod, corev1.ContainerStateTerminated{ExitCode: startErrorCode, Reason: "StartError", Message: err.Error(), StartedAt: stamp, FinishedAt: stamp})
	case b.imagePullFail:
		pod.Status.Phase = corev1.PodPending
		setReady(pod, false, stamp)
		pod.Status.ContainerStatuses = statuses(pod, func(image string) corev1.ContainerState {
			return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "ImagePullBackOff", Message: fmt.Sprintf("Back-off pulling image %q: ErrImagePull: manifest unknown", image),
			}}
		})
		if len(before.Status.ContainerStatuses) > 0 {
			return reconcile.Result{}, nil
		}
	default:
		pod.Status.Phase = corev1.PodRunning
		pod.Status.PodIP, pod.Status.HostIP = "10.128.0.1", "127.0.0.1"
		pod.Status.PodIPs = []corev1.PodIP{{IP: pod.Status.PodIP}}
		pod.Status.HostIPs = []corev1.HostIP{{IP: pod.Status.HostIP}}
		setReady(pod, true, stamp)
		pod.Status.ContainerStatuses = statuses(pod, func(string) corev1.ContainerState {
			return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp}}
		})
	}
	return reconcile.Result{}, k.patch(ctx, pod, before)
}

// statuses returns the statuses of a pod's containers, with the state that the function returns for
// each image.
func statuses(pod *corev1.Pod, state func(image string) corev1.ContainerState) []corev1.ContainerStatus {
	var all []corev1.ContainerStatus
	for i := range pod.Spec.Containers {
		container := &pod.Spec.Containers[i]
		status := corev1.ContainerStatus{Name: container.Name, Image: container.Image, State: state(container.Image)}
		status.Ready, status.Started = status.State.Running != nil, new(status.State.Running != nil)
		all = append(all, status)
	}
	return all
}

// startErrorCode is the exit code of a container that cannot be started.
const startErrorCode = 128

// completeLocal completes a pod when its local processes have exited.
func (k *Kubelets) completeLocal(ctx context.Context, pod *corev1.Pod, now time.Time) (reconcile.Result, error) {
	results, ended := k.local.results(pod)
	if !ended {
		return reconcile.Result{}, nil // their exit wakes the controller
	}
	before := pod.DeepCopy()
	finished := metav1.NewTime(now.Truncate(time.Second))
	worst := corev1.ContainerStateTerminated{FinishedAt: finished}
	for _, result := range results {
		worst.ExitCode = max(worst.ExitCode, result.ExitCode)
	}
	end(pod, worst)
	for i := range pod.Status.ContainerStatuses {
		terminated := results[i]
		terminated.StartedAt, terminated.FinishedAt = startedAt(before), finished
		pod.Status.ContainerStatuses[i].State = corev1.ContainerState{Terminated: &terminated}
	}
	return reconcile.Result{}, k.patch(ctx, pod, before)
}

// complete completes a pod that ends by itself, or restarts its containers if they have failed and
// the restart policy is OnFailure.
func (k *Kubelets) complete(ctx context.Context, pod *corev1.Pod, now time.Time) (reconcile.Result, error) {
	before := pod.DeepCopy()
	b, err := behaviorOf(pod)
	switch {
	case err != nil: // it was valid when the pod started
		finished := metav1.NewTime(now.Truncate(time.Second))
		end(pod, corev1.ContainerStateTerminated{ExitCode: startErrorCode, Reason: "Error", Message: err.Error(), FinishedAt: finished})
		return reconcile.Result{}, k.patch(ctx, pod, before)
	case pod.Spec.RestartPolicy == corev1.RestartPolicyAlways || b.neverEnds:
		return reconcile.Result{}, nil
	}
	if b.local && k.local != nil {
		return k.completeLocal(ctx, pod, now)
	}
	if remaining := restartIn(pod, now); remaining > 0 {
		return reconcile.Result{RequeueAfter: remaining}, nil
	}
	if restarting(pod) {
		setRunning(pod, metav1.NewTime(now.Truncate(time.Second)))
		return reconcile.Result{}, k.patch(ctx, pod, before)
	}
	if remaining := remainingRun(pod, b, now); remaining > 0 {
		return reconcile.Result{RequeueAfter: remaining}, nil
	}
	ended := corev1.ContainerStateTerminated{
		FinishedAt: metav1.NewTime(now.Truncate(time.Second)), StartedAt: startedAt(pod), ExitCode: ptr.Deref(b.exitCode, 0), Reason: "Completed",
	}
	if b.exitCode == nil {
		if err := k.options.Run(ctx, pod); err != nil {
			ended.ExitCode, ended.Message = 1, err.Error()
		}
	}
	if ended.ExitCode != 0 {
		ended.Reason = "Error"
	}
	if ended.ExitCode != 0 && pod.Spec.RestartPolicy == corev1.RestartPolicyOnFailure {
		crash(pod, ended)
	} else {
		end(pod, ended)
	}
	return reconcile.Result{}, k.patch(ctx, pod, before)
}

// remainingRun returns how much longer the containers of a pod will run.
func remainingRun(pod *corev1.Pod, b behavior, now time.Time) time.Duration {
	if b.duration > 0 {
		return b.duration - now.Sub(startedAt(pod).Time)
	}
	return podCompletionDelay - now.Sub(pod.CreationTimestamp.Time)
}

// startedAt returns the time of the last start of a pod's containers.
func startedAt(pod *corev1.Pod) metav1.Time {
	for i := range pod.Status.ContainerStatuses {
		if running := pod.Status.ContainerStatuses[i].State.Running; running != nil {
			return running.StartedAt
		}
	}
	return ptr.Deref(pod.Status.StartTime, pod.CreationTimestamp)
}

// end completes a pod and its containers.
func end(pod *corev1.Pod, ended corev1.ContainerStateTerminated) {
	pod.Status.Phase = corev1.PodSucceeded
	if ended.ExitCode != 0 {
		pod.Status.Phase = corev1.PodFailed
	}
	setReady(pod, false, ended.FinishedAt)
	if len(pod.Status.ContainerStatuses) == 0 {
		pod.Status.ContainerStatuses = statuses(pod, func(string) corev1.ContainerState { return corev1.ContainerState{} })
	}
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.Started = false, new(false)
		status.State = corev1.ContainerState{Terminated: &ended}
	}
}

// terminate removes a deleted pod within its grace period. It waits while the kubelet of its node
// is down.
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
	if err := k.local.stop(pod.UID, min(grace, podTerminationDelay)); err != nil {
		return reconcile.Result{}, err
	}
	err := k.client.Delete(ctx, pod, client.GracePeriodSeconds(0), client.Preconditions{UID: &pod.UID})
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, fmt.Errorf("deleting pod %s: %w", client.ObjectKeyFromObject(pod), err)
	}
	return reconcile.Result{}, nil
}

// patch saves the status. It fails if the cache was stale, to keep the pod from returning to an
// earlier state.
func (k *Kubelets) patch(ctx context.Context, pod, before *corev1.Pod) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := k.client.Status().Patch(ctx, pod, patch); client.IgnoreNotFound(err) != nil {
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
