// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package devcluster_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
)

// TestCluster_runs_jobs runs Jobs under the real job controller and TTL controller.
func TestCluster_runs_jobs(t *testing.T) {
	t.Parallel()
	cluster := start(t, openshiftsim.ClusterSpec{})
	t.Run("local process, and its time to live", func(t *testing.T) {
		t.Parallel()
		testLocalJob(t, cluster)
	})
	t.Run("image that cannot be pulled, and the deadline", func(t *testing.T) {
		t.Parallel()
		testUnpullableJob(t, cluster)
	})
}

func hook(name string, annotations map[string]string, container corev1.Container) *batchv1.Job {
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
	job.Spec.BackoffLimit = new(int32(3))
	job.Spec.Template.Annotations = annotations
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{container}}
	return job
}

// testLocalJob runs a hook that posts its environment with curl.
func testLocalJob(t *testing.T, cluster *devcluster.Cluster) {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	posted := make(chan string, 9)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			t.Error(err)
		}
		posted <- request.Header.Get("Content-Type") + " " + string(body)
	}))
	defer receiver.Close()
	job := hook("notify", map[string]string{kubelet.RunMode: "local"}, corev1.Container{
		Name: "notify", Image: "curlimages/curl:8.1.2",
		Args: []string{
			"-sS", "--noproxy", "*", "-XPOST", "-H", "Content-Type: application/json", "-d",
			`{"event": $(EVENT_NAME), "version": $(JOB_spec_desiredVersion_image)}`, receiver.URL,
		},
		Env: []corev1.EnvVar{{Name: "EVENT_NAME", Value: `"Start"`}, {Name: "JOB_spec_desiredVersion_image", Value: `"quay.io/release@sha256:1 $$(EVENT_NAME)"`}},
	})
	job.Spec.TTLSecondsAfterFinished = new(int32(1))
	job.Finalizers = []string{"devcluster.openshift.io/test"}
	if err := cluster.Client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-posted:
		if want := `application/json {"event": "Start", "version": "quay.io/release@sha256:1 $(EVENT_NAME)"}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	case <-time.After(time.Minute):
		t.Fatal("the receiver got nothing")
	}
	eventually(t, func() string {
		if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			t.Fatal(err)
		}
		if job.Status.Succeeded != 1 || job.DeletionTimestamp == nil {
			return "the Job is not deleted after its time to live"
		}
		return ""
	})
	if err := cluster.Client.Patch(t.Context(), job, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() string {
		var pods corev1.PodList
		err := cluster.Client.List(t.Context(), &pods, client.InNamespace("default"), client.MatchingLabels{batchv1.JobNameLabel: job.Name})
		if err != nil || len(pods.Items) > 0 {
			return "the pod of the deleted Job is left"
		}
		if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); !apierrors.IsNotFound(err) {
			return "the Job is left"
		}
		return ""
	})
}

func testUnpullableJob(t *testing.T, cluster *devcluster.Cluster) {
	t.Helper()
	job := hook("unpullable", map[string]string{kubelet.ImagePull: "fail"}, corev1.Container{Name: "hook", Image: "example.com/none"})
	job.Spec.ActiveDeadlineSeconds = new(int64(5))
	if err := cluster.Client.Create(t.Context(), job); err != nil {
		t.Fatal(err)
	}
	seen := false
	eventually(t, func() string {
		var pods corev1.PodList
		if err := cluster.Client.List(t.Context(), &pods, client.InNamespace("default"), client.MatchingLabels{batchv1.JobNameLabel: job.Name}); err != nil {
			t.Fatal(err)
		}
		for _, pod := range pods.Items {
			for _, status := range pod.Status.ContainerStatuses {
				seen = seen || status.State.Waiting != nil && status.State.Waiting.Reason == "ImagePullBackOff"
			}
		}
		if err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
			t.Fatal(err)
		}
		for _, c := range job.Status.Conditions {
			if c.Type == batchv1.JobFailed && c.Reason == batchv1.JobReasonDeadlineExceeded {
				return ""
			}
		}
		return "the Job has not failed at its deadline"
	})
	if !seen {
		t.Error("the pod never waited for its image")
	}
}
