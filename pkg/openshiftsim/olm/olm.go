// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm simulates the Operator Lifecycle Manager v0.46.0. It offers the releases named in
// annotations of Subscriptions, with one InstallPlan for all Subscriptions in a namespace, and
// installs approved releases. A Subscription is AtLatestKnown as soon as its ClusterServiceVersion
// exists, until the next resolution. If one Subscription in a namespace cannot be resolved, none is
// upgraded.
//
// It runs neither operators nor catalogs. It reports each CatalogSource as connected once, and
// installs the first release of a Subscription without an InstallPlan.
package olm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Annotations of a Subscription.
const (
	// AnnotationReleases lists the names of ClusterServiceVersions, separated by spaces, from the
	// installed one to the newest. They are installed one after another.
	AnnotationReleases = "devcluster.openshift.io/releases"
	// AnnotationInstallTime is the installation time of a release, for example 30s. By default,
	// installation takes no time.
	AnnotationInstallTime = "devcluster.openshift.io/install-time"
	// AnnotationFails is the name of a ClusterServiceVersion whose installation fails.
	AnnotationFails = "devcluster.openshift.io/fails"
	// AnnotationPlanFails is the name of a ClusterServiceVersion whose InstallPlan fails.
	AnnotationPlanFails = "devcluster.openshift.io/plan-fails"
	// AnnotationUnpackFails is the name of a ClusterServiceVersion whose bundle cannot be unpacked.
	AnnotationUnpackFails = "devcluster.openshift.io/unpack-fails"
)

// Kinds of OLM.
var (
	groupVersion  = schema.GroupVersion{Group: "operators.coreos.com", Version: "v1alpha1"}
	Subscriptions = groupVersion.WithKind("Subscription")
	InstallPlans  = groupVersion.WithKind("InstallPlan")
	CSVs          = groupVersion.WithKind("ClusterServiceVersion")
	Catalogs      = groupVersion.WithKind("CatalogSource")
)

// The states of a Subscription.
const (
	statePending  = "UpgradePending"
	stateAtLatest = "AtLatestKnown"
)

// Simulator is a simulated OLM.
type Simulator struct {
	Client client.Client
	Clock  clock.PassiveClock
}

type object = map[string]any

// Advance performs one round of what OLM does when objects change. Conflicts are left to the next
// call.
func (s *Simulator) Advance(ctx context.Context) error {
	all, err := s.list(ctx, Subscriptions)
	if err != nil {
		return err
	}
	plans, err := s.list(ctx, InstallPlans)
	if err != nil {
		return err
	}
	errs := []error{s.connect(ctx)}
	for _, plan := range plans {
		errs = append(errs, s.install(ctx, plan, all))
	}
	byNamespace, changed := map[string][]*unstructured.Unstructured{}, map[string]bool{}
	for _, subscription := range all {
		updated, err := s.observe(ctx, subscription)
		errs = append(errs, err)
		namespace := subscription.GetNamespace()
		byNamespace[namespace], changed[namespace] = append(byNamespace[namespace], subscription), changed[namespace] || updated || err != nil
	}
	for namespace, subscriptions := range byNamespace {
		if !changed[namespace] { // otherwise, a later resolution reads what was written
			errs = append(errs, s.resolve(ctx, namespace, subscriptions))
		}
	}
	return errors.Join(slices.DeleteFunc(errs, apierrors.IsConflict)...)
}

// connect reports unconnected catalogs as connected.
func (s *Simulator) connect(ctx context.Context) error {
	catalogs, err := s.list(ctx, Catalogs)
	if err != nil {
		return err
	}
	for _, catalog := range catalogs {
		if field(catalog, "status", "connectionState", "lastConnect") != "" {
			continue
		}
		state := object{"lastObservedState": "READY", "lastConnect": s.Clock.Now().UTC().Format(time.RFC3339)}
		if err := s.setStatus(ctx, catalog, object{"connectionState": state}); err != nil {
			return err
		}
	}
	return nil
}

