// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package ocm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/ocm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/olm"
)

// operators lists the releases of the Subscriptions on a cluster. Each Subscription has a namespace
// with its name.
var operators = map[string]string{"gitops": "gitops.v1 gitops.v2 gitops.v3", "quay": "quay.v1 quay.v2"}

// installOperators installs the kinds of OLM and operators that need approval, and simulates OLM
// until the test ends.
func installOperators(t *testing.T, spoke *ocm.Spoke) {
	t.Helper()
	kinds, err := crds.OLM()
	must(t, err)
	must(t, spoke.Apply(t.Context(), kinds))
	for name, releases := range operators {
		must(t, spoke.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
		subscription := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"name": name, "source": "redhat-operators", "sourceNamespace": "openshift-marketplace", "installPlanApproval": "Manual",
		}}}
		subscription.SetGroupVersionKind(olm.Subscriptions)
		subscription.SetNamespace(name)
		subscription.SetName(name)
		subscription.SetAnnotations(map[string]string{olm.AnnotationReleases: releases, olm.AnnotationInstallTime: "1s"})
		must(t, spoke.Client.Create(t.Context(), subscription))
	}
	must(t, spoke.Client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "openshift-marketplace"}}))
	catalog := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"sourceType": "grpc"}}}
	catalog.SetGroupVersionKind(olm.Catalogs)
	catalog.SetNamespace("openshift-marketplace")
	catalog.SetName("redhat-operators")
	must(t, spoke.Client.Create(t.Context(), catalog))
	simulator := olm.Simulator{Client: spoke.Client, Clock: clock.RealClock{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ticks := time.Tick(500 * time.Millisecond); ctx.Err() == nil; <-ticks {
			if err := errors.Join(restartCatalog(ctx, spoke.Client), simulator.Advance(ctx)); err != nil && ctx.Err() == nil {
				t.Errorf("simulating OLM on %s: %v", spoke.Name, err)
				return
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// restartCatalog drops the connection to a catalog older than the release of the platform, because
// that release brings a new catalog.
func restartCatalog(ctx context.Context, c client.Client) error {
	version := &configv1.ClusterVersion{}
	if err := c.Get(ctx, client.ObjectKey{Name: "version"}, version); err != nil {
		return fmt.Errorf("getting the ClusterVersion: %w", err)
	}
	catalog := &unstructured.Unstructured{}
	catalog.SetGroupVersionKind(olm.Catalogs)
	if err := c.Get(ctx, client.ObjectKey{Namespace: "openshift-marketplace", Name: "redhat-operators"}, catalog); err != nil {
		return fmt.Errorf("getting the CatalogSource: %w", err)
	}
	value, connected, err := unstructured.NestedString(catalog.Object, "status", "connectionState", "lastConnect")
	if err != nil || !connected || len(version.Status.History) == 0 || version.Status.History[0].CompletionTime == nil {
		return err
	}
	since, err := time.Parse(time.RFC3339, value)
	if err != nil || since.After(version.Status.History[0].CompletionTime.Time) {
		return err
	}
	unstructured.RemoveNestedField(catalog.Object, "status", "connectionState")
	return c.Status().Update(ctx, catalog)
}

// checkOperators checks that the Job upgraded only the operator that is not excluded, to its newest
// release, and that nothing is left of the Job.
func checkOperators(t *testing.T, spoke *ocm.Spoke) {
	t.Helper()
	var all unstructured.UnstructuredList
	all.SetGroupVersionKind(olm.CSVs)
	must(t, spoke.Client.List(t.Context(), &all))
	var installed []string
	for i := range all.Items {
		phase, _, err := unstructured.NestedString(all.Items[i].Object, "status", "phase")
		must(t, err)
		installed = append(installed, all.Items[i].GetName()+" "+phase)
	}
	slices.Sort(installed)
	want := []string{"gitops.v3 Succeeded", "quay.v1 Succeeded"}
	if diff := cmp.Diff(want, installed); diff != "" {
		t.Errorf("releases of operators on %s (-want +got):\n%s", spoke.Name, diff)
	}
	name, _ := delivery.ApproverNamespace()
	await(t, "the Job is gone on "+spoke.Name, func(ctx context.Context) bool {
		var jobs batchv1.JobList
		return spoke.Client.List(ctx, &jobs, client.InNamespace(name)) == nil && len(jobs.Items) == 0
	})
	must(t, spoke.Client.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}))
}
