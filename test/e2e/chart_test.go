// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

// helm runs Helm on a chart that hack/chart.sh has written.
type helm struct {
	bin, folder, kubeconfig string
}

func newHelm(t *testing.T) *helm {
	t.Helper()
	bin, err := controlplane.FindBinDir()
	mustSucceed(t, err)
	h := &helm{bin: bin, folder: t.TempDir()}
	script := exec.CommandContext(t.Context(), repository+"/hack/chart.sh", "v9.9.9", placeholderImage, filepath.Join(h.folder, "managed-upgrade-operator"))
	script.Env = append(os.Environ(), "KUBECTL="+filepath.Join(bin, "kubectl"))
	if printed, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	return h
}

// run runs Helm and returns its output. In the arguments, chart.tgz stands for the folder of the chart.
func (h *helm) run(t *testing.T, args ...string) string {
	t.Helper()
	line := strings.ReplaceAll(strings.Join(args, " "), releasedChart, filepath.Join(h.folder, "managed-upgrade-operator"))
	cmd := exec.CommandContext(t.Context(), filepath.Join(h.bin, "helm"), strings.Fields(line)...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+h.kubeconfig, "HOME="+h.folder)
	cmd.Dir = h.folder
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("helm %s: %v\n%s", line, err, printed)
	}
	return string(printed)
}

const releasedChart = "https://github.com/managed-upgrade/managed-upgrade-operator/releases/latest/download/managed-upgrade-operator.tgz"

// TestChart_is_what_the_manifests_are compares the objects of the Helm chart with deploy, and in another namespace with the
// component deploy/other-namespace. The Namespace is not a part of the chart.
func TestChart_is_what_the_manifests_are(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	for namespace, want := range map[string][]*unstructured.Unstructured{
		home: kustomized(t), "namespace-of-the-release": kustomizedFrom(t, deployFolder+"/helm"),
	} {
		printed := h.run(t, "template", "managed-upgrade-operator", releasedChart, "--namespace", namespace)
		got, err := manifests.Decode([]byte(strings.ReplaceAll(printed, "/blob/v9.9.9/", "/blob/main/")))
		mustSucceed(t, err)
		wanted := objectsByName(t, want)
		for name := range wanted {
			if strings.HasPrefix(name, "Namespace/") {
				delete(wanted, name)
			}
		}
		if diff := cmp.Diff(wanted, objectsByName(t, got)); diff != "" {
			t.Errorf("in namespace %s, the manifests (-) and the chart (+) differ:\n%s", namespace, diff)
		}
	}
}

// TestChart_values renders the chart with values that differ from the defaults.
func TestChart_values(t *testing.T) {
	t.Parallel()
	h := newHelm(t)
	values := filepath.Join(h.folder, "values.yaml")
	mustSucceed(t, os.WriteFile(values, []byte(`image: example.com/operator:v2
replicas: 1
extraArgs: [--leader-elect-lease-duration=270s]
goMemLimit: 460MiB
nodeSelector: {node-role.kubernetes.io/infra: ""}
tolerations: []
resources: {limits: {memory: 512Mi}}
config: {healthCheck: {ignoredCriticals: [Watchdog]}}
`), 0o600))
	objects, err := manifests.Decode([]byte(h.run(t, "template", "managed-upgrade-operator", releasedChart, "--values", values, "--namespace", "upgrades")))
	mustSucceed(t, err)
	deployment := deploymentOf(t, objects)
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	got := []any{
		container.Image, *deployment.Spec.Replicas, container.Args[len(container.Args)-1], container.Env[1].Value,
		pod.NodeSelector, len(pod.Tolerations), container.Resources.Limits.Memory().String(),
	}
	want := []any{
		"example.com/operator:v2", int32(1), "--leader-elect-lease-duration=270s", "460MiB",
		map[string]string{"node-role.kubernetes.io/infra": ""},
		0, "512Mi",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, object := range objects {
		if object.GetKind() == "ConfigMap" && object.GetName() == "managed-upgrade-operator-config" {
			text, _, err := unstructured.NestedString(object.Object, "data", "config.yaml")
			mustSucceed(t, err)
			if text != "healthCheck:\n  ignoredCriticals:\n  - Watchdog\n" || object.GetNamespace() != "upgrades" {
				t.Errorf("the configuration in namespace %s is %q", object.GetNamespace(), text)
			}
			return
		}
	}
	t.Error("no configuration")
}

// TestChart_page runs the commands of docs/helm.md on an API server: they install, upgrade, and uninstall the chart, and the
// CRDs stay.
func TestChart_page(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	h := newHelm(t)
	h.kubeconfig = server.kubeconfig
	for _, command := range commands(t, "../helm") {
		program, args, _ := strings.Cut(command, " ")
		switch program {
		case "helm":
			h.run(t, args)
		case "oc":
			server.kubectl(t, strings.Fields(args)...)
		default:
			t.Errorf("the page has the command %q", command)
		}
	}
	if crds := server.kubectl(t, "get", "customresourcedefinitions", "upgradeconfigs.upgrade.managed.openshift.io", "--output=name"); crds == "" {
		t.Error("uninstalling the chart has deleted the CRDs, and with them all upgrades")
	}
	if left := server.kubectl(t, "get", "deployments,clusterroles", "--all-namespaces", "--selector=app.kubernetes.io/part-of=managed-upgrade-operator", "--output=name"); left != "" {
		t.Errorf("uninstalling the chart has left %s", left)
	}
}
