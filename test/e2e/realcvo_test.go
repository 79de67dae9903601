// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build cvo

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/realcvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/alerting"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// realUpgradeTimeout bounds an upgrade with the real cluster version operator. It usually takes a
// minute and a half.
const realUpgradeTimeout = 5 * time.Minute

// firing returns a query whose result is 1 while an alert fires, 0 while it does not, and empty if
// this is unknown, as in the risks of real releases.
func firing(alert string) string {
	return fmt.Sprintf(`group(ALERTS{alertname=%q, alertstate="firing"}) or 0 * group(ALERTS)`, alert)
}

// journey is a cluster with the real cluster version operator and its updates from release to release.
type journey struct {
	cluster    *devcluster.Cluster
	operator   *devcluster.Operator
	userClient client.Client
	generation int64 // the generation of the ClusterVersion: it counts the changes of the spec
}

func TestRealClusterVersionOperator(t *testing.T) { //nolint:tparallel // each subtest continues the one before
	t.Parallel()
	channel, next := []string{"stable-4.20"}, []string{"stable-4.20", "stable-4.21"}
	j := &journey{cluster: startCluster(t, openshiftsim.ClusterSpec{
		CVO: openshiftsim.Real,
		Monitoring: &alerting.Spec{Alerts: []alerting.Alert{
			{Name: "DiskFirmwareOutdated", Labels: map[string]string{"severity": "warning"}},
		}},
		Releases: []updategraph.Release{
			{Version: "4.20.6", Channels: channel, From: []string{"4.20.5"}, Risks: []updategraph.Risk{
				{Name: "LostTime", Message: "Clocks drift.", URL: "https://example.com/clocks", PromQL: firing("NodeClockNotSynchronising")},
			}},
			{Version: "4.20.7", Channels: next, From: []string{"4.20.6"}, Risks: []updategraph.Risk{
				{Name: "SlowBoots", Message: "Nodes boot slowly.", URL: "https://example.com/boots", PromQL: firing("DiskFirmwareOutdated")},
			}},
			{Version: "4.20.8", Channels: channel, From: []string{"4.20.7"}, Unsigned: true},
			{Version: "4.21.0", Channels: []string{"stable-4.21"}, From: []string{"4.20.7"}},
		},
	})}
	j.userClient = newUserClient(t, j.cluster)
	j.generation = j.version(t).Generation
	j.operator = startOperator(t, j.cluster, devcluster.OperatorOptions{Config: "upgradeWindow: 40s"})

	well := t.Run("carries out an update to the next patch release, since its risk does not apply", func(t *testing.T) {
		config := j.upgrade(t, upgradev1alpha1.Update{Version: "4.20.6"})
		j.waitForEnd(t, config, history.PhaseUpgraded, "Upgraded")
		j.checkInstalled(t, "4.20.6", 1)
		if entry := j.version(t).Status.History[0]; !entry.Verified {
			t.Errorf("the release was not verified: %+v", entry)
		}
	}) &&
		t.Run("installs an update whose risk applies only if it is accepted", func(t *testing.T) {
			config := j.upgrade(t, upgradev1alpha1.Update{Version: "4.20.7"})
			waiting := j.waitForReason(t, config, "VersionPinned", "RisksNotAccepted")
			if !strings.Contains(waiting, "SlowBoots (Nodes boot slowly. https://example.com/boots)") {
				t.Errorf("%q does not name the risk", waiting)
			}
			j.waitForEnd(t, config, history.PhaseFailed, "WindowMissed")
			j.checkInstalled(t, "4.20.6", 0)
		}) &&
		t.Run("goes on while our operator is killed and another client sets the request back, and our operator goes on where it was", func(t *testing.T) {
			config := j.upgrade(t, upgradev1alpha1.Update{Version: "4.20.7", AcceptedRisks: []string{"SlowBoots"}})
			for _, operator := range []string{"etcd", "authentication", "dns"} {
				eventually(t, realUpgradeTimeout, operator+" is updated", func(ctx context.Context) error {
					var status configv1.ClusterOperator
					if err := j.userClient.Get(ctx, client.ObjectKey{Name: operator}, &status); err != nil {
						return err
					}
					if got := cvo.VersionOf(&status); got != "4.20.7" {
						return fmt.Errorf("it is at %s", got)
					}
					return nil
				})
				if err := j.operator.Restart(); err != nil {
					t.Fatal(err)
				}
				switch operator {
				case "authentication":
					j.leave(t, "4.20.6", "")
				case "dns": // it is ignored, and the next upgrade replaces it
					j.leave(t, "4.20.8", updategraph.Release{Version: "4.20.7"}.Image())
				}
			}
			j.waitForEnd(t, config, history.PhaseUpgraded, "Upgraded")
			j.checkInstalled(t, "4.20.7", 3)
			j.checkEvent(t, "AnotherUpdateRequested", "the upgrade to 4.20.7 goes on, but another client has requested 4.20.6 in spec.desiredUpdate of the ClusterVersion")
			if entry := j.version(t).Status.History[0]; !strings.Contains(entry.AcceptedRisks, "Nodes boot slowly.") {
				t.Errorf("the risk was not accepted knowingly: %+v", entry)
			}
		}) &&
		t.Run("replaces a leftover by a request of an unsigned release, which is refused, withdrawn, and named", func(t *testing.T) {
			config := j.upgrade(t, upgradev1alpha1.Update{Version: "4.20.8"})
			message := j.waitForReason(t, config, "CommenceUpgrade", "TargetRefused")
			if !strings.Contains(message, "The update cannot be verified: unable to verify sha256:") {
				t.Errorf("%q does not have the error of the release", message)
			}
			j.waitForEnd(t, config, history.PhaseFailed, "TargetRefused")
			j.checkInstalled(t, "4.20.7", 2) // requested, and withdrawn
			if desired := j.version(t).Spec.DesiredUpdate; desired != nil && desired.Version != "4.20.7" {
				t.Errorf("%s is still requested", desired.Version)
			}
			eventually(t, time.Minute, "the cluster version operator is content", func(ctx context.Context) error {
				version := &configv1.ClusterVersion{}
				if err := j.userClient.Get(ctx, client.ObjectKey{Name: cvo.Name}, version); err != nil {
					return err
				}
				for _, condition := range version.Status.Conditions {
					if condition.Type == "ReleaseAccepted" && condition.Status != configv1.ConditionTrue {
						return fmt.Errorf("%s: %s", condition.Reason, condition.Message)
					}
				}
				return nil
			})
		}) &&
		t.Run("says why a minor update is not to be made", func(t *testing.T) {
			j.setUpgradeable(t, configv1.ConditionFalse, "BackupMissing", "make a backup of etcd first")
			config := j.upgrade(t, upgradev1alpha1.Update{Version: "4.21.0"})
			if message := j.waitForReason(t, config, "ClusterUpgradeable", "NotUpgradeable"); !strings.Contains(message, "BackupMissing: Cluster operator etcd should not be upgraded between minor versions: make a backup of etcd first") {
				t.Errorf("%q does not say why", message)
			}
			j.waitForEnd(t, config, history.PhaseFailed, "WindowMissed")
			j.checkInstalled(t, "4.20.7", 2) // the other channel, and the former one again
			j.setUpgradeable(t, configv1.ConditionTrue, "AsExpected", "")
		}) &&
		t.Run("carries out a minor update", func(t *testing.T) {
			config := j.upgrade(t, upgradev1alpha1.Update{Version: "4.21.0"})
			j.waitForEnd(t, config, history.PhaseUpgraded, "Upgraded")
			j.checkInstalled(t, "4.21.0", 2) // the channel, and the version
		})
	if well { // otherwise the next part would start at another version
		checkAftermath(t, j.cluster, j.operator)
	}
}

