// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

const (
	namespace = "managed-upgrade-operator"
	lease     = "update-status-controller-leader"
)

// cluster is an API server with a cluster in the middle of an update, and the users who run the program.
type cluster struct {
	client.Client

	plane       *controlplane.ControlPlane
	kubeconfigs map[string]string // by user
	cache       string
}

// result is the outcome of one run of the program.
type result struct {
	code        int
	out, errOut string
	requests    []string // such as "get clusterversions"; discovery requests are left out
}

// startCluster starts a cluster whose update has been running for the given time.
func startCluster(t *testing.T, updating time.Duration) *cluster {
	t.Helper()
	plane := devtest.Start(t, func(ctx context.Context) (*controlplane.ControlPlane, error) {
		return controlplane.Start(ctx, controlplane.Options{Dir: t.TempDir(), WithoutControllerManager: true})
	})
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, configv1.Install, mcfgv1.Install, updatev1beta1.AddToScheme} {
		utilruntime.Must(add(scheme))
	}
	config := rest.CopyConfig(plane.RESTConfig())
	config.WarningHandler = rest.NoWarnings{} // about the test's finalizers
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	started := &cluster{Client: c, plane: plane, kubeconfigs: map[string]string{}, cache: t.TempDir()}
	objects, err := manifests.Read(crds.Files)
	if err != nil {
		t.Fatal(err)
	}
	rights, err := manifests.Read(os.DirFS("testdata"))
	if err != nil {
		t.Fatal(err)
	}
	if err := manifests.Apply(t.Context(), c, append(objects, rights...)); err != nil {
		t.Fatal(err)
	}
	for _, user := range []string{"viewer", "partial", "nothing"} {
		config, err := plane.ServiceAccountConfig(t.Context(), namespace, user)
		if err != nil {
			t.Fatal(err)
		}
		started.kubeconfigs[user] = filepath.Join(t.TempDir(), user)
		if err := controlplane.WriteKubeconfig(started.kubeconfigs[user], config); err != nil {
			t.Fatal(err)
		}
	}
	started.kubeconfigs["administrator"] = filepath.Join(t.TempDir(), "administrator")
	if err := plane.Kubeconfig(started.kubeconfigs["administrator"]); err != nil {
		t.Fatal(err)
	}
	started.fill(t, updating)
	return started
}

// fill creates a cluster whose control plane is being updated.
func (c *cluster) fill(t *testing.T, updating time.Duration) {
	t.Helper()
	start := metav1.NewTime(time.Now().Add(-updating).Truncate(time.Second))
	installed := metav1.NewTime(start.Add(-240 * time.Hour))
	ended := metav1.NewTime(installed.Add(time.Hour))
	version := &configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version"}, Spec: configv1.ClusterVersionSpec{ClusterID: "8a2f3d5e-1b6c-4f7a-9e0d-5c4b3a291807"},
	}
	status := configv1.ClusterVersionStatus{
		Desired: configv1.Release{Version: "4.20.6", Image: "image-4.20.6"},
		History: []configv1.UpdateHistory{
			{State: configv1.PartialUpdate, Version: "4.20.6", Image: "image-4.20.6", StartedTime: start},
			{State: configv1.CompletedUpdate, Version: "4.20.5", Image: "image-4.20.5", StartedTime: installed, CompletionTime: &ended},
		},
		Conditions: []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: ended},
			{Type: configv1.OperatorProgressing, Status: configv1.ConditionTrue, LastTransitionTime: start, Message: "Working towards 4.20.6: 106 of 901 done (11% complete)"},
			{Type: "Failing", Status: configv1.ConditionFalse, LastTransitionTime: ended},
		},
	}
	c.create(t, version, func() { version.Status = status })
	for name, installed := range map[string]string{"network": "4.20.6", "dns": "4.20.5", "machine-config": "4.20.5"} {
		operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.create(t, operator, func() {
			operator.Status = configv1.ClusterOperatorStatus{
				Versions: []configv1.OperandVersion{{Name: "operator", Version: installed}},
				Conditions: []configv1.ClusterOperatorStatusCondition{
					{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue, LastTransitionTime: ended},
					{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse, LastTransitionTime: ended},
					{Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse, LastTransitionTime: start},
				},
			}
		})
	}
	for _, role := range []string{"master", "worker"} {
		c.createPool(t, role)
	}
}

