// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Backoff of the job controller between a failed pod and the next one.
const (
	firstPodBackoff = 10 * time.Second
	maxPodBackoff   = 10 * time.Minute
)

// jobs runs Jobs like the Kubernetes job controller: it creates pods until enough of them have
// succeeded, backing off after failures, until the backoff limit or the deadline is reached. A
// deleted pod counts as failed. Indexed Jobs and pod failure policies are not supported.
type jobs struct {
	client     client.Client
	clock      clock.PassiveClock
	lastFailed map[types.UID]time.Time // by Job
}

func jobController(c client.Client, clk clock.PassiveClock) manager.Controller {
	j := &jobs{client: c, clock: clk, lastFailed: map[types.UID]time.Time{}}
	return manager.Controller{
		Name: "job",
		Reads: []manager.Kind{
			{Object: &batchv1.Job{}, Requests: manager.Self},
			{Object: &corev1.Pod{}, Requests: ownerOf("Job")},
		},
		Reconciler: reconcile.Func(j.reconcile),
	}
}

// ownerOf requests a reconcile of the controller owner with the given kind.
func ownerOf(kind string) func(context.Context, client.Object) []reconcile.Request {
	return func(_ context.Context, object client.Object) []reconcile.Request {
		owner := metav1.GetControllerOf(object)
		if owner == nil || owner.Kind != kind {
			return nil
		}
		return []reconcile.Request{{NamespacedName: client.ObjectKey{Namespace: object.GetNamespace(), Name: owner.Name}}}
	}
}

func (j *jobs) reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var job batchv1.Job
	if err := j.client.Get(ctx, request.NamespacedName, &job); client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	pods, err := j.podsOf(ctx, request, &job)
	if err != nil {
		return reconcile.Result{}, err
	}
	if job.Name == "" { // it was deleted
		return reconcile.Result{}, j.releasePods(ctx, pods)
	}
	if jobEnd(&job) != nil {
		delete(j.lastFailed, job.UID)
		return reconcile.Result{}, j.releasePods(ctx, pods)
	}
	before := job.DeepCopy()
	active, counted := j.count(&job, pods)
	result, err := j.advance(ctx, &job, active)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !equality.Semantic.DeepEqual(before.Status, job.Status) {
		if err := j.client.Status().Update(ctx, &job); err != nil {
			return reconcile.Result{}, fmt.Errorf("updating the status of Job %s: %w", request, err)
		}
	}
	return result, j.releasePods(ctx, counted)
}

// podsOf returns the pods of a Job, or all pods with its name if it has been deleted.
func (j *jobs) podsOf(ctx context.Context, request reconcile.Request, job *batchv1.Job) ([]*corev1.Pod, error) {
	var list corev1.PodList
	if err := j.client.List(ctx, &list, client.InNamespace(request.Namespace), client.MatchingLabels{batchv1.JobNameLabel: request.Name}); err != nil {
		return nil, fmt.Errorf("listing pods: %w", err)
	}
	var pods []*corev1.Pod
	for i := range list.Items {
		if job.Name == "" || metav1.IsControlledBy(&list.Items[i], job) {
			pods = append(pods, &list.Items[i])
		}
	}
	return pods, nil
}

// count adds completed pods to the status. It returns the active pods and the counted ones. A pod
// keeps its finalizer until it has been counted.
func (j *jobs) count(job *batchv1.Job, pods []*corev1.Pod) (active, counted []*corev1.Pod) {
	var ready int32
	for _, pod := range pods {
		tracked := controllerutil.ContainsFinalizer(pod, batchv1.JobTrackingFinalizer)
		switch {
		case pod.Status.Phase == corev1.PodSucceeded && tracked:
			job.Status.Succeeded++
			counted = append(counted, pod)
		case (pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil) && tracked:
			job.Status.Failed++
			j.lastFailed[job.UID] = j.clock.Now()
			counted = append(counted, pod)
		case tracked:
			active = append(active, pod)
			if podIsReady(pod) {
				ready++
			}
		}
	}
	job.Status.Active, job.Status.Ready = int32(len(active)), &ready
	return active, counted
}