// leave requests an update as another client.
func (j *journey) leave(t *testing.T, version, image string) {
	t.Helper()
	merge(t, j.userClient, map[string]any{"desiredUpdate": map[string]any{"version": version, "image": image, "force": false}})
}

// checkEvent fails unless there is an Event with that message.
func (j *journey) checkEvent(t *testing.T, reason, message string) {
	t.Helper()
	var events corev1.EventList
	if err := j.userClient.List(t.Context(), &events, client.InNamespace(devcluster.OperatorNamespace)); err != nil {
		t.Fatal(err)
	}
	var of []string
	for i := range events.Items {
		if e := &events.Items[i]; e.Reason == reason {
			of = append(of, e.Message)
		}
	}
	if !slices.ContainsFunc(of, func(m string) bool { return strings.Contains(m, message) }) {
		t.Errorf("the Events %s are %q, want %q", reason, of, message)
	}
}

// upgrade requests an upgrade that starts now.
func (j *journey) upgrade(t *testing.T, desired upgradev1alpha1.Update) client.ObjectKey {
	t.Helper()
	desired.Channel = "stable-" + desired.Version[:len("4.20")]
	timeout := int32(60)
	config := &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, GenerateName: "to-" + desired.Version + "-"},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: time.Now().UTC().Format(time.RFC3339), PDBForceDrainTimeout: &timeout, Desired: desired,
		},
	}
	if err := j.userClient.Create(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	return client.ObjectKeyFromObject(config)
}

