// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

// Annotation on a work identifies what it delivers: the attempt and the form, for example 1/Apply.
// That of a preflight has a revision, too.
const Annotation = "upgrade.managed.openshift.io/delivery"

// DryRunAnnotation on a work means that a dry run reads its feedback and then deletes it. Its value is the
// generation of the ManagedClustersUpgrade.
const DryRunAnnotation = "upgrade.managed.openshift.io/dry-run"

// RepairedAnnotation on a work means that the hub has restored its deleteOption. The agent may own the
// ClusterVersion until it has applied the work again.
const RepairedAnnotation = "upgrade.managed.openshift.io/repaired"

// fieldManager is the field manager with which the agent applies what the hub delivers.
const fieldManager = "work-agent-mcu"

// aggregateLabel on a ClusterRole gives its rules to the work agent, in addition to those that it has.
const aggregateLabel = "open-cluster-management.io/aggregate-to-work"

// Form is what a work does on the cluster.
type Form string

const (
	// FormApply requests the upgrade.
	FormApply Form = "Apply"
	// FormReadOnly observes, and changes no field: while the cluster soaks, and after it failed.
	FormReadOnly Form = "ReadOnly"
	// FormWithdraw withdraws a request that was never accepted.
	FormWithdraw Form = "Withdraw"
)

// UpgradeName returns the name of the work that upgrades the platform of a cluster.
func UpgradeName(cluster string) string { return cluster + "-cluster-upgrade" }

// PreflightName returns the name of the work that checks a cluster.
func PreflightName(cluster string) string { return cluster + "-upgrade-preflight" }

// OperatorsName returns the name of the work that approves the upgrades of operators.
func OperatorsName(cluster string) string { return cluster + "-operators-upgrade" }

// ActionName returns the name of the works of an action, on each cluster.
func ActionName(uid string, action Action) string {
	return "mcu-" + shortUID(uid) + "-" + string(action)
}

// UpgradeConfigName returns the name of the UpgradeConfig that is delivered to clusters.
func UpgradeConfigName(uid string) string { return "fleet-" + shortUID(uid) }

func shortUID(uid string) string { return uid[:min(8, len(uid))] }

// newWork returns a work without a spec.
func newWork(run *fleetv1alpha1.ClusterUpgradeRun, name string, form Form) *workv1.ManifestWork {
	return &workv1.ManifestWork{
		TypeMeta: metav1.TypeMeta{APIVersion: workv1.GroupVersion.String(), Kind: "ManifestWork"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace: run.Namespace, Name: name,
			Labels:      map[string]string{fleetv1beta1.UpgradeLabel: run.Spec.ManagedClustersUpgrade.UID},
			Annotations: map[string]string{Annotation: fmt.Sprintf("%d/%s", run.Spec.Attempt, form)},
		},
	}
}

// object is a manifest: only fields that are meant are in it.
type object = map[string]any

// manifests encodes objects.
func manifests(objects ...object) ([]workv1.Manifest, error) {
	list := make([]workv1.Manifest, len(objects))
	for i, o := range objects {
		raw, err := json.Marshal(o)
		if err != nil {
			return nil, fmt.Errorf("encoding %v: %w", o["kind"], err)
		}
		list[i].Raw = raw
	}
	return list, nil
}

// clusterRole returns a ClusterRole. With forAgent, its rules are given to the work agent.
func clusterRole(name string, forAgent bool, rules ...object) object {
	metadata := object{"name": name}
	if forAgent {
		metadata["labels"] = object{aggregateLabel: "true"}
	}
	return object{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": metadata, "rules": rules}
}

func rule(group, resource string, verbs ...string) object {
	return object{"apiGroups": []string{group}, "resources": []string{resource}, "verbs": verbs}
}

// config returns the configuration of one manifest.
func config(id workv1.ResourceIdentifier, strategy workv1.UpdateStrategyType, rules []workv1.FeedbackRule) workv1.ManifestConfigOption {
	option := workv1.ManifestConfigOption{
		ResourceIdentifier: id, FeedbackRules: rules, FeedbackScrapeType: workv1.FeedbackPollType,
		UpdateStrategy: &workv1.UpdateStrategy{Type: strategy},
	}
	if strategy == workv1.UpdateStrategyTypeServerSideApply {
		option.UpdateStrategy.ServerSideApply = &workv1.ServerSideApplyConfig{Force: true, FieldManager: fieldManager}
	}
	return option
}

// orphan returns the option that keeps one object when its work is deleted. The agent is never its
// owner: with an ownerReference, the garbage collector of the cluster would delete it.
func orphan(id workv1.ResourceIdentifier) *workv1.DeleteOption {
	return &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan,
		SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: []workv1.OrphaningRule{workv1.OrphaningRule(id)}},
	}
}
