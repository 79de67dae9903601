// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

const (
	deployFolder = "../../deploy"
	home         = "managed-upgrade-operator" // the operator's namespace, and the name of most objects in it
)

// server is an API server without any controllers, and how to access it.
type server struct {
	*controlplane.ControlPlane
	client     client.Client // has all permissions, and validates fields strictly
	kubeconfig string
}

func startServer(tb testing.TB) *server {
	tb.Helper()
	return startServerWith(tb, controlplane.Options{WithoutControllerManager: true})
}

// startServerWith starts an API server with the options.
func startServerWith(tb testing.TB, options controlplane.Options) *server {
	tb.Helper()
	options.Dir = stateFolder(tb)
	ctx, cancel := context.WithTimeout(tb.Context(), time.Minute)
	defer cancel()
	running, err := controlplane.Start(ctx, options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		readAuditLog(tb, running.AuditLog())
		if err := running.Stop(); err != nil {
			tb.Error(err)
		}
	})
	s := &server{ControlPlane: running, kubeconfig: filepath.Join(running.Dir(), "kubeconfig")}
	if err := running.Kubeconfig(s.kubeconfig); err != nil {
		tb.Fatal(err)
	}
	access := running.RESTConfig()
	access.WarningHandlerWithContext = rest.NoWarnings{}
	if s.client, err = client.New(access, client.Options{Scheme: clientgoscheme.Scheme}); err != nil {
		tb.Fatal(err)
	}
	s.client = client.WithFieldValidation(s.client, "Strict")
	for _, name := range []string{"openshift-machine-api", "openshift-monitoring"} { // the operator has permissions in these namespaces
		if err := s.client.Create(tb.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

// kubectl runs kubectl and returns what it prints.
func (s *server) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(s.BinDir(), "kubectl"), append([]string{"--kubeconfig", s.kubeconfig}, args...)...)
	printed, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, printed)
	}
	return string(printed)
}

// apply applies objects strictly.
func (s *server) apply(tb testing.TB, objects []*unstructured.Unstructured) {
	tb.Helper()
	if err := manifests.Apply(tb.Context(), s.client, objects); err != nil {
		tb.Fatal(err)
	}
}

// kustomized returns the objects that "kubectl apply --kustomize deploy" applies.
func kustomized(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	return kustomizedFrom(t, deployFolder)
}

func kustomizedFrom(tb testing.TB, folder string) []*unstructured.Unstructured {
	tb.Helper()
	bin, err := controlplane.FindBinDir()
	if err != nil {
		tb.Fatal(err)
	}
	var errOut strings.Builder
	cmd := exec.CommandContext(tb.Context(), filepath.Join(bin, "kubectl"), "kustomize", folder)
	cmd.Stderr = &errOut
	built, err := cmd.Output()
	if err != nil || errOut.Len() > 0 {
		tb.Fatalf("kubectl kustomize: %v\n%s", err, errOut.String())
	}
	objects, err := manifests.Decode(built)
	if err != nil {
		tb.Fatal(err)
	}
	return objects
}

func read(t *testing.T, folder string) []*unstructured.Unstructured {
	t.Helper()
	objects, err := manifests.Read(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) == 0 {
		t.Fatalf("%s has no manifests", folder)
	}
	return objects
}

func pick[T any](tb testing.TB, objects []*unstructured.Unstructured, kind string) []T {
	tb.Helper()
	var picked []T
	for _, object := range objects {
		if object.GetKind() != kind {
			continue
		}
		var one T
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &one); err != nil {
			tb.Fatal(err)
		}
		picked = append(picked, one)
	}
	return picked
}

func deployment(t *testing.T) *appsv1.Deployment {
	t.Helper()
	return deploymentOf(t, kustomized(t))
}