// waitForReason returns the message of a step once it waits with that reason.
func (j *journey) waitForReason(t *testing.T, config client.ObjectKey, step, reason string) (message string) {
	t.Helper()
	eventually(t, 2*time.Minute, step+" waits because of "+reason, func(ctx context.Context) error {
		attempt, err := j.attempt(ctx, config)
		if err != nil {
			return err
		}
		for _, condition := range attempt.Conditions {
			if condition.Type == step && condition.Reason == reason {
				message = condition.Message
				return nil
			}
		}
		return fmt.Errorf("it is %+v", attempt)
	})
	return message
}

// waitForEnd returns once the upgrade is finished, and fails unless it ended in that phase.
func (j *journey) waitForEnd(t *testing.T, config client.ObjectKey, phase history.Phase, reason string) {
	t.Helper()
	began := time.Now()
	eventually(t, realUpgradeTimeout, "the upgrade is over", func(ctx context.Context) error {
		attempt, err := j.attempt(ctx, config)
		if err == nil && attempt.CompleteTime == nil {
			err = fmt.Errorf("it is %+v", attempt)
		}
		return err
	})
	var upgrade upgradev1alpha1.UpgradeConfig
	if err := j.userClient.Get(t.Context(), config, &upgrade); err != nil {
		t.Fatal(err)
	}
	var ended string
	for _, condition := range upgrade.Status.Conditions {
		if condition.Type == "Succeeded" {
			ended = condition.Reason
		}
	}
	if got := upgrade.Status.History[0].Phase; got != phase || ended != reason {
		t.Errorf("it ended %s because of %s, want %s because of %s: %+v", got, ended, phase, reason, upgrade.Status)
	}
	t.Logf("%s after %.0f s", phase, time.Since(began).Seconds())
}

func (j *journey) attempt(ctx context.Context, config client.ObjectKey) (*history.Record, error) {
	var upgrade upgradev1alpha1.UpgradeConfig
	if err := j.userClient.Get(ctx, config, &upgrade); err != nil {
		return nil, err
	}
	if len(upgrade.Status.History) == 0 {
		return nil, fmt.Errorf("nothing has been done yet: %+v", upgrade.Status.Conditions)
	}
	return &upgrade.Status.History[0], nil
}

