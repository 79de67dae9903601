// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// OLMGroupVersion is the group and version of the Operator Lifecycle Manager's kinds.
var OLMGroupVersion = schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}

// Subscription holds the facts about an optional operator's Subscription.
type Subscription struct {
	types.NamespacedName

	// Manual is set if users must approve the InstallPlans of the Subscription.
	Manual bool
	// Catalog is the CatalogSource of the operator's releases.
	Catalog types.NamespacedName
	// CurrentCSV is the ClusterServiceVersion that OLM is installing or has installed. InstalledCSV is the
	// one that it has installed.
	CurrentCSV, InstalledCSV string
	// Plan is the InstallPlan of the current upgrade. Its name is empty if there is none.
	Plan types.NamespacedName
	// AtLatest is set if the ClusterServiceVersion of the current release exists. It may not be installed
	// yet. After a newer release appears, OLM also reports this state until the next resolution.
	AtLatest bool
	// Problem explains why OLM does not know whether there is a newer release. It is meant for the end of a
	// message and empty if there is no problem.
	Problem string
	// LastUpdated is when OLM last processed the Subscription, or zero if this is unknown.
	LastUpdated time.Time
}

// InstallPlan holds the facts about an InstallPlan.
type InstallPlan struct {
	types.NamespacedName

	ResourceVersion string
	// Manual is set if OLM waits for approval. Approved is set once the InstallPlan is approved.
	Manual, Approved bool
	Phase            string
	// CSVs lists the ClusterServiceVersions to install. Replaced lists the ones that they replace, if known.
	CSVs, Replaced []string
	// Problem explains why the InstallPlan has failed.
	Problem string
}

// Failed reports whether the InstallPlan has failed.
func (p *InstallPlan) Failed() bool { return p.Phase == "Failed" }

// Complete reports whether the InstallPlan is complete.
func (p *InstallPlan) Complete() bool { return p.Phase == "Complete" }

// Upgrades reports whether the InstallPlan upgrades the operator of a Subscription.
func (p *InstallPlan) Upgrades(s *Subscription) bool {
	if s.Namespace != p.Namespace {
		return false
	}
	return s.Plan == p.NamespacedName || slices.Contains(p.CSVs, s.CurrentCSV) || s.InstalledCSV != "" && slices.Contains(p.Replaced, s.InstalledCSV)
}