func (s *Simulator) list(ctx context.Context, kind schema.GroupVersionKind) ([]*unstructured.Unstructured, error) {
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	if err := s.Client.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing %s: %w", kind.Kind, err)
	}
	var all []*unstructured.Unstructured
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, nil
}

// install installs the releases in an approved InstallPlan.
func (s *Simulator) install(ctx context.Context, plan *unstructured.Unstructured, all []*unstructured.Unstructured) error {
	approved, _, _ := unstructured.NestedBool(plan.Object, "spec", "approved")
	phase := field(plan, "status", "phase")
	switch {
	case phase == "Complete" || phase == "Failed":
		return nil
	case !approved && phase == "RequiresApproval":
		return nil
	case !approved:
		return s.setStatus(ctx, plan, object{"phase": "RequiresApproval"})
	}
	names, _, _ := unstructured.NestedStringSlice(plan.Object, "spec", "clusterServiceVersionNames")
	for _, name := range names {
		if err := s.create(ctx, CSVs, plan.GetNamespace(), name, csvSpec(name)); err != nil { // before the objects that may fail
			return err
		}
		for _, subscription := range all {
			if subscription.GetNamespace() == plan.GetNamespace() && subscription.GetAnnotations()[AnnotationPlanFails] == name {
				return s.setStatus(ctx, plan, object{"phase": "Failed", "conditions": []any{object{
					"type": "Installed", "status": "False", "reason": "InstallComponentFailed", "message": "simulated failure of " + name,
				}}})
			}
		}
	}
	return s.setStatus(ctx, plan, object{"phase": "Complete"})
}

// observe advances the installation of the current release and reports it in the Subscription. It
// returns whether the Subscription has changed.
func (s *Simulator) observe(ctx context.Context, subscription *unstructured.Unstructured) (bool, error) {
	releases := strings.Fields(subscription.GetAnnotations()[AnnotationReleases])
	if len(releases) == 0 {
		return false, nil
	}
	current := field(subscription, "status", "currentCSV")
	if current == "" {
		current = releases[0]
		if err := s.create(ctx, CSVs, subscription.GetNamespace(), current, csvSpec(current)); err != nil {
			return false, err
		}
	}
	csv := &unstructured.Unstructured{}
	csv.SetGroupVersionKind(CSVs)
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: subscription.GetNamespace(), Name: current}, csv)
	fields := object{"currentCSV": current, "state": statePending}
	switch {
	case apierrors.IsNotFound(err):
	case err != nil:
		return false, fmt.Errorf("getting ClusterServiceVersion %s: %w", current, err)
	default:
		replaced := ""
		if i := slices.Index(releases, current); i > 0 {
			replaced = releases[i-1]
		}
		if err := s.advanceCSV(ctx, subscription, csv, replaced); err != nil {
			return false, err
		}
		fields["state"], fields["installedCSV"] = stateAtLatest, current
	}
	if field(subscription, "status", "state") == fields["state"] {
		return false, nil
	}
	return true, s.setStatus(ctx, subscription, fields)
}

