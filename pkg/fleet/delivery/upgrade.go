// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
)

// errNoRelease is a run that upgrades no platform.
var errNoRelease = errors.New("the run has no clusterVersion")

// The ClusterRoles of the works have different names, so that no work removes the rules of another one.
const (
	upgradeRole   = "managed-upgrade:cluster-upgrade"
	preflightRole = "managed-upgrade:upgrade-preflight"
)

// defaultUpgradeConfigNamespace is the namespace of UpgradeConfigs if the template has none.
const defaultUpgradeConfigNamespace = "managed-upgrade-operator"

// clusterVersionID identifies the ClusterVersion, by the plural of its resource: an orphaning rule with
// the kind never matches.
var clusterVersionID = workv1.ResourceIdentifier{Group: "config.openshift.io", Resource: "clusterversions", Name: "version"}

// reads are the verbs that observing an object needs.
var reads = []string{"get", "list", "watch"}

// Target returns the release of a run. It is empty if the run upgrades no platform.
func Target(run *fleetv1alpha1.ClusterUpgradeRun) feedback.Target {
	if run.Spec.ClusterVersion == nil {
		return feedback.Target{}
	}
	return feedback.Target{Version: run.Spec.ClusterVersion.Version, Image: run.Spec.ClusterVersion.Image}
}

// UpgradeWork returns the work that upgrades the platform of the cluster of a run. delivery is the time
// at which an UpgradeConfig starts, the same in all forms; it has no effect on a ClusterVersion.
//
// Before a work of the form FormWithdraw is deleted, the agent must have applied it: only then is the
// target withdrawn, and the UpgradeConfig owned by the work.
func UpgradeWork(run *fleetv1alpha1.ClusterUpgradeRun, mcu *fleetv1beta1.ManagedClustersUpgrade, form Form, delivery time.Time) (*workv1.ManifestWork, error) {
	if run.Spec.ClusterVersion == nil {
		return nil, errNoRelease
	}
	if mcu.Spec.UpgradeConfig != nil {
		return upgradeConfigWork(run, mcu.Spec.UpgradeConfig, form, delivery)
	}
	work := newWork(run, UpgradeName(run.Namespace), form)
	verbs, strategy := reads, workv1.UpdateStrategyTypeReadOnly
	if form != FormReadOnly {
		verbs, strategy = append(slices.Clone(reads), "patch"), workv1.UpdateStrategyTypeServerSideApply
	}
	work.Spec.DeleteOption = orphan(clusterVersionID)
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{config(clusterVersionID, strategy, feedback.ClusterVersionRules(Target(run)))}
	var err error
	work.Spec.Workload.Manifests, err = manifests(
		clusterRole(upgradeRole, true, rule("config.openshift.io", "clusterversions", verbs...)),
		clusterVersion(run.Spec.ClusterVersion, form),
	)
	return work, err
}

// clusterVersion returns the manifest of the ClusterVersion, with the fields that the hub owns. A
// withdrawal keeps the channel and the update service: the agent would remove what it owns and what the
// manifest lacks.
func clusterVersion(release *fleetv1beta1.ClusterVersionSpec, form Form) object {
	manifest := object{"apiVersion": "config.openshift.io/v1", "kind": "ClusterVersion", "metadata": object{"name": "version"}}
	if form == FormReadOnly {
		return manifest
	}
	spec := withoutEmpty(object{"channel": release.Channel, "upstream": release.Upstream})
	if form == FormApply {
		spec["desiredUpdate"] = withoutEmpty(object{"version": release.Version, "image": release.Image})
	}
	manifest["spec"] = spec
	return manifest
}

// withoutEmpty removes empty strings.
func withoutEmpty(o object) object {
	for name, value := range o {
		if value == "" {
			delete(o, name)
		}
	}
	return o
}

// preflightRevision follows the form in the Annotation of the work of a preflight. It changes with what the
// work observes: a value that it does not ask for looks like one that the cluster does not have.
const preflightRevision = "/2"

// IsCurrentPreflight reports whether the work of a preflight observes what this release of the hub reads.
func IsCurrentPreflight(work *workv1.ManifestWork) bool {
	return strings.HasSuffix(work.Annotations[Annotation], preflightRevision)
}

// PreflightWork returns the work that observes whether the target of a run can be installed. It changes
// nothing on the cluster but the permissions of the agent.
func PreflightWork(run *fleetv1alpha1.ClusterUpgradeRun) (*workv1.ManifestWork, error) {
	if run.Spec.ClusterVersion == nil {
		return nil, errNoRelease
	}
	work := newWork(run, PreflightName(run.Namespace), FormReadOnly+preflightRevision)
	work.Spec.DeleteOption = orphan(clusterVersionID)
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{
		config(clusterVersionID, workv1.UpdateStrategyTypeReadOnly, feedback.PreflightRules(Target(run))),
	}
	var err error
	work.Spec.Workload.Manifests, err = manifests(
		clusterRole(preflightRole, true, rule("config.openshift.io", "clusterversions", reads...)),
		clusterVersion(run.Spec.ClusterVersion, FormReadOnly),
	)
	return work, err
}

// upgradeConfigWork returns the work that delivers an UpgradeConfig. The UpgradeConfig survives its
// work, since its upgrade may be in progress; a withdrawal makes the work its owner, so that deleting
// the work deletes it.
func upgradeConfigWork(run *fleetv1alpha1.ClusterUpgradeRun, template *fleetv1beta1.UpgradeConfigTemplate, form Form, delivery time.Time) (*workv1.ManifestWork, error) {
	id := workv1.ResourceIdentifier{
		Group: "upgrade.managed.openshift.io", Resource: "upgradeconfigs",
		Name: UpgradeConfigName(run.Spec.ManagedClustersUpgrade.UID), Namespace: cmp.Or(template.Namespace, defaultUpgradeConfigNamespace),
	}
	work := newWork(run, UpgradeName(run.Namespace), form)
	verbs, strategy := reads, workv1.UpdateStrategyTypeReadOnly
	if form != FormReadOnly {
		verbs, strategy = append(slices.Clone(reads), "create", "update", "patch", "delete"), workv1.UpdateStrategyTypeServerSideApply
	}
	work.Spec.DeleteOption = orphan(id)
	if form == FormWithdraw {
		work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
	}
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{config(id, strategy, feedback.UpgradeConfigRules())}
	manifest := object{
		"apiVersion": "upgrade.managed.openshift.io/v1alpha1", "kind": "UpgradeConfig",
		"metadata": object{"name": id.Name, "namespace": id.Namespace},
	}
	if form != FormReadOnly {
		manifest["spec"] = upgradeConfigSpec(run.Spec.ClusterVersion, template, delivery, form == FormWithdraw)
	}
	var err error
	work.Spec.Workload.Manifests, err = manifests(clusterRole(upgradeRole, true, rule(id.Group, id.Resource, verbs...)), manifest)
	return work, err
}

func upgradeConfigSpec(release *fleetv1beta1.ClusterVersionSpec, template *fleetv1beta1.UpgradeConfigTemplate, delivery time.Time, paused bool) object {
	spec := object{
		"type":      template.Type,
		"upgradeAt": delivery.UTC().Format(time.RFC3339),
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