// deploymentOf returns the only Deployment of the objects.
func deploymentOf(t *testing.T, objects []*unstructured.Unstructured) *appsv1.Deployment {
	t.Helper()
	all := pick[appsv1.Deployment](t, objects, "Deployment")
	if len(all) != 1 {
		t.Fatalf("got %d Deployments, want 1", len(all))
	}
	return &all[0]
}

func TestKustomizationIncludesEachManifest(t *testing.T) {
	t.Parallel()
	name := func(object *unstructured.Unstructured) string {
		return fmt.Sprintf("%s %s/%s", object.GroupVersionKind(), object.GetNamespace(), object.GetName())
	}
	var want, got []string
	for _, folder := range []string{"crds", "operator"} {
		for _, object := range read(t, path.Join(deployFolder, folder)) {
			want = append(want, name(object))
		}
	}
	for _, object := range kustomized(t) {
		got = append(got, name(object))
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kustomize deploy (-files +built):\n%s", diff)
	}
}

func TestKustomizationWithoutMachineAPI(t *testing.T) {
	t.Parallel()
	inMachineAPI := func(o *unstructured.Unstructured) bool { return o.GetNamespace() == "openshift-machine-api" }
	all := kustomized(t)
	want := slices.DeleteFunc(slices.Clone(all), inMachineAPI)
	if len(want) != len(all)-2 {
		t.Errorf("%d objects are in openshift-machine-api, want a Role and a RoleBinding", len(all)-len(want))
	}
	if diff := cmp.Diff(want, kustomizedFrom(t, deployFolder+"/without-machine-api")); diff != "" {
		t.Errorf("kustomize deploy/without-machine-api (-deploy +built):\n%s", diff)
	}
}

func TestDeploy(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))

	t.Run("namespace enforces restricted pod security", func(t *testing.T) {
		t.Parallel()
		var namespace corev1.Namespace
		if err := server.client.Get(t.Context(), client.ObjectKey{Name: home}, &namespace); err != nil {
			t.Fatal(err)
		}
		if got := namespace.Labels["pod-security.kubernetes.io/enforce"]; got != "restricted" {
			t.Errorf("pod security is %q, want restricted", got)
		}
	})
	t.Run("pod of the operator is admitted", func(t *testing.T) {
		t.Parallel()
		if err := server.client.Create(t.Context(), operatorPod(t, "admitted")); err != nil {
			t.Error(err)
		}
	})
	for name, loosen := range map[string]func(*corev1.Pod){
		"root":       func(pod *corev1.Pod) { pod.Spec.SecurityContext.RunAsNonRoot = nil },
		"seccomp":    func(pod *corev1.Pod) { pod.Spec.SecurityContext.SeccompProfile = nil },
		"privileges": func(pod *corev1.Pod) { pod.Spec.Containers[0].SecurityContext = nil },
		"hostpath": func(pod *corev1.Pod) {
			pod.Spec.Volumes[0].VolumeSource = corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/etc"}}
		},
	} {
		t.Run("pod without its restrictions is denied: "+name, func(t *testing.T) {
			t.Parallel()
			pod := operatorPod(t, "refused-"+name)
			loosen(pod)
			err := server.client.Create(t.Context(), pod)
			if err == nil || !strings.Contains(err.Error(), `violates PodSecurity "restricted`) {
				t.Errorf("got %v, want a violation of restricted pod security", err)
			}
		})
	}
	t.Run("manifest of the design applies unchanged", func(t *testing.T) {
		t.Parallel()
		server.kubectl(t, "create", "namespace", "anywhere")
		server.kubectl(t, "--namespace=anywhere", "apply", "--validate=strict", "--filename=testdata/design/upgradeconfig.yaml")
		server.kubectl(t, "--namespace=anywhere", "patch", "upgradeconfigs.upgrade.managed.openshift.io", "example-upgrade-config", "--subresource=status",
			"--type=merge", "--patch-file=testdata/design/upgradeconfig-status.yaml")
		got := server.kubectl(t, "--namespace=anywhere", "get", "upgradeconfigs.upgrade.managed.openshift.io", "example-upgrade-config", "--output=yaml")
		if diff := cmp.Diff(recorded(t, readFile(t, "testdata/design/upgradeconfig-status.yaml")), recorded(t, got)); diff != "" {
			t.Errorf("status of the design (-want +got):\n%s", diff)
		}
	})
}

