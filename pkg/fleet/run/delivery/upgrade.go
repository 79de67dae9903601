// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

var errNoRelease = errors.New("the run has no clusterVersion")

// The ClusterRoles of the works have different names: no work removes the rules of another one.
const (
	upgradeRole   = "managed-upgrade:cluster-upgrade"
	preflightRole = "managed-upgrade:upgrade-preflight"
)

const defaultUpgradeConfigNamespace = "managed-upgrade-operator" // the namespace of UpgradeConfigs if the template has none

// clusterVersionID has the plural of the resource: an orphaning rule with the kind never matches.
var clusterVersionID = workv1.ResourceIdentifier{Group: "config.openshift.io", Resource: "clusterversions", Name: "version"}

var reads = []string{"get", "list", "watch"} // what observing an object needs

// TargetOf returns the release of a run. It is empty if the run upgrades no platform.
func TargetOf(run *fleetv1alpha1.ClusterUpgradeRun) Target {
	if run.Spec.ClusterVersion == nil {
		return Target{}
	}
	return Target{Version: run.Spec.ClusterVersion.Version, Image: run.Spec.ClusterVersion.Image}
}

// UpgradeWork returns the work that upgrades the platform of the cluster of a run. An UpgradeConfig starts at delivery, the
// same time in all forms; a ClusterVersion does not use it.
//
// Before a work of the form FormWithdraw is deleted, the agent must have applied it: only then is the target withdrawn, and
// the UpgradeConfig owned by the work. In that form, a ClusterVersion requests the current release, and the cluster version
// operator has nothing to do: fields of desiredUpdate that other clients own stay, and alone they would be an invalid
// request. The fields are removed if the current release is not known (zero).
func UpgradeWork(run *fleetv1alpha1.ClusterUpgradeRun, mcu *fleetv1beta1.ManagedClustersUpgrade, form Form, delivery time.Time, current clusterstate.Release) (*workv1.ManifestWork, error) {
	if run.Spec.ClusterVersion == nil {
		return nil, errNoRelease
	}
	if mcu.Spec.UpgradeConfig != nil {
		return upgradeConfigWork(run, mcu.Spec.UpgradeConfig, form, delivery)
	}
	verbs, strategy := form.means("patch")
	return fill(newWork(run, UpgradeName(run.Namespace), form),
		[]workv1.ManifestConfigOption{config(clusterVersionID, strategy, ClusterVersionRules(TargetOf(run)))},
		agentRole(upgradeRole, rule("config.openshift.io", "clusterversions", verbs...)),
		clusterVersion(run.Spec.ClusterVersion, form, current),
	)
}

// means returns the verbs that the agent needs for an object in a form, and how it applies the object.
func (f Form) means(write ...string) (verbs []string, strategy workv1.UpdateStrategyType) {
	if f.observes() {
		return reads, workv1.UpdateStrategyTypeReadOnly
	}
	return slices.Concat(reads, write), workv1.UpdateStrategyTypeServerSideApply
}

// clusterVersion returns the manifest of the ClusterVersion, with the fields that the hub owns. A withdrawal keeps the
// channel and the update service: the agent would remove what it owns and what the manifest lacks.
func clusterVersion(release *fleetv1beta1.ClusterVersionSpec, form Form, current clusterstate.Release) object {
	version := manifest("config.openshift.io/v1", "ClusterVersion", "", "version", nil)
	if form.observes() {
		return version
	}
	spec := withoutEmpty(object{"channel": release.Channel, "upstream": release.Upstream})
	switch {
	case form == FormWithdraw && current != (clusterstate.Release{}):
		spec["desiredUpdate"] = clusterstate.DesiredUpdate(current)
	case form == FormApply:
		spec["desiredUpdate"] = clusterstate.DesiredUpdate(clusterstate.Release{Version: release.Version, Image: release.Image})
	}
	version["spec"] = spec
	return version
}

// preflightRevision is part of the form of a preflight. It changes with what the work observes: a value that the work does
// not ask for looks like one that the cluster does not have.
const preflightRevision = "/3"

