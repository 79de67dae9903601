// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cvo

import (
	"cmp"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// ConfigMap with the release for the machine config operator.
const (
	MachineConfigNamespace = "openshift-machine-config-operator"
	MachineConfigImages    = "machine-config-operator-images"
	ReleaseVersionKey      = "releaseVersion"

	machineConfigOperator = "machine-config-operator" // the Deployment and its container
)

// machineConfigImage returns the image of the machine config operator in a release.
func machineConfigImage(version string) string {
	return fmt.Sprintf("quay.io/openshift-release-dev/ocp-v4.0-art-dev@sha256:%x", sha256.Sum256([]byte(machineConfigOperator+version)))
}

// syncWork is an update in progress.
type syncWork struct {
	startTime time.Time
	current   int       // index of the operator being updated
	since     time.Time // start of the operator's update; zero if it has not started
}

func (w *syncWork) next() {
	w.current++
	w.since = time.Time{}
}

func (s *Simulator) updateDuration(operator OperatorSpec) time.Duration {
	return s.options.Speed.Scale(cmp.Or(operator.Takes, defaultUpdateDuration))
}

// syncOperators updates the operators to the version of the payload, one after another. It returns
// the time until the next reconcile.
func (s *Simulator) syncOperators(ctx context.Context, operators []configv1.ClusterOperator, now time.Time) (time.Duration, error) {
	if s.work == nil {
		return 0, nil
	}
	for ; s.work.current < len(s.options.Operators); s.work.next() {
		operator := s.options.Operators[s.work.current]
		status := findOperator(operators, operator.Name)
		if status == nil { // deleted by another client; like the real operator, wait until it is recreated
			return s.options.ProgressInterval, nil
		}
		remaining, err := s.advance(ctx, operator, status, now)
		if err != nil {
			return 0, err
		}
		if VersionOf(status) != s.payload.Version || blockingReason(status) != "" {
			if remaining <= 0 { // an event triggers the next reconcile
				remaining = s.options.ProgressInterval
			}
			return min(remaining, s.options.ProgressInterval), nil
		}
	}
	if s.blocking(operators) == nil {
		s.work = nil
	}
	return s.options.ProgressInterval, nil
}

// advance starts the update of an operator, or completes it after its duration. It returns the
// remaining duration. An operator that has not completed the update that this one replaces may
// already have the release.
func (s *Simulator) advance(ctx context.Context, operator OperatorSpec, status *configv1.ClusterOperator, now time.Time) (time.Duration, error) {
	if !operator.External && VersionOf(status) == s.payload.Version {
		return 0, s.finish(ctx, status, now)
	}
	if s.work.since.IsZero() {
		if err := s.startOperatorUpdate(ctx, operator, status, now); err != nil {
			return 0, err
		}
		s.work.since = now
	}
	remaining := s.updateDuration(operator) - now.Sub(s.work.since)
	if operator.External || remaining > 0 {
		return remaining, nil
	}
	return remaining, s.finish(ctx, status, now)
}

// startOperatorUpdate starts the update of an operator to the payload's release.
func (s *Simulator) startOperatorUpdate(ctx context.Context, operator OperatorSpec, status *configv1.ClusterOperator, now time.Time) error {
	if operator.External {
		return PublishImages(ctx, s.client, s.payload)
	}
	before := status.DeepCopy()
	SetUpdating(status, s.payload.Version, now)
	return s.patch(ctx, status, before)
}

// finish reports the new version of an operator. It leaves other conditions alone, because a test
// may have set Degraded.
func (s *Simulator) finish(ctx context.Context, status *configv1.ClusterOperator, now time.Time) error {
	if VersionOf(status) == s.payload.Version && !IsUpdating(status) {
		return nil
	}
	before := status.DeepCopy()
	SetVersion(status, s.payload.Version)
	SetCondition(status, configv1.OperatorProgressing, configv1.ConditionFalse, "AsExpected", "", now)
	return s.patch(ctx, status, before)
}

func (s *Simulator) patch(ctx context.Context, status, before *configv1.ClusterOperator) error {
	if err := s.client.Status().Patch(ctx, status, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return fmt.Errorf("patching the status of cluster operator %s: %w", status.Name, err)
	}
	return nil
}

// blocking returns the operators that the update waits for: the current one and previous ones that
// are unavailable or degraded.
func (s *Simulator) blocking(operators []configv1.ClusterOperator) []configv1.ClusterOperator {
	var waits []configv1.ClusterOperator
	for i, operator := range s.options.Operators {
		status := findOperator(operators, operator.Name)
		if status == nil || i > s.work.current {
			continue
		}
		if i == s.work.current || blockingReason(status) != "" {
			waits = append(waits, *status)
		}
	}
	return waits
}

// PublishImages publishes a release for the machine config operator, and deploys its image.
func PublishImages(ctx context.Context, c client.Client, release updategraph.Release) error {
	images := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: MachineConfigNamespace, Name: MachineConfigImages},
	}
	patch := fmt.Sprintf(`{"data":{%q:%q}}`, ReleaseVersionKey, release.Version)
	if err := c.Patch(ctx, images, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return fmt.Errorf("publishing %s to the machine config operator: %w", release.Version, err)
	}
	deployment := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: MachineConfigNamespace, Name: machineConfigOperator}}
	patch = fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":%q,"image":%q}]}}}}`, machineConfigOperator, machineConfigImage(release.Version))
	if err := c.Patch(ctx, deployment, client.RawPatch(types.StrategicMergePatchType, []byte(patch))); err != nil {
		return fmt.Errorf("deploying the machine config operator of %s: %w", release.Version, err)
	}
	return nil
}

