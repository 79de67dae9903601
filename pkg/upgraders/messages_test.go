// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders

import (
	"context"
	"strings"
	"testing"
	"time"
	"unicode"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
)

// hostileText is text that a person or a program may write into an object: escape sequences of terminals, line breaks,
// invalid UTF-8, and 100 kB.
var hostileText = "\x1b[2J\x1b]0;title\a\r\n\u202e\u0000\xff" + strings.Repeat("hostile ", 12_500)

// maxHostileMessage bounds a message about several objects with such texts, in bytes.
const maxHostileMessage = 4096

func hostileCondition(name configv1.ClusterStatusConditionType, status configv1.ConditionStatus) configv1.ClusterOperatorStatusCondition {
	return configv1.ClusterOperatorStatusCondition{Type: name, Status: status, Reason: hostileText, Message: hostileText}
}

// hostileCluster has the text in every field of a status that a step or a check reads.
func hostileCluster(current string) []client.Object {
	version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
	version.Spec.Channel = hostileText
	version.Spec.DesiredUpdate = &configv1.Update{Version: hostileText, Image: hostileText, Architecture: configv1.ClusterVersionArchitecture(hostileText)}
	version.Status.Desired.Channels = []string{hostileText}
	version.Status.History = []configv1.UpdateHistory{{Version: current, Image: hostileText, State: configv1.CompletedUpdate}}
	version.Status.AvailableUpdates = []configv1.Release{{Version: hostileText, Image: hostileText, Channels: []string{hostileText}}}
	version.Status.ConditionalUpdates = []configv1.ConditionalUpdate{{
		Release: configv1.Release{Version: "4.4.6", Image: hostileText},
		Risks:   []configv1.ConditionalUpdateRisk{{Name: hostileText, Message: hostileText, URL: hostileText}},
	}}
	for _, name := range []configv1.ClusterStatusConditionType{"Failing", "Progressing", "Invalid"} {
		version.Status.Conditions = append(version.Status.Conditions, hostileCondition(name, configv1.ConditionTrue))
	}
	for _, name := range []configv1.ClusterStatusConditionType{"Upgradeable", "ReleaseAccepted", "RetrievedUpdates"} {
		version.Status.Conditions = append(version.Status.Conditions, hostileCondition(name, configv1.ConditionFalse))
	}
	operator := &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: "machine-config"}}
	operator.Status.Versions = []configv1.OperandVersion{{Name: "operator", Version: hostileText}}
	operator.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
		hostileCondition("Available", configv1.ConditionFalse), hostileCondition("Degraded", configv1.ConditionTrue), hostileCondition("Progressing", configv1.ConditionTrue),
	}
	pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Spec: mcfgv1.MachineConfigPoolSpec{NodeSelector: &metav1.LabelSelector{}}}
	pool.Status.MachineCount = 1
	pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: "Degraded", Status: corev1.ConditionTrue, Reason: hostileText, Message: hostileText}}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Annotations: map[string]string{
		"machineconfiguration.openshift.io/state": hostileText, "machineconfiguration.openshift.io/reason": hostileText,
		"machineconfiguration.openshift.io/currentConfig": hostileText, "machineconfiguration.openshift.io/desiredConfig": "x",
	}}}
	degraded := node.DeepCopy()
	degraded.Name, degraded.Annotations["machineconfiguration.openshift.io/state"] = "worker-1", "Degraded"
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "openshift-dns", Name: "dns"}}
	budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": hostileText}}
	budget.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: hostileText}}
	return []client.Object{version, operator, pool, node, degraded, budget}
}

// TestMessages_are_bounded_and_clean runs every step, gate, and pre-check of a runbook on clusters whose texts
// are all hostile.
func TestMessages_are_bounded_and_clean(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	external, err := externaldeps.New(externaldeps.Options{Timeout: time.Second, Interval: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	for _, current := range []string{"4.4.5", "4.4.6", hostileText} {
		c := simulation.NewFakeClient(t, hostileCluster(current)...)
		var sent recorder
		cfg := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: "upgrades", Name: "u", UID: "1"}}
		cfg.Spec.Desired = upgradev1alpha1.Update{Version: "4.4.6", Channel: "fast-4.4", Image: "x@sha256:1"}
		upgrader := OSD{Deps{
			Client: c, Live: c, Notifier: &sent, Dependencies: external, Silencer: &silence.Silencer{},
			Sources:    &checks.Sources{Prometheus: hostilePrometheus{}, Clock: testingclock.NewFakePassiveClock(now), Interval: time.Minute},
			ExtraNodes: &capacity.ExtraNodes{Client: c, Live: c}, Config: config.Default(),
		}}
		book := upgrader.Runbook(AttemptAt(cfg))
		run := engine.Run{Started: now, Since: now, Now: now, Requested: true}
		messages := 0
		cfg.Spec.Desired.Image = ""
		withoutImage := OSD{upgrader.Deps}.Runbook(AttemptAt(cfg))
		for _, table := range [][]engine.Step{book.Steps, book.Cleanup, withoutImage.Steps} {
			for _, step := range table {
				calls := map[string]engine.UpgradeStep{"Do": step.Do, "PreCheck": step.PreCheck}
				if step.Commit != nil {
					calls["Observe"] = func(ctx context.Context, run engine.Run) (engine.Result, error) {
						_, answer, err := step.Commit.Observe(ctx, run)
						return answer, err
					}
				}
				for _, gate := range step.Gates {
					calls["gate "+gate.Name] = gate.Check
				}
				for name, call := range calls {
					if call == nil {
						continue
					}
					result, err := call(t.Context(), run)
					message := result.Message()
					if err != nil {
						message = err.Error()
					}
					if strings.Contains(message, "hostile") {
						messages++
					}
					if problem := hostileProblem(message); problem != "" {
						t.Errorf("%s, %s: the message %s: %.300q", step.Name, name, problem, message)
					}
				}
			}
		}
		if messages == 0 {
			t.Errorf("no message of a cluster at %.10q quotes the hostile text", current)
		}
	}
}

// hostileProblem returns what is wrong with a message, or an empty string.
func hostileProblem(message string) string {
	switch {
	case len(message) > maxHostileMessage:
		return "is too long"
	case strings.ToValidUTF8(message, "") != message:
		return "is not valid UTF-8"
	case strings.ContainsFunc(message, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }):
		return "has control characters"
	}
	return ""
}

// hostilePrometheus returns an alert with the text.
type hostilePrometheus struct{}

func (hostilePrometheus) CriticalAlerts(context.Context) ([]clusterstate.Alert, error) {
	return []clusterstate.Alert{{Name: hostileText, Severity: "critical", Firing: true}, {Name: hostileText, Namespace: hostileText, Severity: "critical", Firing: true}}, nil
}

func (hostilePrometheus) HasSamples(context.Context, string) (bool, error) { return true, nil }