// IsCurrentPreflight reports whether the work of a preflight observes what this release of the hub reads.
func IsCurrentPreflight(work *workv1.ManifestWork) bool {
	return strings.HasSuffix(work.Annotations[Annotation], preflightRevision)
}

// PreflightWork returns the work that observes whether the target of a run can be installed. It changes nothing on the
// cluster but the permissions of the agent.
func PreflightWork(run *fleetv1alpha1.ClusterUpgradeRun) (*workv1.ManifestWork, error) {
	if run.Spec.ClusterVersion == nil {
		return nil, errNoRelease
	}
	return fill(newWork(run, PreflightName(run.Namespace), FormReadOnly+preflightRevision),
		[]workv1.ManifestConfigOption{config(clusterVersionID, workv1.UpdateStrategyTypeReadOnly, PreflightRules(TargetOf(run)))},
		agentRole(preflightRole, rule("config.openshift.io", "clusterversions", reads...)),
		clusterVersion(run.Spec.ClusterVersion, FormReadOnly, clusterstate.Release{}),
	)
}

// upgradeConfigWork returns the work that delivers an UpgradeConfig. The UpgradeConfig survives its work, since its upgrade
// may be in progress. A withdrawal makes the work its owner: deleting the work then deletes it.
func upgradeConfigWork(run *fleetv1alpha1.ClusterUpgradeRun, template *fleetv1beta1.UpgradeConfigTemplate, form Form, delivery time.Time) (*workv1.ManifestWork, error) {
	id := workv1.ResourceIdentifier{
		Group: "upgrade.managed.openshift.io", Resource: "upgradeconfigs",
		Name: UpgradeConfigName(run.Spec.ManagedClustersUpgrade.UID), Namespace: cmp.Or(template.Namespace, defaultUpgradeConfigNamespace),
	}
	verbs, strategy := form.means("create", "update", "patch", "delete")
	upgradeConfig := manifest("upgrade.managed.openshift.io/v1alpha1", "UpgradeConfig", id.Namespace, id.Name, nil)
	if !form.observes() {
		upgradeConfig["spec"] = upgradeConfigSpec(run.Spec.ClusterVersion, template, delivery, form == FormWithdraw)
	}
	work, err := fill(newWork(run, UpgradeName(run.Namespace), form), []workv1.ManifestConfigOption{config(id, strategy, UpgradeConfigRules())},
		agentRole(upgradeRole, rule(id.Group, id.Resource, verbs...)), upgradeConfig)
	if form == FormWithdraw {
		work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
	}
	return work, err
}

// UpgradeAt returns the time in a work that delivers an UpgradeConfig; zero if it has none.
func UpgradeAt(work *workv1.ManifestWork) time.Time {
	for i := range work.Spec.Workload.Manifests {
		var o struct {
			Kind string
			Spec struct{ UpgradeAt time.Time }
		}
		if err := json.Unmarshal(work.Spec.Workload.Manifests[i].Raw, &o); err == nil && o.Kind == "UpgradeConfig" {
			return o.Spec.UpgradeAt
		}
	}
	return time.Time{}
}

func upgradeConfigSpec(release *fleetv1beta1.ClusterVersionSpec, template *fleetv1beta1.UpgradeConfigTemplate, delivery time.Time, paused bool) object {
	spec := object{
		"type":      template.Type,
		"upgradeAt": text.FormatTime(delivery),
		"desired":   withoutEmpty(object{"version": release.Version, "channel": release.Channel, "image": release.Image}),
	}
	if paused {
		spec["paused"] = true
	}
	if template.PDBForceDrainTimeout != nil {
		spec["PDBForceDrainTimeout"] = *template.PDBForceDrainTimeout
	}
	if template.CapacityReservation != nil {
		spec["capacityReservation"] = *template.CapacityReservation
	}
	return spec
}

const operatorsGrace = 90 * time.Second // how long the Job that approves operators lives beyond their timeout

// ReasonWorkDeleting is the reason of a step that waits until the agent lets go of an earlier work of that name.
const ReasonWorkDeleting = "WorkDeleting"

// AwaitsAgent reports whether a step with that reason waits for an unreachable or silent agent. Before the request and
// before an action, the cluster is pending again after the stall timeout, and does not fail.
func AwaitsAgent(reason string) bool {
	return reason == fleetv1alpha1.ReasonUnreachable || reason == fleetv1alpha1.ReasonDelivered || reason == ReasonWorkDeleting
}

