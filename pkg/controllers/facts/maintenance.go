// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// UpgradeJobs declares how controllers cache the UpgradeJobs in these namespaces.
func UpgradeJobs(namespaces []string) manager.Kind {
	return manager.Kind{Object: &maintenancev1beta1.UpgradeJob{}, AddToScheme: maintenancev1beta1.AddToScheme, Namespaces: namespaces, Transform: StripMaintenance}
}

// UpgradeConfigs declares how controllers cache the UpgradeConfigs in these namespaces.
func UpgradeConfigs(namespaces []string) manager.Kind {
	return manager.Kind{Object: &maintenancev1beta1.UpgradeConfig{}, AddToScheme: maintenancev1beta1.AddToScheme, Namespaces: namespaces, Transform: StripMaintenance}
}

// UpgradeSuspensionWindows declares how controllers cache the UpgradeSuspensionWindows in these
// namespaces.
func UpgradeSuspensionWindows(namespaces []string) manager.Kind {
	return manager.Kind{Object: &maintenancev1beta1.UpgradeSuspensionWindow{}, AddToScheme: maintenancev1beta1.AddToScheme, Namespaces: namespaces, Transform: StripMaintenance}
}

// Limits for cached metadata, in bytes and items.
const (
	maxCachedLabels = 16 << 10
	maxCachedOwners = 4
	maxCachedOwner  = 1 << 10
)

// StripMaintenance drops unread metadata from an object before it is cached. It keeps the
// annotations of user requests, each as its token; see maintenance.RequestToken.
func StripMaintenance(obj any) (any, error) {
	object, ok := obj.(metav1.Object)
	if !ok {
		return obj, nil
	}
	var requests map[string]string
	for _, key := range []string{maintenancev1beta1.RunNowAnnotation, maintenancev1beta1.RetryAnnotation, maintenancev1beta1.AcknowledgedAnnotation} {
		if token := maintenance.RequestToken(object, key); token != "" {
			if requests == nil {
				requests = map[string]string{}
			}
			requests[key] = token
		}
	}
	object.SetAnnotations(requests)
	object.SetGenerateName("")
	object.SetSelfLink("")
	object.SetManagedFields(nil)
	object.SetLabels(cachedLabels(object.GetLabels()))
	object.SetOwnerReferences(cachedOwners(object.GetOwnerReferences()))
	var finalizers []string
	if slices.Contains(object.GetFinalizers(), maintenancev1beta1.Finalizer) {
		finalizers = []string{maintenancev1beta1.Finalizer}
	}
	object.SetFinalizers(finalizers)
	return obj, nil
}

// cachedLabels returns the labels. If they exceed the limit, it returns only the labels that the
// operator has set and one placeholder for the rest: a subset of the labels cannot tell which
// selectors match the object.
func cachedLabels(all map[string]string) map[string]string {
	size := 0
	for key, value := range all {
		size += len(key) + len(value)
	}
	if size <= maxCachedLabels {
		return all
	}
	own := map[string]string{maintenance.LabelsTooLong: ""}
	for _, key := range []string{maintenancev1beta1.ConfigLabel, maintenancev1beta1.SlotLabel} {
		if value, ok := all[key]; ok {
			own[key] = value
		}
	}
	return own
}

// cachedOwners returns the owners up to the limit, the controller first. It drops owners whose
// names are longer than any object's name can be.
func cachedOwners(all []metav1.OwnerReference) []metav1.OwnerReference {
	rank := func(owner metav1.OwnerReference) int {
		if owner.Controller != nil && *owner.Controller {
			return 0
		}
		return 1
	}
	var owners []metav1.OwnerReference
	for _, owner := range slices.SortedStableFunc(slices.Values(all), func(a, b metav1.OwnerReference) int { return cmp.Compare(rank(a), rank(b)) }) {
		if len(owners) < maxCachedOwners && len(owner.APIVersion)+len(owner.Kind)+len(owner.Name)+len(owner.UID) <= maxCachedOwner {
			owners = append(owners, owner)
		}
	}
	return owners
}
