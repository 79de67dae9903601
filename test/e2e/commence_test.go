// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
)

// The limits of the delays until an upgrade commences, while alerts are queried once a minute.
const (
	maxHealthyMedian   = 3 * time.Second
	maxScheduledMedian = 2 * time.Second
	maxCommenceDelay   = 10 * time.Second
)

func BenchmarkCommence(b *testing.B) {
	b.Log("Method: a real Prometheus and Alertmanager, the default interval of a minute. Healthy: from the patch that makes a" +
		" ClusterOperator healthy, one to two minutes after the upgrade began to wait, to the watch event in which the ClusterVersion's history" +
		" begins with the target. Scheduled: from spec.upgradeAt, one to two minutes after its UpgradeConfig is applied, to that event. The operator is restarted before each upgrade: upgrades in a row would" +
		" share the queries that the interval allows.")
	const rounds = 5
	for b.Loop() {
		healthy, scheduled := measureCommence(b, rounds, alertsInterval)
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(median(healthy).Seconds(), "s-healthy-median")
		b.ReportMetric(slices.Max(healthy).Seconds(), "s-healthy-max")
		b.ReportMetric(median(scheduled).Seconds(), "s-scheduled-median")
		b.ReportMetric(slices.Max(scheduled).Seconds(), "s-scheduled-max")
	}
}

// measureCommence measures that many upgrades that wait for a healthy cluster, and that many
// scheduled ones.
func measureCommence(tb testing.TB, rounds int, interval time.Duration) (healthy, scheduled []time.Duration) {
	tb.Helper()
	all := releases(2 * rounds)
	cluster := startCluster(tb, openshiftsim.ClusterSpec{Version: installed, Speed: fast, Releases: all, Monitoring: &alerting.Spec{}})
	userClient := newUserClient(tb, cluster)
	servers := countExternal(tb, cluster)
	operator := startOperator(tb, cluster, devcluster.OperatorOptions{Config: servers.configuration(interval)})
	began := time.Now()
	for i, release := range all {
		if err := operator.Restart(); err != nil {
			tb.Fatal(err)
		}
		awaitReady(tb, operator)
		config := upgradeTo(release.Version)
		wait := interval + rand.N(interval)
		if i%2 == 0 {
			setDegraded(tb, userClient, configv1.ConditionTrue)
			applyUpgrade(tb, userClient, config)
			awaitCondition(tb, userClient, config, waitsForHealth)
			sleep(tb, wait)
			due := time.Now()
			setDegraded(tb, userClient, configv1.ConditionFalse)
			healthy = append(healthy, commencedAt(tb, userClient, config).Sub(due))
			tb.Logf("%s commenced %s after the cluster was healthy", release.Version, healthy[len(healthy)-1])
		} else {
			due := time.Now().Add(wait).Truncate(time.Second)
			config.Spec.UpgradeAt = due.UTC().Format(time.RFC3339)
			applyUpgrade(tb, userClient, config)
			scheduled = append(scheduled, commencedAt(tb, userClient, config).Sub(due))
			tb.Logf("%s commenced %s after spec.upgradeAt", release.Version, scheduled[len(scheduled)-1])
		}
		awaitCondition(tb, userClient, config, func(c *upgradev1alpha1.UpgradeConfig) bool {
			return isFinished(c, release.Version) && len(c.Finalizers) == 0
		})
	}
	checkDelays(tb, "healthy", healthy, maxHealthyMedian)
	checkDelays(tb, "scheduled", scheduled, maxScheduledMedian)
	tb.Logf("%d queries of Prometheus in %s", servers.prometheus.total(), time.Since(began).Round(time.Second))
	return healthy, scheduled
}

func checkDelays(tb testing.TB, what string, delays []time.Duration, limit time.Duration) {
	tb.Helper()
	if middle, longest := median(delays), slices.Max(delays); middle > limit || longest > maxCommenceDelay {
		tb.Errorf("%s: the median is %s and the longest delay %s, want at most %s and %s: %v", what, middle, longest, limit, maxCommenceDelay, delays)
	}
}

// commencedAt returns when the ClusterVersion shows that the upgrade has commenced.
func commencedAt(tb testing.TB, userClient client.WithWatch, config *upgradev1alpha1.UpgradeConfig) time.Time {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 5*time.Minute)
	defer cancel()
	versions, err := userClient.Watch(ctx, &configv1.ClusterVersionList{})
	if err != nil {
		tb.Fatal(err)
	}
	defer versions.Stop()
	for event := range versions.ResultChan() {
		version, is := event.Object.(*configv1.ClusterVersion)
		if is && len(version.Status.History) > 0 && version.Status.History[0].Version == config.Spec.Desired.Version {
			return time.Now()
		}
	}
	tb.Fatalf("the upgrade to %s did not commence: %v", config.Spec.Desired.Version, context.Cause(ctx))
	return time.Time{}
}
