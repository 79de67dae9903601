// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

var pending = stepResult{Outcome: "waiting", Reason: "Requested"}

func TestWaitUntilAccepted(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"not requested":                       {version: at()},
		"another release requested":           {version: at(desired("4.4.7"))},
		"another image requested":             {version: at(desiredImage(other446)), target: &clusterstate.Target{Version: "4.4.6", Image: image446}},
		"check requested":                     {version: at(func(v *configv1.ClusterVersion) { desired("4.4.6")(v); v.Spec.DesiredUpdate.Mode = "Preflight" })},
		"requested, no response yet":          {version: at(desired("4.4.6")), want: pending},
		"requested, earlier release rejected": {version: at(desired("4.4.6"), condition("ReleaseAccepted", "False", "", `failed version="4.4.5"`)), want: pending},
		"requested during another update":     {version: at(desired("4.4.6"), updating("4.4.7")), want: pending},
		"it is refused": {
			version: at(desired("4.4.6"), unobserved, condition("ReleaseAccepted", "False", "RetrievePayload", `version="4.4.6" is not signed`)),
			want:    stepResult{Outcome: "waiting", Reason: "TargetRefused"},
		},
		"it is being installed": {
			version: at(desired("4.4.6"), updating("4.4.6"), condition("ReleaseAccepted", "False", "", `failed version="4.4.6"`)),
			want:    done,
		},
		"it is installed":           {version: at(installed("4.4.6")), want: done},
		"in the history as Partial": {version: at(updating("4.4.6"), installed("4.4.5"))},
	}, withReader(observeOwn))
}

// installedImage sets the image of the installed release.
func installedImage(v *configv1.ClusterVersion) { v.Status.History[0].Image = "x@sha256:445" }

func desiredImage(image string) change {
	return func(v *configv1.ClusterVersion) {
		v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.6", Image: image}
	}
}

func TestRequestUpdate(t *testing.T) {
	t.Parallel()
	with := func(patch string) stepResult {
		requested := pending
		requested.Patch = `{"spec":{"desiredUpdate":` + patch + `}}`
		return requested
	}
	runCases(t, map[string]testCase{
		"held in the meantime": {
			version: at(func(v *configv1.ClusterVersion) {
				v.Annotations = map[string]string{"upgrade.managed.openshift.io/hold": "freeze"}
			}),
			want: stepResult{Outcome: "waiting", Reason: "Paused"},
		},
		"requested by version": {
			version: at(), want: with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`),
		},
		"conditional update requested by image": {
			version: at(updateWithRisks("SlowBoot")), want: with(`{"architecture":"","force":false,"image":"` + image446 + `","version":"4.4.6"}`),
		},
		"an image that is wanted is requested": {
			version: at(), target: &clusterstate.Target{Version: "4.4.6", Image: mirror446},
			want: with(`{"architecture":"","force":false,"image":"` + mirror446 + `","version":"4.4.6"}`),
		},
		"former request is replaced": {
			version: at(func(v *configv1.ClusterVersion) {
				v.Spec.DesiredUpdate = &configv1.Update{
					Version: "4.4.5", Force: true, Architecture: configv1.ClusterVersionArchitectureMulti,
					AcceptRisks: []configv1.AcceptRisk{{Name: "SlowBoot"}},
				}
			}),
			want: with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`), // the accepted risks are kept
		},
		"a check becomes an update": {
			version: at(func(v *configv1.ClusterVersion) { desired("4.4.6")(v); v.Spec.DesiredUpdate.Mode = "Preflight" }),
			want:    with(`{"architecture":"","force":false,"image":"","mode":null,"version":"4.4.6"}`),
		},
		"leftover request for the version with the installed image is replaced": {
			version: at(installedImage, func(v *configv1.ClusterVersion) {
				v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.6", Image: "x@sha256:445"}
			}),
			want: with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`),
		},
		"leftover request for a former release is replaced": {
			version: at(desired("4.4.4")), want: with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`),
		},
		"refused request for another release is replaced": {
			version: at(otherRequest, condition("ReleaseAccepted", "False", "", `version="4.4.7" is not signed`)),
			want:    with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`),
		},
		"version that is recommended, but not an available update, is requested by its image": {
			version: at(updateWithRisks("SlowBoot"), func(v *configv1.ClusterVersion) {
				v.Status.ConditionalUpdates[0].Conditions = []metav1.Condition{{Type: "Recommended", Status: metav1.ConditionTrue}}
			}),
			want: with(`{"architecture":"","force":false,"image":"` + image446 + `","version":"4.4.6"}`),
		},
		"request that is ignored is not sent again": {
			version: at(desired("4.4.6"), noUpdates, condition("Invalid", "True", "", "it must be an available update")),
			want:    stepResult{Outcome: "waiting", Reason: "TargetRefused"},
		},
		"not requested twice":                           {version: at(desired("4.4.6")), want: pending},
		"not requested during the installation":         {version: at(updating("4.4.6")), want: pending},
		"not requested after the installation":          {version: at(installed("4.4.6")), want: pending},
		"requested again after another update":          {version: at(updating("4.4.6"), installed("4.4.5")), want: with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`)},
		"a cluster version without a status is no harm": {version: at(emptyStatus), want: with(`{"architecture":"","force":false,"image":"","version":"4.4.6"}`)},
	}, request)
}

