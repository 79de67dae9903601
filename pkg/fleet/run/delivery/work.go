// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

// Annotation on a work has the attempt and the form that it delivers, as 1/Apply, and a revision in a preflight.
const Annotation = "upgrade.managed.openshift.io/delivery"

// DryRunAnnotation marks a work that a dry run reads and then deletes. It has the generation of the ManagedClustersUpgrade.
const DryRunAnnotation = "upgrade.managed.openshift.io/dry-run"

// RepairedAnnotation marks a work whose deleteOption the hub has restored. Its agent may own the ClusterVersion until it
// has applied the work again.
const RepairedAnnotation = "upgrade.managed.openshift.io/repaired"

const fieldManager = "work-agent-mcu" // of the agent, for what the hub delivers

// aggregateLabel on a ClusterRole gives its rules to the work agent, in addition to those that it has.
const aggregateLabel = "open-cluster-management.io/aggregate-to-work"

// Form says what a work does on the cluster.
type Form string

// Forms of works.
const (
	FormApply    Form = "Apply"    // requests the upgrade
	FormReadOnly Form = "ReadOnly" // observes, and changes no field: while the cluster soaks, and after it failed
	FormWithdraw Form = "Withdraw" // withdraws a request that was never accepted
	FormFence    Form = "Fence"    // observes, in place of a request whose answer was lost: one that arrives later conflicts
)

// observes reports whether a work of the form changes nothing on the cluster.
func (f Form) observes() bool { return f == FormReadOnly || f == FormFence }

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

// UpgradeConfigName returns the name of the UpgradeConfig on each cluster.
func UpgradeConfigName(uid string) string { return "fleet-" + shortUID(uid) }

func shortUID(uid string) string { return uid[:min(8, len(uid))] }

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

// fill sets the manifests of a work. Objects that have a configuration stay on the cluster when it is deleted.
func fill(work *workv1.ManifestWork, configs []workv1.ManifestConfigOption, objects ...object) (*workv1.ManifestWork, error) {
	ids := make([]workv1.ResourceIdentifier, len(configs))
	for i := range configs {
		ids[i] = configs[i].ResourceIdentifier
	}
	work.Spec.DeleteOption, work.Spec.ManifestConfigs = orphan(ids...), configs
	var err error
	work.Spec.Workload.Manifests, err = manifests(objects...)
	return work, err
}

// object is a manifest, or a part of one: only fields that are meant are in it.
type object = map[string]any

func manifest(apiVersion, kind, namespace, name string, fields object) object {
	o := object{"apiVersion": apiVersion, "kind": kind, "metadata": withoutEmpty(object{"namespace": namespace, "name": name})}
	maps.Copy(o, fields)
	return o
}

func withoutEmpty(o object) object {
	maps.DeleteFunc(o, func(_ string, value any) bool { return value == "" })
	return o
}

func labeled(o object, label string) object {
	if metadata, is := o["metadata"].(object); is {
		metadata["labels"] = object{label: "true"}
	}
	return o
}

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

const rbacVersion = "rbac.authorization.k8s.io/v1"

func role(kind, namespace, name string, rules ...object) object {
	return manifest(rbacVersion, kind, namespace, name, object{"rules": rules})
}

// agentRole returns a ClusterRole whose rules are given to the work agent.
func agentRole(name string, rules ...object) object {
	return labeled(role("ClusterRole", "", name, rules...), aggregateLabel)
}

func rule(group, resource string, verbs ...string) object {
	return object{"apiGroups": []string{group}, "resources": []string{resource}, "verbs": verbs}
}

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

// orphan keeps objects when their work is deleted. The agent is never their owner: with an ownerReference, the garbage
// collector of the cluster would delete them.
func orphan(ids ...workv1.ResourceIdentifier) *workv1.DeleteOption {
	rules := make([]workv1.OrphaningRule, len(ids))
	for i := range ids {
		rules[i] = workv1.OrphaningRule(ids[i])
	}
	return &workv1.DeleteOption{
		PropagationPolicy: workv1.DeletePropagationPolicyTypeSelectivelyOrphan, SelectivelyOrphan: &workv1.SelectivelyOrphan{OrphaningRules: rules},
	}
}

// Of identifies what a work delivers: its attempt, its form, and the report that it is adapted to.
func Of(work metav1.Object) string {
	return work.GetAnnotations()[Annotation] + " " + work.GetAnnotations()[reportAnnotation]
}

// IsDelivered reports whether the hub has delivered a work, for any upgrade. It leaves other works alone.
func IsDelivered(work *workv1.ManifestWork) bool {
	return work.Labels[fleetv1beta1.UpgradeLabel] != "" && work.Annotations[Annotation] != ""
}