// ListSubscriptions lists the Subscriptions, sorted by namespace and name. A cluster without the Operator
// Lifecycle Manager has none.
func ListSubscriptions(ctx context.Context, live client.Reader) ([]Subscription, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(OLMGroupVersion.WithKind("SubscriptionList"))
	err := live.List(ctx, &list)
	switch {
	case apierrors.IsNotFound(err) || meta.IsNoMatchError(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("listing the Subscriptions: %w", err)
	}
	all := make([]Subscription, len(list.Items))
	for i := range list.Items {
		var raw rawSubscription
		if err := decode(&list.Items[i], &raw); err != nil {
			return nil, err
		}
		all[i] = raw.facts(client.ObjectKeyFromObject(&list.Items[i]))
	}
	slices.SortFunc(all, func(a, b Subscription) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// GetInstallPlan returns an InstallPlan, or nil if it does not exist.
func GetInstallPlan(ctx context.Context, live client.Reader, name types.NamespacedName) (*InstallPlan, error) {
	var raw rawInstallPlan
	object, err := getOLM(ctx, live, "InstallPlan", name, &raw)
	if object == nil || err != nil {
		return nil, err
	}
	plan := &InstallPlan{
		NamespacedName: name, ResourceVersion: object.GetResourceVersion(), Manual: raw.Spec.Approval == approvalManual, Approved: raw.Spec.Approved,
		Phase: raw.Status.Phase, CSVs: raw.Spec.CSVs, Problem: text.Reason(raw.Status.Message),
	}
	for _, lookup := range raw.Status.BundleLookups {
		plan.Replaced = append(plan.Replaced, lookup.Replaces)
	}
	for _, c := range raw.Status.Conditions {
		if c.Type == "Installed" && c.Status == conditionFalse {
			plan.Problem = text.Reason(c.Reason) + ": " + text.Reason(c.Message)
			break
		}
	}
	return plan, nil
}

// GetClusterServiceVersion returns a ClusterServiceVersion, or nil if it does not exist.
func GetClusterServiceVersion(ctx context.Context, live client.Reader, name types.NamespacedName) (*ClusterServiceVersion, error) {
	object, err := getOLM(ctx, live, "ClusterServiceVersion", name, nil)
	if object == nil || err != nil {
		return nil, err
	}
	return new(clusterServiceVersionOf(object)), nil
}

// CatalogConnected returns when OLM last connected to a CatalogSource, or zero if this is unknown.
func CatalogConnected(ctx context.Context, live client.Reader, name types.NamespacedName) (time.Time, error) {
	var raw struct {
		Status struct {
			ConnectionState struct {
				LastConnect string `json:"lastConnect"`
			} `json:"connectionState"`
		} `json:"status"`
	}
	_, err := getOLM(ctx, live, "CatalogSource", name, &raw)
	return parseTime(raw.Status.ConnectionState.LastConnect), err
}

// getOLM reads an object and, unless into is nil, decodes it. It returns nil if the object does not exist.
func getOLM(ctx context.Context, live client.Reader, kind string, name types.NamespacedName, into any) (*unstructured.Unstructured, error) {
	var object unstructured.Unstructured
	object.SetGroupVersionKind(OLMGroupVersion.WithKind(kind))
	switch err := live.Get(ctx, name, &object); {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("getting %s %s: %w", kind, name.Name, err)
	case into == nil:
		return &object, nil
	}
	return &object, decode(&object, into)
}

func decode(object *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into); err != nil {
		return fmt.Errorf("decoding %s %s: %w", object.GetKind(), client.ObjectKeyFromObject(object), err)
	}
	return nil
}

// parseTime returns zero for a missing or malformed time.
func parseTime(value string) time.Time {
	parsed, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return time.Time{}
	}
	return parsed
}

const (
	approvalManual = "Manual"
	conditionFalse = "False"
)

// olmCondition is a condition of an OLM object.
type olmCondition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// rawSubscription holds the fields that are read from a Subscription.
type rawSubscription struct {
	Spec struct {
		InstallPlanApproval string `json:"installPlanApproval"`
		Source              string `json:"source"`
		SourceNamespace     string `json:"sourceNamespace"`
	} `json:"spec"`
	Status struct {
		State          string `json:"state"`
		CurrentCSV     string `json:"currentCSV"`
		InstalledCSV   string `json:"installedCSV"`
		InstallPlanRef struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"installPlanRef"`
		Conditions  []olmCondition `json:"conditions"`
		LastUpdated string         `json:"lastUpdated"`
	} `json:"status"`
}

// rawInstallPlan holds the fields that are read from an InstallPlan.
type rawInstallPlan struct {
	Spec struct {
		Approval string   `json:"approval"`
		Approved bool     `json:"approved"`
		CSVs     []string `json:"clusterServiceVersionNames"`
	} `json:"spec"`
	Status struct {
		Phase         string         `json:"phase"`
		Message       string         `json:"message"`
		Conditions    []olmCondition `json:"conditions"`
		BundleLookups []struct {
			Replaces string `json:"replaces"`
		} `json:"bundleLookups"`
	} `json:"status"`
}

func (r *rawSubscription) facts(name types.NamespacedName) Subscription {
	status := &r.Status
	return Subscription{
		NamespacedName: name, Manual: r.Spec.InstallPlanApproval == approvalManual,
		Catalog:    types.NamespacedName{Namespace: r.Spec.SourceNamespace, Name: r.Spec.Source},
		CurrentCSV: status.CurrentCSV, InstalledCSV: status.InstalledCSV,
		Plan:     types.NamespacedName{Namespace: cmp.Or(status.InstallPlanRef.Namespace, name.Namespace), Name: status.InstallPlanRef.Name},
		AtLatest: status.State == "AtLatestKnown" && status.CurrentCSV != "" && status.InstalledCSV == status.CurrentCSV,
		Problem:  r.problem(), LastUpdated: parseTime(status.LastUpdated),
	}
}

// problem describes the first condition that makes the newest release unknown. A condition that is neither
// True nor False counts as a problem.
func (r *rawSubscription) problem() string {
	for _, name := range []string{"ResolutionFailed", "BundleUnpackFailed", "CatalogSourcesUnhealthy", "BundleUnpacking"} {
		for _, c := range r.Status.Conditions {
			if c.Type == name && c.Status != conditionFalse {
				return fmt.Sprintf("; %s: %s", name, text.Reason(cmp.Or(c.Message, c.Reason)))
			}
		}
	}
	return ""
}
