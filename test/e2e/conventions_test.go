// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// installFolders are the folders that install a program.
var installFolders = map[string]string{
	"operator":                 deployFolder,
	"Update Status Controller": deployFolder + "/update-status",
	"hub":                      deployFolder + "/hub",
}

// TestInstall_follows_the_conventions_of_OpenShift checks what OpenShift expects of operators of the
// platform.
func TestInstall_follows_the_conventions_of_OpenShift(t *testing.T) {
	t.Parallel()
	for name, folder := range installFolders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := kustomizedFrom(t, folder)
			for _, o := range objects {
				if got := o.GetLabels()["app.kubernetes.io/part-of"]; got != home {
					t.Errorf("%s %s is part of %q, want %q", o.GetKind(), o.GetName(), got, home)
				}
			}
			for _, namespace := range pick[corev1.Namespace](t, objects, "Namespace") {
				checkNamespace(t, &namespace)
			}
			deployments := pick[appsv1.Deployment](t, objects, "Deployment")
			if len(deployments) != 1 {
				t.Fatalf("got %d Deployments, want 1", len(deployments))
			}
			checkDeployment(t, &deployments[0])
		})
	}
}

func checkNamespace(t *testing.T, namespace *corev1.Namespace) {
	t.Helper()
	wantAnnotations := map[string]string{"openshift.io/node-selector": "", "workload.openshift.io/allowed": "management"}
	if diff := cmp.Diff(wantAnnotations, namespace.Annotations); diff != "" {
		t.Errorf("annotations of the Namespace (-want +got):\n%s", diff)
	}
	want := map[string]string{"openshift.io/cluster-monitoring": "true", "app.kubernetes.io/part-of": home}
	for _, mode := range []string{"enforce", "audit", "warn"} {
		want["pod-security.kubernetes.io/"+mode] = "restricted"
		want["pod-security.kubernetes.io/"+mode+"-version"] = "latest"
	}
	if diff := cmp.Diff(want, namespace.Labels); diff != "" {
		t.Errorf("labels of the Namespace (-want +got):\n%s", diff)
	}
}

func checkDeployment(t *testing.T, deployed *appsv1.Deployment) {
	t.Helper()
	template := deployed.Spec.Template
	if got := template.Annotations["openshift.io/required-scc"]; got != "restricted-v2" {
		t.Errorf("the required SecurityContextConstraints are %q, want restricted-v2", got)
	}
	if got := template.Annotations["target.workload.openshift.io/management"]; got == "" {
		t.Error("the pods are not part of the management workload")
	}
	if diff := cmp.Diff(map[string]string{"node-role.kubernetes.io/control-plane": ""}, template.Spec.NodeSelector); diff != "" {
		t.Errorf("node selector (-want +got):\n%s", diff)
	}
	for _, taint := range []string{"node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"} {
		if !tolerates(&template.Spec, corev1.Taint{Key: taint, Effect: corev1.TaintEffectNoSchedule}) {
			t.Errorf("the pods do not tolerate %s", taint)
		}
	}
	for _, container := range template.Spec.Containers {
		limit, memory := goMemoryLimit(t, container), container.Resources.Limits.Memory().Value()
		if limit < memory*8/10 || limit > memory*9/10 {
			t.Errorf("GOMEMLIMIT is %d, want 80%% to 90%% of the memory limit %d", limit, memory)
		}
	}
}

func tolerates(pod *corev1.PodSpec, taint corev1.Taint) bool {
	return slices.ContainsFunc(pod.Tolerations, func(x corev1.Toleration) bool {
		return x.Key == taint.Key && x.Operator == corev1.TolerationOpExists && (x.Effect == "" || x.Effect == taint.Effect) && x.TolerationSeconds == nil
	})
}

// goMemoryLimit returns the memory limit of Go's runtime in bytes.
func goMemoryLimit(tb testing.TB, container corev1.Container) int64 {
	tb.Helper()
	i := slices.IndexFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == "GOMEMLIMIT" })
	if i < 0 {
		tb.Fatalf("container %s has no GOMEMLIMIT", container.Name)
	}
	number, isMiB := strings.CutSuffix(container.Env[i].Value, "MiB")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || !isMiB {
		tb.Fatalf("GOMEMLIMIT is %q, want a number of MiB", container.Env[i].Value)
	}
	return n << 20
}

