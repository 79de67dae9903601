// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/assessment"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

const mco = "machineconfiguration.openshift.io/"

// TestCommands takes each reason that prints commands and runs them with kubectl against a real API server. A
// diagnostic must show the objects that its cause names. A remedy must remove the cause. The effects of
// remedies are simulated in pkg/cli/status.
func TestCommands(t *testing.T) {
	c := startCluster(t, 2*time.Hour)
	s := newShell(t, c)
	c.createShop(t)
	for _, tc := range controlPlaneProblems() {
		t.Run(tc.reason, func(t *testing.T) { s.check(t, tc) })
	}
	t.Run("control plane that cannot be judged", func(t *testing.T) {
		version := &configv1.ClusterVersion{}
		c.change(t, version, "version", func() {
			version.Status.History[0].StartedTime = metav1.Now() // a long time without progress counts as stuck
			version.Status.Conditions = nil
		})
		s.followUnknown(t, "viewer", "clusterversion.config.openshift.io/version", "machineconfigpool.machineconfiguration.openshift.io/worker")
	})
	c.finishControlPlane(t)
	for _, tc := range poolProblems() {
		t.Run(tc.reason, func(t *testing.T) { s.check(t, tc) })
	}
	for name, management := range map[string]string{
		"window of the cluster":    fmt.Sprintf(`{"maintenanceWindow": {"enforcing": true, "cron": "0 %d * * *", "duration": "1h"}}`, (time.Now().UTC().Hour()+12)%24),
		"exclusion of the cluster": fmt.Sprintf(`{"exclusions": [{"enforcing": true, "start": %q, "end": %q}]}`, timestamp(-time.Hour), timestamp(36*time.Hour)),
	} {
		t.Run(name, func(t *testing.T) { s.checkWait(t, management) })
	}
	t.Run("pool whose nodes are not all there", func(t *testing.T) {
		version, pool := &configv1.ClusterVersion{}, &mcfgv1.MachineConfigPool{}
		c.change(t, version, "version", func() { version.Status.History[0].CompletionTime = new(metav1.Now()) })
		c.change(t, pool, "worker", func() { pool.Status.MachineCount++ })
		s.followUnknown(t, "viewer", "node/worker-0", "machineconfigpool.machineconfiguration.openshift.io/worker")
	})
	t.Run("node that cannot be judged", func(t *testing.T) {
		version, node := &configv1.ClusterVersion{}, &corev1.Node{}
		c.change(t, version, "version", func() { version.Status.History[0].CompletionTime = new(metav1.Now()) })
		c.change(t, node, "worker-0", func() { node.Status.Conditions = nil })
		s.followUnknown(t, "viewer", "Name:               worker-0")
	})
	t.Run("acknowledgment before an update", s.checkAcknowledgment)
	t.Run("what a user may not read", func(t *testing.T) { s.followUnknown(t, "partial", "yes") })
	c.installController(t)
	s.installObjects(t)
	for _, tc := range publishedProblems() {
		t.Run(tc.reason, func(t *testing.T) { s.checkPublished(t, tc) })
	}
	t.Run("controller without a heartbeat", func(t *testing.T) {
		s.renew(t, time.Now().Add(-time.Hour))
		s.followUnknown(t, "partial", "No resources found in managed-upgrade-operator namespace.")
	})
	for command, pattern := range writtenCommands(t) {
		if other := runElsewhere[command]; (other != "") == slices.ContainsFunc(s.ran, pattern.MatchString) {
			t.Errorf("%q: the test that runs it is %q", command, other)
		}
	}
	for reason := range documentedCommands(t) {
		if !s.checked[reason] {
			t.Errorf("the commands of %s are not tested", reason)
		}
	}
}

// problem is a cluster state whose cause prints commands.
type problem struct {
	reason string
	// create changes the cluster until the end of the test.
	create func(*testing.T, *cluster)
	// shows lists what the commands must print in addition to the names of the cause's objects.
	shows []string
	// instead drops the names of the objects from the check, for a command that prints their contents.
	instead bool
	// fixes is set if the commands remove the cause.
	fixes bool
}

// shell runs printed commands.
type shell struct {
	*cluster

	path    string // path of oc
	checked map[string]bool
	ran     []string // commands that were run
}

