// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
)

const (
	installed = "4.20.5"
	channel   = "stable-4.20"
	fast      = 600 // speed of a cluster with many upgrades: each takes some ten seconds
)

// releases returns the releases of the n versions after the installed one.
func releases(n int) []updategraph.Release {
	var all []updategraph.Release
	for i := range n {
		all = append(all, updategraph.Release{Version: fmt.Sprintf("4.20.%d", 6+i), Channels: []string{channel}})
	}
	return all
}

// upgradeTo returns an UpgradeConfig whose upgrade may start now.
func upgradeTo(version string) *upgradev1alpha1.UpgradeConfig {
	config := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: "example-upgrade-config"}}
	config.Spec = upgradev1alpha1.UpgradeConfigSpec{
		Type:                 "OSD",
		UpgradeAt:            time.Now().UTC().Format(time.RFC3339),
		PDBForceDrainTimeout: new(int32(60)),
		Desired:              upgradev1alpha1.Update{Version: version, Channel: channel},
	}
	return config
}

// applyUpgrade creates an UpgradeConfig, or changes the spec of the existing one, and returns the
// stored object.
func applyUpgrade(tb testing.TB, userClient client.Client, config *upgradev1alpha1.UpgradeConfig) *upgradev1alpha1.UpgradeConfig {
	tb.Helper()
	there := config.DeepCopy()
	err := userClient.Get(tb.Context(), client.ObjectKeyFromObject(config), there)
	switch {
	case client.IgnoreNotFound(err) != nil:
	case err != nil:
		err = userClient.Create(tb.Context(), config)
		there = config
	default:
		before := there.DeepCopy()
		there.Spec = config.Spec
		err = userClient.Patch(tb.Context(), there, client.MergeFrom(before))
	}
	if err != nil {
		tb.Fatal(err)
	}
	return there
}

// TestUpgrades_five_in_a_row upgrades one cluster five times while the operator is killed: in the
// first two upgrades whenever a step starts or ends, in the others at random times, and in all
// right after an action that must not be repeated. In each upgrade, the update is requested once,
// notifications are sent once, as Events and by the webhook, and no silence remains. The tests in
// virtual time end the operator at each of its writes.
func TestUpgrades_five_in_a_row(t *testing.T) {
	t.Parallel()
	const upgrades = 5
	seed := uint64(time.Now().UnixNano())
	t.Logf("the moments come from the seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))

	cluster := startCluster(t, openshiftsim.ClusterSpec{Version: installed, Speed: fast, Releases: releases(upgrades), Monitoring: &alerting.Spec{}})
	saves := startSaves(t, cluster)
	operator := startOperator(t, cluster, devcluster.OperatorOptions{APIServer: saves.access, Config: "alerts: {interval: 1s}"})
	userClient := newUserClient(t, cluster)
	killAtSideEffects(t, userClient, operator)
	for i, release := range releases(upgrades) {
		began := time.Now()
		generation := clusterVersion(t, userClient).Generation
		config := applyUpgrade(t, userClient, upgradeTo(release.Version))
		var kills int
		switch i {
		case 0:
			kills = killAtEachStep(t, userClient, config, operator, saves, beforeTheSave)
		case 1:
			kills = killAtEachStep(t, userClient, config, operator, saves, afterTheSave)
		default:
			kills = killAtRandom(t, userClient, config, operator, random)
		}
		t.Logf("%s after %s and %d kills", release.Version, time.Since(began).Round(time.Second), kills)

		// A request of a killed operator may have been applied. The audit log shows it without a
		// response.
		patches := count(requests(t, cluster, began), "patch clusterversions")
		if changed := clusterVersion(t, userClient).Generation - generation; patches > 1 || changed != 1 {
			t.Errorf("%s: the operator patched the ClusterVersion %d times, want at most 1, and its spec changed %d times, want 1", release.Version, patches, changed)
		}
		var events corev1.EventList
		if err := userClient.List(t.Context(), &events); err != nil {
			t.Fatal(err)
		}
		for _, reason := range []string{"UpgradeStarted", "UpgradeCompleted"} {
			if got := notifications(aftermath.Of(config), events.Items, reason, release.Version); got != 1 {
				t.Errorf("%s: %d notifications %s, want 1", release.Version, got, reason)
			}
		}
		checkAftermath(t, cluster, operator)
		if t.Failed() {
			return
		}
	}
}

// killAtSideEffects kills and restarts the operator, until the test ends, each time that it has
// published the start or the end of an upgrade, or requested an update. Often, it has not recorded
// that yet.
func killAtSideEffects(t *testing.T, userClient client.WithWatch, operator *devcluster.Operator) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	events, err := userClient.Watch(ctx, &corev1.EventList{}, client.InNamespace(devcluster.OperatorNamespace))
	if err != nil {
		t.Fatal(err)
	}
	versions, err := userClient.Watch(ctx, &configv1.ClusterVersionList{})
	if err != nil {
		t.Fatal(err)
	}
	generation := clusterVersion(t, userClient).Generation
	var killer sync.WaitGroup
	t.Cleanup(func() { end(); killer.Wait() })
	killer.Go(func() {
		for {
			sideEffect := false
			select {
			case <-ctx.Done():
				return
			case seen := <-events.ResultChan():
				event, is := seen.Object.(*corev1.Event)
				sideEffect = is && seen.Type == watch.Added && (event.Reason == "UpgradeStarted" || event.Reason == "UpgradeCompleted")
			case seen := <-versions.ResultChan():
				version, is := seen.Object.(*configv1.ClusterVersion)
				if sideEffect = is && version.Generation > generation; sideEffect {
					generation = version.Generation
				}
			}
			if !sideEffect {
				continue
			}
			if err := operator.Restart(); err != nil {
				t.Error(err)
			}
		}
	})
}