// Changes by another client while slow gates are evaluated are taken into account when the object
// is patched.
func TestCommence_decides_on_the_patched_object(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"not blocked": {version: at(), want: stepResult{Outcome: "waiting", Reason: "Requested", Patch: `{"spec":{"desiredUpdate":{"architecture":"","force":false,"image":"","version":"4.4.6"}}}`}},
		"another client has requested another version": {version: at(otherRequest), want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"}},
		"another client has requested another architecture": {
			version: at(func(v *configv1.ClusterVersion) {
				v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.5", Architecture: configv1.ClusterVersionArchitectureMulti}
				v.Generation = 4
			}),
			want: stepResult{Outcome: "waiting", Reason: "AnotherUpdateInProgress"},
		},
		"the target is no longer offered": {version: at(noUpdates), want: stepResult{Outcome: "waiting", Reason: "VersionNotOffered"}},
		"the cluster may no longer leave its minor version": {
			version: at(condition("Upgradeable", "False", "AdminAckRequired", "read this"), func(v *configv1.ClusterVersion) { v.Status.AvailableUpdates[0].Version = "4.5.0" }),
			target:  &clusterstate.Target{Version: "4.5.0"},
			want:    stepResult{Outcome: "waiting", Reason: "NotUpgradeable"},
		},
	}, func(c client.Client, to clusterstate.Target) engine.UpgradeStep {
		return controlplane.RequestUpdate(c, c, to, controlplane.Available, controlplane.NotBusy, controlplane.MinorUpdateAllowed)
	})
}

func TestCommence_requests_the_image_of_an_ambiguous_version(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"two releases of one version are offered": {
			version: at(func(v *configv1.ClusterVersion) {
				v.Status.AvailableUpdates = append(v.Status.AvailableUpdates, configv1.Release{Version: "4.4.6", Image: other446})
			}),
			want: stepResult{Outcome: "waiting", Reason: "Requested", Patch: `{"spec":{"desiredUpdate":{"architecture":"","force":false,"image":"` + image446 + `","version":"4.4.6"}}}`},
		},
	}, request)
}