// HasActed reports whether the agent has applied the action before the upgrade in this attempt, or may have. The cluster has
// then begun: the action may be why its agent is silent.
func HasActed(run *fleetv1alpha1.ClusterUpgradeRun) bool {
	action := run.Status.PreUpgradeAction
	return run.Status.Attempt == run.Spec.Attempt && action != nil && action.Applied
}

// agentGrace returns by how much an unreachable or silent agent extends a deadline before the request. It is zero once the
// action before the upgrade may have been applied.
func agentGrace(run *fleetv1alpha1.ClusterUpgradeRun, reason string) time.Duration {
	if HasActed(run) || !AwaitsAgent(reason) {
		return 0
	}
	return Timeout(run.Spec.Timeouts.Stall, fleetv1beta1.DefaultStallTimeout)
}

// PreActionBy returns the deadline of the action before the upgrade; zero if the step has not started, or is paused. The
// timeout counts once the agent has applied the action.
func PreActionBy(run *fleetv1alpha1.ClusterUpgradeRun, record *history.Record) time.Time {
	step := record.Step(fleetv1alpha1.StepPreUpgradeActionAvailable)
	timeout := StepTimeout(run, fleetv1alpha1.StepPreUpgradeActionAvailable)
	reason := engine.LastAnswer(step).Reason
	if step.StartTime == nil || timeout == 0 || reason == engine.ReasonPaused {
		return time.Time{}
	}
	return cmp.Or(step.ReasonTime, step.StartTime).Add(timeout + agentGrace(run, reason))
}

// ApplyBy returns until when the agent must have applied the request of an attempt; zero if the step has not started, or is
// paused. Before the request, the time counts from the last change of what the step waits for. Pauses do not count.
func ApplyBy(run *fleetv1alpha1.ClusterUpgradeRun, record *history.Record) time.Time {
	step := record.Step(fleetv1alpha1.StepUpgradeDelivered)
	start := cmp.Or(record.RequestTime, step.ReasonTime, step.StartTime)
	timeout := Timeout(run.Spec.Timeouts.Apply, fleetv1beta1.DefaultApplyTimeout)
	reason := engine.LastAnswer(step).Reason
	if timeout == 0 || start == nil || record.RequestTime == nil && reason == engine.ReasonPaused {
		return time.Time{}
	}
	if record.RequestTime == nil {
		timeout += agentGrace(run, reason)
	}
	return start.Add(timeout)
}

// StepTimeout returns how long a step may take; zero for no limit. StepUpgradeDelivered has ApplyBy.
func StepTimeout(run *fleetv1alpha1.ClusterUpgradeRun, step string) time.Duration {
	timeouts := &run.Spec.Timeouts
	switch step {
	case fleetv1alpha1.StepPreUpgradeActionAvailable, fleetv1alpha1.StepPostUpgradeActionAvailable:
		return Timeout(timeouts.Action, fleetv1beta1.DefaultActionTimeout)
	case fleetv1alpha1.StepClusterUpgraded:
		return Timeout(timeouts.ClusterUpgrade, fleetv1beta1.DefaultClusterUpgradeTimeout)
	case fleetv1alpha1.StepOperatorsUpgraded:
		return Timeout(timeouts.OperatorsUpgrade, fleetv1beta1.DefaultOperatorsUpgradeTimeout) + operatorsGrace
	case fleetv1alpha1.StepSoaked:
		if soak := Timeout(timeouts.Soak, ""); soak > 0 { // interruptions start the soak again, but not for ever
			return soak + Timeout(timeouts.ClusterUpgrade, fleetv1beta1.DefaultClusterUpgradeTimeout)
		}
	}
	return 0
}

// Timeout returns a configured duration, or the default; zero if it is invalid. The API server rejects such a value.
func Timeout(configured, byDefault fleetv1beta1.Duration) time.Duration {
	timeout, err := time.ParseDuration(string(cmp.Or(configured, byDefault)))
	if err != nil {
		return 0
	}
	return timeout
}