// createPool creates a pool with one up-to-date node.
func (c *cluster) createPool(t *testing.T, role string) {
	t.Helper()
	rendered := "rendered-" + role + "-1"
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: role + "-0", Labels: map[string]string{"node-role.kubernetes.io/" + role: ""},
		Annotations: map[string]string{
			"machineconfiguration.openshift.io/currentConfig": rendered, "machineconfiguration.openshift.io/desiredConfig": rendered,
			"machineconfiguration.openshift.io/state": "Done",
		},
	}}
	c.create(t, node, func() {
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now()}}
	})
	configuration := mcfgv1.MachineConfigPoolStatusConfiguration{ObjectReference: corev1.ObjectReference{Name: rendered}}
	pool := &mcfgv1.MachineConfigPool{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Spec: mcfgv1.MachineConfigPoolSpec{
			Configuration: configuration, NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"node-role.kubernetes.io/" + role: ""}},
		},
	}
	c.create(t, pool, func() {
		pool.Status = mcfgv1.MachineConfigPoolStatus{
			Configuration: configuration, MachineCount: 1, UpdatedMachineCount: 1, ReadyMachineCount: 1,
			Conditions: []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()}},
		}
	})
	c.create(t, &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
		Name: rendered, Annotations: map[string]string{"machineconfiguration.openshift.io/release-image-version": "4.20.5"},
	}}, nil)
}