// Replicas never share a node, so a surplus replica might not find one during a rollout.
func TestRollout_needs_no_surplus_node(t *testing.T) {
	t.Parallel()
	deployed := deployment(t)
	antiAffinity := deployed.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution
	rolling := deployed.Spec.Strategy.RollingUpdate
	if len(antiAffinity) == 0 || *deployed.Spec.Replicas != 2 {
		t.Fatalf("%d replicas with anti-affinity %v, want two on two nodes", *deployed.Spec.Replicas, antiAffinity)
	}
	if rolling == nil || rolling.MaxSurge == nil || rolling.MaxSurge.String() != "0" || rolling.MaxUnavailable == nil || rolling.MaxUnavailable.String() != "1" {
		t.Errorf("the strategy is %+v, want maxSurge 0 and maxUnavailable 1", rolling)
	}
}

// operatorPod returns a pod as the Deployment creates it.
func operatorPod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	deployed := deployment(t)
	pod := &corev1.Pod{Spec: deployed.Spec.Template.Spec}
	pod.Namespace, pod.Name, pod.Labels = deployed.Namespace, name, deployed.Spec.Template.Labels
	return pod
}

func readFile(tb testing.TB, file string) string {
	tb.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	return string(content)
}

// recorded returns the history in an object.
func recorded(t *testing.T, text string) any {
	t.Helper()
	var object struct {
		Status struct {
			History any `json:"history"`
		} `json:"status"`
	}
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object.Status.History
}

func TestDeployment_flags_and_configuration_are_valid(t *testing.T) {
	t.Parallel()
	pod := deployment(t).Spec.Template.Spec
	container := pod.Containers[0]
	var args []string
	for _, arg := range container.Args {
		// Mounts exist in a pod only.
		args = append(args, strings.NewReplacer("$(NAMESPACE)", home, "/etc/metrics-tls", t.TempDir()).Replace(arg))
	}
	var options manager.Options
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	options.Bind(flags)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := options.Validate(); err != nil {
		t.Fatal(err)
	}
	if left := flags.Args(); len(left) > 0 {
		t.Errorf("unexpected arguments: %v", left)
	}
	if options.Namespace != home {
		t.Errorf("the operator's namespace is %q, want %q", options.Namespace, home)
	}
	if !options.LeaderElection.Enabled || !options.MetricsSecure {
		t.Errorf("leader election is %t and secure metrics are %t, want both", options.LeaderElection.Enabled, options.MetricsSecure)
	}
	for name, bind := range map[string]string{"metrics": options.MetricsBind, "probes": options.HealthBind} {
		i := slices.IndexFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.Name == name })
		if i < 0 || fmt.Sprintf(":%d", container.Ports[i].ContainerPort) != bind {
			t.Errorf("port %s of %v differs from the address of the operator, %s", name, container.Ports, bind)
		}
	}

	source := pod.Volumes[0].ConfigMap
	if source.Optional == nil || !*source.Optional {
		t.Errorf("the ConfigMap %s is not optional", source.Name)
	}
	for _, deployed := range pick[corev1.ConfigMap](t, kustomized(t), "ConfigMap") {
		if deployed.Name == source.Name {
			t.Errorf("the manifests have the ConfigMap %s: an upgrade of the operator would reset its configuration", source.Name)
		}
	}
	folder := path.Dir(options.ConfigFile)
	if folder != container.VolumeMounts[0].MountPath {
		t.Errorf("the configuration file is in %s, and the ConfigMap is mounted at %s", folder, container.VolumeMounts[0].MountPath)
	}
}

