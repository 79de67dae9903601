// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e && olm

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// olmLimit bounds each wait for the Operator Lifecycle Manager.
const olmLimit = 2 * time.Minute

// olmWorld is a cluster with the Operator Lifecycle Manager, and a catalog with the bundle.
type olmWorld struct {
	*devcluster.Cluster

	client     client.WithWatch
	kubeconfig string
	bundles    map[string]string // folders, by version
	operator   *devcluster.Operator
	installed  string // version
}

// TestOLM installs, upgrades, and uninstalls the bundle by the real Operator Lifecycle Manager. Pods are simulated; our programs
// run as processes, with the permissions that the installation has given to their ServiceAccounts.
func TestOLM(t *testing.T) { //nolint:paralleltest // each part continues the one before
	w := startOLM(t)
	for _, part := range []struct {
		name string
		run  func(*olmWorld, *testing.T)
	}{
		{"installs", (*olmWorld).installs},
		{"upgrades in service", (*olmWorld).upgradesInService},
		{"limits roles", (*olmWorld).limitsRoles},
		{"upgrades when approved", (*olmWorld).upgradesWhenApproved},
		{"uninstalls", (*olmWorld).uninstalls},
		{"is simulated", (*olmWorld).simulatesOLM}, // last, since other parts count all ClusterServiceVersions
	} {
		if !t.Run(part.name, func(t *testing.T) { part.run(w, t) }) {
			return
		}
	}
}

func startOLM(t *testing.T) *olmWorld {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	module, err := exec.CommandContext(ctx, "go", "list", "-C", "../../hack/tools/olm", "-m", "-f", "{{.Dir}}", "github.com/operator-framework/operator-lifecycle-manager").Output()
	mustSucceed(t, err)
	cluster, err := devcluster.Start(ctx, devcluster.Options{
		Dir: stateFolder(t), Spec: openshiftsim.ClusterSpec{Speed: fast}, Controllers: []string{"clusterrole-aggregation-controller"},
		Kinds: os.DirFS(filepath.Join(strings.TrimSpace(string(module)), "deploy/chart/crds")),
	})
	mustSucceed(t, err)
	t.Cleanup(func() { mustSucceed(t, cluster.Stop()) })
	w := &olmWorld{Cluster: cluster, client: newUserClient(t, cluster), kubeconfig: cluster.Path("kubeconfig"), bundles: map[string]string{}}
	mustSucceed(t, cluster.Kubeconfig(w.kubeconfig))
	for _, each := range [][2]string{{"v0.1.0", ""}, {"v0.2.0", "v0.1.0"}, {"v0.3.0", "v0.2.0"}} {
		w.bundles[each[0]] = w.bundle(t, each[0], each[1])
	}
	t.Cleanup(func() {
		if w.operator != nil {
			mustSucceed(t, w.operator.Stop())
		}
	})
	env := append(os.Environ(), "KUBECONFIG="+w.kubeconfig)
	w.start(t, childprocess.Command{Path: w.program("olm-operator"), Env: env, Args: []string{"--namespace=olm"}})
	w.start(t, childprocess.Command{Path: w.program("catalog-operator"), Env: env, Args: []string{"--namespace=olm"}})
	return w
}

func (w *olmWorld) program(name string) string { return filepath.Join(w.BinDir(), name) }

// start runs a program until the test ends.
func (w *olmWorld) start(t *testing.T, command childprocess.Command) {
	t.Helper()
	command.Log = w.Path("logs", filepath.Base(command.Path)+".log")
	process, err := childprocess.Start(command)
	mustSucceed(t, err)
	t.Cleanup(func() { mustSucceed(t, process.Stop(10*time.Second)) })
}

// bundle writes a bundle as "make bundle" does.
func (w *olmWorld) bundle(t *testing.T, version, replaces string) string {
	t.Helper()
	folder := t.TempDir()
	w.script(t, "update-bundle.sh", []string{"VERSION=" + version, "REPLACES=" + replaces, "OUT=" + folder})
	return filepath.Join(folder, "bundle")
}

// script runs a script of the folder hack, and returns what it prints on its standard output.
func (w *olmWorld) script(t *testing.T, name string, env []string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), olmLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join("../../hack", name), args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", name, err, printed, stderr.String())
	}
	return printed
}

