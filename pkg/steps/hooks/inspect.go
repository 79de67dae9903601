// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// podInterval is the time between two inspections of a Job's pods that are not running. It is also
// how long pods may take to start before they are inspected.
const podInterval = time.Minute

// podProblem is the reason why no pod of a Job is running.
type podProblem struct {
	at      time.Time
	message string
}

// inspect sets the result of a hook's Job, or the reason why it has none yet.
func (e *eventRun) inspect(ctx context.Context, h *hookRun) {
	job := h.job
	switch end := finishedCondition(job); {
	case end != nil && end.Type == batchv1.JobComplete:
		h.item.Status, h.item.Message = statusSucceeded, "Job "+job.Name
	case end != nil:
		h.item.Status = statusFailed
		h.item.Message = fmt.Sprintf("Job %s: %s: %s", job.Name, cmp.Or(text.Sanitize(end.Reason, maxReason), "Failed"), text.Reason(end.Message))
	case job.DeletionTimestamp != nil:
		h.item.Status, h.item.Message = statusFailed, "Job "+job.Name+" was deleted before it had ended; it is not run again"
	case e.overdue():
		h.item.Status = statusFailed
		h.item.Message = fmt.Sprintf("Job %s: TimedOut: it did not end within hooks.timeout (%s) and is still running; set activeDeadlineSeconds in the template", job.Name, e.Config().Timeout)
	default:
		h.item.Message = "Job " + job.Name
		if problem := e.podProblem(ctx, job); problem != "" {
			h.item.Message += ": " + problem
		}
	}
}

// maxReason limits the reason reported by a Job, in bytes.
const maxReason = 64

// isReady reports whether a pod of the Job is running. It returns false for an unobserved Job.
func isReady(job *batchv1.Job) bool { return job != nil && ptr.Deref(job.Status.Ready, 0) > 0 }

// podProblem returns the reason why no pod of a Job is running, if it can be determined. It
// inspects pods at most once a minute, and not within the first minute.
func (e *eventRun) podProblem(ctx context.Context, job *batchv1.Job) string {
	if problem := suspension(job); problem != "" {
		return problem
	}
	if isReady(job) || e.run.Now.Sub(job.CreationTimestamp.Time) < podInterval {
		return ""
	}
	e.mu.Lock()
	last, ok := e.pods[job.UID]
	e.mu.Unlock()
	if age := e.run.Now.Sub(last.at); ok && age >= 0 && age < podInterval {
		return last.message
	}
	problem := podProblem{at: e.run.Now, message: e.inspectPods(ctx, job)}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.pods == nil {
		e.pods = map[types.UID]podProblem{}
	}
	maps.DeleteFunc(e.pods, func(_ types.UID, old podProblem) bool { return e.run.Now.Sub(old.at) > time.Hour })
	e.pods[job.UID] = problem
	return problem.message
}

// suspension describes the client that suspends the Job; empty if the Job is not suspended.
func suspension(job *batchv1.Job) string {
	queue, template := job.Labels[labelQueue], job.Annotations[annotationSuspended]
	switch {
	case !ptr.Deref(job.Spec.Suspend, false):
		return ""
	case queue != "":
		return fmt.Sprintf("suspended by queue %s, which has not admitted it: oc describe workloads -n %s", text.Excerpt(queue), job.Namespace)
	case template != "":
		return "suspended: remove suspend from the template"
	}
	return "suspended by another controller: its template does not suspend it"
}

// inspectPods returns the reason why the pods of a Job are not running.
func (e *eventRun) inspectPods(ctx context.Context, job *batchv1.Job) string {
	var pods corev1.PodList
	if err := e.Live.List(ctx, &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.JobNameLabel: job.Name}, client.Limit(maxPods)); err != nil {
		return "no pod is ready"
	}
	if len(pods.Items) == 0 {
		return fmt.Sprintf("it has no pod; a quota or an admission policy may reject it, see oc describe job %s -n %s", job.Name, job.Namespace)
	}
	for i := range pods.Items {
		if problem := problemOf(&pods.Items[i]); problem != "" {
			return problem
		}
	}
	return ""
}

// maxPods limits the pods of a Job that are inspected.
const maxPods = 16

// problemOf returns the reason why a pod is not running, or "" if it is running, starting, or has
// ended.
func problemOf(pod *corev1.Pod) string {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			return fmt.Sprintf("pod %s cannot be scheduled: %s", pod.Name, text.Reason(c.Message))
		}
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for i := range statuses {
			waiting := statuses[i].State.Waiting
			switch {
			case waiting == nil || waiting.Reason == "ContainerCreating" || waiting.Reason == "PodInitializing":
			case waiting.Reason == "ImagePullBackOff" || waiting.Reason == "ErrImagePull" || waiting.Reason == "InvalidImageName":
				return fmt.Sprintf("%s: image %s cannot be pulled; correct the image or its pull secret in the template", waiting.Reason, text.Excerpt(statuses[i].Image))
			default:
				return fmt.Sprintf("%s: %s", text.Sanitize(waiting.Reason, maxReason), text.Reason(waiting.Message))
			}
		}
	}
	return ""
}
