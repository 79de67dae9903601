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
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/conformance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

const (
	exampleFolder = "../../docs/examples/update-informer"
	exampleName   = "update-notes" // of the namespace, the Service, and everything else
)

// The commands in the guide work as printed. The example runs with the permissions of its manifests
// at the cluster IP of its Service, and passes the conformance checks from the perspective of the
// Update Status Controller.
func TestExample(t *testing.T) {
	t.Parallel()
	ctrl.SetLogger(logr.Discard()) // the simulators have a log file
	program := buildExample(t)
	running := devtest.Start(t, func(ctx context.Context) (*devcluster.Cluster, error) {
		return devcluster.Start(ctx, devcluster.Options{Dir: t.TempDir(), Spec: openshiftsim.ClusterSpec{Masters: 1, Workers: 1}})
	})
	api, err := manifests.Client(running.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	runGuide(t, api, running)
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
		Token: controllerToken(t, admin, hooksv1alpha.Audience(exampleName, exampleName)),
	}
	awaitExample(t, address, time.Minute)
	if findings, err := conformance.Run(t.Context(), target); err != nil || len(findings) > 0 {
		t.Errorf("findings %v, %v", findings, err)
	}
	target.Token = controllerToken(t, admin, hooksv1alpha.Audience(exampleName, "another"))
	if findings, err := conformance.Run(t.Context(), target); err != nil || len(findings) != 1 || !strings.Contains(findings[0].Problem, "401") {
		t.Errorf("with a token of another audience: findings %v, %v", findings, err)
	}
	checkOnline(t, api)
	stop()
}

// buildExample builds the example and returns the path of the program. It also checks that the
// example is short.
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

// installExample applies the manifests of the example, with two notes. It returns the address of
// the Service.
func installExample(t *testing.T, api client.Client) string {
	t.Helper()
	notes := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"namespace": exampleName, "name": exampleName},
		"data": map[string]any{"backup": "The backup takes two hours.", "sale": "No update\nbefore Monday."},
	}}
	example, err := manifests.Read(os.DirFS(exampleFolder))
	if err != nil {
		t.Fatal(err)
	}
	for _, objects := range [][]*unstructured.Unstructured{example, {notes}} {
		if err := manifests.Apply(t.Context(), api, objects); err != nil {
			t.Fatal(err)
		}
	}
	return awaitService(t, api)
}

// awaitService returns the address of the example's Service once it exists.
func awaitService(t *testing.T, api client.Client) (address string) {
	t.Helper()
	service := &unstructured.Unstructured{}
	service.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Service"})
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, 2*time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := api.Get(ctx, client.ObjectKey{Namespace: exampleName, Name: exampleName}, service); err != nil {
			return false, client.IgnoreNotFound(err)
		}
		ip, found, err := unstructured.NestedString(service.Object, "spec", "clusterIP")
		address = net.JoinHostPort(ip, "8443")
		return found && ip != "", err
	})
	if err != nil {
		t.Fatalf("waiting for the Service of the example: %v", err)
	}
	return address
}

// guideBlock matches the commands of a step in the guide.
var guideBlock = regexp.MustCompile("(?ms)^   ```sh\\n(.*?)^   ```$")

