// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package olm

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// groupVersion is that of all objects of OLM that the package reads. Its Go module requires a newer Go
// than this one, so the objects are read without their Go types.
var groupVersion = schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}

// The kinds that the package reads.
var (
	subscriptionKind = groupVersion.WithKind("Subscription")
	installPlanKind  = groupVersion.WithKind("InstallPlan")
	csvKind          = groupVersion.WithKind("ClusterServiceVersion")
)

// Values of fields.
const (
	approvalManual    = "Manual"
	stateAtLatest     = "AtLatestKnown"
	planFailed        = "Failed"
	planInstalled     = "Installed" // a condition
	csvSucceeded      = "Succeeded"
	csvFailed         = "Failed"
	conditionTrue     = "True"
	conditionFalse    = "False"
	resolutionFailed  = "ResolutionFailed"
	unpackFailed      = "BundleUnpackFailed"
	catalogsUnhealthy = "CatalogSourcesUnhealthy"
)

// Mapper returns a RESTMapper that knows the kinds of OLM without discovery: another API that is not
// available does not matter.
func Mapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{groupVersion})
	for _, kind := range []schema.GroupVersionKind{subscriptionKind, installPlanKind, csvKind} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	return mapper
}

// subscription holds the fields of a Subscription that the package reads.
type subscription struct {
	Metadata objectMeta `json:"metadata"`
	Spec     struct {
		InstallPlanApproval string `json:"installPlanApproval"`
	} `json:"spec"`
	Status struct {
		State          string      `json:"state"`
		CurrentCSV     string      `json:"currentCSV"`
		InstalledCSV   string      `json:"installedCSV"`
		InstallPlanRef objectMeta  `json:"installPlanRef"`
		Conditions     []condition `json:"conditions"`
	} `json:"status"`
}

type objectMeta struct {
	Namespace       string `json:"namespace"`
	Name            string `json:"name"`
	ResourceVersion string `json:"resourceVersion"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func (s *subscription) name() types.NamespacedName {
	return types.NamespacedName{Namespace: s.Metadata.Namespace, Name: s.Metadata.Name}
}

// isManual reports whether the InstallPlans of the Subscription are approved by its user.
func (s *subscription) isManual() bool { return s.Spec.InstallPlanApproval == approvalManual }

// plan returns the name of the InstallPlan of the current upgrade; an empty name means none.
func (s *subscription) plan() types.NamespacedName {
	ref := s.Status.InstallPlanRef
	return types.NamespacedName{Namespace: cmp.Or(ref.Namespace, s.Metadata.Namespace), Name: ref.Name}
}

// isAtLatest reports whether OLM knows no newer release than the one that it has created. That release
// may not be installed yet.
func (s *subscription) isAtLatest() bool {
	return s.Status.State == stateAtLatest && s.Status.CurrentCSV != "" && s.Status.InstalledCSV == s.Status.CurrentCSV
}

// installPlan holds the fields of an InstallPlan that the package reads.
type installPlan struct {
	Metadata objectMeta `json:"metadata"`
	Spec     struct {
		Approval string   `json:"approval"`
		Approved bool     `json:"approved"`
		CSVs     []string `json:"clusterServiceVersionNames"`
	} `json:"spec"`
	Status struct {
		Phase         string      `json:"phase"`
		Message       string      `json:"message"`
		Conditions    []condition `json:"conditions"`
		BundleLookups []struct {
			Replaces string `json:"replaces"`
		} `json:"bundleLookups"`
	} `json:"status"`
}

func (p *installPlan) name() types.NamespacedName {
	return types.NamespacedName{Namespace: p.Metadata.Namespace, Name: p.Metadata.Name}
}

// upgrades reports whether the InstallPlan upgrades the operator of a Subscription.
func (p *installPlan) upgrades(s *subscription) bool {
	if s.Metadata.Namespace != p.Metadata.Namespace {
		return false
	}
	if s.plan() == p.name() || slices.Contains(p.Spec.CSVs, s.Status.CurrentCSV) {
		return true
	}
	for i := range p.Status.BundleLookups {
		if replaced := p.Status.BundleLookups[i].Replaces; replaced != "" && replaced == s.Status.InstalledCSV {
			return true
		}
	}
	return false
}

// clusterServiceVersion holds the fields of a ClusterServiceVersion that the package reads.
type clusterServiceVersion struct {
	Status struct {
		Phase   string `json:"phase"`
		Reason  string `json:"reason"`
		Message string `json:"message"`
	} `json:"status"`
}

// listSubscriptions returns all Subscriptions, sorted by namespace and name. A cluster without OLM has
// none.
func listSubscriptions(ctx context.Context, reader client.Reader) ([]subscription, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(groupVersion.WithKind("SubscriptionList"))
	err := reader.List(ctx, &list)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing the Subscriptions: %w", err)
	}
	all := make([]subscription, len(list.Items))
	for i := range list.Items {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(list.Items[i].Object, &all[i]); err != nil {
			return nil, fmt.Errorf("decoding Subscription %s: %w", client.ObjectKeyFromObject(&list.Items[i]), err)
		}
	}
	slices.SortFunc(all, func(a, b subscription) int {
		return cmp.Or(cmp.Compare(a.Metadata.Namespace, b.Metadata.Namespace), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
	})
	return all, nil
}

// get returns an object; nil means that it does not exist.
func get[T any](ctx context.Context, reader client.Reader, kind schema.GroupVersionKind, name types.NamespacedName) (*T, error) {
	var object unstructured.Unstructured
	object.SetGroupVersionKind(kind)
	err := reader.Get(ctx, name, &object)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("getting %s %s: %w", kind.Kind, name.Name, err)
	}
	result := new(T)
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, result); err != nil {
		return nil, fmt.Errorf("decoding %s %s: %w", kind.Kind, name.Name, err)
	}
	return result, nil
}

// approve approves an InstallPlan as it was read.
func approve(ctx context.Context, writer client.Writer, plan *installPlan) error {
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": plan.Metadata.ResourceVersion},
		"spec":     map[string]any{"approved": true},
	})
	if err != nil {
		return fmt.Errorf("encoding the approval: %w", err)
	}
	var object unstructured.Unstructured
	object.SetGroupVersionKind(installPlanKind)
	object.SetNamespace(plan.Metadata.Namespace)
	object.SetName(plan.Metadata.Name)
	if err := writer.Patch(ctx, &object, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("approving InstallPlan %s: %w", plan.Metadata.Name, err)
	}
	return nil
}
