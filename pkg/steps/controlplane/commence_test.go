// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

var pending = stepResult{Outcome: "waiting", Reason: "Requested", Message: "asked the cluster version operator for 4.4.6"}

func TestAccepted(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"it was not asked for":                                {version: at()},
		"another one was asked for":                           {version: at(desired("4.4.7"))},
		"another image of it was asked for":                   {version: at(desiredImage(other446)), target: &clusterstate.Target{Version: "4.4.6", Image: image446}},
		"a check of it was asked for":                         {version: at(func(v *configv1.ClusterVersion) { desired("4.4.6")(v); v.Spec.DesiredUpdate.Mode = "Preflight" })},
		"it was asked for, and nothing is said yet":           {version: at(desired("4.4.6")), want: pending},
		"it was asked for, and the release before is refused": {version: at(desired("4.4.6"), condition("ReleaseAccepted", "False", "", `failed version="4.4.5"`)), want: pending},
		"it was asked for, and another update goes on":        {version: at(desired("4.4.6"), updating("4.4.7")), want: pending},
		"it is refused": {
			version: at(desired("4.4.6"), unobserved, condition("ReleaseAccepted", "False", "RetrievePayload", `version="4.4.6" is not signed`)),
			want:    stepResult{Outcome: "waiting", Reason: "TargetRefused", Message: `the cluster version operator refuses 4.4.6: version="4.4.6" is not signed`},
		},
		"it is being installed": {
			version: at(desired("4.4.6"), updating("4.4.6"), condition("ReleaseAccepted", "False", "", `failed version="4.4.6"`)),
			want:    stepResult{Outcome: "done", Reason: "Done", Message: "the cluster version operator has accepted 4.4.6"},
		},
		"it is installed": {
			version: at(installed("4.4.6")),
			want:    stepResult{Outcome: "done", Reason: "Done", Message: "the cluster version operator has accepted 4.4.6"},
		},
		"it was tried before, and left": {version: at(updating("4.4.6"), installed("4.4.5"))},
	}, withReader(controlplane.WaitUntilAccepted))
}

