// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build fleet

package fleet_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/crds"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/fleet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/olm"
)

// operators are the Subscriptions of a cluster, each in a namespace of its name, with their releases.
var operators = map[string]string{"gitops": "gitops.v1 gitops.v2 gitops.v3", "quay": "quay.v1 quay.v2"}

// installOperators installs the kinds of OLM and operators that need approvals, and simulates OLM until the
// test ends.
func installOperators(t *testing.T, spoke *fleet.Spoke) {
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
	simulator := olm.Simulator{Client: spoke.Client, Clock: clock.RealClock{}}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ticks := time.Tick(500 * time.Millisecond); ctx.Err() == nil; <-ticks {
			if err := simulator.Advance(ctx); err != nil && ctx.Err() == nil {
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

// checkOperators checks that the Job has upgraded the operator that was included, to its newest release, no
// other, and that nothing is left of the Job.
func checkOperators(t *testing.T, spoke *fleet.Spoke) {
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
	want := []string{"gitops.v1 Succeeded", "gitops.v2 Succeeded", "gitops.v3 Succeeded", "quay.v1 Succeeded"}
	if diff := cmp.Diff(want, installed); diff != "" {
		t.Errorf("releases of operators on %s (-want +got):\n%s", spoke.Name, diff)
	}
	await(t, "the namespace of the Job is gone on "+spoke.Name, func(ctx context.Context) bool {
		return apierrors.IsNotFound(spoke.Client.Get(ctx, client.ObjectKey{Name: "installplan-approver"}, &corev1.Namespace{}))
	})
}
