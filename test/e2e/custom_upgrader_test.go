// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

const exampleFolder = repository + "/docs/examples/custom-upgrader"

// buildExample builds the example of an operator with a runbook of its own.
func buildExample(t *testing.T) string {
	t.Helper()
	example := filepath.Join(t.TempDir(), "custom-upgrader")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", example, ".")
	build.Dir = exampleFolder
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the example: %v\n%s", err, out)
	}
	return example
}

// TestCustomUpgrader_is_woken_by_what_its_step_watches declares a change freeze, so the step waits. It
// ends the freeze long before the next reconcile of the upgrade is due.
func TestCustomUpgrader_is_woken_by_what_its_step_watches(t *testing.T) {
	t.Parallel()
	example := buildExample(t)
	cluster := startCluster(t, openshiftsim.ClusterSpec{Speed: fast})
	userClient := newUserClient(t, cluster)
	freeze := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "change-freeze"},
		Data:       map[string]string{"until": time.Now().Add(24 * time.Hour).UTC().Format(time.RFC3339)},
	}
	for _, o := range []client.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, freeze} {
		if err := userClient.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Apply(t.Context(), os.DirFS(exampleFolder)); err != nil {
		t.Fatal(err)
	}
	operator := startOperator(t, cluster, devcluster.OperatorOptions{Program: example})
	upgrade := upgradeTo("4.20.6")
	upgrade.Spec.Type = "SHOP"
	upgrade = applyUpgrade(t, userClient, upgrade)
	awaitCondition(t, userClient, upgrade, func(c *upgradev1alpha1.UpgradeConfig) bool {
		return len(c.Status.History) > 0 &&
			slices.ContainsFunc(c.Status.History[0].Conditions, func(c history.StepCondition) bool { return c.Reason == "ChangeFreeze" })
	})
	if err := userClient.Delete(t.Context(), freeze); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the step is done", func(ctx context.Context) error { // without the watch, in five minutes
		if err := userClient.Get(ctx, client.ObjectKeyFromObject(upgrade), upgrade); err != nil {
			return err
		}
		conditions := upgrade.Status.History[0].Conditions
		i := slices.IndexFunc(conditions, func(c history.StepCondition) bool { return c.Type == "NoChangeFreeze" })
		if i < 0 || conditions[i].CompleteTime == nil {
			return fmt.Errorf("the steps are %+v", conditions)
		}
		return nil
	})
	follow(t, userClient, upgrade, func(*history.Record) {})
	checkAftermath(t, cluster, operator)
}

// TestCustomUpgrader_ends_on_SIGTERM terminates the example as a kubelet does.
func TestCustomUpgrader_ends_on_SIGTERM(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))
	if err := server.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	server.apply(t, read(t, exampleFolder))
	kubeconfig, _ := server.account(t, home)
	operator := startProgram(t, buildExample(t), kubeconfig)
	waitUntil(t, "the example is ready", func(ctx context.Context) bool {
		return operator.probe(ctx, "/readyz") == http.StatusOK
	})
	if err := operator.process.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}
	if status := operator.process.Err().Error(); !strings.Contains(status, "exit status 0") {
		t.Errorf("the example did not end on SIGTERM: %s", status)
	}
}
