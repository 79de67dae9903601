// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

// jobWorld is a scripted cluster that runs one Job.
type jobWorld struct {
	*simulation.World
	t       *testing.T
	client  client.WithWatch
	plan    simulation.FaultPlan // for the kube-controller-manager; nil serves all requests
	start   time.Time
	created []string // pods, as times since the start
}

func newJobWorld(t *testing.T) *jobWorld {
	t.Helper()
	w := &jobWorld{World: simulation.New(simulation.WorldOptions{}), t: t}
	w.client = w.Client("test")
	if _, err := openshift.NewScript(w.World, "4.4.5", "fast-4.4", "4.4.6"); err != nil {
		t.Fatal(err)
	}
	plan := func(r simulation.Request) simulation.Fault {
		if w.plan == nil {
			return simulation.Fault{}
		}
		return w.plan(r)
	}
	if err := openshift.StartPods(w.World, plan); err != nil {
		t.Fatal(err)
	}
	w.start = w.Now()
	w.Observe(func(change simulation.Change) {
		if pod, ok := change.New.(*corev1.Pod); ok && change.Old == nil {
			w.created = append(w.created, pod.CreationTimestamp.Sub(w.start.Truncate(time.Second)).String())
		}
	})
	return w
}

// newJob returns a Job with one container and annotations that control its behavior.
func newJob(annotations map[string]string) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "hook"}}
	job.Spec.BackoffLimit = new(int32(0))
	job.Spec.Template.Annotations = annotations
	job.Spec.Template.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "hook", Image: "example.com/hook:1"}},
	}
	return job
}

func (w *jobWorld) create(object client.Object) {
	w.t.Helper()
	if err := w.client.Create(w.t.Context(), object); err != nil {
		w.t.Fatal(err)
	}
}

func (w *jobWorld) runFor(d time.Duration) {
	w.t.Helper()
	if err := w.RunFor(d); err != nil {
		w.t.Fatal(err)
	}
}

// job returns the Job, or nil if it does not exist.
func (w *jobWorld) job() *batchv1.Job {
	w.t.Helper()
	var job batchv1.Job
	err := w.client.Get(w.t.Context(), client.ObjectKey{Namespace: "default", Name: "hook"}, &job)
	if client.IgnoreNotFound(err) != nil {
		w.t.Fatal(err)
	}
	if err != nil {
		return nil
	}
	return &job
}

func (w *jobWorld) pods() []corev1.Pod {
	w.t.Helper()
	var pods corev1.PodList
	if err := w.client.List(w.t.Context(), &pods); err != nil {
		w.t.Fatal(err)
	}
	return pods.Items
}

// describe describes the state of the Job and its pods in one line.
func (w *jobWorld) describe() string {
	job := w.job()
	if job == nil {
		return fmt.Sprintf("gone, %d pods", len(w.pods()))
	}
	parts := []string{fmt.Sprintf("active %d succeeded %d failed %d", job.Status.Active, job.Status.Succeeded, job.Status.Failed)}
	for _, c := range job.Status.Conditions {
		if c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed {
			parts = append(parts, fmt.Sprintf("%s %s after %s", c.Type, c.Reason, c.LastTransitionTime.Sub(w.start.Truncate(time.Second))))
		}
	}
	for _, pod := range w.pods() {
		parts = append(parts, fmt.Sprintf("pod %s", pod.Status.Phase))
	}
	return strings.Join(parts, ", ")
}

