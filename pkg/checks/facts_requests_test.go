// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// request sets spec.desiredUpdate, and the cluster version operator has observed it. The cluster is offered
// the next minor version and a patch release.
func request(desired configv1.Update, changes ...func(*cluster)) func(*cluster) {
	return func(c *cluster) {
		c.version.Generation, c.version.Status.ObservedGeneration = 2, 2
		c.version.Status.Desired = configv1.Release{Version: newRelease, Image: "quay.io/r@sha256:6"}
		c.version.Status.AvailableUpdates = []configv1.Release{{Version: nextMinor, Image: "quay.io/r@sha256:21"}, {Version: "4.20.7", Image: "quay.io/r@sha256:7"}}
		c.version.Spec.DesiredUpdate = &desired
		for _, change := range changes {
			change(c)
		}
	}
}

// unobserved makes the request unobserved by the cluster version operator.
func unobserved(c *cluster) { c.version.Status.ObservedGeneration = 1 }

// refuse makes the cluster version operator refuse a release.
func refuse(version, image string) func(*cluster) {
	return func(c *cluster) {
		setVersion(c, "ReleaseAccepted", configv1.ConditionFalse, `Retrieving payload failed version="`+version+`" image="`+image+`" failure=no signature`)
	}
}

// requestQuestions ask about the request in spec.desiredUpdate. The upgrade in question targets the next
// minor version and has not requested anything.
var requestQuestions = []question{
	{"what became of the request?", "the target", request(configv1.Update{Version: nextMinor}), map[string]string{
		commit:  "Pending AnotherUpdateInProgress",
		pending: "True ClusterVersionNotReconciled",
		figures: "operators 2=0+0+2 0/0, worker 3=3+0+0 0/0",
		verdict: "Progressing",
	}},
	{"what became of the request?", "the target, not observed", request(configv1.Update{Version: nextMinor}, unobserved), map[string]string{
		commit:  "Pending AnotherUpdateInProgress",
		pending: "True ClusterVersionNotReconciled",
		figures: "operators 2=0+0+2 0/0, worker 3=3+0+0 0/0",
		verdict: "Progressing",
	}},
	{"what became of the request?", "the target, refused", request(configv1.Update{Version: nextMinor}, refuse(nextMinor, "quay.io/r@sha256:21")), map[string]string{
		commit:  "Refused AnotherUpdateInProgress",
		update:  "error ReleaseRefused/ClusterVersion/version",
		pending: "True ClusterVersionNotReconciled",
		figures: "operators 2=0+0+2 0/0, worker 3=3+0+0 0/0",
		verdict: "Stuck",
	}},
	{"what became of the request?", "the target with the installed image", request(configv1.Update{Version: nextMinor, Image: "quay.io/r@sha256:6"}), map[string]string{commit: "Ignored"}},
	{"what became of the request?", "the target, which is not offered", request(configv1.Update{Version: nextMinor}, func(c *cluster) { c.version.Status.AvailableUpdates = nil }), map[string]string{commit: "Ignored"}},
	{"what became of the request?", "the target by its image alone", request(configv1.Update{Image: "quay.io/r@sha256:21"}), map[string]string{
		busy:    "AnotherUpdateInProgress",
		commit:  "Other",
		plan:    "error in-progress/quay.io/r@sha256:21",
		pending: "True ClusterVersionNotReconciled",
		figures: "operators 2=0+0+2 0/0, worker 3=3+0+0 0/0",
		verdict: "Progressing",
	}},
	{"what became of the request?", "a preflight of the target", request(configv1.Update{Version: nextMinor, Mode: configv1.UpdateModePreflight}), map[string]string{}},
	{"what became of the request?", "another release", request(configv1.Update{Version: "4.20.7"}), map[string]string{
		busy:    "AnotherUpdateInProgress",
		commit:  "Other",
		plan:    "error in-progress/4.20.7",
		pending: "True ClusterVersionNotReconciled",
		figures: "operators 2=0+0+2 0/0, worker 3=3+0+0 0/0",
		verdict: "Progressing",
	}},
	{"what became of the request?", "another release, not observed", request(configv1.Update{Version: "4.20.4"}, unobserved), map[string]string{
		busy:    "AnotherUpdateInProgress",
		commit:  "Other",
		plan:    "error in-progress/4.20.4",
		pending: "True ClusterVersionNotReconciled",
		figures: "operators 2=0+0+2 0/0, worker 3=3+0+0 0/0",
		verdict: "Progressing",
	}},
	{"what became of the request?", "another release, refused", request(configv1.Update{Version: "4.20.7"}, refuse("4.20.7", "quay.io/r@sha256:7")), map[string]string{
		update:  "error ReleaseRefused/ClusterVersion/version",
		pending: "True ClusterVersionNotReconciled",
		figures: "operators 2=0+0+2 0/0, worker 3=3+0+0 0/0",
		verdict: "Stuck",
	}},
	{"what became of the request?", "another release, while a refusal is about a former request", request(configv1.Update{Version: "4.20.7"}, refuse("4.20.4", "quay.io/r@sha256:4")), map[string]string{
		busy:    "AnotherUpdateInProgress",
		commit:  "Other",
		plan:    "error in-progress/4.20.7",
		pending: "True ClusterVersionNotReconciled",
		figures: "operators 2=0+0+2 0/0, worker 3=3+0+0 0/0",
		verdict: "Progressing",
	}},
	{"what became of the request?", "a leftover of a former release", request(configv1.Update{Version: "4.20.4"}), map[string]string{}},
	{"what became of the request?", "a former release by its image", request(configv1.Update{Version: oldRelease, Image: "quay.io/r@sha256:5"}), map[string]string{
		busy:    "AnotherUpdateInProgress",
		commit:  "Other",
		plan:    "error in-progress/4.20.5",
		pending: "True ClusterVersionNotReconciled",
		figures: "operators 2=0+0+2 0/0, worker 3=3+0+0 0/0",
		verdict: "Progressing",
	}},
	{"what became of the request?", "the installed release", request(configv1.Update{Version: newRelease}), map[string]string{}},
	{"what became of the request?", "the installed release, the target during an update", during(request(configv1.Update{Version: nextMinor})), map[string]string{commit: "Pending AnotherUpdateInProgress"}},
	{"what became of the request?", "the former release during an update", during(request(configv1.Update{Version: oldRelease, Image: "quay.io/r@sha256:5"})), map[string]string{}},
	{"what became of the request?", "the former release, refused during an update", during(request(configv1.Update{Version: oldRelease}, refuse(oldRelease, "quay.io/r@sha256:5"))), map[string]string{update: "warning RequestRefused/ClusterVersion/version"}},
}