// advance completes the Job or creates missing pods.
func (j *jobs) advance(ctx context.Context, job *batchv1.Job, active []*corev1.Pod) (reconcile.Result, error) {
	now := metav1.NewTime(j.clock.Now().Truncate(time.Second))
	var result reconcile.Result
	completions := ptr.Deref(job.Spec.Completions, 1)
	limit := ptr.Deref(job.Spec.BackoffLimit, 6)
	switch {
	case jobCondition(job, batchv1.JobFailureTarget) != nil || jobCondition(job, batchv1.JobSuccessCriteriaMet) != nil:
		// It ends once its pods have ended.
	case job.Status.Succeeded >= completions:
		setJobCondition(job, batchv1.JobSuccessCriteriaMet, batchv1.JobReasonCompletionsReached, "Reached expected number of succeeded pods", now)
	case job.Status.Failed > limit || restartsExceed(job, active, limit):
		setJobCondition(job, batchv1.JobFailureTarget, batchv1.JobReasonBackoffLimitExceeded, "Job has reached the specified backoff limit", now)
	case ptr.Deref(job.Spec.Suspend, false):
		job.Status.StartTime = nil
		return result, j.deletePods(ctx, active)
	case overdue(job, j.clock.Now(), &result):
		setJobCondition(job, batchv1.JobFailureTarget, batchv1.JobReasonDeadlineExceeded, "Job was active longer than specified deadline", now)
	default:
		if job.Status.StartTime == nil {
			job.Status.StartTime = &now
			overdue(job, j.clock.Now(), &result)
		}
		return result, j.createPods(ctx, job, completions, &result)
	}
	if len(active) > 0 {
		return result, j.deletePods(ctx, active)
	}
	endJob(job, now)
	return result, nil
}

// endJob sets the final condition with the reason for the end.
func endJob(job *batchv1.Job, now metav1.Time) {
	if met := jobCondition(job, batchv1.JobSuccessCriteriaMet); met != nil {
		job.Status.CompletionTime = &now
		setJobCondition(job, batchv1.JobComplete, met.Reason, met.Message, now)
		return
	}
	if target := jobCondition(job, batchv1.JobFailureTarget); target != nil {
		setJobCondition(job, batchv1.JobFailed, target.Reason, target.Message, now)
	}
}

// restartsExceed reports whether containers that are restarted in place have failed too often.
func restartsExceed(job *batchv1.Job, active []*corev1.Pod, limit int32) bool {
	if job.Spec.Template.Spec.RestartPolicy != corev1.RestartPolicyOnFailure {
		return false
	}
	var restarts int32
	for _, pod := range active {
		for i := range pod.Status.ContainerStatuses {
			restarts += pod.Status.ContainerStatuses[i].RestartCount
		}
	}
	return restarts > 0 && restarts >= limit
}

// overdue reports whether the deadline of a Job has passed. If not, it requests a reconcile at the
// deadline.
func overdue(job *batchv1.Job, now time.Time, result *reconcile.Result) bool {
	if job.Spec.ActiveDeadlineSeconds == nil || job.Status.StartTime == nil {
		return false
	}
	left := job.Status.StartTime.Add(time.Duration(*job.Spec.ActiveDeadlineSeconds) * time.Second).Sub(now)
	result.RequeueAfter = max(left, 0)
	return left <= 0
}

// createPods creates missing pods unless the Job is backing off or was deleted.
func (j *jobs) createPods(ctx context.Context, job *batchv1.Job, completions int32, result *reconcile.Result) error {
	if job.DeletionTimestamp != nil {
		return nil
	}
	missing := min(ptr.Deref(job.Spec.Parallelism, 1), completions-job.Status.Succeeded) - job.Status.Active
	if wait := j.backoff(job); missing > 0 && wait > 0 {
		if result.RequeueAfter == 0 || wait < result.RequeueAfter {
			result.RequeueAfter = wait
		}
		return nil
	}
	for ; missing > 0; missing-- {
		if err := j.client.Create(ctx, podOf(job)); err != nil {
			return fmt.Errorf("creating a pod of Job %s: %w", client.ObjectKeyFromObject(job), err)
		}
		job.Status.Active++
	}
	return nil
}

// backoff returns how long a Job must wait before its next pod.
func (j *jobs) backoff(job *batchv1.Job) time.Duration {
	last, failed := j.lastFailed[job.UID]
	if !failed {
		return 0
	}
	pause := firstPodBackoff
	for n := int32(1); n < job.Status.Failed && pause < maxPodBackoff; n++ {
		pause *= 2
	}
	return last.Add(min(pause, maxPodBackoff)).Sub(j.clock.Now())
}

func (j *jobs) deletePods(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		if err := client.IgnoreNotFound(j.client.Delete(ctx, pod)); err != nil {
			return fmt.Errorf("deleting pod %s: %w", client.ObjectKeyFromObject(pod), err)
		}
	}
	return nil
}