// serve serves a catalog with bundles, oldest first, and makes it the source of the package. The bundles are part of
// the catalog, so no image is unpacked.
func (w *olmWorld) serve(t *testing.T, versions ...string) {
	t.Helper()
	var folders []string
	for _, version := range versions {
		folders = append(folders, w.bundles[version])
	}
	var catalog bytes.Buffer
	for line := range bytes.Lines(w.script(t, "catalog.sh", nil, folders...)) {
		if !bytes.HasPrefix(line, []byte("image: ")) {
			catalog.Write(line)
		}
	}
	w.catalogSource(t, home, w.serveCatalog(t, strconv.Itoa(len(versions)), catalog.Bytes()))
}

// serveCatalog serves a file-based catalog until the test ends, and returns its address.
func (w *olmWorld) serveCatalog(t *testing.T, name string, catalog []byte) string {
	t.Helper()
	folder := w.Path("catalog-" + name)
	mustSucceed(t, os.Mkdir(folder, 0o700))
	mustSucceed(t, os.WriteFile(filepath.Join(folder, "catalog.yaml"), catalog, 0o600))
	port, err := controlplane.FreePort()
	mustSucceed(t, err)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	w.start(t, childprocess.Command{Path: w.program("opm"), Args: []string{
		"serve", folder, "--port=" + strconv.Itoa(port), "--cache-dir=" + folder + "-cache", "--cache-enforce-integrity=false", "--pprof-addr=", "--termination-log=" + folder + ".end",
	}})
	eventually(t, olmLimit, "the catalog is served", func(ctx context.Context) error {
		connection, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
		if err == nil {
			err = connection.Close()
		}
		return err
	})
	return address
}

// catalogSource makes the catalog at an address that of a namespace.
func (w *olmWorld) catalogSource(t *testing.T, namespace, address string) {
	t.Helper()
	w.kubectl(t, fmt.Sprintf(`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "CatalogSource", "metadata": {"name": "catalog", "namespace": %q},
		"spec": {"sourceType": "grpc", "address": %q, "displayName": %q}}`, namespace, address, address), "apply", "-f", "-")
}

func (w *olmWorld) kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	printed, err := w.run(t.Context(), input, args...)
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, printed)
	}
	return printed
}

func (w *olmWorld) run(ctx context.Context, input string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, olmLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, w.program("kubectl"), append([]string{"--kubeconfig", w.kubeconfig}, args...)...)
	cmd.Stdin = strings.NewReader(input)
	printed, err := cmd.CombinedOutput()
	return string(printed), err
}

// awaitInstalled waits until a version is installed, and the one before is gone.
func (w *olmWorld) awaitInstalled(t *testing.T, version string) {
	t.Helper()
	eventually(t, olmLimit, version+" is installed", func(ctx context.Context) error {
		installed, err := clusterstate.ListClusterServiceVersions(ctx, w.client)
		if err != nil {
			return err
		}
		if len(installed) != 1 || installed[0].Name != "managed-upgrade-operator."+version || !installed[0].Succeeded() {
			subscription, _ := w.run(ctx, "", "get", "subscription,installplan,csv", "-n", home, "-o", "wide")
			return fmt.Errorf("there is %+v\n%s", installed, subscription)
		}
		return nil
	})
	w.installed = version
}

func (w *olmWorld) installs(t *testing.T) {
	t.Helper()
	w.kubectl(t, fmt.Sprintf(`
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": %[1]q}}
---
{"apiVersion": "operators.coreos.com/v1", "kind": "OperatorGroup", "metadata": {"name": "own", "namespace": %[1]q}, "spec": {"targetNamespaces": [%[1]q]}}
`, home), "apply", "-f", "-")
	w.serve(t, "v0.1.0")
	w.subscribe(t, "Automatic")
	w.awaitInstalled(t, "v0.1.0")
	operator, err := w.StartOperator(t.Context(), devcluster.OperatorOptions{Config: "alerts: {url: \"\"}\n"})
	mustSucceed(t, err)
	w.operator = operator
	awaitReady(t, operator)
	installed, err := clusterstate.ListClusterServiceVersions(t.Context(), w.client)
	if mustSucceed(t, err); installed[0].MaxVersion != "4.24" {
		t.Errorf("the last supported version is %q", installed[0].MaxVersion)
	}
	annotation := w.kubectl(t, "", "get", "csv", "-n", home, "-o", `jsonpath={.items[0].metadata.annotations.operatorframework\.io/properties}`)
	if !strings.Contains(annotation, `{"type":"olm.maxOpenShiftVersion","value":"4.24"}`) {
		t.Errorf("the properties of the installed bundle are %s", annotation)
	}
}

