// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package capacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	machinev1beta1apply "github.com/openshift/client-go/machine/applyconfigurations/machine/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	metav1apply "k8s.io/client-go/applyconfigurations/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Namespace is the namespace of MachineSets.
const Namespace = "openshift-machine-api"

// Annotations that tell users why an extra MachineSet exists.
const (
	annotationUpgrade = "upgrade.managed.openshift.io/upgrade"
	annotationSource  = "upgrade.managed.openshift.io/machineset"
)

// Labels of the machine API: the role of a Machine, and its MachineSet.
const (
	labelRole       = "machine.openshift.io/cluster-api-machine-role"
	labelMachineSet = "machine.openshift.io/cluster-api-machineset"
)

var machineSetKind = machinev1beta1.GroupVersion.WithKind("MachineSet")

// fieldOwner is the field manager of extra MachineSets.
const fieldOwner = client.FieldOwner("managed-upgrade-operator-capacity")

// machineSet is an existing MachineSet. It is unstructured, so an extra MachineSet also copies
// fields of newer API versions.
type machineSet struct{ *unstructured.Unstructured }

func (m machineSet) deleting() bool { return m.GetDeletionTimestamp() != nil }

// isExtra reports whether this is an extra MachineSet of any upgrade.
func (m machineSet) isExtra() bool {
	_, marked := m.GetLabels()[clusterstate.LabelExtraNodeOf]
	return marked
}

// hasWorkers reports whether the MachineSet has worker Machines.
func (m machineSet) hasWorkers() bool {
	role, _, _ := unstructured.NestedString(m.Object, "spec", "template", "metadata", "labels", labelRole)
	replicas, isSet, _ := unstructured.NestedInt64(m.Object, "spec", "replicas")
	return role == "worker" && (replicas > 0 || !isSet) // the default is one
}

// errorMessage returns the error that the MachineSet reports, in one line of limited length; empty
// if it reports none.
func (m machineSet) errorMessage() string {
	reason, _, _ := unstructured.NestedString(m.Object, "status", "errorReason")
	message, _, _ := unstructured.NestedString(m.Object, "status", "errorMessage")
	return errorMessage(reason, message)
}

// machineSets lists the MachineSets. A cluster without the machine API has none.
func (e *ExtraNodes) machineSets(ctx context.Context, opts ...client.ListOption) ([]machineSet, error) {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(machineSetKind)
	err := e.Live.List(ctx, list, append(opts, client.InNamespace(Namespace))...)
	switch {
	case meta.IsNoMatchError(err), apierrors.IsNotFound(err): // the kind is not served, or no longer served
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing the MachineSets: %w", err)
	}
	sets := make([]machineSet, 0, len(list.Items))
	for i := range list.Items {
		sets = append(sets, machineSet{&list.Items[i]})
	}
	return sets, nil
}

// extra is a desired extra MachineSet.
type extra struct {
	name    string
	source  string                     // the name of the copied MachineSet
	desired *unstructured.Unstructured // the desired state
	actual  *machineSet                // the actual state; nil if absent
}

// desired returns the extra MachineSets of an attempt: one for each MachineSet that has worker
// Machines and is not extra itself.
func desired(all []machineSet, attempt engine.AttemptRef) ([]extra, error) {
	var extras []extra
	for _, set := range all {
		if !set.hasWorkers() || set.isExtra() || set.deleting() {
			continue
		}
		name := nameOf(attempt, set.GetName())
		copied, err := copyOf(set, name, attempt)
		if err != nil {
			return nil, err
		}
		e := extra{name: name, source: set.GetName(), desired: copied}
		if at := slices.IndexFunc(all, func(m machineSet) bool { return m.GetName() == name }); at >= 0 {
			e.actual = &all[at]
		}
		extras = append(extras, e)
	}
	return extras, nil
}

