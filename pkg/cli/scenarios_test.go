// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/timescale"
)

// shop returns a Deployment with two replicas, and a budget that requires both.
func shop() []client.Object {
	labels := map[string]string{"app": "api"}
	return []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}},
		&appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
			Spec: appsv1.DeploymentSpec{
				Replicas: new(int32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "api", Image: "api"}}},
				},
			},
		},
		&policyv1.PodDisruptionBudget{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "api"},
			Spec: policyv1.PodDisruptionBudgetSpec{
				MinAvailable: new(intstr.FromInt32(2)), Selector: &metav1.LabelSelector{MatchLabels: labels},
			},
		},
	}
}

// The verdicts on clusters whose updates meet what the names say, from live reads. The texts are those of
// other packages: only verdicts and objects are compared.
func TestStatus_of_simulated_updates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec    devcluster.Spec
		objects []client.Object
		patch   string // of the pool worker
		after   time.Duration
		code    ExitCode
		want    []string
	}{
		"idle":                  {code: ExitDone, want: []string{"UP TO DATE  4.20.5 since"}},
		"control plane updates": {after: 20 * time.Minute, code: ExitProgressing, want: []string{"UPDATING  4.20.5 to 4.20.6 for", "network updating"}},
		"budget blocks a drain": {
			objects: shop(), after: 3 * time.Hour, code: ExitActionRequired,
			want: []string{"STUCK  4.20.5 to 4.20.6.", "Why         PodDisruptionBudget shop/api", "> pod shop/api-", "node worker-0", "pool worker", "oc -n shop "},
		},
		"pool is paused": {
			patch: `{"spec":{"paused":true}}`, after: 3 * time.Hour, code: ExitActionRequired,
			want: []string{"WAITING  4.20.5 to 4.20.6.", "worker         0 of 3 nodes      paused"},
		},
		"operator never updates": {
			spec: devcluster.Spec{Operators: []cvo.Operator{{Name: "network", Takes: timescale.Never}}}, after: 3 * time.Hour, code: ExitActionRequired,
			want: []string{"STUCK  4.20.5 to 4.20.6.", "ClusterOperator network", "oc describe clusteroperator network"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSimulated(t, test.spec)
			for _, object := range test.objects {
				if err := s.Client.Create(t.Context(), object); err != nil {
					t.Fatal(err)
				}
			}
			if test.patch != "" {
				pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
				if err := s.Client.Patch(t.Context(), pool, client.RawPatch(types.MergePatchType, []byte(test.patch))); err != nil {
					t.Fatal(err)
				}
			}
			if test.after > 0 {
				s.update(t, test.after)
			}
			got := runStatus(t, s.connect(), statusOptions{}, "")
			if got.code != test.code {
				t.Errorf("exit code %d, want %d", got.code, test.code)
			}
			for _, want := range append(test.want, "Update Status Controller is not installed.") {
				if !strings.Contains(got.out, want) {
					t.Errorf("the screen lacks %q", want)
				}
			}
			checkWidth(t, got.out, defaultWidth)
			if t.Failed() {
				t.Log(got.out)
			}
		})
	}
}