// TestOverlay_of_memory checks that the component raises both limits.
func TestOverlay_of_memory(t *testing.T) {
	t.Parallel()
	for name, folder := range installFolders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := pick[appsv1.Deployment](t, kustomizedFrom(t, folder), "Deployment")[0].Spec.Template.Spec.Containers[0]
			deployed := pick[appsv1.Deployment](t, kustomizedWith(t, folder, "more-memory"), "Deployment")[0]
			checkDeployment(t, &deployed)
			got := deployed.Spec.Template.Spec.Containers[0].Resources.Limits.Memory()
			if want := 2 * base.Resources.Limits.Memory().Value(); got.Value() != want {
				t.Errorf("the memory limit is %s, want %d", got, want)
			}
			if got, want := len(deployed.Spec.Template.Spec.Containers[0].Env), len(base.Env); got != want {
				t.Errorf("the container has %d environment variables, want %d", got, want)
			}
		})
	}
}

// TestOverlay_of_action_replica_sets checks that the component sets the flag and grants the required permissions.
func TestOverlay_of_action_replica_sets(t *testing.T) {
	t.Parallel()
	objects := kustomizedWith(t, installFolders["hub"], "action-replica-sets")
	deployed := pick[appsv1.Deployment](t, objects, "Deployment")[0]
	checkDeployment(t, &deployed)
	if args := deployed.Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--action-replica-sets") {
		t.Errorf("arguments %v", args)
	}
	for _, binding := range pick[rbacv1.ClusterRoleBinding](t, objects, "ClusterRoleBinding") {
		if binding.RoleRef.Name != "managed-upgrade-hub-replica-sets" {
			continue
		}
		if s := binding.Subjects[0]; s.Name != deployed.Spec.Template.Spec.ServiceAccountName || s.Namespace != deployed.Namespace {
			t.Errorf("the permissions are those of %+v", s)
		}
		return
	}
	t.Error("nothing grants the permissions")
}

// TestOverlays_of_nodes checks the components that change where the Deployments run.
func TestOverlays_of_nodes(t *testing.T) {
	t.Parallel()
	for name, folder := range installFolders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			base := kustomizedFrom(t, folder)
			infra, single := kustomizedWith(t, folder, "infra-nodes"), kustomizedWith(t, folder, "single-node")
			if len(infra) != len(base) || len(single) != len(base) {
				t.Fatalf("the overlays have %d and %d objects, want %d", len(infra), len(single), len(base))
			}
			pod := pick[appsv1.Deployment](t, infra, "Deployment")[0].Spec.Template.Spec
			if diff := cmp.Diff(map[string]string{"node-role.kubernetes.io/infra": ""}, pod.NodeSelector); diff != "" {
				t.Errorf("node selector on infrastructure nodes (-want +got):\n%s", diff)
			}
			for _, effect := range []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute} {
				if !tolerates(&pod, corev1.Taint{Key: "node-role.kubernetes.io/infra", Effect: effect}) {
					t.Errorf("the pods do not tolerate the taint of infrastructure nodes with effect %s", effect)
				}
			}
			workers := pick[appsv1.Deployment](t, kustomizedWith(t, folder, "worker-nodes"), "Deployment")[0].Spec.Template.Spec
			if diff := cmp.Diff(map[string]string{"node-role.kubernetes.io/worker": ""}, workers.NodeSelector); diff != "" {
				t.Errorf("node selector on worker nodes (-want +got):\n%s", diff)
			}
			deployment := pick[appsv1.Deployment](t, single, "Deployment")[0]
			if got := *deployment.Spec.Replicas; got != 1 {
				t.Errorf("%d replicas run on a single node, want 1", got)
			}
			want := manager.LeaderElection{Enabled: true, LeaseDuration: 270 * time.Second, RenewDeadline: 240 * time.Second, RetryPeriod: 60 * time.Second}
			if diff := cmp.Diff(want, leaderElectionOf(t, &deployment)); diff != "" {
				t.Errorf("leader election on a single node (-want +got):\n%s", diff)
			}
		})
	}
}