// advanceCSV advances the phase of a ClusterServiceVersion, and deletes the one that it has replaced.
// The first release, which replaces none, is installed immediately.
func (s *Simulator) advanceCSV(ctx context.Context, subscription, csv *unstructured.Unstructured, replaced string) error {
	phase, now := field(csv, "status", "phase"), s.Clock.Now()
	switch {
	case phase == "Succeeded" || phase == "Failed" && subscription.GetAnnotations()[AnnotationFails] == csv.GetName():
		return nil
	case phase == "" && replaced != "":
		return s.setStatus(ctx, csv, object{"phase": "Installing", "reason": "InstallWaiting", "lastTransitionTime": now.UTC().Format(time.RFC3339)})
	}
	since, err := time.Parse(time.RFC3339, cmp.Or(field(csv, "status", "lastTransitionTime"), time.Time{}.Format(time.RFC3339)))
	if err != nil {
		return fmt.Errorf("parsing lastTransitionTime of %s: %w", csv.GetName(), err)
	}
	installTime, err := time.ParseDuration(cmp.Or(subscription.GetAnnotations()[AnnotationInstallTime], "0s"))
	switch {
	case err != nil:
		return fmt.Errorf("parsing the annotation of Subscription %s: %w", subscription.GetName(), err)
	case now.Before(since.Add(installTime)):
		return nil
	case subscription.GetAnnotations()[AnnotationFails] == csv.GetName():
		return s.setStatus(ctx, csv, object{"phase": "Failed", "reason": "InstallCheckFailed", "message": "simulated failure of " + csv.GetName()})
	}
	if replaced != "" {
		former := &unstructured.Unstructured{}
		former.SetGroupVersionKind(CSVs)
		former.SetNamespace(csv.GetNamespace())
		former.SetName(replaced)
		if err := client.IgnoreNotFound(s.Client.Delete(ctx, former)); err != nil {
			return fmt.Errorf("deleting ClusterServiceVersion %s: %w", replaced, err)
		}
	}
	return s.setStatus(ctx, csv, object{"phase": "Succeeded", "reason": "InstallSucceeded"})
}

// resolve creates one InstallPlan for all Subscriptions in a namespace that have a next release. It
// needs approval if any Subscription in the namespace does, even one without a next release. A
// release has no successor while it is being installed.
func (s *Simulator) resolve(ctx context.Context, namespace string, subscriptions []*unstructured.Unstructured) error {
	if resolvable, err := s.checkCatalogs(ctx, subscriptions); err != nil || !resolvable {
		return err
	}
	var names []string
	var upgraded []*unstructured.Unstructured
	approval := "Automatic"
	for _, subscription := range subscriptions {
		if field(subscription, "spec", "installPlanApproval") == "Manual" {
			approval = "Manual"
		}
		next, err := s.next(ctx, subscription)
		if err != nil {
			return err
		}
		if next != "" {
			names, upgraded = append(names, next), append(upgraded, subscription)
		}
	}
	unpackable := !slices.ContainsFunc(subscriptions, func(each *unstructured.Unstructured) bool {
		return slices.Contains(names, each.GetAnnotations()[AnnotationUnpackFails])
	})
	if err := s.report(ctx, subscriptions, "BundleUnpackFailed", !unpackable, "BundleUnpackFailed"); err != nil || !unpackable || len(names) == 0 {
		return err
	}
	name := "install-" + strings.NewReplacer(".", "-").Replace(names[0])
	if err := s.create(ctx, InstallPlans, namespace, name, object{
		"approval": approval, "approved": approval == "Automatic", "clusterServiceVersionNames": toAny(names),
	}); err != nil {
		return err
	}
	for i, subscription := range upgraded {
		if err := s.setStatus(ctx, subscription, object{
			"currentCSV": names[i], "state": statePending,
			"installPlanRef": object{"namespace": namespace, "name": name, "kind": InstallPlans.Kind, "apiVersion": groupVersion.String()},
		}); err != nil {
			return err
		}
	}
	return nil
}

// checkCatalogs reports whether the Subscriptions of a namespace can be resolved: each package must
// be in a catalog. Nothing is resolved while InstallPlans for all Subscriptions are pending.
func (s *Simulator) checkCatalogs(ctx context.Context, subscriptions []*unstructured.Unstructured) (bool, error) {
	resolvable, pending := true, true
	for _, subscription := range subscriptions {
		found, err := s.checkCatalog(ctx, subscription)
		if err != nil {
			return false, err
		}
		resolvable = resolvable && found && subscription.GetAnnotations()[AnnotationReleases] != ""
		pending = pending && field(subscription, "status", "state") == statePending
	}
	if pending {
		return false, nil
	}
	return resolvable, s.report(ctx, subscriptions, "ResolutionFailed", !resolvable, "ConstraintsNotSatisfiable")
}