// Merge returns the existing work as desired, for a patch of what differs. What others have added to its metadata stays.
func Merge(existing, desired *workv1.ManifestWork) *workv1.ManifestWork {
	merged := existing.DeepCopy()
	merged.Labels, merged.Annotations = labels.Merge(merged.Labels, desired.Labels), labels.Merge(merged.Annotations, desired.Annotations)
	merged.OwnerReferences, merged.Spec = desired.OwnerReferences, *desired.Spec.DeepCopy()
	return merged
}

// KeepsClusterVersion reports whether the ClusterVersion stays when a work is deleted, as a user may have edited it.
func KeepsClusterVersion(work *workv1.ManifestWork) bool {
	option := work.Spec.DeleteOption
	switch {
	case !HasClusterVersion(work):
		return true
	case option == nil:
		return false
	case option.PropagationPolicy == workv1.DeletePropagationPolicyTypeSelectivelyOrphan:
		return option.SelectivelyOrphan != nil && slices.Contains(option.SelectivelyOrphan.OrphaningRules, workv1.OrphaningRule(clusterVersionID))
	}
	return option.PropagationPolicy == workv1.DeletePropagationPolicyTypeOrphan
}

// KeepClusterVersion returns a copy of a work whose deletion keeps the ClusterVersion, and what it kept before.
func KeepClusterVersion(work *workv1.ManifestWork) *workv1.ManifestWork {
	repaired := work.DeepCopy()
	repaired.Spec.DeleteOption = orphan(clusterVersionID)
	if option := work.Spec.DeleteOption; option != nil && option.SelectivelyOrphan != nil {
		rules := &repaired.Spec.DeleteOption.SelectivelyOrphan.OrphaningRules
		*rules = append(*rules, option.SelectivelyOrphan.OrphaningRules...)
	}
	return repaired
}

// HasClusterVersion reports whether a work contains the ClusterVersion. A manifest that cannot be decoded counts as one.
func HasClusterVersion(work *workv1.ManifestWork) bool {
	return slices.ContainsFunc(work.Spec.Workload.Manifests, isClusterVersion)
}

func isClusterVersion(m workv1.Manifest) bool {
	o, isDecoded := identify(&m)
	return !isDecoded || o.Group == clusterVersionID.Group && o.Kind == "ClusterVersion"
}

// Limits of what is shared: an upgrade has one spec for each kind and form of its works.
const (
	maxSpecs      = 64
	maxWords      = 4096
	maxWordLength = 1024 // in bytes
)

// interned holds the data that cached works share. The package unique does not serve: it forgets a
// string whose handle is gone at the next garbage collection, although works still have it.
var interned = struct {
	sync.Mutex
	specs []workv1.ManifestWorkSpec // the newest last
	words map[string]string
}{words: map[string]string{}}

// TrimWork drops the managed fields of a ManifestWork, and lets works share equal parts: the spec, the same for thousands of
// clusters, and the words of their agents. All controllers use it to fill their cache.
func TrimWork(object any) (any, error) {
	work, is := object.(*workv1.ManifestWork)
	if !is {
		return object, nil // the last known state of a deleted object
	}
	interned.Lock()
	defer interned.Unlock()
	work.ManagedFields = nil
	work.Spec = shareSpec(work.Spec)
	shareConditions(work.Status.Conditions)
	for i := range work.Status.ResourceStatus.Manifests {
		manifest := &work.Status.ResourceStatus.Manifests[i]
		shareConditions(manifest.Conditions)
		meta := &manifest.ResourceMeta
		share(&meta.Group, &meta.Version, &meta.Kind, &meta.Resource, &meta.Namespace, &meta.Name)
		values := slices.Clip(manifest.StatusFeedbacks.Values)
		for j := range values {
			share(&values[j].Name)
			if text := values[j].Value.String; text != nil {
				share(text)
			}
		}
		manifest.StatusFeedbacks.Values = values
	}
	return work, nil
}

func shareSpec(spec workv1.ManifestWorkSpec) workv1.ManifestWorkSpec {
	for i := range interned.specs {
		if reflect.DeepEqual(interned.specs[i], spec) {
			return interned.specs[i]
		}
	}
	if len(interned.specs) == maxSpecs {
		interned.specs = slices.Delete(interned.specs, 0, 1)
	}
	interned.specs = append(interned.specs, spec)
	return spec
}

func shareConditions(conditions []metav1.Condition) {
	for i := range conditions {
		c := &conditions[i]
		share((*string)(&c.Status), &c.Type, &c.Reason, &c.Message)
	}
}

func share(words ...*string) {
	for _, w := range words {
		known, is := interned.words[*w]
		switch {
		case is:
			*w = known
		case len(*w) <= maxWordLength:
			if len(interned.words) == maxWords {
				clear(interned.words)
			}
			interned.words[*w] = *w
		}
	}
}