// leaderElectionOf returns the settings of the leader election of a Deployment.
func leaderElectionOf(t *testing.T, deployment *appsv1.Deployment) manager.LeaderElection {
	t.Helper()
	var options manager.Options
	flags := pflag.NewFlagSet(deployment.Name, pflag.ContinueOnError)
	options.Bind(flags)
	flags.ParseErrorsAllowlist.UnknownFlags = true // each program has flags of its own
	if err := flags.Parse(deployment.Spec.Template.Spec.Containers[0].Args); err != nil {
		t.Fatal(err)
	}
	return options.LeaderElection
}

// kustomizedWith returns the objects of a folder with a component of the deploy folder.
func kustomizedWith(t *testing.T, folder, component string) []*unstructured.Unstructured {
	t.Helper()
	overlay := t.TempDir()
	relative := func(path string) string {
		absolute, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		rel, err := filepath.Rel(overlay, absolute)
		if err != nil {
			t.Fatal(err)
		}
		return rel
	}
	text := fmt.Sprintf("apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [%s]\ncomponents: [%s]\n",
		relative(folder), relative(filepath.Join(deployFolder, component)))
	if err := os.WriteFile(filepath.Join(overlay, "kustomization.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kustomizedFrom(t, overlay)
}

// TestOperatorTrustsTheCAsOfTheCluster checks that the CAs that OpenShift injects are read.
func TestOperatorTrustsTheCAsOfTheCluster(t *testing.T) {
	t.Parallel()
	pod := deployment(t).Spec.Template.Spec
	container := pod.Containers[0]
	m := slices.IndexFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "trusted-ca" })
	v := slices.IndexFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Name == "trusted-ca" })
	if m < 0 || v < 0 || pod.Volumes[v].ConfigMap == nil || !*pod.Volumes[v].ConfigMap.Optional {
		t.Fatal("no optional ConfigMap trusted-ca is mounted")
	}
	if file, want := config.Default().TrustedCAFile, container.VolumeMounts[m].MountPath+"/ca-bundle.crt"; file != want {
		t.Errorf("CAs are read from %s, want %s", file, want)
	}
	configs := pick[corev1.ConfigMap](t, kustomized(t), "ConfigMap")
	i := slices.IndexFunc(configs, func(c corev1.ConfigMap) bool { return c.Name == pod.Volumes[v].ConfigMap.Name })
	if i < 0 || configs[i].Labels["config.openshift.io/inject-trusted-cabundle"] != "true" || len(configs[i].Data) > 0 {
		t.Errorf("OpenShift does not inject CAs into ConfigMap %s", pod.Volumes[v].ConfigMap.Name)
	}
}