func TestRestoreChannel(t *testing.T) {
	t.Parallel()
	stable, fast := "stable-4.4", "fast-4.4"
	for name, tc := range map[string]struct {
		version   *configv1.ClusterVersion
		preceding *string
		committed bool
		want      stepResult
	}{
		"the upgrade has set it":               {at(), &stable, false, stepResult{Outcome: "done", Reason: "Done", Patch: `{"spec":{"channel":"stable-4.4"}}`}},
		"there was none before":                {at(), new(string), false, stepResult{Outcome: "done", Reason: "Done", Patch: `{"spec":{"channel":null}}`}},
		"it is the recorded one":               {at(channel("stable-4.4")), &stable, false, stepResult{Outcome: "skipped", Reason: "NothingToRestore"}},
		"another client has set it since":      {at(channel("eus-4.4")), &stable, false, stepResult{Outcome: "skipped", Reason: "NothingToRestore"}},
		"empty record":                         {at(), nil, false, stepResult{Outcome: "skipped", Reason: "NothingToRestore"}},
		"it was the desired one before":        {at(), &fast, false, stepResult{Outcome: "skipped", Reason: "NothingToRestore"}},
		"the upgrade has commenced":            {at(updating("4.4.6")), &stable, false, stepResult{Outcome: "skipped", Reason: "Commenced"}},
		"an earlier attempt had commenced":     {at(updating("4.4.6"), updating("4.4.7")), &stable, false, stepResult{Outcome: "done", Reason: "Done", Patch: `{"spec":{"channel":"stable-4.4"}}`}},
		"a later update has followed upgrades": {at(updating("4.4.6"), updating("4.4.7")), &stable, true, stepResult{Outcome: "skipped", Reason: "Commenced"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testCluster(t, nil, tc.version)
			restore := controlplane.RestoreChannel(r, r, target, tc.preceding)
			got, message, err := callStep(t, r, func(ctx context.Context, run engine.Run) (engine.Result, error) {
				run.Committed = tc.committed
				return restore(ctx, run)
			})
			golden.Texts(t, "", message)
			if diff := cmp.Diff(tc.want, got); diff != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestSetChannel_ignores_a_channel_without_the_target(t *testing.T) {
	t.Parallel()
	currentIn := func(channels ...string) change {
		return func(v *configv1.ClusterVersion) { v.Status.Desired.Channels = channels }
	}
	wait := stepResult{Outcome: "waiting", Reason: "VersionNotInChannel"}
	cases := map[string]testCase{
		"the target is in other channels": {
			version: at(channel("stable-4.4"), inChannels("stable-4.4", "eus-4.4")),
			want:    wait,
		},
		"the current release is in other channels": {
			version: at(channel("stable-4.4"), currentIn("stable-4.4", "stable-4.5")), target: &clusterstate.Target{Version: "4.4.6", Channel: "stable-4.4x"},
			want: wait,
		},
	}
	runCases(t, cases, controlplane.SetChannel)
	t.Run("ahead of time", func(t *testing.T) {
		t.Parallel()
		runCases(t, cases, withReader(controlplane.PreCheckUpdateAvailable))
	})
	set := stepResult{Outcome: "waiting", Reason: "ChannelSet", Patch: `{"spec":{"channel":"fast-4.4"}}`}
	runCases(t, map[string]testCase{
		"the target and the current release are in the channel": {version: at(channel("stable-4.4"), inChannels("fast-4.4"), currentIn("fast-4.4")), want: set},
		"the channels are unknown":                              {version: at(channel("stable-4.4")), want: set},
	}, controlplane.SetChannel)
}

// The steps are combined as in the table. Passes run until the end.
func TestCommence(t *testing.T) {
	t.Parallel()
	r := testCluster(t, nil, at())
	healthy := false
	parts := []engine.UpgradeStep{
		observeOwn(r, target), controlplane.UpdateAvailable(r, target, nil), controlplane.Upgradeable(r, target),
		func(context.Context, engine.Run) (engine.Result, error) {
			if !healthy {
				return engine.Wait("ClusterUnhealthy", "an operator is degraded"), nil
			}
			return engine.Done(""), nil
		},
		controlplane.RequestUpdate(r, r, target),
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
		"not before it is requested":     {at(), false, false},
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

var (
	superseded  = stepResult{Outcome: "failed", Reason: "Superseded"}
	progressing = stepResult{Outcome: "waiting", Reason: "Progressing"}
)

func otherRequest(v *configv1.ClusterVersion) {
	v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.7", Image: "x@sha256:447"}
}

func formerImage(v *configv1.ClusterVersion) {
	v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.5", Image: "x@sha256:445"}
}

func TestWaitUntilUpgraded(t *testing.T) {
	t.Parallel()
	huge := strings.Repeat("operator is degraded\n", 10_000)
	runCases(t, map[string]testCase{
		"it is installed": {version: at(desired("4.4.6"), installed("4.4.6")), want: done},
		"it is being installed": {
			version: at(desired("4.4.6"), updating("4.4.6"), condition("Progressing", "True", "", "Working towards 4.4.6: 7 of 700 done")),
			want:    progressing,
		},
		"being installed without conditions": {version: at(updating("4.4.6")), want: progressing},
		"its installation fails": {
			version: at(updating("4.4.6"), condition("Progressing", "True", "", "Unable to apply 4.4.6"), condition("Failing", "True", "ClusterOperatorDegraded", "Cluster operator dns is degraded")),
			want:    stepResult{Outcome: "waiting", Reason: "Failing"},
		},
		"its installation fails at length":                    {version: at(updating("4.4.6"), condition("Failing", "True", "", huge)), want: stepResult{Outcome: "waiting", Reason: "Failing"}},
		"request removed":                                     {version: at(updating("4.4.6")), want: progressing},
		"another one is requested":                            {version: at(updating("4.4.6"), otherRequest), want: progressing},
		"the one before is requested by its version":          {version: at(updating("4.4.6"), desired("4.4.5")), want: progressing},
		"the one before is requested by its image":            {version: at(updating("4.4.6"), formerImage), want: progressing},
		"the one before is requested, and refused":            {version: at(updating("4.4.6"), formerImage, condition("ReleaseAccepted", "False", "", `version="4.4.5" is less than`)), want: progressing},
		"another one is being installed":                      {version: at(updating("4.4.6"), updating("4.4.7"), desired("4.4.7")), want: superseded},
		"it is installed, and another one is being installed": {version: at(installed("4.4.6"), updating("4.4.7")), want: superseded},
		"the one before is coming back":                       {version: at(updating("4.4.6"), updating("4.4.5")), want: superseded},
		"the one before is back":                              {version: at(updating("4.4.6"), installed("4.4.5")), want: superseded},
		"history removed":                                     {version: at(emptyStatus), want: progressing},
	}, withLiveReader(controlplane.WaitUntilUpgraded))
}

func TestNotSuperseded(t *testing.T) {
	t.Parallel()
	runCases(t, map[string]testCase{
		"it is installed":                                   {version: at(desired("4.4.6"), installed("4.4.6")), want: done},
		"installed, request removed":                        {version: at(installed("4.4.6")), want: done},
		"it is still being installed":                       {version: at(updating("4.4.6")), want: done},
		"it is installed, and another one is requested":     {version: at(installed("4.4.6"), otherRequest), want: done},
		"it is installed, and the one before is back":       {version: at(installed("4.4.6"), installed("4.4.5")), want: superseded},
		"it is installed, and another one after it as well": {version: at(installed("4.4.6"), installed("4.4.7")), want: superseded},
		"history removed":                                   {version: at(emptyStatus), want: stepResult{Outcome: "waiting", Reason: "NoHistory"}},
	}, withLiveReader(controlplane.NotSuperseded))
}

// manager adds a field manager that owns fields of spec.desiredUpdate.
func manager(name string, fields ...string) change {
	return func(v *configv1.ClusterVersion) {
		owned := make([]string, 0, len(fields))
		for _, field := range fields {
			owned = append(owned, `"f:`+field+`":{}`)
		}
		v.ManagedFields = append(v.ManagedFields, metav1.ManagedFieldsEntry{
			Manager: name, Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: configv1.GroupVersion.String(), FieldsType: "FieldsV1",
			FieldsV1: metav1.NewFieldsV1(`{"f:spec":{"f:desiredUpdate":{` + strings.Join(owned, ",") + `}}}`),
		})
	}
}

func TestWithdrawRequest(t *testing.T) {
	t.Parallel()
	nothing := stepResult{Outcome: "skipped", Reason: "NothingToWithdraw", Patch: `{"metadata":{"annotations":{"upgrade.managed.openshift.io/fence":"1"}}}`}
	begun := stepResult{Outcome: "skipped", Reason: "Commenced"}
	runCases(t, map[string]testCase{
		"request is withdrawn": {
			version: at(desired("4.4.6"), unobserved, condition("ReleaseAccepted", "False", "", `version="4.4.6"`)),
			want:    stepResult{Outcome: "done", Reason: "Done", Patch: `{"spec":{"desiredUpdate":null}}`},
		},
		"request is withdrawn although it was installed before": {
			version: at(installed("4.4.6"), installed("4.4.5"), desired("4.4.6")),
			want:    stepResult{Outcome: "done", Reason: "Done", Patch: `{"spec":{"desiredUpdate":null}}`},
		},
		"no request":                {version: at(), want: nothing},
		"request of another client": {version: at(otherRequest), want: nothing},
		"request of another client for the version by force": {
			version: at(func(v *configv1.ClusterVersion) {
				v.Spec.DesiredUpdate = &configv1.Update{Version: "4.4.6", Force: true}
			}),
			want: nothing,
		},
		"request of another client for the version with another image": {
			version: at(desiredImage(other446), manager("oc", "version", "image")), want: nothing,
		},
		"request with an image that another client has set since": {
			version: at(desiredImage(other446), manager(clusterstate.FieldManager, "version"), manager("oc", "image")), want: nothing,
		},
		"request that another client has made anew": {version: at(desired("4.4.6"), manager("oc", "version", "image")), want: nothing},
		"own request over a leftover": {
			version: at(desiredImage(image446), manager("oc", "version"), manager(clusterstate.FieldManager, "image")),
			want:    stepResult{Outcome: "done", Reason: "Done", Patch: `{"spec":{"desiredUpdate":null}}`},
		},
		"old request stays":             {version: at(desired("4.4.5")), want: nothing},
		"what is being installed stays": {version: at(desired("4.4.6"), updating("4.4.6")), want: begun},
		"what is installed stays":       {version: at(desired("4.4.6"), installed("4.4.6")), want: begun},
		"empty ClusterVersion":          {version: at(emptyStatus), want: nothing},
	}, withdrawRequest)
}

func pool(name string, updated, paused bool) client.Object {
	p := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name}}
	p.Spec.Paused = paused
	p.Spec.Configuration.Name = "rendered-2"
	p.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"role": name}}
	p.Status.Configuration.Name = "rendered-2"
	p.Status.MachineCount = 1
	p.Status.UpdatedMachineCount = 1
	p.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionFalse}}
	if updated {
		p.Status.Conditions[0].Status = corev1.ConditionTrue
	}
	return p
}