// serviceCAConfigMap is the ConfigMap with OpenShift's service CA in each namespace.
const serviceCAConfigMap = "openshift-service-ca.crt"

func TestOperatorMayQueryAlerts(t *testing.T) {
	t.Parallel()
	alerts, pod := config.Default().Alerts, deployment(t).Spec.Template.Spec
	folder := path.Dir(alerts.CAFile)
	mounts := pod.Containers[0].VolumeMounts
	m := slices.IndexFunc(mounts, func(mount corev1.VolumeMount) bool { return mount.MountPath == folder })
	if m < 0 {
		t.Fatalf("nothing is mounted at %s", folder)
	}
	v := slices.IndexFunc(pod.Volumes, func(volume corev1.Volume) bool { return volume.Name == mounts[m].Name })
	if v < 0 || pod.Volumes[v].ConfigMap == nil {
		t.Fatalf("no ConfigMap is mounted at %s", folder)
	}
	if name := pod.Volumes[v].ConfigMap.Name; name != serviceCAConfigMap {
		t.Errorf("OpenShift does not publish its service CA in ConfigMap %s", name)
	}
	bindings := pick[rbacv1.ClusterRoleBinding](t, kustomized(t), "ClusterRoleBinding")
	if !slices.ContainsFunc(bindings, func(b rbacv1.ClusterRoleBinding) bool {
		return b.RoleRef.Name == "cluster-monitoring-view" && len(b.Subjects) == 1 && b.Subjects[0].Name == pod.ServiceAccountName && b.Subjects[0].Namespace == home
	}) {
		t.Errorf("the ServiceAccount %s may not read metrics", pod.ServiceAccountName)
	}
}

func TestPrometheus_discovers_and_trusts_the_metrics(t *testing.T) {
	t.Parallel()
	for program, folder := range map[string]string{home: deployFolder, statusController: deployFolder + "/update-status"} {
		t.Run(program, func(t *testing.T) {
			t.Parallel()
			checkMonitoring(t, program, kustomizedFrom(t, folder))
		})
	}
}

// checkMonitoring checks how Prometheus finds and trusts the metrics of a program.
func checkMonitoring(t *testing.T, program string, objects []*unstructured.Unstructured) {
	t.Helper()
	services, monitors := pick[corev1.Service](t, objects, "Service"), pick[serviceMonitor](t, objects, "ServiceMonitor")
	if len(services) != 1 || len(monitors) != 1 || len(monitors[0].Spec.Endpoints) != 1 {
		t.Fatalf("got %d Services and %d ServiceMonitors, want one of each, with one endpoint", len(services), len(monitors))
	}
	service, endpoint := services[0], monitors[0].Spec.Endpoints[0]
	if !labels.SelectorFromSet(monitors[0].Spec.Selector.MatchLabels).Matches(labels.Set(service.Labels)) || endpoint.Port != service.Spec.Ports[0].Name {
		t.Errorf("the ServiceMonitor selects port %s of Services with %v, and the Service has %v and port %s", endpoint.Port, monitors[0].Spec.Selector.MatchLabels, service.Labels, service.Spec.Ports[0].Name)
	}
	if want := service.Name + "." + service.Namespace + ".svc"; endpoint.Scheme != "https" || endpoint.TLSConfig.ServerName != want {
		t.Errorf("the server name is %s by %s, want %s by https", endpoint.TLSConfig.ServerName, endpoint.Scheme, want)
	}

	pod := deploymentOf(t, objects).Spec.Template.Spec
	secret := service.Annotations["service.beta.openshift.io/serving-cert-secret-name"]
	v := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == secret })
	if v < 0 || pod.Volumes[v].Secret.Optional == nil || !*pod.Volumes[v].Secret.Optional {
		t.Fatalf("the Secret %q of the serving certificate is not mounted, or is not optional", secret)
	}
	mounts := pod.Containers[0].VolumeMounts
	m := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.Name == pod.Volumes[v].Name })
	if m < 0 || !slices.Contains(pod.Containers[0].Args, "--metrics-cert-path="+mounts[m].MountPath) {
		t.Errorf("the flag --metrics-cert-path is not where the Secret %s is mounted", secret)
	}
	namespaces := pick[corev1.Namespace](t, objects, "Namespace")
	if namespaces[0].Labels["openshift.io/cluster-monitoring"] != "true" {
		t.Error("Prometheus does not monitor the namespace")
	}
	for _, binding := range []string{"ClusterRoleBinding/" + program + "-metrics-reader", "RoleBinding/" + program + "-prometheus"} {
		if !slices.ContainsFunc(objects, func(o *unstructured.Unstructured) bool {
			subjects, _, _ := unstructured.NestedSlice(o.Object, "subjects")
			want := map[string]any{"kind": "ServiceAccount", "name": "prometheus-k8s", "namespace": "openshift-monitoring"}
			return o.GetKind()+"/"+o.GetName() == binding && len(subjects) == 1 && cmp.Equal(subjects[0], any(want))
		}) {
			t.Errorf("%s does not have the ServiceAccount of Prometheus as its only subject", binding)
		}
	}
}

