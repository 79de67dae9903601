// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

// TestUndeploy removes an installation while an upgrade is in progress, and installs it again. A running
// operator undoes the upgrade first. Without a running operator, the script removes the finalizers.
func TestUndeploy(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		folder string
		alive  bool
	}{
		"operator does not run":               {deployFolder, false},
		"operator runs":                       {deployFolder, true},
		"CRDs alone, while the operator runs": {deployFolder + "/crds", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startServerWith(t, controlplane.Options{Controllers: []string{"namespace-controller", "garbage-collector-controller"}})
			s.openshift(t)
			s.apply(t, kustomized(t))
			upgrade := s.upgradeInProgress(t)
			s.commence(t, upgrade)
			if tc.alive {
				s.operateUntilDeleted(t, upgrade)
			}

			printed := s.undeploy(t, tc.folder)
			if removed := strings.Contains(printed, "removing the finalizers of upgradeconfigs"); removed == tc.alive {
				t.Errorf("the script removed the finalizer: %t\n%s", removed, printed)
			}
			for _, object := range kustomizedFrom(t, tc.folder) {
				err := s.client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
				if !apierrors.IsNotFound(err) && !isUnknownKind(err) {
					t.Errorf("%s %s is left: %v", object.GetKind(), object.GetName(), err)
				}
			}
			s.undeploy(t, tc.folder) // it changes nothing if all is gone

			s.apply(t, kustomized(t))
			s.upgradeInProgress(t)
		})
	}
}

func isUnknownKind(err error) bool {
	return err != nil && strings.Contains(err.Error(), "no matches for kind")
}

// upgradeInProgress creates an UpgradeConfig as an attempt marks it, and, if there is none, the Job of a
// hook whose result is not recorded.
func (s *server) upgradeInProgress(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	upgrade := object(upgradeConfigKind, home, "cluster", map[string]any{"spec": map[string]any{
		"type": "OSD", "upgradeAt": "2030-01-31T01:00:00Z", "PDBForceDrainTimeout": int64(60),
		"desired": map[string]any{"version": "4.20.6", "channel": "stable-4.20"},
	}})
	upgrade.SetFinalizers([]string{upgradev1alpha1.Finalizer})
	job := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "hook", Finalizers: []string{hooks.Finalizer}},
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "hook", Image: "hook"}},
		}}},
	}
	for _, o := range []client.Object{upgrade, job} {
		if err := client.IgnoreAlreadyExists(s.client.Create(t.Context(), o)); err != nil {
			t.Fatal(err)
		}
	}
	return upgrade
}

// commence records that an upgrade has commenced, so an admission policy protects it.
func (s *server) commence(t *testing.T, upgrade *unstructured.Unstructured) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", []byte(`{"status": {"history": [{"version": "4.20.6", "phase": "Upgrading", "attempt": 1,
		"upgradeAt": "2030-01-31T01:00:00Z", "startTime": "2030-01-31T01:00:00Z", "commenceTime": "2030-01-31T01:01:00Z"}]}}`))
	mustSucceed(t, s.client.Status().Patch(t.Context(), upgrade.DeepCopy(), patch))
	eventually(t, time.Minute, "the upgrade cannot be deleted", func(ctx context.Context) error {
		if err := s.client.Delete(ctx, upgrade.DeepCopy(), client.DryRunAll); !apierrors.IsForbidden(err) {
			return fmt.Errorf("its deletion returns %w", err)
		}
		return nil
	})
}

// operateUntilDeleted reports an available replica, and does what the operator does with a deleted
// upgrade and with the Job of a hook: it removes their finalizers once the upgrade is deleted.
func (s *server) operateUntilDeleted(t *testing.T, upgrade *unstructured.Unstructured) {
	t.Helper()
	var deployed appsv1.Deployment
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: home, Name: home}, &deployed); err != nil {
		t.Fatal(err)
	}
	deployed.Status = appsv1.DeploymentStatus{Replicas: 1, ReadyReplicas: 1, AvailableReplicas: 1}
	if err := s.client.Status().Update(t.Context(), &deployed); err != nil {
		t.Fatal(err)
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		current := upgrade.DeepCopy()
		for current.GetDeletionTimestamp() == nil {
			select {
			case <-t.Context().Done():
				return
			case <-time.After(100 * time.Millisecond):
			}
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(upgrade), current); err != nil {
				return
			}
		}
		job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "hook"}}
		for _, o := range []client.Object{job, current} {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
			if err := s.client.Patch(t.Context(), o, patch); err != nil {
				t.Error(err)
			}
		}
	}()
	t.Cleanup(func() { <-stopped })
}

// undeploy runs the script of "make undeploy" and returns what it prints.
func (s *server) undeploy(t *testing.T, folder string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "../../hack/undeploy.sh", folder)
	cmd.Env = slices.Concat(cmd.Environ(), []string{
		fmt.Sprintf("KUBECTL=%s --kubeconfig=%s", filepath.Join(s.BinDir(), "kubectl"), s.kubeconfig), "TIMEOUT=60s",
	})
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("undeploy.sh %s: %v\n%s", folder, err, printed)
	}
	return string(printed)
}