// newShell installs an oc script that runs kubectl and its plugin as an administrator. A patch stands in for
// subcommands that only oc has.
func newShell(t *testing.T, c *cluster) *shell {
	t.Helper()
	script := fmt.Sprintf(`#!/usr/bin/env bash
bin=%s
common=(--kubeconfig "${USER_KUBECONFIG:-%s}" --cache-dir %s)
case "$1" in
update) shift; exec "$bin/kubectl-update" "${common[@]}" "$@" ;;
adm) shift
	case "$*" in
	"upgrade --clear") exec "$bin/kubectl" "${common[@]}" patch clusterversion version --type=merge -p '{"spec":{"desiredUpdate":null}}' ;;
	*) exec "$bin/kubectl" "${common[@]}" "$@" ;;
	esac ;;
*) exec "$bin/kubectl" "${common[@]}" "$@" ;;
esac
`, c.plane.BinDir(), c.kubeconfigs["administrator"], c.cache)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "oc"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return &shell{cluster: c, path: folder + ":" + os.Getenv("PATH"), checked: map[string]bool{}}
}

// sh runs a command line exactly as printed.
func (s *shell) sh(t *testing.T, user, line string) (string, error) {
	t.Helper()
	s.ran = append(s.ran, line)
	cmd := exec.CommandContext(t.Context(), "bash", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+s.path, "USER_KUBECONFIG="+s.kubeconfigs[user])
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// assessment returns the assessment that the program reports to a user.
func (s *shell) assessment(t *testing.T, user string) *updatev1beta1.Assessment {
	t.Helper()
	got := s.run(t, user, "status", "-o", "json")
	var status updatev1beta1.UpdateStatus
	if err := json.Unmarshal([]byte(got.out), &status); err != nil {
		t.Fatalf("%v:\n%s\n%s", err, got.out, got.errOut)
	}
	return status.Status.Assessment
}

// causes returns the causes that the program reports.
func (s *shell) causes(t *testing.T) []updatev1beta1.Cause {
	t.Helper()
	return s.assessment(t, "viewer").Causes
}

// followUnknown runs the commands shown to a user who lacks the data for a verdict.
func (s *shell) followUnknown(t *testing.T, user string, shows ...string) {
	t.Helper()
	a := s.assessment(t, user)
	if a.State != updatev1beta1.StateUnknown || a.Remedy == nil || len(a.Remedy.Commands) == 0 {
		t.Fatalf("no command for what is unknown:\n%s", s.run(t, user, "status", "--details").out)
	}
	s.runAll(t, a.Remedy.Commands, shows)
}

// checkWait pauses the workers until a given time through spec.versionManagement. No action is needed until
// then.
func (s *shell) checkWait(t *testing.T, management string) {
	t.Helper()
	version := &unstructured.Unstructured{}
	version.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
	version.SetName("version")
	set := func(ctx context.Context, content string) {
		patch := fmt.Sprintf(`{"spec": {"versionManagement": %s}}`, content)
		if err := s.Patch(ctx, version, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
			t.Fatal(err)
		}
	}
	set(t.Context(), management)
	t.Cleanup(func() { set(context.WithoutCancel(t.Context()), "null") })
	if a := s.assessment(t, "viewer"); a.State != updatev1beta1.StateWaiting || a.ActionRequired || a.Resumes == nil || !a.Resumes.Time.After(time.Now()) {
		t.Errorf("the assessment is %+v", a)
	}
	s.run(t, "viewer", "status").check(t, 20, "WAITING", "Resumes", "Nothing before then.")
}

// checkAcknowledgment follows what the pre-checks report about an administrator acknowledgment.
func (s *shell) checkAcknowledgment(t *testing.T) {
	const gate = "ack-4.20-kube-1.34-api-removals-in-4.21"
	for namespace, configMap := range map[string]*corev1.ConfigMap{
		"openshift-config-managed": {ObjectMeta: metav1.ObjectMeta{Name: "admin-gates"}, Data: map[string]string{gate: "Read the notes."}},
		"openshift-config":         {ObjectMeta: metav1.ObjectMeta{Name: "admin-acks"}},
	} {
		configMap.Namespace = namespace
		s.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, nil)
		s.create(t, configMap, nil)
	}
	preChecks := func() string { return s.run(t, "administrator", "pre-checks", "--version", "4.21.2", "--details").out }
	before := preChecks()
	command := regexp.MustCompile(`(?m)^ +(oc .*admin-acks .*)$`).FindStringSubmatch(strings.ReplaceAll(before, "kubectl -n", "oc -n"))
	if !strings.Contains(before, "admin-ack/"+gate) || command == nil {
		t.Fatalf("no command acknowledges %s:\n%s", gate, before)
	}
	s.runAll(t, command[1:], []string{"admin-acks patched"})
	if after := preChecks(); strings.Contains(after, "admin-ack/") {
		t.Errorf("it is not acknowledged:\n%s", after)
	}
}

