// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package olm_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
	simulatedolm "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/olm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
)

// speed is the ratio between the Job's clock and the real clock.
const speed = 20

// fastClock is a clock that shortens waits.
type fastClock struct {
	clock.RealClock
	start time.Time
}

func (c fastClock) Now() time.Time { return c.start.Add(c.RealClock.Since(c.start) * speed) }

func (c fastClock) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

func (c fastClock) After(d time.Duration) <-chan time.Time { return c.RealClock.After(d / speed) }

// The hub's Job runs with the permissions of its ServiceAccount on a real API server with OLM's
// real schemas.
func TestJob_approves_operators_with_the_rights_of_its_ServiceAccount(t *testing.T) {
	running := devtest.Start(t, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		return controlplane.Start(ctx, controlplane.Options{Dir: t.TempDir(), WithoutControllerManager: true})
	})
	admin, err := manifests.Client(running.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	installCluster(t, admin)
	rules, job := applyWork(t, admin, fleetv1beta1.OCPOperators{
		Include: []fleetv1beta1.OperatorReference{{Name: "gitops", Namespace: "a"}, {Name: "logging", Namespace: "b"}, {Name: "missing", Namespace: "b"}},
		Exclude: []fleetv1beta1.OperatorReference{{Name: "storage", Namespace: "c"}},
	})
	access, err := running.ServiceAccountConfig(t.Context(), job.Namespace, job.Spec.Template.Spec.ServiceAccountName)
	if err != nil {
		t.Fatal(err)
	}
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := controlplane.WriteKubeconfig(kubeconfig, access); err != nil {
		t.Fatal(err)
	}
	t.Setenv("KUBECONFIG", kubeconfig)

	for range 2 { // the second run finds that everything is done
		printed, err := runJob(t, &job.Spec.Template.Spec.Containers[0])
		if code := operator.ExitCode(err); code != 0 || !strings.Contains(printed, "Operators upgraded: 2 of 2.\n") {
			t.Fatalf("exit code %d: %v\n%s", code, err, printed)
		}
	}
	want := []string{"automatic.v1", "gitops.v3", "logging.v2", "other.v1", "quay.v1", "storage.v1"}
	if diff := cmp.Diff(want, installed(t, admin)); diff != "" {
		t.Errorf("installed releases (-want +got):\n%s", diff)
	}

	_, shared := applyWork(t, admin, fleetv1beta1.OCPOperators{
		ApproveAllUpgrades: true, Exclude: []fleetv1beta1.OperatorReference{{Name: "quay", Namespace: "c"}},
	})
	printed, err := runJob(t, &shared.Spec.Template.Spec.Containers[0])
	if code := operator.ExitCode(err); code != 1 || !errors.Is(err, olm.ErrNotUpgraded) || !strings.Contains(err.Error(), olm.ReasonSharedInstallPlan) {
		t.Errorf("exit code %d: %v\n%s", code, err, printed)
	}
	if diff := cmp.Diff(permissions(rules), requests(t, running.AuditLog(), "system:serviceaccount:"+job.Namespace+":installplan-approver")); diff != "" {
		t.Errorf("requests of the ServiceAccount (-permissions +requests):\n%s", diff)
	}
}

