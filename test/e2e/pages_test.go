// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/nodekeeper"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

const pagesFolder = "../../docs/alerts"

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

// building matches the commands that build programs and images or install them with make. Other tests cover these.
var building = regexp.MustCompile(`^(make|git|install|[A-Z_]+=\S+( make .*)?$)`)

// commands returns the commands of the shell blocks of a page, each in one line. The page is the page of an alert, or
// relative to it.
func commands(t *testing.T, alert string) []string {
	t.Helper()
	var all []string
	for _, block := range shellBlock.FindAllStringSubmatch(readFile(t, filepath.Join(pagesFolder, alert+".md")), -1) {
		for line := range strings.Lines(strings.ReplaceAll(block[1], "\\\n", "")) {
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") && !building.MatchString(line) {
				all = append(all, line)
			}
		}
	}
	if len(all) == 0 {
		t.Errorf("the page of %s has no shell command", alert)
	}
	return all
}

// terminal runs commands as an on-call engineer would. Its oc is kubectl. Without a kubelet there are no
// logs of pods, so for "oc logs" it prints the logs of the operator's processes if their pods are requested.
type terminal struct{ path string }

func newTerminal(t *testing.T, cluster *devcluster.Cluster, operator *devcluster.Operator) terminal {
	t.Helper()
	kubeconfig := cluster.Path("kubeconfig")
	if err := cluster.Kubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	var logs []string
	for _, replica := range operator.Replicas() {
		logs = append(logs, replica.Log())
	}
	t.Cleanup(func() { auditedRequests(t, cluster) })
	folder := t.TempDir()
	script := fmt.Sprintf(`#!/usr/bin/env bash
case "$*" in
"logs -n managed-upgrade-operator -l app.kubernetes.io/name=managed-upgrade-operator "*) cat %s ;;
"logs "*) echo "log of another operator" ;;
*) exec %s --kubeconfig %s "$@" ;;
esac
`, strings.Join(logs, " "), filepath.Join(cluster.BinDir(), "kubectl"), kubeconfig)
	if err := os.WriteFile(filepath.Join(folder, "oc"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return terminal{folder}
}

// run runs a command and returns what it prints. Some other exit codes are also results: 1, as from "oc auth can-i",
// and 10 to 40, the verdicts of "oc update".
func (term terminal) run(ctx context.Context, t *testing.T, command string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, "bash", "-c", command)
	cmd.Env = append(os.Environ(), "PATH="+term.path+":"+os.Getenv("PATH"))
	printed, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || !slices.Contains([]int{1, 10, 20, 30, 40}, exit.ExitCode())) {
		t.Errorf("%s: %v\n%s", command, err, printed)
	}
	return string(printed)
}

// follow runs the commands of a page, with its placeholders replaced. Each prints what one of the
// patterns expects: the first one whose key the command contains.
func (term terminal) follow(t *testing.T, alert string, placeholders map[string]string, want []expectation) {
	t.Helper()
	for _, command := range commands(t, alert) {
		for _, placeholder := range slices.Backward(slices.Sorted(maps.Keys(placeholders))) { // NAMESPACE before NAME
			command = regexp.MustCompile(`\b`+placeholder+`\b`).ReplaceAllString(command, placeholders[placeholder])
		}
		i := slices.IndexFunc(want, func(e expectation) bool { return strings.Contains(command, e.command) })
		if i < 0 {
			t.Errorf("%s: no test expects anything of %q", alert, command)
			continue
		}
		if printed := term.run(t.Context(), t, command); !regexp.MustCompile(want[i].output).MatchString(printed) {
			t.Errorf("%s: %s\nprints\n%s\nwant a match of %s", alert, command, printed, want[i].output)
		}
	}
}

type expectation struct{ command, output string }