func timestamp(after time.Duration) string {
	return time.Now().Add(after).UTC().Format(time.RFC3339)
}

// runElsewhere lists the commands that this test does not run, with the scenario that runs them.
var runElsewhere = map[string]string{
	"oc update pre-checks --version ":            "update-by-hand",
	"oc -n %s scale deployment/%s --replicas=%d": "update-by-hand",
}

// writtenCommands returns each command in the sources of the assessment, with a pattern that matches it once
// its placeholders are filled in.
func writtenCommands(t *testing.T) map[string]*regexp.Regexp {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "pkg", "assessment", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	placeholder := regexp.MustCompile(`\\\{[a-z]+\\\}|%[sd]`)
	commands := map[string]*regexp.Regexp{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			literal, is := n.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			command, isCommand := strings.CutPrefix(text, "oc ")
			if !isCommand || command == "" {
				return true
			}
			pattern := placeholder.ReplaceAllString(regexp.QuoteMeta(command), `\S+`)
			commands[text] = regexp.MustCompile(`^oc (-n \S+ )?` + pattern)
			return true
		})
	}
	if len(commands) < 20 {
		t.Fatalf("only %d commands", len(commands))
	}
	return commands
}

func find(causes []updatev1beta1.Cause, reason string) *updatev1beta1.Cause {
	at := slices.IndexFunc(causes, func(c updatev1beta1.Cause) bool { return c.Reason == reason })
	if at < 0 {
		return nil
	}
	return &causes[at]
}

// check creates a problem and runs the commands of its cause.
func (s *shell) check(t *testing.T, tc problem) {
	t.Helper()
	reason, _, _ := strings.Cut(tc.reason, " ")
	tc.create(t, s.cluster)
	causes := s.causes(t)
	cause := find(causes, reason)
	if cause == nil || cause.Remedy == nil || len(cause.Remedy.Commands) == 0 {
		t.Fatalf("no cause with a command: %+v", causes)
	}
	s.checked[reason] = true
	s.follow(t, cause, tc)
	if left := find(s.causes(t), reason); tc.fixes && left != nil {
		t.Errorf("the cause is still there: %+v", left)
	}
}

// follow runs the commands of a cause.
func (s *shell) follow(t *testing.T, cause *updatev1beta1.Cause, tc problem) {
	t.Helper()
	if fixes := cause.Remedy.Type == updatev1beta1.RemedyFixes; fixes != tc.fixes {
		t.Errorf("the commands are of type %s", cause.Remedy.Type)
	}
	shows := slices.Clone(tc.shows)
	if !tc.instead {
		for _, group := range cause.Chain[0].Objects {
			shows = append(shows, group.Names...)
		}
	}
	if len(shows) == 0 {
		t.Error("the cause names no object")
	}
	s.runAll(t, cause.Remedy.Commands, shows)
}

// runAll runs the commands. They must succeed and print all of the texts.
func (s *shell) runAll(t *testing.T, commands, shows []string) {
	t.Helper()
	var printed strings.Builder
	for _, command := range commands {
		out, err := s.sh(t, "administrator", command)
		// The exit code of "status" is the verdict.
		if err != nil && !strings.HasPrefix(command, "oc update status") {
			t.Errorf("%s: %v:\n%s", command, err, out)
		}
		printed.WriteString(out)
	}
	for _, want := range shows {
		if !strings.Contains(printed.String(), want) {
			t.Errorf("%q does not show %q:\n%s", commands, want, printed.String())
		}
	}
}