// mco returns the ClusterOperator of the machine config operator at a version.
func mco(version string) client.Object {
	o := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "machine-config"}}
	o.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: version}}
	return o
}

// outdated returns a node with the configuration of the previous release.
func outdated(pool string) client.Object {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pool + "-0", Labels: map[string]string{"role": pool}, Annotations: map[string]string{
		"machineconfiguration.openshift.io/currentConfig": "rendered-1", "machineconfiguration.openshift.io/desiredConfig": "rendered-1",
	}}}
}

func TestWaitUntilSettled(t *testing.T) {
	t.Parallel()
	waiting := stepResult{Outcome: "waiting", Reason: "NotSettled"}
	runCases(t, map[string]testCase{
		"no update in progress": {
			version: at(installed("4.4.6")), pools: []client.Object{mco("4.4.6"), pool("worker", true, false)}, want: done,
		},
		"a pool is paused": {
			version: at(installed("4.4.6")), pools: []client.Object{mco("4.4.6"), pool("worker", false, true)}, want: done,
		},
		"the control plane is being upgraded": {
			version: at(updating("4.4.6"), condition("Progressing", "True", "", "Working towards 4.4.6")),
			want:    waiting,
		},
		"the control plane is being updated to another release": {
			version: at(updating("4.4.6"), updating("4.4.7")),
			want:    waiting,
		},
		"the cluster version operator is progressing": {
			version: at(installed("4.4.6"), condition("Progressing", "True", "", "Working towards 4.4.7")),
			want:    waiting,
		},
		"the nodes are being upgraded": {
			version: at(installed("4.4.6")),
			pools:   []client.Object{mco("4.4.6"), pool("worker", false, false), pool("infra", false, false), pool("master", true, false)},
			want:    waiting,
		},
		"a pool has not counted an outdated node": {
			version: at(installed("4.4.6")), pools: []client.Object{mco("4.4.6"), pool("worker", true, false), outdated("worker")},
			want: waiting,
		},
		"the machine config operator has not begun": {
			version: at(installed("4.4.6")), pools: []client.Object{mco("4.4.5"), pool("worker", true, false)},
			want: waiting,
		},
		"the upgrade never began, and another one is being installed": {version: at(updating("4.4.7")), want: done},
		"the upgrade never began, and a pool is not updated":          {version: at(), pools: []client.Object{pool("worker", false, false)}, want: done},
	}, withReader(controlplane.WaitUntilSettled))

	t.Run("pools that cannot be read are an error", func(t *testing.T) {
		t.Parallel()
		broken := errors.New("the connection was refused")
		r := interceptor.NewClient(testCluster(t, nil, at(installed("4.4.6")), mco("4.4.6")).Client.(client.WithWatch), interceptor.Funcs{
			List: func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return broken },
		})
		if result, err := controlplane.WaitUntilSettled(r, target)(t.Context(), engine.Run{}); !errors.Is(err, broken) {
			t.Errorf("got %v, %v", result, err)
		}
	})
}