// orphaned returns surplus extra MachineSets: of other attempts, or of a source that no longer
// exists.
func orphaned(all []machineSet, extras []extra) []machineSet {
	return slices.DeleteFunc(slices.Clone(all), func(set machineSet) bool {
		return !set.isExtra() || slices.ContainsFunc(extras, func(e extra) bool { return e.name == set.GetName() })
	})
}

// maxNameLength limits the name of a MachineSet. The names of its Machines have six more characters
// and must be valid node names.
const maxNameLength = 63 - 6

// nameOf returns the deterministic, unique name of an attempt's extra MachineSet. It starts with
// the name of the source, so users recognize it.
func nameOf(attempt engine.AttemptRef, source string) string {
	suffix := "-extra-" + text.Hash(strings.Join([]string{attempt.UID, attempt.ID(), source}, "\n"), 4)
	prefix := source[:min(len(source), maxNameLength-len(suffix))]
	return strings.TrimRight(prefix, "-.") + suffix
}

// copyOf returns a copy of a MachineSet with one replica, including fields that the Go types lack.
// Its own selector separates the Machines of the two.
func copyOf(source machineSet, name string, attempt engine.AttemptRef) (*unstructured.Unstructured, error) {
	owner := map[string]string{clusterstate.LabelExtraNodeOf: attempt.UID}
	selected := map[string]string{clusterstate.LabelExtraNodeOf: attempt.UID, labelMachineSet: name}
	changes, err := runtime.DefaultUnstructuredConverter.ToUnstructured(machinev1beta1apply.MachineSet(name, Namespace).
		WithLabels(owner).
		WithAnnotations(map[string]string{
			annotationUpgrade: fmt.Sprintf("%s/%s to %s at %s", attempt.Namespace, attempt.Name, attempt.Version, attempt.Key),
			annotationSource:  source.GetName(),
		}).
		WithSpec(machinev1beta1apply.MachineSetSpec().
			WithReplicas(1).
			WithSelector(metav1apply.LabelSelector().WithMatchLabels(selected)).
			WithTemplate(machinev1beta1apply.MachineTemplateSpec().
				WithLabels(selected).
				WithSpec(machinev1beta1apply.MachineSpec().WithLabels(owner))))) // the machine API copies these labels to the node
	if err != nil {
		return nil, fmt.Errorf("copying MachineSet %s: %w", source.GetName(), err)
	}
	spec, _, _ := unstructured.NestedMap(source.Object, "spec") // a deep copy
	delete(spec, "selector")
	set := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	overlay(set.Object, changes)
	return set, nil
}

// overlay sets fields of an object. Objects are merged, and other values are replaced.
func overlay(object, fields map[string]any) {
	for key, value := range fields {
		from, isMap := value.(map[string]any)
		into, wasMap := object[key].(map[string]any)
		if isMap && wasMap {
			overlay(into, from)
			continue
		}
		object[key] = value
	}
}

// apply creates an extra MachineSet. If another client has created one with that name, it returns a
// conflict.
func (e *ExtraNodes) apply(ctx context.Context, extra extra, opts ...client.ApplyOption) error {
	err := e.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(extra.desired), append(opts, fieldOwner)...)
	if err != nil {
		return fmt.Errorf("creating MachineSet %s: %w", extra.name, err)
	}
	return nil
}

// delete deletes MachineSets, each after its Machines. It tries all of them, even after an error.
func (e *ExtraNodes) delete(ctx context.Context, sets ...machineSet) error {
	var errs []error
	for _, set := range sets {
		if set.deleting() {
			continue
		}
		err := e.Client.Delete(ctx, set.Unstructured, client.PropagationPolicy(metav1.DeletePropagationForeground), client.Preconditions{UID: new(set.GetUID())})
		if client.IgnoreNotFound(err) != nil {
			errs = append(errs, fmt.Errorf("deleting MachineSet %s: %w", set.GetName(), err))
		}
	}
	return errors.Join(errs...)
}