// change modifies an object and its status until the end of the test.
func (c *cluster) change(t *testing.T, object client.Object, key string, change func()) {
	t.Helper()
	namespace, name, found := strings.Cut(key, "/")
	if !found {
		namespace, name = "", key
	}
	update := func(apply func()) {
		if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
			t.Fatal(err)
		}
		apply()
		changed, _ := object.DeepCopyObject().(client.Object)
		if err := c.Update(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		changed.SetResourceVersion(object.GetResourceVersion())
		if err := c.Status().Update(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
	}
	var before client.Object
	update(func() {
		before, _ = object.DeepCopyObject().(client.Object)
		change()
	})
	t.Cleanup(func() {
		restored := before
		current, _ := before.DeepCopyObject().(client.Object)
		ctx := context.WithoutCancel(t.Context())
		if err := c.Get(ctx, client.ObjectKeyFromObject(before), current); err != nil {
			t.Error(err)
			return
		}
		restored.SetResourceVersion(current.GetResourceVersion())
		status, _ := restored.DeepCopyObject().(client.Object)
		if err := c.Update(ctx, restored); err != nil {
			t.Error(err)
		}
		status.SetResourceVersion(restored.GetResourceVersion())
		if err := c.Status().Update(ctx, status); err != nil {
			t.Error(err)
		}
	})
}

// temporary creates an object and deletes it at the end of the test.
func (c *cluster) temporary(t *testing.T, object client.Object, setStatus func()) {
	t.Helper()
	c.create(t, object, setStatus)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			t.Error(err)
			return
		}
		object.SetFinalizers(nil)
		if err := c.Update(ctx, object); err != nil {
			t.Error(err)
		}
		if err := c.Delete(ctx, object, client.GracePeriodSeconds(0)); client.IgnoreNotFound(err) != nil {
			t.Error(err)
		}
	})
}

func hourAgo() metav1.Time { return metav1.NewTime(time.Now().Add(-time.Hour).Truncate(time.Second)) }

// versionCondition sets a condition of the ClusterVersion. An empty status removes the condition.
func versionCondition(name configv1.ClusterStatusConditionType, status configv1.ConditionStatus) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		t.Helper()
		version := &configv1.ClusterVersion{}
		c.change(t, version, "version", func() { version.Status.Conditions = setCondition(version.Status.Conditions, name, status, "x") })
	}
}

func setCondition(all []configv1.ClusterOperatorStatusCondition, name configv1.ClusterStatusConditionType, status configv1.ConditionStatus, message string) []configv1.ClusterOperatorStatusCondition {
	all = slices.DeleteFunc(all, func(o configv1.ClusterOperatorStatusCondition) bool { return o.Type == name })
	if status == "" {
		return all
	}
	return append(all, configv1.ClusterOperatorStatusCondition{Type: name, Status: status, LastTransitionTime: hourAgo(), Message: message})
}

// operatorCondition sets a condition of an operator.
func operatorCondition(operator string, name configv1.ClusterStatusConditionType, status configv1.ConditionStatus) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		t.Helper()
		object := &configv1.ClusterOperator{}
		c.change(t, object, operator, func() {
			object.Status.Conditions = setCondition(object.Status.Conditions, name, status, "1 of 3 pods is not ready")
		})
	}
}

// controlPlaneProblems lists the problems of the cluster that fill creates. Its update makes no progress.
func controlPlaneProblems() []problem {
	nothing := func(*testing.T, *cluster) {}
	return []problem{
		{reason: assessment.ReasonControlPlaneStalled, create: nothing, shows: []string{"Working towards 4.20.6"}},
		{reason: assessment.ReasonOperatorStalled, create: operatorCondition("dns", configv1.OperatorProgressing, configv1.ConditionTrue)},
		{reason: "ClusterVersionFailing", create: versionCondition("Failing", configv1.ConditionTrue), shows: []string{"Failing"}},
		{reason: "ClusterVersionFailingUnknown", create: versionCondition("Failing", "")},
		{reason: "ReleaseRefused", create: versionCondition("ReleaseAccepted", configv1.ConditionFalse), shows: []string{"ReleaseAccepted"}},
		{reason: "RequestRefused", create: func(t *testing.T, c *cluster) {
			t.Helper()
			version := &configv1.ClusterVersion{}
			c.change(t, version, "version", func() {
				version.Spec.DesiredUpdate = &configv1.Update{Version: "4.20.5"}
				version.Status.Conditions = setCondition(version.Status.Conditions, "ReleaseAccepted", configv1.ConditionFalse,
					`Preconditions failed for payload loaded version="4.20.5" image="image-4.20.5": a rollback is not supported`)
			})
		}, fixes: true, shows: []string{"patched"}, instead: true},
		{reason: "PreviousUpdateIncomplete", create: func(t *testing.T, c *cluster) {
			t.Helper()
			version := &configv1.ClusterVersion{}
			c.change(t, version, "version", func() { version.Status.History[1].State = configv1.PartialUpdate })
		}, shows: []string{"Partial"}},
		{reason: updatev1beta1.ReasonPaused + " by ClusterVersion", create: pauseCluster, fixes: true, shows: []string{"patched"}, instead: true},
		{reason: "OperatorUnavailable", create: operatorCondition("machine-config", configv1.OperatorAvailable, configv1.ConditionFalse)},
		{reason: "OperatorDegraded", create: operatorCondition("network", configv1.OperatorDegraded, configv1.ConditionTrue), shows: []string{"ovnkube-node-1"}, instead: true},
		{reason: "OperatorDegraded without pods", create: func(t *testing.T, c *cluster) {
			t.Helper()
			object := &configv1.ClusterOperator{}
			c.change(t, object, "network", func() {
				object.Status.Conditions = setCondition(object.Status.Conditions, configv1.OperatorDegraded, configv1.ConditionTrue, "no quorum")
			})
		}, shows: []string{"no quorum"}},
	}
}