// awaitStatus waits until the UpgradeConfig has a condition with that status and a matching reason.
func awaitStatus(t *testing.T, userClient client.Client, config *upgradev1alpha1.UpgradeConfig, kind string, status metav1.ConditionStatus, reason string) {
	t.Helper()
	eventually(t, 2*time.Minute, fmt.Sprintf("%s is %s with reason %s", kind, status, reason), func(ctx context.Context) error {
		if err := userClient.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
			return err
		}
		c := meta.FindStatusCondition(config.Status.Conditions, kind)
		if c == nil || c.Status != status || !regexp.MustCompile("^("+reason+")$").MatchString(c.Reason) {
			return fmt.Errorf("the conditions are %+v", config.Status.Conditions)
		}
		return nil
	})
}

func named(config *upgradev1alpha1.UpgradeConfig) map[string]string {
	return map[string]string{"KIND": "UpgradeConfig.upgrade.managed.openshift.io", "NAMESPACE": config.Namespace, "NAME": config.Name}
}

// TestAlertPages brings a cluster into the states that the alert pages describe, one after the
// other, and runs the commands of the pages there.
func TestAlertPages(t *testing.T) { //nolint:tparallel // each state follows from the one before
	t.Parallel()
	const refused = "the signature cannot be verified"
	cluster := startCluster(t, openshiftsim.ClusterSpec{
		Speed:     fast,
		Operators: []cvo.OperatorSpec{{Name: "network", Takes: timescale.Never}},
		Releases: []updategraph.Release{
			{Version: "4.20.6", Channels: []string{channel}},
			{Version: "4.20.7", Channels: []string{channel}, Refused: refused},
		},
	})
	userClient := newUserClient(t, cluster)
	const settings = "upgradeWindow: %s\ncontrolPlane: {slowAfter: 1s}\nalerts: {interval: 1s, timeout: 1s, url: %q}\nwebhook: {timeout: 1s, url: %q}\n"
	const closed = "http://127.0.0.1:1"
	operator := startOperator(t, cluster, devcluster.OperatorOptions{Replicas: 2, Config: fmt.Sprintf(settings, "15s", closed, closed)})
	term := newTerminal(t, cluster, operator)
	configMap := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "managed-upgrade-operator-config"},
		Data:       map[string]string{"config.yaml": "kind: OperatorConfig\n"},
	}
	if err := userClient.Create(t.Context(), configMap); err != nil {
		t.Fatal(err)
	}
	configure := func(t *testing.T, text string) {
		t.Helper()
		if err := operator.Configure(text); err != nil {
			t.Fatal(err)
		}
	}

	config := applyUpgrade(t, userClient, upgradeTo("4.20.6"))
	t.Run("Prometheus and the webhook are down", func(t *testing.T) {
		awaitStatus(t, userClient, config, upgradev1alpha1.ConditionProgressing, metav1.ConditionUnknown, "CannotObserve")
		term.follow(t, "ManagedUpgradeCannotObserve", named(config), []expectation{
			{"Progressing", "127.0.0.1:1"}, {"get pods", "."}, {"logs", `"level":`},
		})
		term.follow(t, "ManagedUpgradeNotificationsFailing", named(config), []expectation{
			{"logs", `"msg":"delivering notifications[^\n]*127.0.0.1:1`}, {"get upgrade", config.Name}, {"get configmap", "kind: OperatorConfig"},
		})
	})
	t.Run("the window closes", func(t *testing.T) {
		awaitStatus(t, userClient, config, upgradev1alpha1.ConditionSucceeded, metav1.ConditionFalse, "WindowMissed")
		term.follow(t, "ManagedUpgradeWindowMissed", named(config), []expectation{
			{"describe", `(?s)WindowMissed.*127.0.0.1:1`}, {"get events", "UpgradeFailed"}, {"annotate", "annotated"},
		})
		awaitEndOf := func(attempt int32) {
			awaitCondition(t, userClient, config, func(c *upgradev1alpha1.UpgradeConfig) bool {
				records, answer := c.Status.History, c.Status.Retry
				return answer != nil && answer.StartTime != nil && len(records) == 1 && records[0].Attempt == attempt && records[0].Finished()
			})
		}
		awaitEndOf(2)
		term.follow(t, "../gitops", named(config), []expectation{{"annotate", "annotated"}, {"jsonpath", `"token":"\d+"`}})
		awaitEndOf(3)
		later := upgradeTo("4.20.6")
		later.Spec.UpgradeAt = time.Now().Add(10 * time.Minute).UTC().Format(time.RFC3339)
		config = applyUpgrade(t, userClient, later)
		awaitStatus(t, userClient, config, upgradev1alpha1.ConditionProgressing, metav1.ConditionFalse, "Scheduled")
	})
	t.Run("the configuration is invalid", func(t *testing.T) {
		configure(t, "upgradeWindow: soon\n")
		edit := client.RawPatch("application/merge-patch+json", []byte(`{"data": {"config.yaml": "upgradeWindow: soon\n"}}`))
		if err := userClient.Patch(t.Context(), configMap, edit); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, userClient, config, "Degraded", metav1.ConditionTrue, ".*")
		term.follow(t, "ManagedUpgradeConfigurationInvalid", nil, []expectation{
			{"get configmap", "^upgradeWindow: soon\n$"}, {"Degraded", "upgradeWindow.*soon"}, {"logs", `"level":"error".*upgradeWindow`},
		})
		configure(t, fmt.Sprintf(settings, "15s", "", cluster.Sink.URL()))
		awaitStatus(t, userClient, config, upgradev1alpha1.ConditionProgressing, metav1.ConditionFalse, "Scheduled")
		eventually(t, time.Minute, "the configuration is valid again", func(ctx context.Context) error {
			if err := userClient.Get(ctx, client.ObjectKeyFromObject(config), config); err != nil {
				return err
			}
			if meta.IsStatusConditionTrue(config.Status.Conditions, "Degraded") {
				return errors.New("the UpgradeConfig is degraded")
			}
			return nil
		})
		if err := userClient.Delete(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("the release is refused", func(t *testing.T) {
		config := upgradeTo("4.20.7")
		config.Name = "refused"
		config = applyUpgrade(t, userClient, config)
		awaitStatus(t, userClient, config, upgradev1alpha1.ConditionSucceeded, metav1.ConditionFalse, "TargetRefused")
		awaitCondition(t, userClient, config, func(c *upgradev1alpha1.UpgradeConfig) bool { return len(c.Finalizers) == 0 }) // its end is published
		term.follow(t, "ManagedUpgradeFailed", named(config), []expectation{
			{"describe", `(?s)TargetRefused.*` + refused},
			{"get events", "UpgradeFailed"},
			{"get clusterversion", "availableUpdates"},
			{"get clusteroperators", "network"},
			{"get machineconfigpools", "worker"},
			{"annotate upgradejob", "NotFound"}, // it is no UpgradeJob
			{"annotate upgrade ", "annotated"},
		})
		if err := userClient.Delete(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	})
	stuck := upgradeTo("4.20.6")
	stuck.Name = "stuck"
	t.Run("an operator is stuck", func(t *testing.T) {
		stuck = applyUpgrade(t, userClient, stuck)
		awaitCondition(t, userClient, stuck, func(c *upgradev1alpha1.UpgradeConfig) bool { // before its operator, the step makes progress
			slow := meta.FindStatusCondition(c.Status.Conditions, upgradev1alpha1.ConditionSlow)
			return slow != nil && slow.Status == metav1.ConditionTrue && slow.Reason == "ControlPlaneUpgraded" && strings.Contains(slow.Message, "network")
		})
		none := "No resources found"
		term.follow(t, "ManagedUpgradeStuck", named(stuck), []expectation{
			{"Slow", "network|4.20.6"},
			{"get clusterversion", "type: Progressing"},
			{"get clusteroperators", "network"},
			{"describe clusteroperators", `Name: +network`},
			{"get machineconfigpools", "worker"},
			{"get nodes -l", none},
			{"get nodes", "worker-0"},
			{"get poddisruptionbudgets", home},
			{"get machinesets,machines", none},
			{"get events", none},
			{"logs", "log of another operator"},
		})
	})
	t.Run("another upgrade is invalid", func(t *testing.T) {
		config := upgradeTo("4.19.1")
		config.Name = "downgrade"
		config = applyUpgrade(t, userClient, config)
		awaitStatus(t, userClient, config, upgradev1alpha1.ConditionAccepted, metav1.ConditionFalse, "Downgrade")
		var version configv1.ClusterVersion
		if err := userClient.Get(t.Context(), client.ObjectKey{Name: "version"}, &version); err != nil {
			t.Fatal(err)
		}
		if got := version.Status.History[0]; got.Version != "4.20.6" || got.State != configv1.PartialUpdate {
			t.Fatalf("the newest entry of the history is %+v, want the update that is in progress", got)
		}
		term.follow(t, "ManagedUpgradeInvalid", named(config), []expectation{
			{"Accepted", "4.19.1"}, {"get clusterversion", "^4.20.5\n$"},
		})
	})
	t.Run("the status may not be written", func(t *testing.T) {
		restore := revoke(t, userClient, "upgradeconfigs/status")
		another := upgradeTo("4.20.6")
		another.Name = "unwatched"
		another = applyUpgrade(t, userClient, another)
		eventually(t, time.Minute, "the operator logs the error", func(ctx context.Context) error {
			if !strings.Contains(term.run(ctx, t, commands(t, "ManagedUpgradeNotWatched")[0]), "forbidden") {
				return errors.New("it does not")
			}
			return nil
		})
		want := []expectation{{"logs", `"level":"error".*forbidden`}, {"can-i", "^no"}, {"get UpgradeConfig", "upgradeAt"}}
		term.follow(t, "ManagedUpgradeNotWatched", named(another), want)
		restore()
		want[1].output = "^yes"
		term.follow(t, "ManagedUpgradeNotWatched", named(another), want)
	})
	t.Run("the operator is down", func(t *testing.T) {
		pod := operatorPod(t, "managed-upgrade-operator-1")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "managed-upgrade-operator-metrics-tls"}}
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "managed-upgrade-operator-metrics-1"}, AddressType: discoveryv1.AddressTypeIPv4}
		for _, o := range []client.Object{pod, secret, slice} { // what the Deployment, the service CA, and the Service create
			if err := userClient.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if err := operator.Kill(); err != nil {
			t.Fatal(err)
		}
		term.follow(t, "ManagedUpgradeOperatorDown", nil, []expectation{
			{"get pods", pod.Name},
			{"describe pods", pod.Name},
			{"logs", `"level":`},
			{"get lease", "renewTime"},
			{"get endpointslices", "managed-upgrade-operator-metrics"},
			{"get secret", "managed-upgrade-operator-metrics-tls"},
		})
	})
}