// TestRolesOfPeople compares the aggregated roles with the kinds that deploy installs. Hooks run code, so
// the roles that users have by default do not change them.
func TestRolesOfPeople(t *testing.T) {
	t.Parallel()
	objects := kustomized(t)
	read, write := []string{"get", "list", "watch"}, []string{"create", "delete", "deletecollection", "patch", "update"}
	want := map[string]map[string][]string{"view": {"clusterversions.config.openshift.io": {"get"}}, "edit": {}} // the status of an update begins with it
	for _, crd := range pick[apiextensionsv1.CustomResourceDefinition](t, objects, "CustomResourceDefinition") {
		want["view"][crd.Name] = read
		if crd.Spec.Names.Kind != "UpgradeJobHook" {
			want["edit"][crd.Name] = write
		}
	}
	got := map[string]map[string][]string{}
	for _, role := range pick[rbacv1.ClusterRole](t, objects, "ClusterRole") {
		for label := range role.Labels {
			into, aggregated := strings.CutPrefix(label, "rbac.authorization.k8s.io/aggregate-to-")
			if !aggregated {
				continue
			}
			got[into] = map[string][]string{}
			for _, rule := range role.Rules {
				for _, resource := range rule.Resources {
					got[into][resource+"."+rule.APIGroups[0]] = rule.Verbs
				}
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("aggregated roles (-want +got):\n%s", diff)
	}
}

// TestWithoutScheduledMaintenance checks that the component leaves out the kinds, and tells the operator so.
func TestWithoutScheduledMaintenance(t *testing.T) {
	t.Parallel()
	objects := kustomizedWith(t, deployFolder, "without-scheduled-maintenance")
	var kinds []string
	for _, crd := range pick[apiextensionsv1.CustomResourceDefinition](t, objects, "CustomResourceDefinition") {
		kinds = append(kinds, crd.Name)
	}
	if want := []string{"upgradeconfigs.upgrade.managed.openshift.io"}; !slices.Equal(kinds, want) {
		t.Errorf("the kinds %v are installed, want %v", kinds, want)
	}
	var options manager.Options
	flags := pflag.NewFlagSet("operator", pflag.ContinueOnError)
	options.Bind(flags)
	if err := flags.Parse(pick[appsv1.Deployment](t, objects, "Deployment")[0].Spec.Template.Spec.Containers[0].Args); err != nil || !options.WithoutMaintenance {
		t.Errorf("the operator works on the kinds: %v", err)
	}
}

// TestProject compares the file PROJECT of operator-sdk with the kinds of all folders.
func TestProject(t *testing.T) {
	t.Parallel()
	var project struct {
		Domain     string         `json:"domain"`
		Layout     []string       `json:"layout"`
		Multigroup bool           `json:"multigroup"`
		Plugins    map[string]any `json:"plugins"`
		Name       string         `json:"projectName"`
		Repo       string         `json:"repo"`
		Version    string         `json:"version"`
		Resources  []struct {
			API struct {
				CRDVersion string `json:"crdVersion"`
				Namespaced bool   `json:"namespaced"`
			} `json:"api"`
			Controller bool   `json:"controller"`
			Domain     string `json:"domain"`
			Group      string `json:"group"`
			Kind       string `json:"kind"`
			Path       string `json:"path"`
			Version    string `json:"version"`
		} `json:"resources"`
	}
	if err := yaml.UnmarshalStrict([]byte(readFile(t, "../../PROJECT")), &project); err != nil {
		t.Fatal(err)
	}
	build, _ := debug.ReadBuildInfo()
	if project.Version != "3" || !project.Multigroup || project.Repo != build.Main.Path {
		t.Errorf("version %q, multigroup %t, repo %q; want 3, true, %q", project.Version, project.Multigroup, project.Repo, build.Main.Path)
	}
	want, got := map[string]bool{}, map[string]bool{}
	for _, folder := range installFolders {
		for _, crd := range pick[apiextensionsv1.CustomResourceDefinition](t, kustomizedFrom(t, folder), "CustomResourceDefinition") {
			for _, version := range crd.Spec.Versions {
				want[fmt.Sprintf("%s %s/%s", crd.Spec.Names.Kind, crd.Spec.Group, version.Name)] = crd.Spec.Scope == apiextensionsv1.NamespaceScoped
			}
		}
	}
	for _, r := range project.Resources {
		got[fmt.Sprintf("%s %s.%s/%s", r.Kind, r.Group, r.Domain, r.Version)] = r.API.Namespaced
		folder := filepath.Join("../..", strings.TrimPrefix(r.Path, project.Repo+"/"))
		if _, err := os.Stat(folder); err != nil {
			t.Errorf("the path of %s: %v", r.Kind, err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kinds, and whether they are namespaced (-CustomResourceDefinitions +PROJECT):\n%s", diff)
	}
}

// TestOwners checks that each owner is a user or an alias, as Prow requires.
func TestOwners(t *testing.T) {
	t.Parallel()
	var owners struct {
		Approvers []string `json:"approvers"`
		Reviewers []string `json:"reviewers"`
	}
	var aliases struct {
		Aliases map[string][]string `json:"aliases"`
	}
	for file, into := range map[string]any{"../../OWNERS": &owners, "../../OWNERS_ALIASES": &aliases} {
		if err := yaml.UnmarshalStrict([]byte(readFile(t, file)), into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	used := map[string]bool{}
	for _, owner := range slices.Concat(owners.Approvers, owners.Reviewers) {
		used[owner] = true
		if len(aliases.Aliases[owner]) == 0 {
			t.Errorf("OWNERS names %s, which is no alias with members", owner)
		}
	}
	if unused := slices.DeleteFunc(slices.Collect(maps.Keys(aliases.Aliases)), func(a string) bool { return used[a] }); len(unused) > 0 {
		t.Errorf("OWNERS names none of the aliases %q", unused)
	}
}