// pauseCluster pauses the cluster through spec.versionManagement, a field that OpenShift's definition does
// not have yet.
func pauseCluster(t *testing.T, c *cluster) {
	t.Helper()
	definition := &unstructured.Unstructured{}
	definition.SetAPIVersion("apiextensions.k8s.io/v1")
	definition.SetKind("CustomResourceDefinition")
	definition.SetName("clusterversions.config.openshift.io")
	const field = `[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/versionManagement",
		"value": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}]`
	if err := c.Patch(t.Context(), definition, client.RawPatch(types.JSONPatchType, []byte(field))); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		version := &unstructured.Unstructured{}
		version.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
		version.SetName("version")
		const paused = `{"spec": {"versionManagement": {"pausedUntil": "true"}}}`
		if err := c.Patch(ctx, version, client.RawPatch(types.MergePatchType, []byte(paused))); err != nil {
			return false, err
		}
		_, found, err := unstructured.NestedString(version.Object, "spec", "versionManagement", "pausedUntil")
		return found, err // the API server takes a moment to use the definition
	})
	if err != nil {
		t.Fatalf("waiting until ClusterVersions may be paused: %v", err)
	}
}

// createShop creates the pods that the commands show.
func (c *cluster) createShop(t *testing.T) {
	t.Helper()
	for _, name := range []string{"shop", "openshift-ovn-kubernetes"} {
		c.create(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, nil)
		c.create(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "default"}}, nil)
	}
	c.create(t, newPod("openshift-ovn-kubernetes", "ovnkube-node-1", "master-0"), nil)
}

func newPod(namespace, name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"app": "api"}},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "c"}}},
	}
}

// finishControlPlane marks the control plane as updated an hour ago. The worker pool makes no progress.
func (c *cluster) finishControlPlane(t *testing.T) {
	t.Helper()
	version := &configv1.ClusterVersion{}
	c.change(t, version, "version", func() {
		version.Status.History[0].State, version.Status.History[0].CompletionTime = configv1.CompletedUpdate, new(hourAgo())
		// If a condition disagrees, it is unknown whether the update is complete.
		version.Status.Conditions = setCondition(version.Status.Conditions, configv1.OperatorProgressing, configv1.ConditionFalse, "Cluster version is 4.20.6")
	})
	for _, name := range []string{"network", "dns", "machine-config"} {
		operator := &configv1.ClusterOperator{}
		c.change(t, operator, name, func() { operator.Status.Versions[0].Version = "4.20.6" })
	}
	for _, role := range []string{"master", "worker"} {
		c.create(t, &mcfgv1.MachineConfig{ObjectMeta: metav1.ObjectMeta{
			Name: "rendered-" + role + "-2", Annotations: map[string]string{mco + "release-image-version": "4.20.6"},
		}}, nil)
		pool := &mcfgv1.MachineConfigPool{}
		c.change(t, pool, role, func() { pool.Spec.Configuration.Name = "rendered-" + role + "-2" })
	}
	annotate("master-0", "currentConfig", "rendered-master-2", "desiredConfig", "rendered-master-2")(t, c)
}

// annotate sets annotations with the machine config operator's prefix on a node.
func annotate(name string, pairs ...string) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		t.Helper()
		node := &corev1.Node{}
		c.change(t, node, name, func() {
			for i := 0; i < len(pairs); i += 2 {
				node.Annotations[mco+pairs[i]] = pairs[i+1]
			}
		})
	}
}

// nodeCondition sets a condition of the worker.
func nodeCondition(name corev1.NodeConditionType, status corev1.ConditionStatus) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		t.Helper()
		node := &corev1.Node{}
		c.change(t, node, "worker-0", func() {
			conditions := slices.DeleteFunc(node.Status.Conditions, func(o corev1.NodeCondition) bool { return o.Type == name })
			node.Status.Conditions = append(conditions, corev1.NodeCondition{Type: name, Status: status, LastTransitionTime: hourAgo()})
		})
	}
}