// VersionOf returns the version reported by an operator.
func VersionOf(operator *configv1.ClusterOperator) string {
	for _, operand := range operator.Status.Versions {
		if operand.Name == "operator" {
			return operand.Version
		}
	}
	return ""
}

// SetVersion sets the version reported by an operator. The machine config operator also reports its
// image.
func SetVersion(operator *configv1.ClusterOperator, version string) {
	setOperand(operator, "operator", version)
	if operator.Name == MachineConfig {
		setOperand(operator, "operator-image", machineConfigImage(version))
	}
}

func setOperand(operator *configv1.ClusterOperator, name, version string) {
	for i := range operator.Status.Versions {
		if operator.Status.Versions[i].Name == name {
			operator.Status.Versions[i].Version = version
			return
		}
	}
	operator.Status.Versions = append(operator.Status.Versions, configv1.OperandVersion{Name: name, Version: version})
}

// blockingReason returns the reason why an operator blocks an update, or an empty string.
func blockingReason(operator *configv1.ClusterOperator) string {
	if c := findCondition(operator.Status.Conditions, configv1.OperatorAvailable); c == nil || c.Status != configv1.ConditionTrue {
		return "ClusterOperatorNotAvailable"
	}
	if c := findCondition(operator.Status.Conditions, configv1.OperatorDegraded); c != nil && c.Status == configv1.ConditionTrue {
		return "ClusterOperatorDegraded"
	}
	return ""
}

func findOperator(operators []configv1.ClusterOperator, name string) *configv1.ClusterOperator {
	for i := range operators {
		if operators[i].Name == name {
			return operators[i].DeepCopy()
		}
	}
	return nil
}

// syncUpgradeable summarizes what blocks a minor update. Like the real operator, it removes the
// condition if nothing blocks it.
func syncUpgradeable(version *configv1.ClusterVersion, operators []configv1.ClusterOperator, updating bool, now time.Time) {
	var reasons, messages []string
	if slices.ContainsFunc(version.Spec.Overrides, func(o configv1.ComponentOverride) bool { return o.Unmanaged }) {
		reasons = append(reasons, "ClusterVersionOverridesSet")
		messages = append(messages, "Disabling ownership via cluster version overrides prevents upgrades. Please remove overrides before continuing.")
	}
	if reason, message := notUpgradeable(operators); reason != "" {
		reasons, messages = append(reasons, reason), append(messages, message)
	}
	if updating {
		reasons = append(reasons, "UpdateInProgress")
		messages = append(messages, "An update is already in progress and the details are in the Progressing condition")
	}
	switch len(reasons) {
	case 0:
		remove(version, configv1.OperatorUpgradeable)
	case 1:
		set(version, configv1.OperatorUpgradeable, configv1.ConditionFalse, reasons[0], messages[0], now)
	default:
		set(version, configv1.OperatorUpgradeable, configv1.ConditionFalse, "MultipleReasons", fmt.Sprintf(
			"Cluster should not be upgraded between minor versions for multiple reasons: %s\n* %s", strings.Join(reasons, ","), strings.Join(messages, "\n* ")), now)
	}
}

// notUpgradeable summarizes the operators that are not upgradeable.
func notUpgradeable(operators []configv1.ClusterOperator) (reason, message string) {
	const sentence = "Cluster operator %s should not be upgraded between minor versions: %s"
	var messages []string
	for _, operator := range operators {
		c := findCondition(operator.Status.Conditions, configv1.OperatorUpgradeable)
		if c != nil && c.Status == configv1.ConditionFalse {
			reason, message = c.Reason, fmt.Sprintf(sentence, operator.Name, c.Message)
			messages = append(messages, fmt.Sprintf(sentence, operator.Name, c.Reason+": "+c.Message))
		}
	}
	if len(messages) < 2 {
		return reason, message
	}
	return "ClusterOperatorsNotUpgradeable", "Multiple cluster operators should not be upgraded between minor versions:\n* " + strings.Join(messages, "\n* ")
}