// releasePods removes the finalizer from counted pods.
func (j *jobs) releasePods(ctx context.Context, pods []*corev1.Pod) error {
	for _, pod := range pods {
		before := pod.DeepCopy()
		if !controllerutil.RemoveFinalizer(pod, batchv1.JobTrackingFinalizer) {
			continue
		}
		if err := client.IgnoreNotFound(j.client.Patch(ctx, pod, client.MergeFrom(before))); err != nil {
			return fmt.Errorf("releasing pod %s: %w", client.ObjectKeyFromObject(pod), err)
		}
	}
	return nil
}

func podOf(job *batchv1.Job) *corev1.Pod {
	template := job.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.GenerateName = job.Namespace, job.Name+"-"
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	maps.Copy(pod.Labels, map[string]string{
		batchv1.JobNameLabel: job.Name, "job-name": job.Name, batchv1.ControllerUidLabel: string(job.UID), "controller-uid": string(job.UID),
	})
	pod.Finalizers = append(pod.Finalizers, batchv1.JobTrackingFinalizer)
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
	return pod
}

func jobCondition(job *batchv1.Job, name batchv1.JobConditionType) *batchv1.JobCondition {
	i := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool { return c.Type == name && c.Status == corev1.ConditionTrue })
	if i < 0 {
		return nil
	}
	return &job.Status.Conditions[i]
}

func setJobCondition(job *batchv1.Job, name batchv1.JobConditionType, reason, message string, now metav1.Time) {
	job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
		Type: name, Status: corev1.ConditionTrue, Reason: reason, Message: message, LastProbeTime: now, LastTransitionTime: now,
	})
}

// jobEnd returns the condition of a Job that has ended, or nil.
func jobEnd(job *batchv1.Job) *batchv1.JobCondition {
	if complete := jobCondition(job, batchv1.JobComplete); complete != nil {
		return complete
	}
	return jobCondition(job, batchv1.JobFailed)
}

// ttlController deletes finished Jobs and their pods after ttlSecondsAfterFinished.
func ttlController(c client.Client, clk clock.PassiveClock) manager.Controller {
	return manager.Controller{
		Name:  "ttl-after-finished",
		Reads: []manager.Kind{{Object: &batchv1.Job{}, Requests: manager.Self}},
		Reconciler: reconcile.Func(func(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
			var job batchv1.Job
			if err := c.Get(ctx, request.NamespacedName, &job); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			end := jobEnd(&job)
			if end == nil || job.Spec.TTLSecondsAfterFinished == nil || job.DeletionTimestamp != nil {
				return reconcile.Result{}, nil
			}
			expires := end.LastTransitionTime.Add(time.Duration(*job.Spec.TTLSecondsAfterFinished) * time.Second)
			if left := expires.Sub(clk.Now()); left > 0 {
				return reconcile.Result{RequeueAfter: left}, nil
			}
			err := c.Delete(ctx, &job, client.PropagationPolicy(metav1.DeletePropagationBackground), client.Preconditions{UID: &job.UID})
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}),
	}
}

// validateJob returns the error with which an API server rejects a Job. It checks only fields that
// template authors tend to forget and immutable fields. old is nil for a creation.
func validateJob(old, job *batchv1.Job) error {
	var errs field.ErrorList
	spec := field.NewPath("spec", "template", "spec")
	pod := &job.Spec.Template.Spec
	if len(pod.Containers) == 0 {
		errs = append(errs, field.Required(spec.Child("containers"), ""))
	}
	names := map[string]bool{}
	for i := range pod.Containers {
		container, path := &pod.Containers[i], spec.Child("containers").Index(i)
		switch {
		case container.Name == "":
			errs = append(errs, field.Required(path.Child("name"), ""))
		case names[container.Name]:
			errs = append(errs, field.Duplicate(path.Child("name"), container.Name))
		}
		names[container.Name] = true
		if container.Image == "" {
			errs = append(errs, field.Required(path.Child("image"), ""))
		}
	}
	if policy := pod.RestartPolicy; policy != corev1.RestartPolicyNever && policy != corev1.RestartPolicyOnFailure {
		errs = append(errs, field.NotSupported(spec.Child("restartPolicy"), policy, []corev1.RestartPolicy{corev1.RestartPolicyOnFailure, corev1.RestartPolicyNever}))
	}
	if old != nil && !equality.Semantic.DeepEqual(old.Spec.Template, job.Spec.Template) {
		errs = append(errs, field.Invalid(field.NewPath("spec", "template"), "", "field is immutable"))
	}
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(batchv1.SchemeGroupVersion.WithKind("Job").GroupKind(), job.Name, errs)
}