// drain makes the machine config operator drain the worker for more than an hour, blocked by the pods.
func drain(pods ...client.Object) func(*testing.T, *cluster) {
	return func(t *testing.T, c *cluster) {
		t.Helper()
		since := metav1.NewTime(time.Now().Add(-70 * time.Minute).Truncate(time.Second))
		node := &corev1.Node{}
		c.change(t, node, "worker-0", func() {
			node.Annotations[mco+"desiredConfig"], node.Annotations[mco+"state"] = "rendered-worker-2", "Working"
			node.Annotations[mco+"desiredDrain"] = "drain-rendered-worker-2"
			node.Spec.Unschedulable = true
			node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: &since}}
		})
		for _, object := range pods {
			object, _ := object.DeepCopyObject().(client.Object)
			setStatus := func() {}
			if budget, is := object.(*policyv1.PodDisruptionBudget); is {
				status := budget.Status
				setStatus = func() {
					budget.Status = status
					budget.Status.ObservedGeneration = budget.Generation
				}
			}
			if _, is := object.(*appsv1.Deployment); is {
				setStatus = nil
			}
			c.temporary(t, object, setStatus)
		}
	}
}

// newBudget returns a PodDisruptionBudget that allows no disruptions.
func newBudget(name string, spec policyv1.PodDisruptionBudgetSpec) *policyv1.PodDisruptionBudget {
	spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "api"}}
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: spec,
		Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: 2, CurrentHealthy: 2, DesiredHealthy: 2},
	}
}

// poolProblems lists the problems of the worker pool after finishControlPlane.
func poolProblems() []problem {
	nothing := func(*testing.T, *cluster) {}
	all := func(changes ...func(*testing.T, *cluster)) func(*testing.T, *cluster) {
		return func(t *testing.T, c *cluster) {
			t.Helper()
			for _, change := range changes {
				change(t, c)
			}
		}
	}
	paused := func(t *testing.T, c *cluster) {
		t.Helper()
		pool := &mcfgv1.MachineConfigPool{}
		c.change(t, pool, "worker", func() { pool.Spec.Paused = true })
	}
	noDisruption := policyv1.PodDisruptionBudgetSpec{MaxUnavailable: new(intstr.FromInt32(0))}
	kept := newPod("shop", "api-1", "worker-0")
	kept.Finalizers = []string{"example.com/kept"}
	return []problem{
		{reason: assessment.ReasonPoolStalled, create: nothing},
		{reason: assessment.ReasonDrainStalled, create: drain(ofDaemonSet(newPod("shop", "api-1", "worker-0"))), shows: []string{"api-1"}},
		{reason: assessment.ReasonNodeStalled, create: all(
			annotate("worker-0", "desiredConfig", "rendered-worker-2", "state", "Rebooting"), nodeCondition(corev1.NodeReady, corev1.ConditionTrue),
		)},
		{reason: "NodeDegraded", create: annotate("worker-0", "state", "Degraded", "reason", "disk full"), shows: []string{"disk full"}},
		{reason: "NodeUnreconcilable", create: annotate("worker-0", "state", "Unreconcilable", "reason", "odd"), shows: []string{"odd"}},
		{reason: "DrainNotCordoned", create: all(nodeCondition(corev1.NodeReady, corev1.ConditionTrue), drain(newPod("shop", "api-1", "worker-0")), func(t *testing.T, c *cluster) {
			t.Helper()
			node := &corev1.Node{}
			c.change(t, node, "worker-0", func() { node.Spec.Unschedulable, node.Spec.Taints = false, nil })
		}), fixes: true, shows: []string{"worker-0 cordoned"}, instead: true},
		{reason: "NodeNotReady", create: nodeCondition(corev1.NodeReady, corev1.ConditionFalse)},
		{reason: "NodeDiskPressure", create: nodeCondition(corev1.NodeDiskPressure, corev1.ConditionTrue), shows: []string{"DiskPressure"}},
		{reason: "NodeNetworkUnavailable", create: nodeCondition(corev1.NodeNetworkUnavailable, corev1.ConditionTrue), shows: []string{"NetworkUnavailable"}},
		{reason: "PodHeldByBudget", create: drain(newPod("shop", "api-1", "worker-0"), newBudget("api", noDisruption)), shows: []string{"maxUnavailable: 0"}},
		{reason: "PodSelectedByBudgets", create: drain(newPod("shop", "api-1", "worker-0"), newBudget("api", noDisruption), newBudget("all", noDisruption))},
		{reason: "PodNotEvicted", create: drain(newPod("shop", "api-1", "worker-0"))},
		{reason: "PoolDegraded", create: func(t *testing.T, c *cluster) {
			t.Helper()
			pool := &mcfgv1.MachineConfigPool{}
			c.change(t, pool, "worker", func() {
				pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionTrue, LastTransitionTime: hourAgo()}}
			})
		}},
		{reason: "PoolPaused", create: all(paused, drain(newPod("shop", "api-1", "worker-0"))), fixes: true, shows: []string{"patched"}, instead: true},
		{reason: updatev1beta1.ReasonPaused, create: paused, fixes: true, shows: []string{"patched"}, instead: true},
		{reason: "PodKeptByFinalizers", create: all(drain(kept), deletePod)},
	}
}

