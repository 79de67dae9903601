// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"context"
	"encoding/json"
	"fmt"

	configv1 "github.com/openshift/api/config/v1"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// Mapper returns a RESTMapper that knows the package's kinds without discovery, so the failure of
// an unrelated API does not matter.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{clusterstate.OLMGroupVersion, configv1.GroupVersion, batchv1.SchemeGroupVersion})
	for _, kind := range []string{"Subscription", "InstallPlan", "ClusterServiceVersion", "CatalogSource"} {
		mapper.Add(clusterstate.OLMGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	mapper.Add(configv1.GroupVersion.WithKind("ClusterVersion"), meta.RESTScopeRoot)
	mapper.Add(batchv1.SchemeGroupVersion.WithKind("Job"), meta.RESTScopeNamespace)
	return mapper
}

// NewScheme returns a scheme for the objects with Go types. OLM's objects are read without Go
// types, because OLM's module requires a newer version of Go than this one.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	utilruntime.Must(configv1.Install(scheme))
	utilruntime.Must(batchv1.AddToScheme(scheme))
	return scheme
}

// approve approves an InstallPlan unless it has changed since it was read.
func approve(ctx context.Context, writer client.Writer, plan *clusterstate.InstallPlan) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": plan.ResourceVersion},
		"spec":     map[string]any{"approved": true},
	})
	if err != nil {
		return fmt.Errorf("encoding the approval: %w", err)
	}
	var object unstructured.Unstructured
	object.SetGroupVersionKind(clusterstate.OLMGroupVersion.WithKind("InstallPlan"))
	object.SetNamespace(plan.Namespace)
	object.SetName(plan.Name)
	if err := writer.Patch(ctx, &object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("approving InstallPlan %s: %w", plan.Name, err)
	}
	return nil
}