// serviceMonitor is the part of a ServiceMonitor that matters here.
type serviceMonitor struct {
	Spec struct {
		Selector  metav1.LabelSelector `json:"selector"`
		Endpoints []struct {
			Port      string `json:"port"`
			Scheme    string `json:"scheme"`
			TLSConfig struct {
				ServerName string `json:"serverName"`
			} `json:"tlsConfig"`
		} `json:"endpoints"`
	} `json:"spec"`
}

func TestSelectors_match_the_pods(t *testing.T) {
	t.Parallel()
	for name, folder := range map[string]string{
		"operator": "", "Update Status Controller": "/update-status", "Update Status Controller without OpenShift": "/update-status-without-openshift",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkSelectors(t, kustomizedFrom(t, deployFolder+folder))
		})
	}
}

// checkSelectors checks that selectors of pods select the pods of the Deployment.
func checkSelectors(t *testing.T, objects []*unstructured.Unstructured) {
	t.Helper()
	pod := labels.Set(deploymentOf(t, objects).Spec.Template.Labels)
	found := map[string]bool{}
	for _, object := range objects {
		var selector map[string]string
		switch object.GetKind() {
		case "Service":
			selector, _, _ = unstructured.NestedStringMap(object.Object, "spec", "selector")
		case "NetworkPolicy":
			selector, _, _ = unstructured.NestedStringMap(object.Object, "spec", "podSelector", "matchLabels")
		case "Deployment", "PodDisruptionBudget":
			selector, _, _ = unstructured.NestedStringMap(object.Object, "spec", "selector", "matchLabels")
		default:
			continue
		}
		found[object.GetKind()] = true
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(pod) {
			t.Errorf("%s %s selects %v; the pods have %v", object.GetKind(), object.GetName(), selector, pod)
		}
	}
	for _, kind := range []string{"Deployment", "PodDisruptionBudget", "Service", "NetworkPolicy"} {
		if !found[kind] {
			t.Errorf("no %s is deployed", kind)
		}
	}
}