// olmObjects adds a Subscription with its InstallPlan and its ClusterServiceVersion.
func olmObjects(change func(subscription, plan, csv map[string]any)) func(*cluster) {
	return func(c *cluster) {
		subscription := map[string]any{
			"spec": map[string]any{"name": "logging", "source": "operators", "sourceNamespace": "openshift-marketplace", "installPlanApproval": "Manual"},
			"status": map[string]any{
				"state": "AtLatestKnown", "currentCSV": "logging.v2", "installedCSV": "logging.v2", "lastUpdated": "2026-11-22T11:59:00Z",
				"installPlanRef": map[string]any{"namespace": "shop", "name": "install-1"},
			},
		}
		plan := map[string]any{
			"spec":   map[string]any{"approval": "Manual", "approved": true, "clusterServiceVersionNames": []any{"logging.v2"}},
			"status": map[string]any{"phase": "Complete", "catalogSources": []any{}},
		}
		csv := map[string]any{
			"spec":   map[string]any{"displayName": "Logging", "install": map[string]any{"strategy": "deployment"}},
			"status": map[string]any{"phase": "Succeeded"},
		}
		change(subscription, plan, csv)
		for _, o := range []struct {
			kind, name string
			content    map[string]any
		}{{"Subscription", "logging", subscription}, {"InstallPlan", "install-1", plan}, {"ClusterServiceVersion", "logging.v2", csv}} {
			object := &unstructured.Unstructured{Object: o.content}
			object.SetGroupVersionKind(clusterstate.OLMGroupVersion.WithKind(o.kind))
			object.SetNamespace("shop")
			object.SetName(o.name)
			c.others = append(c.others, object)
		}
	}
}

