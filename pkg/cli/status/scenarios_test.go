// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
)

// Checks the verdicts on live clusters in the situations that the names describe. It compares only verdicts
// and objects, because other packages own the texts.
func TestStatus_of_simulated_updates(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		spec    openshiftsim.ClusterSpec
		objects []client.Object
		patch   string // of the worker pool
		after   time.Duration
		code    session.ExitCode
		want    []string
	}{
		"idle":                  {code: session.ExitDone, want: []string{"UP TO DATE  4.20.5 since"}},
		"control plane updates": {after: 20 * time.Minute, code: session.ExitProgressing, want: []string{"UPDATING  4.20.5 to 4.20.6 for", "network updating"}},
		"budget blocks a drain": {
			objects: clitest.Shop(), after: 3 * time.Hour, code: session.ExitActionRequired,
			want: []string{"STUCK  4.20.5 to 4.20.6.", "Why         PodDisruptionBudget shop/api", "> pod shop/api-", "node worker-0", "pool worker", "oc -n shop "},
		},
		"pool is paused": {
			patch: `{"spec":{"paused":true}}`, after: 3 * time.Hour, code: session.ExitActionRequired,
			want: []string{"WAITING  4.20.5 to 4.20.6.", "worker         0 of 3 nodes      paused"},
		},
		"operator never updates": {
			spec: openshiftsim.ClusterSpec{Operators: []cvo.OperatorSpec{{Name: "network", Takes: timescale.Never}}}, after: 3 * time.Hour, code: session.ExitActionRequired,
			want: []string{"STUCK  4.20.5 to 4.20.6.", "ClusterOperator network", "oc describe clusteroperator network"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clitest.NewSimulated(t, test.spec)
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
				s.Update(t, test.after)
			}
			got := runStatus(t, s.Connect(), statusOptions{}, "")
			if got.Code != test.code {
				t.Errorf("exit code %d, want %d", got.Code, test.code)
			}
			for _, want := range append(test.want, "Update Status Controller is not installed.") {
				if !strings.Contains(got.Out, want) {
					t.Errorf("the screen lacks %q", want)
				}
			}
			clitest.CheckWidth(t, got.Out, screen.DefaultWidth)
			if t.Failed() {
				t.Log(got.Out)
			}
		})
	}
}