// revoke removes the rules about a resource from the operator's roles, and returns a function that
// restores them.
func revoke(t *testing.T, userClient client.Client, resource string) (restore func()) {
	t.Helper()
	var clusterRole rbacv1.ClusterRole
	var role rbacv1.Role
	var former []client.Object
	for o, rules := range map[client.Object]*[]rbacv1.PolicyRule{&clusterRole: &clusterRole.Rules, &role: &role.Rules} {
		if err := userClient.Get(t.Context(), client.ObjectKey{Namespace: home, Name: home}, o); err != nil {
			t.Fatal(err)
		}
		former = append(former, o.DeepCopyObject().(client.Object))
		*rules = slices.DeleteFunc(*rules, func(r rbacv1.PolicyRule) bool { return slices.Contains(r.Resources, resource) })
		if err := userClient.Update(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for _, o := range former {
			o.SetResourceVersion("")
			if err := userClient.Update(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestAlertPage_of_a_blocked_drain keeps a pod on a draining node with a finalizer.
func TestAlertPage_of_a_blocked_drain(t *testing.T) {
	t.Parallel()
	cluster := startCluster(t, openshiftsim.ClusterSpec{Speed: fast})
	userClient := newUserClient(t, cluster)
	operator := startOperator(t, cluster, devcluster.OperatorOptions{Config: "nodeDrain: {timeOut: 1s}\n"})
	term := newTerminal(t, cluster, operator)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "kept", Finalizers: []string{"example.com/keep"}},
		Spec:       corev1.PodSpec{NodeName: "worker-0", Containers: []corev1.Container{{Name: "shop", Image: "shop"}}},
	}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, pod} {
		if err := userClient.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	upgrade := upgradeTo("4.20.6")
	upgrade.Spec.PDBForceDrainTimeout = new(int32(0))
	applyUpgrade(t, userClient, upgrade)
	predateCordon(t, userClient, "worker-0")
	eventually(t, 4*time.Minute, "the drain is blocked", func(ctx context.Context) error {
		var events corev1.EventList
		if err := userClient.List(ctx, &events, client.InNamespace("default")); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == "DrainBlocked" }) {
			return fmt.Errorf("%d Events", len(events.Items))
		}
		return nil
	})
	term.follow(t, "ManagedUpgradeDrainBlocked", map[string]string{"NODE": "worker-0", "NAMESPACE": "shop", "POD": "kept"}, []expectation{
		{"get events", "DrainBlocked.*kept"}, {"get pods -A", "kept"}, {"get pod -n", `(?s)deletionTimestamp.*example.com/keep`},
	})
	checkMustGather(t, cluster, term)
	var kept corev1.Pod
	if err := userClient.Get(t.Context(), client.ObjectKeyFromObject(pod), &kept); err != nil {
		t.Fatal(err)
	}
	kept.Finalizers = nil
	if err := userClient.Update(t.Context(), &kept); err != nil {
		t.Fatal(err)
	}
}

// checkMustGather collects what deploy/must-gather.sh does while the drain of worker-0 is blocked, and has
// the command line judge it.
func checkMustGather(t *testing.T, cluster *devcluster.Cluster, term terminal) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "gathered")
	if printed := term.run(t.Context(), t, "../../deploy/must-gather.sh "+folder); !strings.Contains(printed, "files in "+folder) {
		t.Errorf("the script prints %q", printed)
	}
	for file, want := range map[string]string{
		"objects/upgradeconfigs.upgrade.managed.openshift.io.yaml":          "desired:",
		"cluster/clusterversions.config.openshift.io.yaml":                  "version: 4.20.6",
		"cluster/machineconfigpools.machineconfiguration.openshift.io.yaml": "name: worker",
		"cluster/locks.yaml": "name: cluster-upgrade",
		"pods/worker-0.yaml": "name: kept",
		"events/upgrade.managed.openshift.io-v1alpha1.yaml": "reason: UpgradeStarted",
		"events/nodes.yaml": "reason: DrainBlocked",
		"namespaces/managed-upgrade-operator/leases.yaml":                  "holderIdentity:",
		"namespaces/managed-upgrade-operator/managed-upgrade-operator.log": `"level":"info"`,
	} {
		if content, err := os.ReadFile(filepath.Join(folder, file)); !strings.Contains(string(content), want) {
			t.Errorf("%s: want %q, got %v\n%s", file, want, err, content)
		}
	}
	secrets := term.run(t.Context(), t, "grep -rl 'kind: Secret' "+folder)
	if secrets != "" {
		t.Errorf("Secrets are collected: %s", secrets)
	}
	replay := filepath.Join(cluster.BinDir(), "kubectl-update") + " status --replay " + folder
	later := " --now " + time.Now().Add(2*time.Hour).UTC().Format(time.RFC3339)
	checkReplay(t, filepath.Join(cluster.BinDir(), "kubectl-update"), folder, term)
	for command, wants := range map[string][]string{
		replay: {"UPDATING 4.20.5 to 4.20.6", "worker-0 draining", "node worker-0 cannot be updated"},
		replay + later: {
			"STUCK 4.20.5 to 4.20.6. Pool worker has made no progress for ", "pod shop/kept is kept by finalizers",
			"drain of node worker-0 cannot finish", "oc -n shop get pod kept",
		},
	} {
		screen := term.run(t.Context(), t, command)
		folded := strings.Join(strings.Fields(screen), " ") // lines are wrapped
		for _, want := range wants {
			if !strings.Contains(folded, want) || strings.Contains(folded, "UpgradeJobs") {
				t.Errorf("%s: want %q, and no UpgradeJobs, got\n%s", command, want, screen)
			}
		}
	}
}

