// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// config returns the UpgradeConfig weekly with these edits.
func config(edits ...func(*maintenancev1beta1.UpgradeConfig)) *maintenancev1beta1.UpgradeConfig {
	cfg := &maintenancev1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: weekly.Namespace, Name: weekly.Name, Labels: map[string]string{"team": "a"}},
		Spec: maintenancev1beta1.UpgradeConfigSpec{
			Schedule: maintenancev1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2", Location: "Europe/Zurich"},
			JobTemplate: maintenancev1beta1.UpgradeJobTemplate{Metadata: &maintenancev1beta1.TemplateMetadata{
				Labels: map[string]string{"upgrade-config": "weekly"}, Annotations: map[string]string{"note": "x", maintenancev1beta1.RetryAnnotation: "x"},
			}},
		},
	}
	for _, edit := range edits {
		edit(cfg)
	}
	return cfg
}

func pinned(pin maintenancev1beta1.Duration) func(*maintenancev1beta1.UpgradeConfig) {
	return func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec.PinVersionWindow = new(pin) }
}

// outage stops the operator for d.
func (w *world) outage(d time.Duration) {
	w.Process.Kill()
	w.RunFor(d)
	w.Begin()
}

// endJob writes the status of an ended UpgradeJob, unless it was deleted.
func (w *world) endJob(name string, phase history.Phase) {
	job := simulation.Find(w.Harness, client.ObjectKey{Namespace: namespace, Name: name}, &maintenancev1beta1.UpgradeJob{})
	if job == nil {
		return
	}
	now := metav1.NewTime(w.Now().Truncate(time.Second))
	job.Status.History = []history.Record{{Version: job.Spec.DesiredVersion.Version, Attempt: 1, Phase: phase, Reason: w.reason, StartTime: &now, CompleteTime: &now}}
	w.UpdateStatus(job)
	if phase == history.PhaseUpgraded && job.Spec.DesiredVersion.Version != "" {
		w.install(job.Spec.DesiredVersion.Version)
	}
}

// changeVersion changes the ClusterVersion, including its status.
func (w *world) changeVersion(do func(*configv1.ClusterVersion)) {
	version := simulation.Get(w.Harness, clusterstate.VersionKey, &configv1.ClusterVersion{})
	do(version)
	w.Must(w.Set(version))
}

// install completes an update. No further update is available then.
func (w *world) install(installed string) {
	w.changeVersion(func(version *configv1.ClusterVersion) {
		version.Status.History = append([]configv1.UpdateHistory{{Version: installed, State: configv1.CompletedUpdate}}, version.Status.History...)
		version.Status.AvailableUpdates = nil
	})
}

// offer makes updates available.
func (w *world) offer(versions ...string) {
	w.changeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue}}
		version.Status.AvailableUpdates = nil
		for _, v := range versions {
			version.Status.AvailableUpdates = append(version.Status.AvailableUpdates, configv1.Release{Version: v, Image: "quay.io/release@sha256:" + strings.ReplaceAll(v, ".", "")})
		}
	})
}

// offerConditionally offers an update with a risk. The status tells whether the update is recommended.
func (w *world) offerConditionally(version string, recommended metav1.ConditionStatus) {
	w.changeVersion(func(cv *configv1.ClusterVersion) {
		cv.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
			Release:    configv1.Release{Version: version, Image: "quay.io/release@sha256:" + strings.ReplaceAll(version, ".", "")},
			Risks:      []configv1.ConditionalUpdateRisk{{Name: "SlowBoot", Message: "nodes boot slowly", URL: "https://example.com/slow"}},
			Conditions: []metav1.Condition{{Type: "Recommended", Status: recommended, Reason: "EvaluationFailed"}},
		}}
	})
}

// losesUpdates makes the update service unreachable.
func (w *world) losesUpdates() {
	w.changeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionFalse, Reason: "RemoteFailed", Message: "unreachable"}}
		version.Status.AvailableUpdates = nil
	})
}

// edit changes the UpgradeConfig, as a user would.
func (w *world) edit(do func(*maintenancev1beta1.UpgradeConfig)) {
	w.TB.Helper()
	simulation.Edit(w.Harness, w.get(), do)
}

func (w *world) window(name string, start, end time.Time, configs, jobs *maintenancev1beta1.LabelSelector) *maintenancev1beta1.UpgradeSuspensionWindow {
	return &maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
			Start: maintenance.Timestamp(start), End: maintenance.Timestamp(end), Reason: "freeze", ConfigSelector: configs, JobSelector: jobs,
		},
	}
}