func (w *olmWorld) subscribe(t *testing.T, approval string) {
	t.Helper()
	w.kubectl(t, fmt.Sprintf(`{"apiVersion": "operators.coreos.com/v1alpha1", "kind": "Subscription", "metadata": {"name": "managed-upgrade-operator", "namespace": %[1]q},
		"spec": {"source": "catalog", "sourceNamespace": %[1]q, "name": "managed-upgrade-operator", "channel": "stable", "installPlanApproval": %[2]q}}`, home, approval), "apply", "-f", "-")
}

// limitsRoles checks the permissions of users with the roles edit and admin, first with the kinds of the bundle that the
// Operator Lifecycle Manager adds to these roles, and then with the policies beside the bundle. No upgrade needs them.
func (w *olmWorld) limitsRoles(t *testing.T) {
	t.Helper()
	w.kubectl(t, "", "apply", "-k", deployFolder+"/olm")
	for _, role := range []string{"edit", "admin", "cluster-admin", "update-approver"} {
		mustSucceed(t, w.client.Create(t.Context(), &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "test-" + role},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
			Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: role}},
		}))
	}
	eventually(t, olmLimit, "the roles are aggregated", func(ctx context.Context) error {
		for user, verb := range map[string]string{"admin": "accept", "edit": "create"} { // what the Operator Lifecycle Manager grants
			if !w.may(ctx, t, user, verb, "updateplans", "") {
				return fmt.Errorf("%s may not %s updateplans", user, verb)
			}
		}
		return nil
	})
	for user, want := range map[string]bool{"edit": false, "admin": false, "cluster-admin": true, "update-approver": true} {
		if got := w.may(t.Context(), t, user, "accept", "updateplans", "risks"); got != want {
			t.Errorf("%s may accept risks: %t", user, got)
		}
		if got := w.may(t.Context(), t, user, "bypass", "updateplans", "gate"); got != (user == "cluster-admin") {
			t.Errorf("%s may bypass the gate: %t", user, got)
		}
	}
	hook := object(maintenanceKind("UpgradeJobHook"), home, "hook", map[string]any{"spec": map[string]any{
		"events": []any{"Start"}, "selector": map[string]any{},
		"template": map[string]any{"spec": map[string]any{"template": map[string]any{"spec": map[string]any{
			"restartPolicy": "Never", "containers": []any{map[string]any{"name": "hook", "image": "hook"}},
		}}}},
	}})
	informer := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "config.openshift.io/v1beta1", "kind": "UpdateInformer", "metadata": map[string]any{"name": "informer"},
		"spec": map[string]any{"clientConfig": map[string]any{"service": map[string]any{"name": "a", "namespace": "a"}}},
	}}
	for _, target := range []*unstructured.Unstructured{hook, informer} {
		eventually(t, olmLimit, "the policy of "+target.GetKind()+" is in force", func(ctx context.Context) error {
			if err := w.as(t, "edit").Create(ctx, target.DeepCopy(), client.DryRunAll); err == nil {
				return fmt.Errorf("edit may create a %s", target.GetKind())
			}
			return nil
		})
		checkAdmission(t, w.as(t, "edit").Create(t.Context(), target.DeepCopy()), "ask an administrator")
		checkAdmission(t, w.as(t, "admin").Create(t.Context(), target.DeepCopy()), "ask an administrator")
		mustSucceed(t, w.as(t, "cluster-admin").Create(t.Context(), target.DeepCopy()))
		checkAdmission(t, w.as(t, "admin").Delete(t.Context(), target.DeepCopy()), "ask an administrator")
		mustSucceed(t, w.as(t, "cluster-admin").Delete(t.Context(), target.DeepCopy()))
	}
}

