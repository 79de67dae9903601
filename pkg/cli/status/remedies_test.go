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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

// follow runs a printed command. The tests of the program check that kubectl accepts it.
func follow(t *testing.T, s clitest.Simulated, command string) {
	t.Helper()
	words, err := scenario.Words(command)
	if err == nil {
		err = s.Command(t.Context(), words[1:])
	}
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

// A remedy removes the cause: after running the printed commands, the update completes without further help.
func TestRemedies_complete_the_update(t *testing.T) {
	t.Parallel()
	pause := func(t *testing.T, s clitest.Simulated, pool string) {
		t.Helper()
		patch(t, s, &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: pool}}, `{"spec":{"paused":true}}`)
	}
	for name, tc := range map[string]struct {
		spec   openshiftsim.ClusterSpec
		create func(*testing.T, clitest.Simulated)
		// causes lists the causes on successive screens.
		causes []string
	}{
		"budget blocks a drain": {create: func(t *testing.T, s clitest.Simulated) { t.Helper(); create(t, s, clitest.Shop()...) }, causes: []string{"PodDisruptionBudget shop/api"}},
		"pool is paused":        {create: func(t *testing.T, s clitest.Simulated) { t.Helper(); pause(t, s, "worker") }, causes: []string{"MachineConfigPool worker is paused"}},
		"two pools are paused": {
			spec:   openshiftsim.ClusterSpec{Pools: []machineconfig.Pool{{Name: "infra", Nodes: 2}}},
			create: func(t *testing.T, s clitest.Simulated) { t.Helper(); pause(t, s, "worker"); pause(t, s, "infra") }, causes: []string{"MachineConfigPool infra is paused", "MachineConfigPool worker is paused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clitest.NewSimulated(t, tc.spec)
			tc.create(t, s)
			s.Update(t, 3*time.Hour)
			for range 3 { // each screen has the remedy for one cause
				stuck := runStatus(t, s.Connect(), statusOptions{}, "")
				if stuck.Code == session.ExitDone {
					break
				}
				if stuck.Code != session.ExitActionRequired || !strings.Contains(stuck.Out, tc.causes[0]) {
					t.Fatalf("exit code %d, want the cause %q:\n%s", stuck.Code, tc.causes, stuck.Out)
				}
				tc.causes = tc.causes[1:]
				for _, command := range scenario.PrintedCommands(stuck.Out) {
					follow(t, s, command)
				}
				if err := s.World.RunFor(3 * time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			after := runStatus(t, s.Connect(), statusOptions{}, "")
			if after.Code != session.ExitDone || !strings.HasPrefix(after.Out, "UP TO DATE  4.20.6") || len(tc.causes) > 0 {
				t.Errorf("exit code %d, causes left %q:\n%s", after.Code, tc.causes, after.Out)
			}
		})
	}
}

func create(t *testing.T, s clitest.Simulated, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := s.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func patch(t *testing.T, s clitest.Simulated, object client.Object, patch string) {
	t.Helper()
	if err := s.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