func TestJob(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		annotations map[string]string
		spec        func(*batchv1.JobSpec)
		after       time.Duration
		want        string
		created     []string // pods
	}{
		"pod without annotations succeeds": {
			after: time.Minute, want: "active 0 succeeded 1 failed 0, Complete CompletionsReached after 2s, pod Succeeded", created: []string{"0s"},
		},
		"pod succeeds after its duration": {
			annotations: map[string]string{kubelet.Duration: "10m"},
			after:       time.Hour, want: "active 0 succeeded 1 failed 0, Complete CompletionsReached after 10m0s, pod Succeeded", created: []string{"0s"},
		},
		"pod runs for its duration": {
			annotations: map[string]string{kubelet.Duration: "10m"},
			after:       9 * time.Minute, want: "active 1 succeeded 0 failed 0, pod Running", created: []string{"0s"},
		},
		"failed pod is the last one": {
			annotations: map[string]string{kubelet.ExitCode: "3"},
			after:       time.Minute, want: "active 0 succeeded 0 failed 1, Failed BackoffLimitExceeded after 2s, pod Failed", created: []string{"0s"},
		},
		"pods fail up to the backoff limit with growing pauses": {
			annotations: map[string]string{kubelet.ExitCode: "3"}, spec: func(s *batchv1.JobSpec) { s.BackoffLimit = new(int32(2)) },
			after: time.Hour, want: "active 0 succeeded 0 failed 3, Failed BackoffLimitExceeded after 36s, pod Failed, pod Failed, pod Failed",
			created: []string{"0s", "12s", "34s"},
		},
		"containers restart up to the backoff limit": {
			annotations: map[string]string{kubelet.ExitCode: "3"},
			spec: func(s *batchv1.JobSpec) {
				s.BackoffLimit, s.Template.Spec.RestartPolicy = new(int32(2)), corev1.RestartPolicyOnFailure
			},
			after: time.Hour, want: "active 0 succeeded 0 failed 1, Failed BackoffLimitExceeded after 12s", created: []string{"0s"},
		},
		"pod never ends": {
			annotations: map[string]string{kubelet.NeverEnds: "true"},
			after:       24 * time.Hour, want: "active 1 succeeded 0 failed 0, pod Running", created: []string{"0s"},
		},
		"pod that never ends is deleted at the deadline of its Job": {
			annotations: map[string]string{kubelet.NeverEnds: "true"}, spec: func(s *batchv1.JobSpec) { s.ActiveDeadlineSeconds = new(int64(300)) },
			after: time.Hour, want: "active 0 succeeded 0 failed 1, Failed DeadlineExceeded after 5m0s", created: []string{"0s"},
		},
		"image that cannot be pulled": {
			annotations: map[string]string{kubelet.ImagePull: "fail"},
			after:       24 * time.Hour, want: "active 1 succeeded 0 failed 0, pod Pending", created: []string{"0s"},
		},
		"invalid annotation": {
			annotations: map[string]string{kubelet.Duration: "soon"},
			after:       time.Minute, want: "active 0 succeeded 0 failed 1, Failed BackoffLimitExceeded after 0s, pod Failed", created: []string{"0s"},
		},
		"environment larger than Linux allows": {
			spec: func(s *batchv1.JobSpec) {
				s.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "JOB", Value: strings.Repeat("x", 128<<10)}}
			},
			after: time.Minute, want: "active 0 succeeded 0 failed 1, Failed BackoffLimitExceeded after 0s, pod Failed", created: []string{"0s"},
		},
		"three completions, two at a time": {
			spec:  func(s *batchv1.JobSpec) { s.Completions, s.Parallelism = new(int32(3)), new(int32(2)) },
			after: time.Minute, want: "active 0 succeeded 3 failed 0, Complete CompletionsReached after 4s, pod Succeeded, pod Succeeded, pod Succeeded",
			created: []string{"0s", "0s", "2s"},
		},
		"suspended": {
			spec:  func(s *batchv1.JobSpec) { s.Suspend = new(true) },
			after: time.Minute, want: "active 0 succeeded 0 failed 0",
		},
		"time to live not over": {
			spec:  func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = new(int32(60)) },
			after: 61 * time.Second, want: "active 0 succeeded 1 failed 0, Complete CompletionsReached after 2s, pod Succeeded", created: []string{"0s"},
		},
		"time to live over": {
			spec:  func(s *batchv1.JobSpec) { s.TTLSecondsAfterFinished = new(int32(60)) },
			after: 63 * time.Second, want: "gone, 0 pods", created: []string{"0s"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, job := newJobWorld(t), newJob(test.annotations)
			if test.spec != nil {
				test.spec(&job.Spec)
			}
			w.create(job)
			w.runFor(test.after)
			if got := w.describe(); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
			if diff := cmp.Diff(test.created, w.created); diff != "" {
				t.Errorf("created pods (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPod(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		annotations map[string]string
		env         []corev1.EnvVar
		want        corev1.ContainerState
	}{
		"exit code": {
			annotations: map[string]string{kubelet.ExitCode: "3"},
			want:        corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}},
		},
		"image": {
			annotations: map[string]string{kubelet.ImagePull: "fail"},
			want: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
				Reason: "ImagePullBackOff", Message: `Back-off pulling image "example.com/hook:1": ErrImagePull: manifest unknown`,
			}},
		},
		"annotation": {
			annotations: map[string]string{kubelet.NeverEnds: "yes"},
			want: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 128, Reason: "StartError", Message: `annotation devcluster.openshift.io/never-ends: "yes" is not "true"`,
			}},
		},
		"local process": {
			annotations: map[string]string{kubelet.RunMode: "local"},
			want:        corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}},
		},
		"expanded environment": {
			env: []corev1.EnvVar{{Name: "A", Value: strings.Repeat("x", 70<<10)}, {Name: "B", Value: "$(A)$(A)"}},
			want: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
				ExitCode: 128, Reason: "StartError", Message: `container hook: starting the process: argument list too long: "B" has 143362 bytes`,
			}},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, job := newJobWorld(t), newJob(test.annotations)
			job.Spec.Template.Spec.Containers[0].Env = test.env
			w.create(job)
			w.runFor(time.Minute)
			pods := w.pods()
			if len(pods) != 1 || len(pods[0].Status.ContainerStatuses) != 1 {
				t.Fatalf("got pods %+v", pods)
			}
			state := pods[0].Status.ContainerStatuses[0].State
			if state.Terminated != nil {
				state.Terminated.StartedAt, state.Terminated.FinishedAt = metav1.Time{}, metav1.Time{}
			}
			if diff := cmp.Diff(test.want, state); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestJob_deleted deletes a Job in all the ways that clients and owners do.
