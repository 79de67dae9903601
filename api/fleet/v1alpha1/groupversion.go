// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion is the group and the version of the types in this package. The UpgradeConfig of a
// single cluster has the same.
var GroupVersion = schema.GroupVersion{Group: "upgrade.managed.openshift.io", Version: "v1alpha1"}

// AddToScheme registers the types of this package.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &ClusterUpgradeRun{}, &ClusterUpgradeRunList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