// create creates an object and its status.
func (c *cluster) create(t *testing.T, object client.Object, setStatus func()) {
	t.Helper()
	if err := c.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if setStatus == nil {
		return
	}
	setStatus()
	if err := c.Status().Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// run runs the program as a user.
func (c *cluster) run(t *testing.T, user string, args ...string) result {
	t.Helper()
	before := len(c.audit(t, user))
	common := []string{"--kubeconfig", c.kubeconfigs[user], "--cache-dir", filepath.Join(c.cache, user)}
	cmd := exec.CommandContext(t.Context(), filepath.Join(c.plane.BinDir(), "kubectl-update"), append(common, args...)...)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{cmd.ProcessState.ExitCode(), out.String(), errOut.String(), c.audit(t, user)[before:]}
}

// audit returns a user's requests for objects.
func (c *cluster) audit(t *testing.T, user string) []string {
	t.Helper()
	file, err := os.Open(c.plane.AuditLog())
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var requests []string
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Verb string `json:"verb"`
			User struct {
				Username string `json:"username"`
			} `json:"user"`
			Object struct {
				Resource string `json:"resource"`
			} `json:"objectRef"`
		}
		if err := json.Unmarshal(lines.Bytes(), &event); err != nil {
			t.Fatal(err)
		}
		if event.User.Username == "system:serviceaccount:"+namespace+":"+user && event.Object.Resource != "" {
			requests = append(requests, event.Verb+" "+event.Object.Resource)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return requests
}

// check compares the exit code and looks for texts in the output.
func (r result) check(t *testing.T, code int, want ...string) {
	t.Helper()
	if r.code != code {
		t.Errorf("exit code %d, want %d", r.code, code)
	}
	for _, want := range want {
		if !strings.Contains(strings.Join(strings.Fields(r.out+r.errOut), " "), want) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if t.Failed() {
		t.Logf("%s\n%s\nrequests: %q", r.out, r.errOut, r.requests)
	}
}

func TestProgram(t *testing.T) {
	c := startCluster(t, 20*time.Minute)
	t.Run("Update Status Controller is not installed", func(t *testing.T) {
		got := c.run(t, "viewer", "status")
		got.check(t, 10, "UPDATING 4.20.5 to 4.20.6 for 20m.", "control plane 1 of 3 operators", "worker 0 of 1 nodes",
			"Data Read just now; Update Status Controller is not installed.")
		lists := slices.DeleteFunc(slices.Clone(got.requests), func(request string) bool { return !strings.HasPrefix(request, "list ") })
		if len(lists) > 12 || len(got.requests) > 13 {
			t.Errorf("requests %q, want at most 12 lists and one other", got.requests)
		}
		t.Logf("%d requests: %q", len(got.requests), got.requests)
	})
	t.Run("nodes are forbidden", func(t *testing.T) {
		c.run(t, "partial", "status").check(t, 40, "UNKNOWN", "nodes: you are not allowed to list them", "3 of 4 sources are current")
	})
	t.Run("everything is forbidden", func(t *testing.T) {
		c.run(t, "nothing", "status").check(t, 40, "UNKNOWN", "ClusterVersion: ", "nodes: you are not allowed to list them", "0 of 4 sources are current")
	})
	t.Run("printed command shows what is forbidden", newShell(t, c).checkUnknown)
	t.Run("dump has the same verdict", func(t *testing.T) { c.checkDump(t) })
	t.Run("kinds of the controller are missing", func(t *testing.T) {
		c.run(t, "viewer", "informers").check(t, 1, "UpdateInformer", "the API server does not have this kind")
	})
	t.Run("UpgradeJob is missing", func(t *testing.T) {
		c.run(t, "administrator", "acknowledge", "upgradejob/x", "-n", namespace, "-y").check(t, 1, "acknowledging UpgradeJob "+namespace+"/x")
	})
	c.installController(t)
	t.Run("Update Status Controller is installed", func(t *testing.T) {
		got := c.run(t, "viewer", "status")
		got.check(t, 20, "WAITING 4.20.5 to 4.20.6. Pool worker waits for its window.", "Data 2 of 2 sources, ")
		if len(got.requests) > 4 {
			t.Errorf("requests %q, want at most 4", got.requests)
		}
		t.Logf("%d requests: %q", len(got.requests), got.requests)
	})
	t.Run("insight is acknowledged", func(t *testing.T) {
		unasked := c.run(t, "viewer", "acknowledge", "insight/abc")
		unasked.check(t, 2, "nothing was changed", "add -y to make the change")
		if len(unasked.requests) > 0 {
			t.Errorf("requests %q of a change without an agreement", unasked.requests)
		}
		c.run(t, "viewer", "acknowledge", "insight/abc", "-y").check(t, 1, "cannot patch resource", "ask an administrator for the ClusterRole update-planner")
		c.run(t, "administrator", "acknowledge", "insight/other", "-y").check(t, 1, "does not need attention", "status --details")
		c.run(t, "administrator", "acknowledge", "insight/abc", "-y").check(t, 0, "insight/abc acknowledged")
		status := &updatev1beta1.UpdateStatus{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, status); err != nil || !strings.HasPrefix(status.Annotations[updatev1beta1.AcknowledgedAnnotation], "abc=") {
			t.Errorf("annotations %v, error %v", status.Annotations, err)
		}
	})
	t.Run("Update Status Controller is down", func(t *testing.T) {
		c.renew(t, time.Now().Add(-2*time.Minute))
		c.run(t, "viewer", "status").check(t, 10, "UPDATING 4.20.5 to 4.20.6", "Missing Update Status Controller: no sign of life for")
	})
}

// checkDump takes a dump with kubectl and compares the verdicts.
func (c *cluster) checkDump(t *testing.T) {
	t.Helper()
	dir := t.TempDir()
	for _, resources := range []string{"clusterversions,clusteroperators", "nodes", "machineconfigpools,machineconfigs", "pods,poddisruptionbudgets,machinesets"} {
		dumped, err := exec.CommandContext(t.Context(), filepath.Join(c.plane.BinDir(), "kubectl"),
			"--kubeconfig", c.kubeconfigs["administrator"], "--cache-dir", c.cache, "get", resources, "--all-namespaces", "--output", "yaml").Output()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, resources), dumped, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	verdicts := map[string]string{}
	at := time.Now().Format(time.RFC3339)
	for name, args := range map[string][]string{
		"live": {"status"}, "dump": {"status", "--replay", dir, "--now", at},
		"must-gather": {"status", "--replay", mustGather(t, dir), "--now", at},
	} {
		got := c.run(t, "viewer", args...)
		if got.code != 10 {
			t.Errorf("%s: exit code %d, want 10:\n%s%s", name, got.code, got.out, got.errOut)
		}
		_, progress, _ := strings.Cut(got.out, "Progress")
		verdicts[name], _, _ = strings.Cut(progress, "Missing")
	}
	for _, name := range []string{"dump", "must-gather"} {
		if verdicts["live"] != verdicts[name] {
			t.Errorf("the verdict is\n%s\nand in a %s\n%s", verdicts["live"], name, verdicts[name])
		}
	}
}

// mustGather writes the objects of a dump in the layout of a must-gather: one file per object, in folders by
// group and resource, next to the program's own files.
func mustGather(t *testing.T, dump string) string {
	t.Helper()
	dir := t.TempDir()
	root := filepath.Join(dir, "must-gather.local.1", "registry-example-com-must-gather-sha256-1")
	write := func(name string, content []byte) {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("version", []byte("4.20.6\n"))
	write("namespaces/shop/core/events.yaml", []byte("apiVersion: v1\nitems: []\nkind: EventList\n"))
	write("host_service_logs/masters/kubelet_service.log", []byte("kind: ClusterVersion {\n"))
	files, err := os.ReadDir(dump)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(filepath.Join(dump, file.Name()))
		if err != nil {
			t.Fatal(err)
		}
		var list unstructured.UnstructuredList
		if err := yaml.Unmarshal(content, &list.Object); err != nil {
			t.Fatal(err)
		}
		items, _, err := unstructured.NestedSlice(list.Object, "items")
		if err != nil {
			t.Fatal(err)
		}
		for _, item := range items {
			object := unstructured.Unstructured{Object: item.(map[string]any)}
			content, err := yaml.Marshal(item)
			if err != nil {
				t.Fatal(err)
			}
			folder := "cluster-scoped-resources"
			if object.GetNamespace() != "" {
				folder = filepath.Join("namespaces", object.GetNamespace())
			}
			group, resource := cmp.Or(object.GroupVersionKind().Group, "core"), strings.ToLower(object.GetKind())+"s"
			write(filepath.Join(folder, group, resource, object.GetName()+".yaml"), content)
		}
	}
	return dir
}

// installController installs the CRDs of the Update Status Controller and publishes a status.
func (c *cluster) installController(t *testing.T) {
	t.Helper()
	definitions, err := manifests.Read(os.DirFS(filepath.Join("..", "..", "deploy", "update-status", "crds")))
	if err != nil {
		t.Fatal(err)
	}
	if err := manifests.Apply(t.Context(), c, definitions); err != nil {
		t.Fatal(err)
	}
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	status := &updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}
	c.create(t, status, func() {
		status.Status = updatev1beta1.UpdateStatusStatus{
			ObservedTime: &now,
			Assessment: &updatev1beta1.Assessment{
				State: updatev1beta1.StateWaiting, FromRelease: "4.20.5", Release: "4.20.6", Summary: "Pool worker waits for its window", Since: now,
				Sources: []updatev1beta1.Source{{Name: "ClusterVersion", Current: true}, {Name: "Update Status Controller", Current: true}},
			},
			AfterUpdate: []updatev1beta1.RetainedInsight{{
				UpdateInformer: "cpu", RetainedSince: now,
				Insight: updatev1beta1.Insight{UID: "cpu", UUID: "abc", Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning, Summary: "high CPU"}},
			}},
		}
	})
	c.renew(t, time.Now())
}

// renew sets the time when the controller last renewed its Lease.
func (c *cluster) renew(t *testing.T, at time.Time) {
	t.Helper()
	object := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: lease}}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
		c.create(t, object, nil)
	}
	object.Spec.RenewTime = &metav1.MicroTime{Time: at}
	if err := c.Update(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}
