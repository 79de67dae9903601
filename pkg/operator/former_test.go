// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// formerDeployment returns the former operator's Deployment.
func formerDeployment() *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: formerNamespace, Name: formerName},
		Spec:       appsv1.DeploymentSpec{Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": formerName}}}},
	}
}

func TestFormerOperator(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*appsv1.Deployment)
		want   bool // whether this operator refuses to start
	}{
		"runs":           {func(*appsv1.Deployment) {}, true},
		"is scaled to 0": {func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) }, false},
		"is this operator in that namespace": {func(d *appsv1.Deployment) {
			d.Spec.Template.Labels = map[string]string{"app.kubernetes.io/name": formerName}
		}, false},
		"is elsewhere": {func(d *appsv1.Deployment) { d.Namespace = "upgrades" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deployment := formerDeployment()
			tc.change(deployment)
			upgrade := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "cluster"}}
			elsewhere := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: formerNamespace, Name: "cluster"}}
			c := simulation.NewFakeClient(t, deployment, upgrade, elsewhere)
			f := formerOperator{client: c, namespace: "upgrades", namespaces: []string{"upgrades"}, clock: testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
			for range 2 { // restarting the process changes nothing
				if err := f.refuse(t.Context()); (err != nil) != tc.want || err != nil && !strings.Contains(err.Error(), "docs/migrate.md") {
					t.Fatalf("got %v, want a refusal: %t", err, tc.want)
				}
			}
			for object, want := range map[*upgradev1alpha1.UpgradeConfig]bool{upgrade: tc.want, elsewhere: false} {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
					t.Fatal(err)
				}
				condition := meta.FindStatusCondition(object.Status.Conditions, history.ConditionAccepted)
				if got := condition != nil && condition.Status == metav1.ConditionFalse && condition.Reason == ReasonOtherOperator; got != want {
					t.Errorf("the condition of %s: %+v, want it: %t", object.Namespace, condition, want)
				}
			}
			var events corev1.EventList
			if err := c.List(t.Context(), &events); err != nil {
				t.Fatal(err)
			}
			want := map[bool][]string{true: {"upgrades/OtherOperator"}}[tc.want]
			var got []string
			for _, e := range events.Items {
				got = append(got, e.Namespace+"/"+e.Reason)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("Events (-want +got):\n%s", diff)
			}
		})
	}
}

// The operator does not start if it cannot determine whether the former operator is running.
func TestFormerOperator_is_unknown(t *testing.T) {
	t.Parallel()
	c := interceptor.NewClient(simulation.NewFakeClient(t), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("forbidden")
		},
	})
	if err := (formerOperator{client: c}).refuse(t.Context()); err == nil {
		t.Error("it starts")
	}
}

// If another client writes an UpgradeConfig at the same time, the Event and the conditions of all
// other UpgradeConfigs are still written.
func TestFormerOperator_beside_a_conflict(t *testing.T) {
	t.Parallel()
	first := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "a"}}
	second := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "b"}}
	c := interceptor.NewClient(simulation.NewFakeClient(t, formerDeployment(), first, second), interceptor.Funcs{
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, object client.Object, patch client.Patch, opts ...client.SubResourcePatchOption) error {
			if object.GetName() == "a" {
				return apierrors.NewConflict(schema.GroupResource{Resource: "upgradeconfigs"}, "a", errors.New("changed"))
			}
			return c.SubResource(sub).Patch(ctx, object, patch, opts...)
		},
	})
	f := formerOperator{client: c, namespace: "upgrades", clock: testingclock.NewFakePassiveClock(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))}
	if err := f.refuse(t.Context()); err == nil || !strings.Contains(err.Error(), "upgrades/a") || !strings.Contains(err.Error(), "docs/migrate.md") {
		t.Errorf("got %v, want an error that names UpgradeConfig upgrades/a and docs/migrate.md", err)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(second), second); err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionFalse(second.Status.Conditions, history.ConditionAccepted) {
		t.Error("the second UpgradeConfig has no condition")
	}
	var events corev1.EventList
	if err := c.List(t.Context(), &events); err != nil || len(events.Items) != 1 {
		t.Errorf("%d Events, error %v, want one", len(events.Items), err)
	}
}