// checkCatalog reports in a Subscription whether its CatalogSource exists, and returns it.
func (s *Simulator) checkCatalog(ctx context.Context, subscription *unstructured.Unstructured) (bool, error) {
	catalog := &unstructured.Unstructured{}
	catalog.SetGroupVersionKind(Catalogs)
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: field(subscription, "spec", "sourceNamespace"), Name: field(subscription, "spec", "source")}, catalog)
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("getting the CatalogSource of Subscription %s: %w", subscription.GetName(), err)
	}
	return err == nil, s.report(ctx, []*unstructured.Unstructured{subscription}, "CatalogSourcesUnhealthy", err != nil, "NoCatalogSourcesFound")
}

// report adds a condition with a reason to Subscriptions, or removes it. Conditions with other
// reasons stay.
func (s *Simulator) report(ctx context.Context, subscriptions []*unstructured.Unstructured, condition string, isTrue bool, reason string) error {
	for _, subscription := range subscriptions {
		conditions, _, _ := unstructured.NestedSlice(subscription.Object, "status", "conditions")
		at := slices.IndexFunc(conditions, func(each any) bool {
			c, _ := each.(object)
			return c["type"] == condition && c["reason"] == reason
		})
		switch {
		case isTrue == (at >= 0):
			continue
		case isTrue:
			conditions = append(conditions, object{"type": condition, "status": "True", "reason": reason, "message": "simulated"})
		default:
			conditions = slices.Delete(conditions, at, at+1)
		}
		if err := s.setStatus(ctx, subscription, object{"conditions": conditions}); err != nil {
			return err
		}
	}
	return nil
}

// next returns the release that the catalog offers after the installed one, or an empty string.
func (s *Simulator) next(ctx context.Context, subscription *unstructured.Unstructured) (string, error) {
	releases := strings.Fields(subscription.GetAnnotations()[AnnotationReleases])
	current := field(subscription, "status", "currentCSV")
	next := slices.Index(releases, current) + 1
	if field(subscription, "status", "state") != stateAtLatest || next == 0 || next >= len(releases) {
		return "", nil
	}
	csv := &unstructured.Unstructured{}
	csv.SetGroupVersionKind(CSVs)
	if err := s.Client.Get(ctx, client.ObjectKey{Namespace: subscription.GetNamespace(), Name: current}, csv); err != nil {
		return "", fmt.Errorf("getting ClusterServiceVersion %s: %w", current, err)
	}
	if field(csv, "status", "phase") != "Succeeded" {
		return "", nil
	}
	return releases[next], nil
}

// csvSpec returns the required fields of a ClusterServiceVersion's spec.
func csvSpec(name string) object {
	return object{
		"displayName": name, "version": "0.0.0",
		"install": object{"strategy": "deployment", "spec": object{"deployments": []any{}}},
	}
}

func (s *Simulator) create(ctx context.Context, kind schema.GroupVersionKind, namespace, name string, spec object) error {
	created := &unstructured.Unstructured{Object: object{"spec": spec}}
	created.SetGroupVersionKind(kind)
	created.SetNamespace(namespace)
	created.SetName(name)
	if err := s.Client.Create(ctx, created); err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating %s %s: %w", kind.Kind, name, err)
	}
	return nil
}

// setStatus sets status fields and adds the fields that the schemas require.
func (s *Simulator) setStatus(ctx context.Context, target *unstructured.Unstructured, fields object) error {
	status, _, _ := unstructured.NestedMap(target.Object, "status")
	if status == nil {
		status = object{}
	}
	switch target.GetKind() {
	case Subscriptions.Kind:
		status["lastUpdated"] = s.Clock.Now().UTC().Format(time.RFC3339)
	case InstallPlans.Kind:
		status["catalogSources"] = []any{}
	}
	maps.Copy(status, fields)
	target.Object["status"] = status
	if err := s.Client.Status().Update(ctx, target); err != nil {
		return fmt.Errorf("updating the status of %s %s: %w", target.GetKind(), target.GetName(), err)
	}
	return nil
}

func field(o *unstructured.Unstructured, path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...)
	return value
}

func toAny(names []string) []any {
	all := make([]any, len(names))
	for i, name := range names {
		all[i] = name
	}
	return all
}
