// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/machineconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/scenario"
)

// follow runs a printed command. That kubectl accepts it is tested with the program.
func (s simulated) follow(t *testing.T, command string) {
	t.Helper()
	words, err := scenario.Words(command)
	if err == nil {
		err = s.Command(t.Context(), words[1:])
	}
	if err != nil {
		t.Fatalf("%s: %v", command, err)
	}
}

// A remedy removes the cause: after the printed commands, the update is completed, without any other
// help.
func TestRemedies_complete_the_update(t *testing.T) {
	t.Parallel()
	pause := func(t *testing.T, s simulated, pool string) {
		t.Helper()
		s.patch(t, &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: pool}}, `{"spec":{"paused":true}}`)
	}
	for name, tc := range map[string]struct {
		spec   devcluster.Spec
		create func(*testing.T, simulated)
		// causes are those of the screens, one after the other.
		causes []string
	}{
		"budget blocks a drain": {create: func(t *testing.T, s simulated) { t.Helper(); s.create(t, shop()...) }, causes: []string{"PodDisruptionBudget shop/api"}},
		"pool is paused":        {create: func(t *testing.T, s simulated) { t.Helper(); pause(t, s, "worker") }, causes: []string{"MachineConfigPool worker is paused"}},
		"two pools are paused": {
			spec:   devcluster.Spec{Pools: []machineconfig.Pool{{Name: "infra", Nodes: 2}}},
			create: func(t *testing.T, s simulated) { t.Helper(); pause(t, s, "worker"); pause(t, s, "infra") }, causes: []string{"MachineConfigPool infra is paused", "MachineConfigPool worker is paused"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSimulated(t, tc.spec)
			tc.create(t, s)
			s.update(t, 3*time.Hour)
			for range 3 { // a screen has the remedy of one cause
				stuck := runStatus(t, s.connect(), statusOptions{}, "")
				if stuck.code == ExitDone {
					break
				}
				if stuck.code != ExitActionRequired || !strings.Contains(stuck.out, tc.causes[0]) {
					t.Fatalf("exit code %d, want the cause %q:\n%s", stuck.code, tc.causes, stuck.out)
				}
				tc.causes = tc.causes[1:]
				for _, command := range scenario.PrintedCommands(stuck.out) {
					s.follow(t, command)
				}
				if err := s.world.RunFor(3 * time.Hour); err != nil {
					t.Fatal(err)
				}
			}
			after := runStatus(t, s.connect(), statusOptions{}, "")
			if after.code != ExitDone || !strings.HasPrefix(after.out, "UP TO DATE  4.20.6") || len(tc.causes) > 0 {
				t.Errorf("exit code %d, causes left %q:\n%s", after.code, tc.causes, after.out)
			}
		})
	}
}

func (s simulated) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		if err := s.Client.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
}

func (s simulated) patch(t *testing.T, object client.Object, patch string) {
	t.Helper()
	if err := s.Client.Patch(t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		t.Fatal(err)
	}
}
