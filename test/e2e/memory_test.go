// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

// TestMemory_does_not_follow_the_objects_of_other_clients creates 400 budgets and nodes with nearly as
// much metadata as the API server accepts. The operator starts within the memory limit of its
// Deployment and gets ready.
func TestMemory_does_not_follow_the_objects_of_other_clients(t *testing.T) {
	t.Parallel()
	const objects = 400
	s := startServer(t)
	s.openshift(t)
	s.apply(t, kustomized(t))
	if err := s.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	const creators = 4
	var creating sync.WaitGroup
	for creator := range creators {
		creating.Go(func() {
			for i := creator; i < objects; i += creators {
				if err := s.client.Create(t.Context(), surplusObject(i)); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	creating.Wait()
	if t.Failed() {
		return
	}
	kubeconfig, _ := s.account(t, home)
	container := deployment(t).Spec.Template.Spec.Containers[0]
	limit := container.Resources.Limits.Memory().Value()
	r := &replica{log: filepath.Join(t.TempDir(), "operator.log"), probes: freeAddress(t)}
	process, err := childprocess.Start(childprocess.Command{
		Path: "/usr/bin/env",
		Args: []string{
			fmt.Sprintf("GOMEMLIMIT=%d", goMemoryLimit(t, container)), program(t), "--kubeconfig=" + kubeconfig, "--leader-elect=false",
			"--metrics-bind-address=0", "--health-probe-bind-address=" + r.probes,
		},
		Log: r.log,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := process.Stop(time.Minute); err != nil {
			t.Error(err)
		}
	})
	waitUntil(t, "the operator is ready", func(ctx context.Context) bool { return r.probe(ctx, "/readyz") == http.StatusOK })
	most, now := statusOf(t, process.PID(), "VmHWM"), statusOf(t, process.PID(), "RssAnon")
	t.Logf("at most %d KiB were resident; %d KiB are anonymous memory", most, now)
	if most > int(limit>>10)/2 {
		t.Errorf("%d KiB were resident, want at most half of the limit of %d KiB", most, limit>>10)
	}
}

// surplusObject returns a Node, or a budget in namespace shop, with large metadata.
func surplusObject(i int) client.Object {
	var o client.Object = &corev1.Node{}
	if i%2 == 0 {
		o = &policyv1.PodDisruptionBudget{Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{
			MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: surplus("app-", 2000)}},
		}}}
		o.SetNamespace("shop")
	}
	o.SetName(fmt.Sprintf("surplus-%d", i))
	o.SetAnnotations(map[string]string{"example.com/surplus": strings.Repeat("x", 200<<10)})
	o.SetFinalizers(surplus("example.com/finalizer-", 1000))
	labels := map[string]string{}
	for _, key := range surplus("example.com/label-", 1000) {
		labels[key] = strings.Repeat("x", 60)
	}
	o.SetLabels(labels)
	return o
}

// surplus returns names.
func surplus(prefix string, n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("%s%s-%04d", prefix, strings.Repeat("x", 30), i)
	}
	return names
}