// TestHiveTemplate processes the template for Hive as "oc process" does, applies its result to an API
// server that has Hive's kind, and what Hive would apply to a cluster to the one of the operator.
func TestHiveTemplate(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))
	server.kubectl(t, "apply", "--filename=testdata/hive/selectorsyncsets.yaml")
	server.kubectl(t, "wait", "--for=condition=Established", "--timeout=30s", "customresourcedefinition/selectorsyncsets.hive.openshift.io")

	at := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	file := filepath.Join(t.TempDir(), "processed.json")
	processed := processTemplate(t, "NAME=4-18-9", "VERSION=4.18.9", "CHANNEL=stable-4.18", "UPGRADE_AT="+at, "PDB_FORCE_DRAIN_TIMEOUT=60",
		"CAPACITY_RESERVATION=true", "PAUSED=true", `ACCEPTED_RISKS=["SlowBoot"]`)
	if err := os.WriteFile(file, processed, 0o600); err != nil {
		t.Fatal(err)
	}
	server.kubectl(t, "apply", "--validate=strict", "--filename="+file)
	set := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "hive.openshift.io/v1", "kind": "SelectorSyncSet"}}
	if err := server.client.Get(t.Context(), client.ObjectKey{Name: "upgradeconfig-4-18-9"}, set); err != nil {
		t.Fatal(err)
	}
	selector, _, err := unstructured.NestedStringMap(set.Object, "spec", "clusterDeploymentSelector", "matchLabels")
	if diff := cmp.Diff(map[string]string{"upgrade.managed.openshift.io/wave": "4-18-9"}, selector); err != nil || diff != "" {
		t.Errorf("the ClusterDeployments that it selects (-want +got): %v\n%s", err, diff)
	}
	if mode, _, _ := unstructured.NestedString(set.Object, "spec", "resourceApplyMode"); mode != "Upsert" {
		t.Errorf("the apply mode is %q: Hive deletes the UpgradeConfig, and its history, when a cluster moves to the next wave", mode)
	}
	resources, _, err := unstructured.NestedSlice(set.Object, "spec", "resources")
	if err != nil || len(resources) != 1 {
		t.Fatalf("the SelectorSyncSet has %d resources, want an UpgradeConfig: %v", len(resources), err)
	}
	distributed := &unstructured.Unstructured{Object: resources[0].(map[string]any)}
	if err := server.client.Create(t.Context(), distributed); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type": "OSD", "upgradeAt": at, "PDBForceDrainTimeout": int64(60), "capacityReservation": true, "paused": true,
		"desired": map[string]any{"version": "4.18.9", "channel": "stable-4.18", "acceptedRisks": []any{"SlowBoot"}},
	}
	spec, _, err := unstructured.NestedMap(distributed.Object, "spec")
	for field := range spec {
		if _, ok := want[field]; !ok {
			delete(spec, field) // a default of the CRD
		}
	}
	if diff := cmp.Diff(want, spec); err != nil || diff != "" {
		t.Errorf("the UpgradeConfig (-want +got): %v\n%s", err, diff)
	}
}

// Each parameter without a default is required.
func TestHiveTemplate_required_parameters(t *testing.T) {
	t.Parallel()
	all := []string{"NAME=4-18-9", "VERSION=4.18.9", "CHANNEL=stable-4.18", "UPGRADE_AT=2030-01-31T01:00:00Z"}
	for i, missing := range all {
		name, _, _ := strings.Cut(missing, "=")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			output, err := templateCommand(t, slices.Delete(slices.Clone(all), i, i+1)...).CombinedOutput()
			if err == nil || !strings.Contains(string(output), "parameter "+name+" is required") {
				t.Errorf("without %s: %v\n%s", name, err, output)
			}
		})
	}
}

// processTemplate returns the objects of the template for Hive.
func processTemplate(t *testing.T, parameters ...string) []byte {
	t.Helper()
	command := templateCommand(t, parameters...)
	var errOut strings.Builder
	command.Stderr = &errOut
	output, err := command.Output()
	if err != nil {
		t.Fatalf("processing the template: %v\n%s", err, errOut.String())
	}
	return output
}

// templateCommand processes the template for Hive with the library of "oc process".
func templateCommand(t *testing.T, parameters ...string) *exec.Cmd {
	t.Helper()
	bin, err := controlplane.FindBinDir()
	if err == nil {
		err = controlplane.RequirePrograms(bin, "process-template")
	}
	if err != nil {
		t.Fatal(err)
	}
	args := append([]string{path.Join(deployFolder, "hive/selectorsyncset.yaml")}, parameters...)
	return exec.CommandContext(t.Context(), filepath.Join(bin, "process-template"), args...)
}