// unresolved sets a condition of a Subscription.
func unresolved(name, status string) func(*cluster) {
	return olmObjects(func(subscription, _, _ map[string]any) {
		subscription["status"].(map[string]any)["conditions"] = []any{map[string]any{"type": name, "status": status, "message": "m"}}
	})
}

// sourceQuestions ask about alerts that are not configured and about operators managed by OLM.
var sourceQuestions = []question{
	{"is the set of alerts known?", "no source", func(c *cluster) { c.prometheus = nil }, map[string]string{gate: "unknown", plan: "warning unreadable/alerts"}},
	{"is the set of alerts known?", "disabled", func(c *cluster) { c.prometheus, c.alertsDisabled = nil, true }, map[string]string{notes: "alerts: not configured", plan: "warning unreadable/alerts"}},
	{"is the set of alerts known?", "disabled and required", func(c *cluster) { c.prometheus, c.alertsDisabled, c.requiresAlerts = nil, true, true }, map[string]string{
		gate: "error AlertsNotConfigured/alerts",
		plan: "warning unreadable/alerts",
	}},
	{"is the set of alerts known?", "known and required", func(c *cluster) { c.requiresAlerts = true }, map[string]string{}},
	{"is the set of alerts known?", "disabled during an update", during(func(c *cluster) { c.prometheus, c.alertsDisabled = nil, true }), map[string]string{notes: "alerts: not configured", plan: "warning unreadable/alerts"}},
	{"is an OLM operator at its newest?", "yes", olmObjects(func(_, _, _ map[string]any) {}), map[string]string{}},
	{"is an OLM operator at its newest?", "the InstallPlan waits for an approval", olmObjects(func(_, plan, _ map[string]any) {
		plan["spec"].(map[string]any)["approved"] = false
		plan["status"].(map[string]any)["phase"] = "RequiresApproval"
	}), map[string]string{
		olm: "not upgraded",
	}},
	{"is an OLM operator at its newest?", "the InstallPlan runs", olmObjects(func(_, plan, _ map[string]any) { plan["status"].(map[string]any)["phase"] = "Installing" }), map[string]string{
		olm: "not upgraded",
	}},
	{"is an OLM operator at its newest?", "the InstallPlan failed", olmObjects(func(_, plan, csv map[string]any) {
		plan["status"].(map[string]any)["phase"], plan["status"].(map[string]any)["message"] = "Failed", "m"
		csv["status"].(map[string]any)["phase"] = "Failed"
	}), map[string]string{
		olm:  "not upgraded",
		plan: "warning csv/shop/logging.v2",
	}},
	{"is an OLM operator at its newest?", "ResolutionFailed", unresolved("ResolutionFailed", "True"), map[string]string{
		olm: "not upgraded",
	}},
	{"is an OLM operator at its newest?", "BundleUnpackFailed", unresolved("BundleUnpackFailed", "True"), map[string]string{
		olm: "not upgraded",
	}},
	{"is an OLM operator at its newest?", "CatalogSourcesUnhealthy", unresolved("CatalogSourcesUnhealthy", "True"), map[string]string{
		olm: "not upgraded",
	}},
	{"is an OLM operator at its newest?", "CatalogSourcesUnhealthy=Unknown", unresolved("CatalogSourcesUnhealthy", "Unknown"), map[string]string{
		olm: "not upgraded",
	}},
	{"is an OLM operator at its newest?", "CatalogSourcesUnhealthy=False", unresolved("CatalogSourcesUnhealthy", "False"), map[string]string{}},
}

func TestUnsettled_names_the_release(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*cluster)
		want   string
	}{
		"settled":     {func(*cluster) {}, ""},
		"updating":    {during(func(*cluster) {}), "the cluster is being updated to " + newRelease + ": Working towards " + newRelease},
		"progressing": {func(c *cluster) { c.setProgressing(configv1.ConditionTrue, time.Second) }, "the cluster version operator is installing an update: Working towards " + newRelease},
	} {
		c := idle()
		tc.change(c)
		found, err := checks.Unsettled(t.Context(), simulation.NewFakeClient(t, c.objects()...), now)
		if got := checks.Message(found); err != nil || got != tc.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, tc.want)
		}
	}
}