// deletePod deletes the shop's pod.
func deletePod(t *testing.T, c *cluster) {
	t.Helper()
	if err := c.Delete(t.Context(), newPod("shop", "api-1", "worker-0"), client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
}

// ofDaemonSet makes a DaemonSet the owner of the pod, so the pod does not block a drain.
func ofDaemonSet(pod *corev1.Pod) *corev1.Pod {
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "x", Controller: new(true)}}
	return pod
}

// checkUnknown runs the commands shown to a user without permission to read nodes.
func (s *shell) checkUnknown(t *testing.T) {
	got := s.run(t, "partial", "status")
	line := regexp.MustCompile(`oc auth .*`).FindString(strings.ReplaceAll(got.out, "kubectl", "oc"))
	for user, want := range map[string]string{"partial": "no", "viewer": "yes"} {
		if out, _ := s.sh(t, user, line); line == "" || !strings.Contains(out, want+"\n") {
			t.Errorf("%q as %s: %s, want %s; the screen is\n%s", line, user, out, want, got.out)
		}
	}
}

// installObjects creates the objects of the insights that only the controller reports.
func (s *shell) installObjects(t *testing.T) {
	t.Helper()
	definitions, err := manifests.Read(os.DirFS(filepath.Join("..", "..", "deploy", "crds")))
	if err != nil {
		t.Fatal(err)
	}
	definitions = slices.DeleteFunc(definitions, func(o *unstructured.Unstructured) bool { return o.GetKind() != "CustomResourceDefinition" })
	if err := manifests.Apply(t.Context(), s.Client, definitions); err != nil {
		t.Fatal(err)
	}
	s.apply(t, `
apiVersion: config.openshift.io/v1beta1
kind: UpdateInformer
metadata: {name: queue}
spec: {clientConfig: {service: {name: queue, namespace: shop}}}
---
apiVersion: managedupgrade.appuio.io/v1beta1
kind: UpgradeJob
metadata: {name: weekly, namespace: managed-upgrade-operator}
spec:
  startAfter: 2026-11-22T22:00:00Z
  startBefore: 2026-11-22T23:00:00Z
  desiredVersion: {version: 4.20.6}
  config: {upgradeTimeout: 12h}
---
apiVersion: upgrade.managed.openshift.io/v1alpha1
kind: UpgradeConfig
metadata: {name: weekly, namespace: managed-upgrade-operator}
spec:
  type: OSD
  upgradeAt: "2026-11-22T22:00:00Z"
  desired: {version: 4.20.6, channel: stable-4.20}
  PDBForceDrainTimeout: 60
---
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata: {name: blue, namespace: shop}
spec: {}
`)
	s.create(t, newPod("shop", "api-1", "worker-0"), nil)
}

// apply creates the objects in a manifest.
func (s *shell) apply(t *testing.T, manifest string) {
	t.Helper()
	objects, err := manifests.Decode([]byte(manifest))
	if err != nil {
		t.Fatal(err)
	}
	if err := manifests.Apply(t.Context(), s.Client, objects); err != nil {
		t.Fatal(err)
	}
}

// published is an insight that the controller publishes.
type published struct {
	reason    string
	resources []updatev1beta1.ResourceReference
	shows     []string
}

