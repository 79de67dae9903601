// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package informersdk_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/manifests"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/conformance"
)

const (
	exampleFolder = "../../docs/examples/update-informer"
	exampleName   = "update-notes" // of the namespace, the Service, and all else
)

// The example runs with the rights of its manifests at the cluster IP of its Service, and passes the
// conformance kit as the Update Status Controller sees it.
func TestExample(t *testing.T) {
	t.Parallel()
	program := buildExample(t)
	running := devtest.Start(t, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		return controlplane.Start(ctx, controlplane.Options{Dir: t.TempDir(), WithoutControllerManager: true})
	})
	api, err := manifests.Client(running.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	address := installExample(t, api)
	certificates := t.TempDir()
	writeCertificate(t, certificates, exampleName+"."+exampleName+".svc")
	access, err := running.ServiceAccountConfig(t.Context(), exampleName, exampleName)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(certificates, "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, access); err != nil {
		t.Fatal(err)
	}
	stop := startExample(t, program, "KUBECONFIG="+kubeconfig, "ADDRESS="+address, "CERT_DIR="+certificates)
	admin, err := kubernetes.NewForConfig(running.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	ca, err := os.ReadFile(filepath.Join(certificates, "tls.crt"))
	if err != nil {
		t.Fatal(err)
	}
	if block, _ := pem.Decode(ca); block == nil {
		t.Fatalf("%s is no certificate", ca)
	}
	target := conformance.Target{
		URL: "https://" + address, CA: ca, ServerName: exampleName + "." + exampleName + ".svc",
		Token: controllerToken(t, admin, v1alpha.Audience(exampleName, exampleName)),
	}
	awaitExample(t, address)
	if findings, err := conformance.Run(t.Context(), target); err != nil || len(findings) > 0 {
		t.Errorf("findings %v, %v", findings, err)
	}
	target.Token = controllerToken(t, admin, v1alpha.Audience(exampleName, "another"))
	if findings, err := conformance.Run(t.Context(), target); err != nil || len(findings) != 1 || !strings.Contains(findings[0].Problem, "401") {
		t.Errorf("with a token of another audience: findings %v, %v", findings, err)
	}
	checkOnline(t, api)
	stop()
}

// buildExample builds the example, and returns the path of the program. The example is short.
func buildExample(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join(exampleFolder, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(source), "\n"); lines > 80 {
		t.Errorf("the example has %d lines, want at most 80", lines)
	}
	program := filepath.Join(t.TempDir(), exampleName)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, ".")
	cmd.Dir = exampleFolder
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("building the example: %v\n%s", err, printed)
	}
	return program
}

// installExample applies the manifests of the example and of update status, with two notes. It returns
// the address of the Service.
func installExample(t *testing.T, api client.Client) string {
	t.Helper()
	notes := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": exampleName, "name": exampleName},
		"data": map[string]any{"backup": "The backup takes two hours.", "sale": "No update\nbefore Monday."},
	}}
	controller := []*unstructured.Unstructured{
		{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": "managed-upgrade-operator"}}},
		{Object: map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": map[string]any{"namespace": "managed-upgrade-operator", "name": "update-status-controller"}}},
	}
	definitions, err := manifests.Read(os.DirFS("../../deploy/update-status/crds"))
	if err != nil {
		t.Fatal(err)
	}
	example, err := manifests.Read(os.DirFS(exampleFolder))
	if err != nil {
		t.Fatal(err)
	}
	for _, objects := range [][]*unstructured.Unstructured{definitions, controller, example, {notes}} {
		if err := manifests.Apply(t.Context(), api, objects); err != nil {
			t.Fatal(err)
		}
	}
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Service"})
	if err := api.Get(t.Context(), client.ObjectKey{Namespace: exampleName, Name: exampleName}, service); err != nil {
		t.Fatal(err)
	}
	address, _, err := unstructured.NestedString(service.Object, "spec", "clusterIP")
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort(address, "8443")
}

// startExample starts the program, and returns a function that ends it as the kubelet does.
func startExample(t *testing.T, program string, env ...string) (stop func()) {
	t.Helper()
	var printed bytes.Buffer
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), env...), &printed, &printed
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := false
	stop = func() {
		if ended {
			return
		}
		ended = true
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil || printed.Len() > 0 {
			t.Errorf("the example ended: %v\n%s", err, printed.String())
		}
	}
	t.Cleanup(stop)
	return stop
}

// awaitExample waits until the program listens.
func awaitExample(t *testing.T, address string) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err != nil {
			return false, nil //nolint:nilerr // It does not listen yet.
		}
		return true, connection.Close()
	})
	if err != nil {
		t.Fatalf("waiting until the example listens at %s: %v", address, err)
	}
}

// controllerToken returns a token of the Update Status Controller.
func controllerToken(t *testing.T, admin kubernetes.Interface, audience string) string {
	t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	request, err := admin.CoreV1().ServiceAccounts("managed-upgrade-operator").CreateToken(t.Context(), "update-status-controller", request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

func checkOnline(t *testing.T, api client.Client) {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("UpdateInformer"))
	if err := api.Get(t.Context(), client.ObjectKey{Name: exampleName}, object); err != nil {
		t.Fatal(err)
	}
	var informer v1beta1.UpdateInformer
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &informer); err != nil {
		t.Fatal(err)
	}
	for _, condition := range informer.Status.Conditions {
		if condition.Type == v1beta1.ConditionOnline && condition.Status == metav1.ConditionTrue && condition.LastHeartbeatTime != nil {
			return
		}
	}
	t.Errorf("the conditions are %v, want Online", informer.Status.Conditions)
}