// checkReplay runs each command that reads a cluster on the collected data. Only alerts are not collected.
func checkReplay(t *testing.T, program, folder string, term terminal) {
	t.Helper()
	const alerts = "Missing alerts: not in the dump"
	for command, want := range map[string]string{
		"status":                      "^UPDATING 4.20.5 to 4.20.6 .*" + alerts,
		"pre-checks --version 4.20.6": "4.20.6",
		"history":                     "4.20.6",
		"preview":                     "4.20.6",
		"informers":                   "There are no UpdateInformers",
		"report -":                    "UpgradeStarted.*DrainBlocked.*shop/kept",
	} {
		printed := term.run(t.Context(), t, program+" "+command+" --replay "+folder)
		folded := strings.Join(strings.Fields(printed), " ") // lines are wrapped, and columns are aligned
		if !regexp.MustCompile(want).MatchString(folded) || strings.Contains(strings.Replace(folded, alerts, "", 1), "not in the dump") {
			t.Errorf("%s --replay: want %s, got\n%s", command, want, printed)
		}
	}
}

// predateCordon waits for the drain of a node and moves the time of its cordon an hour back, as if a
// user had cordoned it before the upgrade. nodekeeper records on the node when the drain itself began.
func predateCordon(t *testing.T, userClient client.Client, name string) {
	t.Helper()
	node := &corev1.Node{}
	eventually(t, 4*time.Minute, "node "+name+" is being drained", func(ctx context.Context) error {
		if err := userClient.Get(ctx, client.ObjectKey{Name: name}, node); err != nil {
			return err
		}
		former := node.DeepCopy()
		for i := range node.Spec.Taints {
			if taint := &node.Spec.Taints[i]; taint.Key == corev1.TaintNodeUnschedulable && taint.TimeAdded != nil {
				taint.TimeAdded = &metav1.Time{Time: taint.TimeAdded.Add(-time.Hour)}
				return userClient.Patch(ctx, node, client.MergeFromWithOptions(former, client.MergeFromWithOptimisticLock{}))
			}
		}
		return fmt.Errorf("its taints are %v", node.Spec.Taints)
	})
	eventually(t, time.Minute, "the start of the drain is recorded", func(ctx context.Context) error {
		err := userClient.Get(ctx, client.ObjectKey{Name: name}, node)
		if err == nil && node.Annotations[nodekeeper.AnnotationDrainFirstSeen] == "" {
			err = errors.New("it is not")
		}
		return err
	})
}

