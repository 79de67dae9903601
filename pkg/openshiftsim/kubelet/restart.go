// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Backoff of a kubelet before it restarts a failed container.
const (
	firstRestartBackoff = 10 * time.Second
	maxRestartBackoff   = 5 * time.Minute
)

// crash makes the containers of a pod wait for a restart.
func crash(pod *corev1.Pod, ended corev1.ContainerStateTerminated) {
	setReady(pod, false, ended.FinishedAt)
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.Started = false, new(false)
		status.RestartCount++
		status.LastTerminationState = corev1.ContainerState{Terminated: &ended}
		status.State = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
			Reason: "CrashLoopBackOff", Message: "back-off restarting failed container " + status.Name,
		}}
	}
}

// restarting reports whether the containers of a pod are waiting for a restart.
func restarting(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) > 0 && pod.Status.ContainerStatuses[0].State.Waiting != nil
}

// restartIn returns the time until the containers of a pod are restarted.
func restartIn(pod *corev1.Pod, now time.Time) time.Duration {
	if !restarting(pod) || pod.Status.ContainerStatuses[0].LastTerminationState.Terminated == nil {
		return 0
	}
	status := pod.Status.ContainerStatuses[0]
	pause := firstRestartBackoff
	for n := int32(1); n < status.RestartCount && pause < maxRestartBackoff; n++ {
		pause *= 2
	}
	return status.LastTerminationState.Terminated.FinishedAt.Add(min(pause, maxRestartBackoff)).Sub(now)
}

// setRunning restarts the containers of a pod.
func setRunning(pod *corev1.Pod, now metav1.Time) {
	setReady(pod, true, now)
	for i := range pod.Status.ContainerStatuses {
		status := &pod.Status.ContainerStatuses[i]
		status.Ready, status.Started = true, new(true)
		status.State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}}
	}
}