// killAtRandom kills and restarts the operator several times during the upgrade.
func killAtRandom(t *testing.T, userClient client.WithWatch, config *upgradev1alpha1.UpgradeConfig, operator *devcluster.Operator, random *rand.Rand) int {
	t.Helper()
	var moments []time.Duration
	for range 3 + random.IntN(4) {
		moments = append(moments, time.Duration(random.Int64N(int64(3*time.Second))))
	}
	finished, end := context.WithCancel(t.Context())
	kills := 0
	var killer sync.WaitGroup
	killer.Go(func() {
		for _, moment := range moments {
			timer := time.NewTimer(moment)
			select {
			case <-finished.Done():
				timer.Stop()
				return
			case <-timer.C:
			}
			kills++
			if err := operator.Restart(); err != nil {
				t.Error(err)
			}
		}
	})
	follow(t, userClient, config, func(*history.Record) {})
	end()
	killer.Wait()
	return kills
}

// follow calls a function with each state of the attempt until it is finished, and then requires it
// to be Upgraded.
func follow(tb testing.TB, userClient client.WithWatch, config *upgradev1alpha1.UpgradeConfig, observe func(*history.Record)) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	states, err := userClient.Watch(ctx, &upgradev1alpha1.UpgradeConfigList{}, client.InNamespace(config.Namespace))
	if err != nil {
		tb.Fatal(err)
	}
	defer states.Stop()
	for state := range states.ResultChan() {
		current, is := state.Object.(*upgradev1alpha1.UpgradeConfig)
		if !is || current.Name != config.Name || state.Type == watch.Deleted {
			continue
		}
		i := slices.IndexFunc(current.Status.History, func(h history.Record) bool { return h.Version == config.Spec.Desired.Version })
		if i < 0 {
			continue
		}
		record := &current.Status.History[i]
		observe(record)
		if record.CompleteTime == nil {
			continue
		}
		if record.Phase != history.PhaseUpgraded {
			tb.Fatalf("the upgrade to %s ended %s", record.Version, record.Phase)
		}
		return
	}
	tb.Fatalf("the upgrade to %s did not end: %v", config.Spec.Desired.Version, context.Cause(ctx))
}

func clusterVersion(tb testing.TB, userClient client.Client) *configv1.ClusterVersion {
	tb.Helper()
	var version configv1.ClusterVersion
	if err := userClient.Get(tb.Context(), client.ObjectKey{Name: "version"}, &version); err != nil {
		tb.Fatal(err)
	}
	return &version
}