// runElsewhere names the tests that run the commands of a page without follow.
var runElsewhere = map[string]string{
	"first-upgrade":      "TestExamples",
	"concepts/approvals": "TestExamples",
	"namespaces":         "TestWatchMoreNamespaces",
	"hive":               "TestHive_installs_what_the_manifests_install",
	"olm":                "TestOLM",
	"helm":               "TestChart_page",
}

// TestInstallationPages runs the commands of the pages about the operator's installation on what "oc apply -k deploy" creates.
func TestInstallationPages(t *testing.T) {
	t.Parallel()
	s, term := shellServer(t, "namespace-controller")
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: home}}
	rollOut := func() { // as the controller of Deployments does
		mustSucceed(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment))
		replicas := *deployment.Spec.Replicas
		deployment.Status = appsv1.DeploymentStatus{
			ObservedGeneration: deployment.Generation, Replicas: replicas, UpdatedReplicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		}
		mustSucceed(t, s.client.Status().Update(t.Context(), deployment))
	}
	s.create(t,
		object(upgradeConfigKind, home, "cluster", map[string]any{"spec": map[string]any{
			"type": "OSD", "upgradeAt": "2030-01-31T01:00:00Z", "PDBForceDrainTimeout": int64(60),
			"desired": map[string]any{"version": "4.20.6", "channel": "stable-4.20"},
		}}),
	)
	const download = "https://github.com/managed-upgrade/managed-upgrade-operator/releases/latest/download/"
	install, archive := release(t)
	released := map[string]string{
		download + "install.yaml": install, "apply --server-side": "apply --server-side --field-manager=devcluster", "curl -sSfL " + download + "kubectl-update_linux_amd64.tar.gz": "cat " + archive, "tar -xz": "tar -tz",
	}
	notRolledOut := maps.Clone(released)
	notRolledOut["rollout status"] = "get" // no controller of Deployments runs
	term.follow(t, "../install", notRolledOut, []expectation{
		{"apply --server-side", `(?m)^deployment.apps/managed-upgrade-operator serverside-applied$`},
		{"tar", "^kubectl-update\nkubectl_complete-update\n$"},
		{"get deployment/", `(?m)^managed-upgrade-operator `},
	})
	rollOut()
	term.follow(t, "../upgrade", released, []expectation{
		{"apply --server-side", `(?m)^deployment.apps/managed-upgrade-operator serverside-applied$`}, {"rollout status", `^deployment "managed-upgrade-operator" successfully rolled out\n$`}, {"get upgrade", "cluster.*4.20.6"}, {"logs", "^log of"},
	})
	term.follow(t, "../network", map[string]string{"NAMESPACE": home, "NAME": home}, []expectation{
		{"patch deployment", "patched\n$"},
	})
	mustSucceed(t, s.client.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment))
	if got := deployment.Spec.Template.Labels["upgrade.managed.openshift.io/operator-egress"]; got != "allowed" {
		t.Errorf("the pods have the label %q", got)
	}
	for _, name := range []string{"openshift-config", "openshift-config-managed"} {
		mustSucceed(t, s.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	}
	folder := t.TempDir()
	for _, name := range []string{"token", "ca.crt"} {
		mustSucceed(t, os.WriteFile(filepath.Join(folder, name), []byte(name), 0o600))
	}
	term.follow(t, "../reference/cloudevents", map[string]string{"file=token": "file=" + folder + "/token", "file=ca.crt": "file=" + folder + "/ca.crt"}, []expectation{
		{"create secret", "created\n$"},
	})
	if printed := term.run(t.Context(), t, "oc apply -k "+deployFolder+"/olm"); !strings.HasSuffix(printed, "/update-status-controller created\n") {
		t.Errorf("beside the bundle: %s", printed)
	}
	term.follow(t, "../uninstall", released, []expectation{
		{"annotate", "/cluster annotated\n$"}, {"-A --all", `^upgradeconfig\S* "cluster" deleted`}, {"delete --ignore-not-found", `(?s)namespace "managed-upgrade-operator" deleted.*deployment.apps "managed-upgrade-operator" deleted`},
	})
}