func TestJob_deleted(t *testing.T) {
	t.Parallel()
	background := client.PropagationPolicy(metav1.DeletePropagationBackground)
	tests := map[string]struct {
		finalizers []string
		delete     func(w *jobWorld, job *batchv1.Job) error
		want       string
	}{
		"in the background": {
			delete: func(w *jobWorld, job *batchv1.Job) error { return w.client.Delete(w.t.Context(), job, background) },
			want:   "gone, 0 pods",
		},
		"without a policy": { // the API server's default for batch/v1 Jobs
			delete: func(w *jobWorld, job *batchv1.Job) error { return w.client.Delete(w.t.Context(), job) },
			want:   "gone, 1 pods",
		},
		"with a finalizer": {
			finalizers: []string{"test/result"},
			delete:     func(w *jobWorld, job *batchv1.Job) error { return w.client.Delete(w.t.Context(), job, background) },
			want:       "active 0 succeeded 1 failed 0, Complete CompletionsReached after 10m0s, pod Succeeded",
		},
		"by its owner": {
			delete: func(w *jobWorld, _ *batchv1.Job) error {
				return w.client.Delete(w.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}})
			},
			want: "gone, 0 pods",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, job := newJobWorld(t), newJob(map[string]string{kubelet.Duration: "10m"})
			owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "owner"}}
			w.create(owner)
			job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
			job.Finalizers = test.finalizers
			w.create(job)
			w.runFor(time.Minute)
			if err := test.delete(w, job); err != nil {
				t.Fatal(err)
			}
			w.runFor(time.Hour)
			if got := w.describe(); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestJob_whose_owner_is_gone_before_is_collected(t *testing.T) {
	t.Parallel()
	w, job := newJobWorld(t), newJob(nil)
	job.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "gone"}}
	w.create(job)
	w.runFor(time.Second)
	if got := w.describe(); got != "gone, 0 pods" {
		t.Errorf("got %s", got)
	}
}

// TestJob_whose_pod_is_deleted checks that the pod counts as failed.
func TestJob_whose_pod_is_deleted(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	w.create(newJob(map[string]string{kubelet.NeverEnds: "true"}))
	w.runFor(time.Minute)
	pods := w.pods()
	if err := w.client.Delete(t.Context(), &pods[0]); err != nil {
		t.Fatal(err)
	}
	w.runFor(time.Minute)
	if got, want := w.describe(), "active 0 succeeded 0 failed 1, Failed BackoffLimitExceeded after 1m0s"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestJob_whose_pods_are_refused checks that the Job waits for its quota.
func TestJob_whose_pods_are_refused(t *testing.T) {
	t.Parallel()
	w := newJobWorld(t)
	full := true
	w.plan = simulation.Fault{Outcome: simulation.Refuse, Err: errors.New("exceeded quota")}.If(func(r simulation.Request) bool {
		return full && r.Verb == "create" && r.Kind == "Pod"
	})
	w.create(newJob(nil))
	w.runFor(time.Hour)
	if got := w.describe(); got != "active 0 succeeded 0 failed 0" {
		t.Errorf("got %s", got)
	}
	full = false
	w.runFor(time.Hour)
	if got := w.describe(); !strings.Contains(got, "Complete") {
		t.Errorf("got %s", got)
	}
}

func TestJob_that_is_invalid_is_rejected(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec    func(*corev1.PodSpec)
		options []client.CreateOption
		invalid string // part of the error
	}{
		"no image":              {spec: func(s *corev1.PodSpec) { s.Containers[0].Image = "" }, invalid: "containers[0].image"},
		"no containers":         {spec: func(s *corev1.PodSpec) { s.Containers = nil }, invalid: "containers: Required"},
		"restart policy":        {spec: func(s *corev1.PodSpec) { s.RestartPolicy = corev1.RestartPolicyAlways }, invalid: "restartPolicy"},
		"valid dry run":         {spec: func(*corev1.PodSpec) {}, options: []client.CreateOption{client.DryRunAll}},
		"no image in a dry run": {spec: func(s *corev1.PodSpec) { s.Containers[0].Image = "" }, options: []client.CreateOption{client.DryRunAll}, invalid: "containers[0].image"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, job := newJobWorld(t), newJob(nil)
			test.spec(&job.Spec.Template.Spec)
			err := w.client.Create(t.Context(), job, test.options...)
			if (test.invalid != "") != apierrors.IsInvalid(err) || err != nil && !strings.Contains(err.Error(), test.invalid) {
				t.Errorf("got error %v", err)
			}
			if w.job() != nil {
				t.Error("the Job exists")
			}
		})
	}
}