// installCluster installs OLM's schemas and Subscriptions, and simulates OLM until the test ends.
func installCluster(t *testing.T, admin client.Client) {
	t.Helper()
	files, err := crds.OLM()
	if err != nil {
		t.Fatal(err)
	}
	objects, err := manifests.Read(files)
	if err != nil {
		t.Fatal(err)
	}
	if err := manifests.Apply(t.Context(), admin, objects); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"a", "b", "c", "openshift-marketplace"} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
		object.SetName(namespace)
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	for _, object := range []client.Object{
		manual("a", "gitops", "gitops.v1 gitops.v2 gitops.v3", installTime, "1s"),
		manual("b", "logging", "logging.v1 logging.v2"),
		manual("b", "other", "other.v1"),
		manual("c", "quay", "quay.v1 quay.v2"),
		manual("c", "storage", "storage.v1 storage.v2"),
		automatic("automatic", "automatic.v1"),
		catalog(),
	} {
		if err := admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	simulator := simulatedolm.Simulator{Client: admin, Clock: clock.RealClock{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ticks := time.Tick(50 * time.Millisecond); ctx.Err() == nil; <-ticks {
			if err := simulator.Advance(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) {
				t.Errorf("simulating OLM: %v", err)
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// applyWork creates the objects that the hub delivers to approve operators.
func applyWork(t *testing.T, admin client.Client, operators fleetv1beta1.OCPOperators) ([]rbacv1.PolicyRule, *batchv1.Job) {
	t.Helper()
	run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "store-0001", Name: "run"}}
	run.Spec.ManagedClustersUpgrade.UID, run.Spec.Attempt, run.Spec.Timeouts.OperatorsUpgrade = "0a1b2c3d-4e5f", 1, "10m"
	upgrade := &fleetv1beta1.ManagedClustersUpgrade{}
	upgrade.Spec.OCPOperators = &operators
	work, err := delivery.OperatorsWork(run, upgrade, "quay.io/example/operator@sha256:"+strings.Repeat("0", 64), func(string) bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	job := &batchv1.Job{}
	var rules []rbacv1.PolicyRule
	var objects []*unstructured.Unstructured
	for _, manifest := range work.Spec.Workload.Manifests {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(manifest.Raw); err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
		switch object.GetKind() {
		case "ClusterRole", "Role":
			var role rbacv1.ClusterRole // a Role has the same fields
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, &role)
			rules = append(rules, role.Rules...)
		case "Job":
			err = runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, job)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := manifests.Apply(t.Context(), admin, objects); err != nil {
		t.Fatal(err)
	}
	return rules, job
}

// runJob runs a container's command line with its environment and returns its output.
func runJob(t *testing.T, container *corev1.Container) (string, error) {
	t.Helper()
	env := map[string]string{}
	for _, variable := range container.Env {
		env[variable.Name] = variable.Value
	}
	if container.Command[0] != "/operator" {
		t.Fatalf("the container runs %q", container.Command)
	}
	cmd := operator.Command("test", nil)
	cmd.AddCommand(operator.ApproveCommand(func(name string) string { return env[name] }, fastClock{start: time.Now()}))
	cmd.SetArgs(append(container.Command[1:], container.Args...))
	var printed bytes.Buffer
	cmd.SetOut(&printed)
	err := cmd.ExecuteContext(t.Context())
	return printed.String(), err
}

// installed returns the names of the installed releases.
func installed(t *testing.T, admin client.Client) []string {
	t.Helper()
	var all unstructured.UnstructuredList
	all.SetGroupVersionKind(simulatedolm.CSVs)
	if err := admin.List(t.Context(), &all); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, csv := range all.Items {
		if phase, _, _ := unstructured.NestedString(csv.Object, "status", "phase"); phase == "Succeeded" {
			names = append(names, csv.GetName())
		}
	}
	slices.Sort(names)
	return names
}

// permissions returns the verbs and resources in rules.
func permissions(rules []rbacv1.PolicyRule) []string {
	all := map[string]bool{}
	for _, rule := range rules {
		for _, verb := range rule.Verbs {
			for _, resource := range rule.Resources {
				all[verb+" "+resource+"."+rule.APIGroups[0]] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// requests returns the verbs and resources of a user's requests.
func requests(t *testing.T, auditLog, user string) []string {
	t.Helper()
	file, err := os.Open(auditLog)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all := map[string]bool{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var request struct {
			Verb string `json:"verb"`
			URI  string `json:"requestURI"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			Object struct {
				Group    string `json:"apiGroup"`
				Resource string `json:"resource"`
			} `json:"objectRef"`
		}
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil || request.User.Username != user {
			continue
		}
		what := request.Verb + " " + request.URI
		if request.Object.Resource != "" {
			what = request.Verb + " " + request.Object.Resource + "." + request.Object.Group
		}
		all[what] = true
	}
	return slices.Sorted(maps.Keys(all))
}