// Each page with commands is followed by a test.
func TestPages_are_all_tested(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	files, err := filepath.Glob("*_test.go")
	mustSucceed(t, err)
	for _, file := range files {
		source.WriteString(readFile(t, file))
	}
	docs := filepath.Join(repository, "docs")
	pages := 0
	err = filepath.WalkDir(docs, func(file string, _ fs.DirEntry, err error) error {
		page, isPage := strings.CutSuffix(strings.TrimPrefix(file, docs+"/"), ".md")
		if err != nil || !isPage || page == "alerts/README" {
			return err
		}
		alert, isAlert := strings.CutPrefix(page, "alerts/")
		if !isAlert {
			alert = "../" + page
		}
		blocks := shellBlock.FindAllString(readFile(t, file), -1)
		if !isAlert && !slices.ContainsFunc(blocks, regexp.MustCompile(`\b(oc|kubectl)\b`).MatchString) {
			return nil
		}
		pages++
		if test, elsewhere := runElsewhere[page]; elsewhere && (test == "" || strings.Contains(source.String(), "func "+test+"(t ")) || strings.Contains(source.String(), fmt.Sprintf("follow(t, %q", alert)) {
			return nil
		}
		t.Errorf("no test follows %s", file)
		return nil
	})
	if err != nil || pages < len(runElsewhere) {
		t.Errorf("%d pages: %v", pages, err)
	}
}
