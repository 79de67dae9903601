// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
)

func TestFirstScreen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cluster func(*world)
		at      time.Duration
		want    []string // reason and parts of the message, in order
	}{
		"a failed pre-check":    {func(w *world) { w.cordonWorker(true) }, -time.Minute, []string{"Scheduled", "pre-check failed: PreHealthCheck: ", "worker-0", "starts at 2026-03-01T12:10:00Z"}},
		"a pause before":        {(*world).pause, -time.Minute, []string{"Scheduled", "paused by spec.paused", "2026-03-01T12:10:00Z"}},
		"a pause in the window": {(*world).pause, time.Minute, []string{"Paused", "paused by spec.paused", "2026-03-01T12:40:00Z"}},
		"a wait":                {func(w *world) { w.cordonWorker(true) }, time.Minute, []string{"PreHealthCheck", "worker-0", "(until 2026-03-01T12:40:00Z)"}},
		"a failure":             {func(w *world) { w.cordonWorker(true) }, time.Hour, []string{"PreHealthCheck", "failed: ", "worker-0", "to try again, set spec.upgradeAt to another time"}},
		"the lock": {
			func(w *world) {
				w.createLock(&lock.Holder{Kind: "UpgradeJob", Namespace: "team-b", Name: "job", UID: "1"})
			},
			time.Minute,
			[]string{"ClusterLocked", "waiting for the upgrade of UpgradeJob team-b/job", "(until 2026-03-01T12:40:00Z)"},
		},
		"a missed window":   {(*world).pause, time.Hour, []string{"WindowMissed", "did not start by 2026-03-01T12:40:00Z", "paused", "to try again"}},
		"a retried failure": {func(w *world) { w.cordonWorker(true) }, time.Hour, []string{"PreHealthCheck", "failed: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			c.cluster(w)
			w.runTo(c.at)
			rest := w.condition("Progressing")
			for _, part := range c.want {
				_, after, found := strings.Cut(rest, part)
				if !found {
					t.Fatalf("%q is not in %q, which is all or the rest of Progressing", part, rest)
				}
				rest = after
			}
		})
	}
}

func TestCommencedUpgradeRecordsItsPrecedingVersion(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = "4.4.7" }))
	w.cluster.Available = []string{desired, "4.4.7"}
	w.cluster.ChangePools(func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = true })
	w.runUntilStep("PreHealthCheck")
	if got := w.record(); got.PrecedingVersion != installed || got.CommenceTime != nil {
		t.Errorf("preceding %q, commenced %v", got.PrecedingVersion, got.CommenceTime)
	}
	w.cluster.ChangeVersion(func(version *configv1.ClusterVersion) { // in the meantime, another client upgrades to 4.4.6
		version.Status.History = append([]configv1.UpdateHistory{{Version: desired, State: configv1.CompletedUpdate}}, version.Status.History...)
	})
	w.cluster.ChangeOperator(func(operator *configv1.ClusterOperator) { operator.Status.Versions[0].Version = desired })
	w.cluster.ChangePools(func(p *mcfgv1.MachineConfigPool) {
		p.Spec.Paused = false
		openshift.MarkUpdated(p, desired)
	})
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	got := w.record()
	if got.PrecedingVersion != desired || got.CommenceTime == nil || got.CommenceTime.Before(got.StartTime) || got.CompleteTime.Before(got.CommenceTime) {
		t.Errorf("preceding %q, started %v, commenced %v, completed %v", got.PrecedingVersion, got.StartTime, got.CommenceTime, got.CompleteTime)
	}
	if got.PrecedingChannel == nil || *got.PrecedingChannel != "stable-4.4" {
		t.Errorf("the preceding channel is %v", got.PrecedingChannel)
	}
}

func TestRunbook_of_another_version_has_no_image_of_the_spec(t *testing.T) {
	t.Parallel()
	cfg := upgradeConfig(upgrade)
	cfg.Spec.Desired.Image, cfg.Spec.Desired.AcceptedRisks = "quay.io/release@sha256:1", []string{"SlowBoots"}
	for version, want := range map[string]upgradev1alpha1.Update{
		cfg.Spec.Desired.Version: cfg.Spec.Desired,
		"4.4.1":                  {Version: "4.4.1", Channel: cfg.Spec.Desired.Channel},
	} {
		if diff := cmp.Diff(want, withVersion(cfg, version).Spec.Desired); diff != "" {
			t.Errorf("%s (-want +got):\n%s", version, diff)
		}
	}
}

func TestActiveUpgrades(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade), upgradeConfig(client.ObjectKey{Namespace: "team-b", Name: "tomorrow"},
		func(s *upgradev1alpha1.UpgradeConfigSpec) {
			s.Desired.Version, s.UpgradeAt = "4.4.7", formatTime(tenPast.Add(24*time.Hour))
		}))
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	w.RunFor(time.Second)
	requests := w.reconciler.lifecycle.Active(t.Context())
	if len(requests) != 1 || requests[0].Name != "tomorrow" {
		t.Errorf("active: %v", requests)
	}
}
