// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

// named returns a sample under another name.
func named(t *testing.T, kind, name string) *unstructured.Unstructured {
	t.Helper()
	object := sample(t, samples[kind])
	object.SetName(name)
	return object
}

func TestAPIServerValidatesSpecs(t *testing.T) {
	t.Parallel()
	for kind, table := range cases() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, tc := range table {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					object := sample(t, samples[kind])
					object.SetNamespace("default") // other tests create no sample there
					for _, e := range tc.edits {
						e.apply(t, object.Object)
					}
					crdtest.CompareRejections(t, tc.want, server.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict")))
				})
			}
		})
	}
}

func TestJobCannotChange(t *testing.T) {
	t.Parallel()
	rejected := []string{"spec: " + unchangeable}
	for name, tc := range map[string]testCase{
		"metadata":             {edits: []edit{{"metadata.labels", map[string]any{"a": "b"}}, {"metadata.annotations", map[string]any{"managedupgrade.appuio.io/retry": "1"}}}},
		"start":                {edits: []edit{{"spec.startAfter", "2027-03-02T22:00:01+01:00"}}, want: rejected},
		"end":                  {edits: []edit{{"spec.startBefore", "2027-03-02T23:00:01+01:00"}}, want: rejected},
		"version":              {edits: []edit{{"spec.desiredVersion.version", "4.6.2"}}, want: rejected},
		"image":                {edits: []edit{{"spec.desiredVersion.image", nil}}, want: rejected},
		"version removed":      {edits: []edit{{"spec.desiredVersion", nil}}, want: rejected},
		"availability":         {edits: []edit{{"spec.desiredVersionCheckAvailability", false}}, want: rejected},
		"availability default": {edits: []edit{{"spec.desiredVersionCheckAvailability", nil}}},
		"timeout":              {edits: []edit{{"spec.config.upgradeTimeout", "3h"}}, want: rejected},
		"health checks":        {edits: []edit{{"spec.config.preUpgradeHealthChecks.checkCriticalAlerts", false}}, want: rejected},
		"health check default": {edits: []edit{{"spec.config.preUpgradeHealthChecks", nil}}},
		"forced drains":        {edits: []edit{{"spec.config.forceDrainAfter", "1h"}}, want: rejected},
		"config removed":       {edits: []edit{{"spec.config", nil}}, want: rejected},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := named(t, "UpgradeJob", fmt.Sprintf("job-%x", name))
			server.MustCreate(t, object)
			for _, e := range tc.edits {
				e.apply(t, object.Object)
			}
			crdtest.CompareRejections(t, tc.want, server.Update(t.Context(), object))
		})
	}
}

// Every other spec may change.
func TestSpecsChange(t *testing.T) {
	t.Parallel()
	for kind, change := range map[string]edit{
		"ClusterVersion":          {"spec.template.spec.channel", "stable-4.12"},
		"UpgradeConfig":           {"spec.schedule.cron", "0 23 * * 3"},
		"UpgradeJobHook":          {"spec.run", "All"},
		"UpgradeSuspensionWindow": {"spec.end", "2028-01-10T00:00:00Z"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := "changing"
			if kind == "ClusterVersion" {
				name = "version"
			}
			object := named(t, kind, name)
			object.SetNamespace("kube-public")
			server.MustCreate(t, object)
			change.apply(t, object.Object)
			if err := server.Update(t.Context(), object); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	checks := map[string]any{"timeout": "30m", "checkDegradedOperators": true}
	config := map[string]any{"upgradeTimeout": "12h", "preUpgradeHealthChecks": checks, "postUpgradeHealthChecks": checks}
	template := map[string]any{"spec": map[string]any{}}
	for kind, tc := range map[string]struct{ minimal, want map[string]any }{
		"UpgradeConfig": {
			minimal: map[string]any{"schedule": map[string]any{"cron": "0 22 * * 2"}},
			want: map[string]any{
				"schedule":             map[string]any{"cron": "0 22 * * 2", "location": "UTC", "suspend": false, "rhythm": "Cron"},
				"maxUpgradeStartDelay": "1h", "updatePolicy": "Newest", "whenNoUpdate": "Skip", "latePin": "Never",
				"successfulJobsHistoryLimit": int64(3), "failedJobsHistoryLimit": int64(5),
				"jobTemplate": map[string]any{"spec": map[string]any{"config": config}},
			},
		},
		"UpgradeJob": {
			minimal: map[string]any{"startAfter": "2027-03-02T21:00:00Z", "startBefore": "2027-03-02T22:00:00Z"},
			want: map[string]any{
				"startAfter": "2027-03-02T21:00:00Z", "startBefore": "2027-03-02T22:00:00Z",
				"desiredVersionCheckAvailability": true, "config": config,
			},
		},
		"UpgradeJobHook": {
			minimal: map[string]any{"events": []any{"Start"}, "template": template},
			want:    map[string]any{"events": []any{"Start"}, "template": template, "run": "All", "failurePolicy": "Ignore"},
		},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			object := named(t, kind, "minimal")
			object.Object["spec"] = tc.minimal
			server.MustCreate(t, object)
			if diff := diffObjects(tc.want, object.Object["spec"]); diff != "" {
				t.Errorf("spec (-want +got):\n%s", diff)
			}
		})
	}
}