// may reports whether a user may do what a virtual or a real resource of plans stands for.
func (w *olmWorld) may(ctx context.Context, t *testing.T, user, verb, resource, subresource string) bool {
	t.Helper()
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Group: "config.openshift.io", Resource: resource, Subresource: subresource, Verb: verb},
	}}
	mustSucceed(t, w.client.Create(ctx, review))
	return review.Status.Allowed
}

func (w *olmWorld) as(t *testing.T, user string) client.Client {
	t.Helper()
	access := rest.CopyConfig(w.RESTConfig())
	access.Impersonate = rest.ImpersonationConfig{UserName: user}
	c, err := client.New(access, client.Options{Scheme: w.client.Scheme()})
	mustSucceed(t, err)
	return c
}

// upgradesInService upgrades the operator while it upgrades the cluster, by the permissions of the bundle alone.
func (w *olmWorld) upgradesInService(t *testing.T) {
	t.Helper()
	upgrade := applyUpgrade(t, w.client, upgradeTo("4.20.6"))
	awaitStatus(t, w.client, upgrade, upgradev1alpha1.ConditionProgressing, metav1.ConditionTrue, ".*")
	w.serve(t, "v0.1.0", "v0.2.0")
	w.awaitInstalled(t, "v0.2.0")
	mustSucceed(t, w.operator.Restart()) // its pods are replaced
	awaitStatus(t, w.client, upgrade, upgradev1alpha1.ConditionSucceeded, metav1.ConditionTrue, ".*")
}

// upgradesWhenApproved lets the approver of this project approve an InstallPlan. The Operator Lifecycle Manager may fail to resolve once in
// between, while it still has a replaced version, and the approver waits for a minute without a change.
func (w *olmWorld) upgradesWhenApproved(t *testing.T) {
	t.Helper()
	w.subscribe(t, "Manual")
	w.serve(t, "v0.1.0", "v0.2.0", "v0.3.0")
	cmd := exec.CommandContext(t.Context(), w.program("operator"), "approve-operators")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+w.kubeconfig, "WAITTIME=300", "INCLUDELIST=managed-upgrade-operator,"+home)
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("approve-operators: %v\n%s", err, printed)
	}
	w.awaitInstalled(t, "v0.3.0")
}

// uninstalls follows the page. "make undeploy" names its commands, and changes nothing.
func (w *olmWorld) uninstalls(t *testing.T) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "../../hack/undeploy.sh", deployFolder)
	cmd.Env = append(os.Environ(), fmt.Sprintf("KUBECTL=%s --kubeconfig=%s", w.program("kubectl"), w.kubeconfig))
	printed, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(printed), "managed-upgrade-operator."+w.installed) {
		t.Errorf("undeploy.sh: %v\n%s", err, printed)
	}
	w.awaitInstalled(t, w.installed)

	term := newTerminal(t, w.Cluster, w.operator)
	page := commands(t, "../olm")
	from := -1
	for i, command := range page {
		if strings.Contains(command, "allow-deletion") {
			from = i
		}
	}
	if from < 0 {
		t.Fatal("the page does not say how to uninstall")
	}
	for _, command := range page[from:] {
		if !strings.Contains(string(printed), command) {
			t.Errorf("undeploy.sh does not name the command of the page %q", command)
		}
		term.run(t.Context(), t, strings.ReplaceAll(command, "deploy/olm", deployFolder+"/olm"))
	}
	eventually(t, olmLimit, "all is gone", func(ctx context.Context) error {
		left, err := w.run(ctx, "", "get", "crd,deployments,subscriptions,csv,validatingadmissionpolicies,clusterroles,namespaces", "-A", "-o", "name", "--ignore-not-found")
		if err != nil {
			return fmt.Errorf("%w: %s", err, left)
		}
		for name := range strings.FieldsSeq(left) {
			if strings.Contains(name, "managed-upgrade") || strings.Contains(name, "managedupgrade.appuio.io") || strings.Contains(name, "update-informers") {
				return fmt.Errorf("%s is left", name)
			}
		}
		return nil
	})
}