// checkInstalled fails unless that version is installed, and the spec of the ClusterVersion was
// changed that often since the last check.
func (j *journey) checkInstalled(t *testing.T, version string, changes int64) {
	t.Helper()
	object := j.version(t)
	if got := object.Status.History[0]; got.Version != version || got.State != configv1.CompletedUpdate {
		t.Errorf("the cluster is at %s (%s), want %s", got.Version, got.State, version)
	}
	if got := object.Generation - j.generation; got != changes {
		t.Errorf("the spec of the ClusterVersion was changed %d times, want %d", got, changes)
	}
	j.generation = object.Generation
}

func (j *journey) version(t *testing.T) *configv1.ClusterVersion {
	t.Helper()
	version := &configv1.ClusterVersion{}
	if err := j.userClient.Get(t.Context(), client.ObjectKey{Name: cvo.Name}, version); err != nil {
		t.Fatal(err)
	}
	return version
}

// setUpgradeable sets whether the ClusterOperator etcd is upgradeable to the next minor release,
// and returns once the ClusterVersion reports it.
func (j *journey) setUpgradeable(t *testing.T, upgradeable configv1.ConditionStatus, reason, message string) {
	t.Helper()
	etcd := &configv1.ClusterOperator{}
	if err := j.userClient.Get(t.Context(), client.ObjectKey{Name: "etcd"}, etcd); err != nil {
		t.Fatal(err)
	}
	cvo.SetCondition(etcd, configv1.OperatorUpgradeable, upgradeable, reason, message, time.Now())
	if err := j.userClient.Status().Update(t.Context(), etcd); err != nil {
		t.Fatal(err)
	}
	if err := realcvo.Resync(t.Context(), j.userClient); err != nil {
		t.Fatal(err)
	}
	eventually(t, realUpgradeTimeout, "the cluster version operator has noticed", func(ctx context.Context) error {
		version := &configv1.ClusterVersion{}
		if err := j.userClient.Get(ctx, client.ObjectKey{Name: cvo.Name}, version); err != nil {
			return err
		}
		gotReason := "" // like the played one it says nothing if nothing is in the way
		for _, condition := range version.Status.Conditions {
			if condition.Type == configv1.OperatorUpgradeable {
				gotReason = condition.Reason
			}
		}
		if (upgradeable == configv1.ConditionFalse) != (gotReason == reason) || upgradeable == configv1.ConditionTrue && gotReason != "" {
			return fmt.Errorf("the reason is %q", gotReason)
		}
		return nil
	})
}

// statusStory follows an update that the real cluster version operator carries out.
const statusStory = `
name: status
description: The status of an update by the real cluster version operator is true at each stage.
binary: true
updateStatus: true
cluster: {cvo: real, workers: 2}
upgradeConfigs: [{upgradeAt: +1m}]
rules:
  - name: an administrator looks before
    do: [{command: {run: oc update status, prints: ['^UP TO DATE  4\.20\.5 since '], within: 50s}}]
  - name: an administrator follows the update of the control plane
    for: {kind: ClusterVersion}
    when: object.status.history[0].version == "4.20.6" && object.status.history[0].state == "Partial"
    do: [{command: {run: oc update status, exitCode: 10, prints: ['^UPDATING  4\.20\.5 to 4\.20\.6 ', 'control plane +\d of \d+ operators'], within: 30s}}]
  - name: an administrator looks at the end
    for: {kind: UpgradeConfig}
    when: object.status.history[0].phase == "Upgraded"
    do: [{command: {run: oc update status --details, prints: ['^UP TO DATE  4\.20\.6 since '], lacks: ['^(warning|error) '], within: 1m}}]
expect:
  within: 5m
  clusterVersion: {version: 4.20.6, requests: 1}
`

func TestUpdateStatus_with_the_real_cluster_version_operator(t *testing.T) {
	t.Parallel()
	story, err := scenario.Decode("status.yaml", []byte(statusStory))
	if err != nil {
		t.Fatal(err)
	}
	runScenario(t, story)
}