func publishedProblems() []published {
	job := []updatev1beta1.ResourceReference{{APIVersion: "managedupgrade.appuio.io/v1beta1", Kind: "UpgradeJob", Namespace: namespace, Name: "weekly"}}
	config := []updatev1beta1.ResourceReference{{APIVersion: "upgrade.managed.openshift.io/v1alpha1", Kind: "UpgradeConfig", Namespace: namespace, Name: "weekly"}}
	informer := []updatev1beta1.ResourceReference{{APIVersion: updatev1beta1.GroupVersion.String(), Kind: "UpdateInformer", Name: "queue"}}
	pod := []updatev1beta1.ResourceReference{{APIVersion: "v1", Kind: "Pod", Namespace: "shop", Name: "api-1"}}
	operator := []updatev1beta1.ResourceReference{{APIVersion: configv1.GroupVersion.String(), Kind: "ClusterOperator", Name: "dns"}}
	node := []updatev1beta1.ResourceReference{{APIVersion: "v1", Kind: "Node", Name: "worker-0"}}
	all := []published{
		{"UpgradeFailed", job, []string{"kind: UpgradeJob"}},
		{"UpgradeStepSlow", config, []string{"kind: UpgradeConfig", "desired:"}},
		{"UpgradeStepUnknown", job, nil},
		{"UpgradePreCheckFailed", config, nil},
		{"UpgradeNotAccepted", job, nil},
		{"PodTerminating", pod, nil},
		{"OperatorStateUnknown", operator, nil},                                   // an operator that was just created is not a problem yet
		{"NodeInSeveralPools", node, []string{"node-role.kubernetes.io/worker="}}, // a warning in addition to the stuck pool
		{"AlertFiring", nil, []string{"the summary"}},
		{"CriticalAlertFiring", nil, []string{"the summary"}},
	}
	for _, reason := range []string{
		updatev1beta1.ReasonInformerDegraded, updatev1beta1.ReasonInformerUnreachable, updatev1beta1.ReasonInformerWaiting, updatev1beta1.ReasonInformerFailed,
		updatev1beta1.ReasonInformerInvalid, updatev1beta1.ReasonScopeMutated, updatev1beta1.ReasonUnstableIdentifiers,
	} {
		all = append(all, published{reason, informer, []string{"Update"}})
	}
	return all
}

// checkPublished publishes a status with an insight, as the controller does, and runs the commands on the
// screen.
func (s *shell) checkPublished(t *testing.T, tc published) {
	t.Helper()
	s.checked[tc.reason] = true
	facts := checks.Gather(t.Context(), checks.Update, checks.Readers{Reader: s.Client, Live: s.Client, Clock: clock.RealClock{}})
	status := &updatev1beta1.UpdateStatus{}
	s.change(t, status, updatev1beta1.UpdateStatusName, func() {
		status.Status = updatestatus.Compute(updatestatus.Input{Facts: facts})
		now := metav1.NewTime(facts.Now)
		plane := &status.Status.ControlPlane.Section
		plane.Conditions[0].Status, plane.Conditions[1].Status = metav1.ConditionTrue, metav1.ConditionTrue
		plane.UpdateInformers = []updatev1beta1.InformerInsights{{Name: checks.InformerUpgrades, Insights: []updatev1beta1.Insight{{
			UID: tc.reason, UUID: tc.reason, AcquisitionTime: now, FirstObservedTime: now,
			Scope:  updatev1beta1.InsightScope{Type: updatev1beta1.ScopeControlPlane, Resources: tc.resources},
			Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelError, Type: "Unknown", Reason: tc.reason, Summary: "the summary", Description: "d"},
		}}}}
		status.Status.Assessment = new(assessment.Assess(status.Status, assessment.Input{Facts: facts, Now: facts.Now}))
	})
	s.renew(t, time.Now())
	cause := find(s.causes(t), tc.reason)
	if cause == nil {
		t.Fatal("no such cause")
	}
	s.follow(t, cause, problem{shows: tc.shows})
}

// documentedCommands returns the reasons that have a command according to the documentation page. The remedy
// of Other applies to any cause without an object.
func documentedCommands(t *testing.T) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "concepts", "update-troubleshooting.md"))
	if err != nil {
		t.Fatal(err)
	}
	table, _, _ := strings.Cut(string(page), "<!-- end reasons -->") // the reasons of plans are on another page
	reasons := map[string]bool{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Za-z]+)` \\|.*`oc .*` \\|$").FindAllStringSubmatch(table, -1) {
		reasons[row[1]] = row[1] != assessment.ReasonOther
	}
	delete(reasons, assessment.ReasonOther)
	if len(reasons) < 30 {
		t.Fatalf("only %d reasons with a command", len(reasons))
	}
	return reasons
}