// The target was installed between the start of the attempt and its request, and replaced again.
func TestObserveRequest_target_replaced_before_the_request(t *testing.T) {
	t.Parallel()
	started := time.Date(2020, 5, 1, 12, 0, 0, 0, time.UTC)
	now := started.Add(4 * time.Hour)
	for name, tc := range map[string]struct {
		began, requested time.Time
		want             clusterstate.Observed
	}{
		"before the request":                       {began: started.Add(time.Hour), requested: now.Add(-time.Minute), want: clusterstate.ObservedPending},
		"after the request":                        {began: now.Add(-time.Hour), requested: now.Add(-time.Hour), want: clusterstate.ObservedBegun},
		"after the request, by a clock in advance": {began: now.Add(-time.Hour), requested: now.Add(time.Hour), want: clusterstate.ObservedBegun},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := testCluster(t, nil, at(updating("4.4.6"), installed("4.4.5"), desired("4.4.6"), unobserved, func(v *configv1.ClusterVersion) {
				v.Status.History[1].StartedTime = metav1.NewTime(tc.began)
			}))
			run := engine.Run{Started: started, Now: now, Requested: true, RequestTime: tc.requested}
			if got, _, err := controlplane.ObserveRequest(r, r, target)(t.Context(), run); err != nil || got != engine.Observed(tc.want) {
				t.Errorf("got %d, want %d, %v", got, tc.want, err)
			}
		})
	}
}