func desiredImage(image string) change {
	return func(v *configv1.ClusterVersion) {
		v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.6", Image: image}
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	with := func(patch string) stepResult {
		requested := pending
		requested.Patch = `{"spec":{"desiredUpdate":` + patch + `}}`
		return requested
	}
	runCases(t, map[string]testCase{
		"it is asked for by its version": {
			version: at(), want: with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`),
		},
		"a conditional update is asked for by its image too": {
			version: at(updateWithRisks("SlowBoot")), want: with(`{"architecture":"","force":false,"image":"` + image446 + `","version":"4.4.6"}`),
		},
		"an image that is wanted is asked for": {
			version: at(), target: &clusterstate.Target{Version: "4.4.6", Image: mirror446},
			want: with(`{"architecture":"","force":false,"image":"` + mirror446 + `","version":"4.4.6"}`),
		},
		"what was asked for before is replaced altogether": {
			version: at(func(v *configv1.ClusterVersion) {
				v.Spec.DesiredUpdate = &configv1.Update{
					Version: "4.4.5", Force: true, Architecture: configv1.ClusterVersionArchitectureMulti,
					AcceptRisks: []configv1.AcceptRisk{{Name: "SlowBoot"}},
				}
			}),
			want: with(`{"acceptRisks":null,"architecture":"","force":false,"version":"4.4.6"}`),
		},
		"a check becomes an update": {
			version: at(func(v *configv1.ClusterVersion) { desired("4.4.6")(v); v.Spec.DesiredUpdate.Mode = "Preflight" }),
			want:    with(`{"mode":null}`),
		},
		"it is not asked for twice":                     {version: at(desired("4.4.6")), want: pending},
		"it is not asked for while it is installed":     {version: at(updating("4.4.6")), want: pending},
		"it is not asked for once it is installed":      {version: at(installed("4.4.6")), want: pending},
		"it is asked for again once it was led astray":  {version: at(updating("4.4.6"), installed("4.4.5")), want: with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`)},
		"a cluster version without a status is no harm": {version: at(emptyStatus), want: with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`)},
	}, controlplane.RequestUpdate)
}

// The table puts the pieces together like this; one pass after another sees it through.
func TestCommence(t *testing.T) {
	t.Parallel()
	r := testCluster(t, nil, at())
	healthy := false
	parts := []engine.UpgradeStep{
		controlplane.WaitUntilAccepted(r, target), controlplane.UpdateAvailable(r, target), controlplane.Upgradeable(r, target),
		func(context.Context, engine.Run) (engine.Result, error) {
			if !healthy {
				return engine.Wait("ClusterUnhealthy", "an operator is degraded"), nil
			}
			return engine.Done(""), nil
		},
		controlplane.RequestUpdate(r, target),
	}
	commence := func(ctx context.Context, run engine.Run) (result engine.Result, err error) {
		for i, part := range parts {
			result, err = part(ctx, run)
			if observed := i == 0 && !result.IsZero(); err != nil || observed || i > 0 && !result.Passed() {
				break
			}
		}
		return result, err
	}
	become := func(change change) {
		var version configv1.ClusterVersion
		if err := r.Get(t.Context(), clusterstate.VersionKey, &version); err != nil {
			t.Fatal(err)
		}
		changed := version.DeepCopy()
		change(changed)
		if err := r.Status().Patch(t.Context(), changed, client.MergeFrom(&version)); err != nil {
			t.Fatal(err)
		}
		r.patches = nil
	}
	for _, pass := range []struct {
		doing  string
		before func()
		reason string
		writes int
	}{
		{"waits while the cluster is unhealthy", func() {}, "ClusterUnhealthy", 0},
		{"asks once it is healthy", func() { healthy = true }, "Requested", 1},
		{"waits, and does not ask again, whatever the gates say", func() { healthy = false; r.patches = nil }, "Requested", 0},
		{"shows a refusal", func() { become(condition("ReleaseAccepted", "False", "", `version="4.4.6" is not signed`)) }, "TargetRefused", 0},
		{"is done once the operator has begun", func() { become(updating("4.4.6")) }, "Done", 0},
	} {
		pass.before()
		result, err := commence(t.Context(), engine.Run{})
		if err != nil || result.Reason() != pass.reason || len(r.patches) != pass.writes {
			t.Fatalf("it %s: got %v, %v and %d writes", pass.doing, result, err, len(r.patches))
		}
	}
}

func TestReached(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		version             *configv1.ClusterVersion
		commenced, upgraded bool
	}{
		"not before it is asked for":     {at(), false, false},
		"not by asking":                  {at(desired("4.4.6")), false, false},
		"commenced with the first entry": {at(updating("4.4.6")), true, false},
		"upgraded once it is completed":  {at(installed("4.4.6")), true, true},
		"not by an earlier entry":        {at(installed("4.4.6"), updating("4.4.7")), false, false},
		"not by an earlier one at all":   {at(installed("4.4.6"), installed("4.4.7")), false, false},
		"not by an empty history":        {at(emptyStatus), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testCluster(t, nil, tc.version)
			commenced, err := controlplane.IsCommenced(r, r, target)(t.Context())
			if err != nil || commenced != tc.commenced {
				t.Errorf("commenced: got %t, %v", commenced, err)
			}
			upgraded, err := controlplane.IsUpgraded(r, target)(t.Context())
			if err != nil || upgraded != tc.upgraded {
				t.Errorf("upgraded: got %t, %v", upgraded, err)
			}
		})
	}
}

func supersededResult(by string) stepResult {
	return stepResult{Outcome: "failed", Reason: "Superseded", Message: "somebody else leads the cluster from 4.4.6 to " + by}
}

func TestUpgraded(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("operator is degraded\n", 10_000)
	runCases(t, map[string]testCase{
		"it is installed": {
			version: at(desired("4.4.6"), installed("4.4.6")),
			want:    stepResult{Outcome: "done", Reason: "Done", Message: "4.4.6 is installed"},
		},
		"it is being installed": {
			version: at(desired("4.4.6"), updating("4.4.6"), condition("Progressing", "True", "", "Working towards 4.4.6: 7 of 700 done")),
			want:    stepResult{Outcome: "waiting", Reason: "Progressing", Message: "Working towards 4.4.6: 7 of 700 done"},
		},
		"it is being installed, and nothing is said": {
			version: at(updating("4.4.6")),
			want:    stepResult{Outcome: "waiting", Reason: "Progressing", Message: "4.4.6 is being installed"},
		},
		"its installation fails": {
			version: at(updating("4.4.6"), condition("Progressing", "True", "", "Unable to apply 4.4.6"), condition("Failing", "True", "ClusterOperatorDegraded", "Cluster operator dns is degraded")),
			want:    stepResult{Outcome: "waiting", Reason: "Failing", Message: "the cluster version operator fails to install 4.4.6: Cluster operator dns is degraded"},
		},
		"its installation fails at length": {
			version: at(updating("4.4.6"), condition("Failing", "True", "", huge)),
			want: stepResult{
				Outcome: "waiting", Reason: "Failing",
				Message: "the cluster version operator fails to install 4.4.6: " + strings.ReplaceAll(huge, "\n", " ")[:512] + "…",
			},
		},
		"the request is gone":                                 {version: at(updating("4.4.6")), want: stepResult{Outcome: "waiting", Reason: "Progressing", Message: "4.4.6 is being installed"}},
		"another one is asked for":                            {version: at(updating("4.4.6"), desired("4.4.7")), want: supersededResult("4.4.7")},
		"another one is being installed":                      {version: at(updating("4.4.6"), updating("4.4.7"), desired("4.4.7")), want: supersededResult("4.4.7")},
		"it is installed, and another one is being installed": {version: at(installed("4.4.6"), updating("4.4.7")), want: supersededResult("4.4.7")},
		"the one before is back":                              {version: at(updating("4.4.6"), installed("4.4.5")), want: supersededResult("4.4.5")},
		"the history is gone": {
			version: at(emptyStatus),
			want:    stepResult{Outcome: "waiting", Reason: "Progressing", Message: "4.4.6 is being installed"},
		},
	}, withLiveReader(controlplane.WaitUntilUpgraded))
}

func TestStillOurs(t *testing.T) {
	t.Parallel()
	ours := stepResult{Outcome: "done", Reason: "Done", Message: "the cluster is at 4.4.6 or on its way to it"}
	runCases(t, map[string]testCase{
		"it is installed":                                   {version: at(desired("4.4.6"), installed("4.4.6")), want: ours},
		"it is installed, and the request is gone":          {version: at(installed("4.4.6")), want: ours},
		"it is still being installed":                       {version: at(updating("4.4.6")), want: ours},
		"it is installed, and another one is asked for":     {version: at(installed("4.4.6"), desired("4.4.7")), want: supersededResult("4.4.7")},
		"it is installed, and another one after it as well": {version: at(installed("4.4.6"), installed("4.4.7")), want: supersededResult("4.4.7")},
		"the history is gone": {
			version: at(emptyStatus),
			want:    stepResult{Outcome: "waiting", Reason: "NoHistory", Message: "the cluster version says nothing about 4.4.6, nor about any other release"},
		},
	}, withLiveReader(controlplane.NotSuperseded))
}

func TestWithdrawn(t *testing.T) {
	t.Parallel()
	nothing := stepResult{Outcome: "skipped", Reason: "NothingToWithdraw", Message: "4.4.6 is not asked for", Patch: "{}"}
	begun := stepResult{Outcome: "skipped", Reason: "Commenced", Message: "the cluster version operator has begun with 4.4.6; it cannot be withdrawn", Patch: "{}"}
	runCases(t, map[string]testCase{
		"what was asked for is taken back": {
			version: at(desired("4.4.6"), unobserved, condition("ReleaseAccepted", "False", "", `version="4.4.6"`)),
			want: stepResult{
				Outcome: "done", Reason: "Done", Patch: `{"spec":{"desiredUpdate":null}}`,
				Message: "withdrew 4.4.6, which the cluster version operator had not begun with",
			},
		},
		"it is taken back although it was installed once": {
			version: at(installed("4.4.6"), installed("4.4.5"), desired("4.4.6")),
			want: stepResult{
				Outcome: "done", Reason: "Done", Patch: `{"spec":{"desiredUpdate":null}}`,
				Message: "withdrew 4.4.6, which the cluster version operator had not begun with",
			},
		},
		"nothing was asked for":               {version: at(), want: nothing},
		"what somebody else asked for stays":  {version: at(desired("4.4.7")), want: nothing},
		"what was asked for long ago stays":   {version: at(desired("4.4.5")), want: nothing},
		"what is being installed stays":       {version: at(desired("4.4.6"), updating("4.4.6")), want: begun},
		"what is installed stays":             {version: at(desired("4.4.6"), installed("4.4.6")), want: begun},
		"a cluster version that says nothing": {version: at(emptyStatus), want: nothing},
	}, controlplane.WithdrawRequest)
}

func pool(name string, updated, paused bool) client.Object {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Paused = paused
	p.Spec.Configuration.Name = "rendered-2"
	p.Status.Configuration.Name = "rendered-2"
	p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionFalse}}
	if updated {
		p.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	return p
}

func TestSettled(t *testing.T) {
	t.Parallel()
	settled := stepResult{Outcome: "done", Reason: "Done", Message: "nothing is being installed"}
	never := stepResult{Outcome: "done", Reason: "Done", Message: "the upgrade to 4.4.6 never began"}
	runCases(t, map[string]testCase{
		"nothing goes on": {
			version: at(installed("4.4.6")), pools: []client.Object{pool("worker", true, false)}, want: settled,
		},
		"a paused pool moves nothing": {
			version: at(installed("4.4.6")), pools: []client.Object{pool("worker", false, true)}, want: settled,
		},
		"the control plane is being upgraded": {
			version: at(updating("4.4.6"), condition("Progressing", "True", "", "Working towards 4.4.6")),
			want:    stepResult{Outcome: "waiting", Reason: "Progressing", Message: "the cluster is moving to 4.4.6: Working towards 4.4.6"},
		},
		"the control plane is being led elsewhere": {
			version: at(updating("4.4.6"), updating("4.4.7")),
			want:    stepResult{Outcome: "waiting", Reason: "Progressing", Message: "the cluster is moving to 4.4.7: no reason given"},
		},
		"the cluster version operator is at work": {
			version: at(installed("4.4.6"), condition("Progressing", "True", "", "Working towards 4.4.7")),
			want:    stepResult{Outcome: "waiting", Reason: "Progressing", Message: "the cluster version operator is at work: Working towards 4.4.7"},
		},
		"the nodes are being upgraded": {
			version: at(installed("4.4.6")),
			pools:   []client.Object{pool("worker", false, false), pool("infra", false, false), pool("master", true, false)},
			want:    stepResult{Outcome: "waiting", Reason: "PoolsUpdating", Message: "machine config pools are being updated: infra, worker"},
		},
		"the upgrade never began, whatever somebody else does": {version: at(updating("4.4.7")), want: never},
		"the upgrade never began, whatever ails a pool":        {version: at(), pools: []client.Object{pool("worker", false, false)}, want: never},
	}, withReader(controlplane.WaitUntilSettled))

	t.Run("pools that cannot be read are an error", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("the connection was refused")
		r := interceptor.NewClient(testCluster(t, nil, at(installed("4.4.6"))).Client.(client.WithWatch), interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
		})
		if result, err := controlplane.WaitUntilSettled(r, target)(t.Context(), engine.Run{}); !errors.Is(err, broken) {
			t.Errorf("got %v, %v", result, err)
		}
	})
}