// runGuide runs the commands in the guide as printed, on a cluster like the one that its first step
// starts.
func runGuide(t *testing.T, api client.Client, running *devcluster.Cluster) {
	t.Helper()
	page, err := os.ReadFile("../../docs/update-informers.md")
	if err != nil {
		t.Fatal(err)
	}
	var steps []string
	for _, match := range guideBlock.FindAllStringSubmatch(string(page), -1) {
		steps = append(steps, match[1])
	}
	if len(steps) != 6 || !strings.Contains(steps[0], "bin/devcluster up --without-operator --update-status") {
		t.Fatalf("the guide has other steps than this test knows: %q", steps)
	}
	folder := guideFolder(t, running.ControlPlane)
	if err := running.Deploy(t.Context(), "../.."); err != nil {
		t.Fatal(err)
	}
	controller, err := running.StartStatusController(t.Context(), "../..")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = controller.Stop(time.Minute) }()
	informer := shell(t, folder, strings.Join(steps[1:4], ""))
	informer.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // the informer is a child of the shell
	var printed bytes.Buffer
	informer.Stdout, informer.Stderr = &printed, &printed
	if err := informer.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = informer.Wait(); close(ended) }()
	defer func() {
		_ = syscall.Kill(-informer.Process.Pid, syscall.SIGTERM)
		<-ended
		if t.Failed() {
			t.Logf("the informer of the guide:\n%s", printed.String())
		}
	}()
	awaitExample(t, awaitService(t, api), 5*time.Minute) // the guide builds it first
	for _, last := range []struct {
		commands string
		code     int
		want     []string
	}{
		{steps[4], 0, []string{"The informer follows the protocol.", exampleName}},
		{environment(steps[4]) + steps[5], 30, []string{"NOT READY  4.20.5 to 4.20.6.", "note/sale", "No update before Monday."}},
	} {
		cmd := shell(t, folder, last.commands)
		output, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != last.code {
			t.Fatalf("%s: %v, want exit code %d\n%s", last.commands, err, last.code, output)
		}
		for _, want := range last.want {
			if !strings.Contains(string(output), want) {
				t.Errorf("%s does not print %q:\n%s", last.commands, want, output)
			}
		}
	}
}

// environment returns the first line of a step, which sets up the environment for further steps in
// the same terminal.
func environment(step string) string { return strings.SplitAfterN(step, "\n", 2)[0] }

// guideFolder returns a folder that looks like the repository while the dev cluster is running.
func guideFolder(t *testing.T, running *controlplane.ControlPlane) string {
	t.Helper()
	folder := t.TempDir()
	// The guide switches between these folders and builds a program in the second one.
	bin, example := filepath.Join(folder, "bin"), filepath.Join(folder, "docs", "examples", "update-informer")
	for _, path := range []string{bin, example} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	link(t, "../..", folder, func(name string) bool { return name[0] != '.' && name != "bin" && name != "docs" })
	link(t, exampleFolder, example, func(string) bool { return true })
	link(t, running.BinDir(), bin, func(string) bool { return true })
	if err := os.Mkdir(filepath.Join(folder, ".devcluster"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := controlplane.WriteKubeconfig(filepath.Join(folder, ".devcluster", "kubeconfig"), running.RESTConfig()); err != nil {
		t.Fatal(err)
	}
	return folder
}

// link adds links to entries of one folder to another.
func link(t *testing.T, from, to string, links func(name string) bool) {
	t.Helper()
	from, err := filepath.Abs(from)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !links(entry.Name()) {
			continue
		}
		if err := os.Symlink(filepath.Join(from, entry.Name()), filepath.Join(to, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

// shell returns a command that runs shell commands in a folder like an interactive shell, but exits
// at the first error.
func shell(t *testing.T, folder, commands string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute) // by then the test has failed, whatever a command is waiting for
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -eo pipefail; shopt -s expand_aliases\n"+commands)
	cmd.Dir, cmd.WaitDelay = folder, time.Second
	return cmd
}

// startExample starts the program and returns a function that stops it like a kubelet.
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

// awaitExample waits until the program is listening.
func awaitExample(t *testing.T, address string, limit time.Duration) {
	t.Helper()
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, limit, true, func(ctx context.Context) (bool, error) {
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

// controllerToken returns a token for the Update Status Controller.
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
	object.SetGroupVersionKind(updatev1beta1.GroupVersion.WithKind("UpdateInformer"))
	if err := api.Get(t.Context(), client.ObjectKey{Name: exampleName}, object); err != nil {
		t.Fatal(err)
	}
	var informer updatev1beta1.UpdateInformer
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &informer); err != nil {
		t.Fatal(err)
	}
	for _, condition := range informer.Status.Conditions {
		if condition.Type == updatev1beta1.ConditionOnline && condition.Status == metav1.ConditionTrue && condition.LastHeartbeatTime != nil {
			return
		}
	}
	t.Errorf("the conditions are %v, want Online", informer.Status.Conditions)
}
