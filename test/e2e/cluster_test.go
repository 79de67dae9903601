// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e || cvo

package e2e

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/binary"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

// repository is the path of the checkout.
const repository = "../.."

func TestMain(m *testing.M) {
	klog.SetLogger(logr.Discard()) // clients log errors while an API server is down
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if afterAll != nil {
		code = afterAll(code)
	}
	os.Exit(code)
}

// stateFolder returns a folder. It is removed at the end of the test, or its path is logged if the
// test failed. No process with the folder in its arguments, as all processes of a cluster have it,
// may outlive the test.
func stateFolder(tb testing.TB) string {
	tb.Helper()
	dir, err := os.MkdirTemp("", "e2e-") //nolint:usetesting // it stays if the test fails
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		for _, process := range processesOf(tb, dir) {
			tb.Errorf("left behind: process %s", process)
		}
		if tb.Failed() {
			tb.Logf("the logs are in %s, the audit log in %s", filepath.Join(dir, "logs"), dir)
			return
		}
		if err := os.RemoveAll(dir); err != nil {
			tb.Error(err)
		}
	})
	return dir
}

// processesOf returns the processes with the folder in their arguments or their root folder in it,
// by ID and arguments. It returns none on systems other than Linux.
func processesOf(tb testing.TB, dir string) []string {
	tb.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		tb.Fatal(err)
	}
	var found []string
	for _, file := range lines {
		line, err := os.ReadFile(file)
		root, rootErr := os.Readlink(filepath.Join(filepath.Dir(file), "root"))
		inside := rootErr == nil && strings.HasPrefix(root, dir+"/")
		if err == nil && (inside || bytes.Contains(line, []byte(dir+"/"))) { // one that has ended since then has no arguments
			found = append(found, filepath.Base(filepath.Dir(file))+": "+strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return found
}

// startCluster starts a cluster with the operator's manifests. It is stopped at the end of the test.
func startCluster(tb testing.TB, spec openshiftsim.ClusterSpec) *devcluster.Cluster {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 3*time.Minute)
	defer cancel()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Dir: stateFolder(tb), Spec: spec})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		auditedRequests(tb, cluster)
		if err := cluster.Stop(); err != nil {
			tb.Error(err)
		}
	})
	describeOnFailure(tb, cluster)
	if err := cluster.Deploy(ctx, repository); err != nil {
		tb.Fatal(err)
	}
	return cluster
}

// startOperator returns once the operator is ready. It is stopped at the end of the test.
func startOperator(tb testing.TB, cluster *devcluster.Cluster, options devcluster.OperatorOptions) *devcluster.Operator {
	tb.Helper()
	operator, err := cluster.StartOperator(tb.Context(), options)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		select {
		case err := <-operator.Exited():
			tb.Error(err)
		default:
		}
		if err := operator.Stop(); err != nil {
			tb.Error(err)
		}
	})
	awaitReady(tb, operator)
	return operator
}

func awaitReady(tb testing.TB, operator *devcluster.Operator) {
	tb.Helper()
	for _, replica := range operator.Replicas() {
		eventually(tb, time.Minute, "the operator is ready", func(ctx context.Context) error {
			if !replica.Ready(ctx) {
				return errors.New("the readiness probe fails")
			}
			return nil
		})
	}
}

// eventually polls every 50 ms until the condition holds. The limit is generous: only a failure
// reaches it.
func eventually(tb testing.TB, limit time.Duration, what string, holds func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	var last error
	for {
		err := holds(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil { // otherwise it was not answered
			last = err
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("waiting until %s: %v (after %s)", what, last, limit)
		case <-ticker.C:
		}
	}
}

// maxLogShown limits the shown part of a log, in bytes.
const maxLogShown = 8 << 10

// describeOnFailure prints the state of the cluster, and the ends of the logs of its programs, if the test has
// failed by the time the cluster is stopped.
func describeOnFailure(tb testing.TB, cluster *devcluster.Cluster) {
	tb.Helper()
	tb.Cleanup(func() {
		if !tb.Failed() {
			return
		}
		kubeconfig := cluster.Path("kubeconfig")
		if err := cluster.Kubeconfig(kubeconfig); err != nil {
			tb.Error(err)
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(tb.Context()), time.Minute)
		defer cancel()
		logs, more := []string{cluster.Path("logs", "operator-0.log")}, ""
		controller := cluster.Path("logs", "update-status-controller.log")
		if _, err := os.Stat(controller); err == nil {
			logs, more = append(logs, controller), ",updatestatuses.config.openshift.io"
		}
		kubectl := exec.CommandContext(ctx, filepath.Join(cluster.BinDir(), "kubectl"), "--kubeconfig", kubeconfig,
			"--namespace", devcluster.OperatorNamespace, "describe", "upgradeconfigs.upgrade.managed.openshift.io,maintenance,leases,clusterversions.config.openshift.io"+more)
		printed, err := kubectl.CombinedOutput()
		tb.Logf("kubectl describe (%v):\n%s", err, printed)
		for _, log := range logs {
			if content, err := os.ReadFile(log); err == nil {
				tb.Logf("the end of %s:\n%s", filepath.Base(log), content[max(0, len(content)-maxLogShown):])
			}
		}
	})
}

// newUserClient returns a client that knows the kinds of this project and of OpenShift, and has
// all permissions.
func newUserClient(tb testing.TB, cluster *devcluster.Cluster) client.WithWatch {
	tb.Helper()
	scheme, err := devcluster.Scheme()
	if err == nil {
		err = errors.Join(upgradev1alpha1.AddToScheme(scheme), maintenancev1beta1.AddToScheme(scheme))
	}
	if err != nil {
		tb.Fatal(err)
	}
	c, err := client.NewWithWatch(cluster.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// runScenario runs a scenario, and fails with its unmet expectations.
func runScenario(t *testing.T, story *scenario.Scenario) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	world, err := binary.New(ctx, story, binary.WorldOptions{Dir: stateFolder(t), Repository: repository})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := world.Stop(); err != nil {
			t.Error(err)
		}
	})
	describeOnFailure(t, world.Cluster)
	running, err := scenario.Start(ctx, story, world, scenario.RunOptions{Log: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	if problems := running.Wait(t.Context()); len(problems) > 0 {
		t.Fatalf("%s\nNot as expected:\n- %s", story.Description, strings.Join(problems, "\n- "))
	}
	checkAftermath(t, world.Cluster, world.Operator)
}
