// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package controlplane_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
)

func start(t *testing.T, options controlplane.Options) *controlplane.ControlPlane {
	t.Helper()
	options.Dir = t.TempDir()
	return devtest.Start(t, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		return controlplane.Start(ctx, options)
	})
}

func clients(t *testing.T, config *rest.Config) kubernetes.Interface {
	t.Helper()
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func TestStop_leaves_no_process(t *testing.T) {
	t.Parallel()
	devtest.CheckStop(t, start(t, controlplane.Options{}), 3)
}

func TestServiceAccountConfig_has_its_own_permissions_only(t *testing.T) {
	t.Parallel()
	running := start(t, controlplane.Options{})
	admin := clients(t, running.RESTConfig())
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader", Namespace: "default"}}
	if _, err := admin.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	config, err := running.ServiceAccountConfig(t.Context(), "default", "reader")
	if err != nil {
		t.Fatal(err)
	}
	accountClient := clients(t, config)
	if _, err := accountClient.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing nodes: got %v, want forbidden", err)
	}
	if _, err := running.ServiceAccountConfig(t.Context(), "default", "missing"); err == nil {
		t.Error("a ServiceAccount that does not exist got a token")
	}
}

func TestAPIServer_keeps_data_and_address_across_restarts(t *testing.T) {
	t.Parallel()
	running := start(t, controlplane.Options{WithoutControllerManager: true})
	admin := clients(t, running.RESTConfig())
	kept := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "kept", Namespace: "default"}}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := admin.CoreV1().ConfigMaps("default").Create(ctx, kept, metav1.CreateOptions{})
		if apierrors.IsNotFound(err) { // the API server creates the namespace shortly after it is ready
			return false, nil
		}
		return err == nil, err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := running.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err == nil {
		t.Fatal("the API server answers although it was stopped")
	}
	if err := running.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := admin.CoreV1().ConfigMaps("default").Get(t.Context(), "kept", metav1.GetOptions{}); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-running.Exited():
		t.Errorf("a stopped API server was reported as dead: %v", err)
	default:
	}
}

func TestAuditLog_has_each_request(t *testing.T) {
	t.Parallel()
	running := start(t, controlplane.Options{WithoutControllerManager: true})
	admin := clients(t, running.RESTConfig())
	if _, err := admin.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		log, err := os.ReadFile(running.AuditLog())
		return containsAll(string(log), `"resource":"nodes"`, `"verb":"list"`, `"username":"admin"`), err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestKubeconfig_is_complete(t *testing.T) {
	t.Parallel()
	running := start(t, controlplane.Options{WithoutControllerManager: true})
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := running.Kubeconfig(path); err != nil {
		t.Fatal(err)
	}
	config, err := controlplane.LoadKubeconfig(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := clients(t, config).CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
}
