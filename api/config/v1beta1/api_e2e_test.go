// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1beta1_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/devtest"
	openshift "github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/crds"
)

// server serves the kinds of this package and the kinds of OpenShift in the same group.
var server = devtest.APIServer{Namespace: "informers"}

func TestMain(m *testing.M) {
	os.Exit(server.Main(context.Background(), m, install))
}

// install applies the definitions of this package as a user does, with kubectl on the client's side.
func install(ctx context.Context) error {
	if err := server.Install(ctx, openshift.Files); err != nil {
		return err
	}
	if err := server.InstallAsUser(ctx, definitionsFolder); err != nil {
		return err
	}
	return server.AwaitKinds(ctx, len(samples), "--categories=update")
}

func TestAPIServerValidatesSpecs(t *testing.T) {
	t.Parallel()
	for kind, table := range cases() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			for name, tc := range table {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					object := sample(t, kind)
					tc.edits.apply(t, object)
					err := server.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict"))
					if len(tc.want) == 0 {
						err = client.IgnoreAlreadyExists(err) // another test applies the samples
					}
					crdtest.CompareRejections(t, tc.want, err)
				})
			}
		})
	}
}

func TestTargetCannotChange(t *testing.T) {
	t.Parallel()
	object := sample(t, "UpdatePlan")
	plan("update-plan-4.14.7", "4.14.7").apply(t, object)
	if err := server.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	edits{"spec.acceptedInsights": []any{}, "spec.updatePlanResourceVersion": "43981"}.apply(t, object)
	if err := server.Update(t.Context(), object); err != nil {
		t.Errorf("changing what is accepted: %v", err)
	}
	edits{"spec.targetRelease": "4.14.8"}.apply(t, object)
	crdtest.CompareRejections(t, []string{"spec.targetRelease: " + unchangeable, "<nil>: " + anotherPlanName}, server.Update(t.Context(), object))
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	informer := sample(t, "UpdateInformer")
	edits{
		"metadata.name": "defaults", "spec.enabled": nil, "spec.clientConfig.service.port": nil,
	}.apply(t, informer)
	plan := sample(t, "UpdatePlan")
	if err := server.Create(t.Context(), informer, client.DryRunAll); err != nil {
		t.Fatal(err)
	}
	if err := server.Create(t.Context(), plan, client.DryRunAll); client.IgnoreAlreadyExists(err) != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"enabled":      true,
		"clientConfig": map[string]any{"service": map[string]any{"name": "test-runtime-sdk-svc", "namespace": "openshift-machine-api", "port": int64(443)}},
	}
	if diff := cmp.Diff(want, informer.Object["spec"]); diff != "" {
		t.Errorf("informer (-want +got):\n%s", diff)
	}
}

// The API server keeps each field of a status, and drops the status of a new object.
func TestStatusHasEachField(t *testing.T) {
	t.Parallel()
	for kind, name := range map[string]string{"UpdateInformer": "whole", "UpdatePlan": "update-plan-4.14.6", "UpdateStatus": "cluster"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			object := sample(t, kind)
			edits{"metadata.name": name}.apply(t, object)
			if kind == "UpdatePlan" {
				edits{"spec.targetRelease": "4.14.6"}.apply(t, object)
			}
			schema := schemaOf(crds(t)[kind]).Properties["status"]
			want := example(&schema)
			object.Object["status"] = want
			if err := server.Create(t.Context(), object.DeepCopy()); client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			if status, found := object.Object["status"]; found {
				t.Errorf("the status of the new object is %v", status)
			}
			object.Object["status"] = want
			if err := server.Status().Update(t.Context(), object, client.FieldValidation("Strict")); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, object.Object["status"]); diff != "" {
				t.Errorf("status (-want +got):\n%s", diff)
			}
		})
	}
}

// Each short name resolves to one kind, even beside the short names of OpenShift.
func TestKubectlResolvesNames(t *testing.T) {
	t.Parallel()
	for word, want := range map[string]string{
		"ui": "updateinformers", "up": "updateplans", "us": "updatestatuses", "updatestatus": "updatestatuses", "clusterversion": "clusterversions",
	} {
		t.Run(word, func(t *testing.T) {
			t.Parallel()
			printed, err := server.Kubectl(t.Context(), "get", word, "no-such-object").CombinedOutput()
			if err == nil || !strings.Contains(string(printed), want+`.config.openshift.io "no-such-object" not found`) {
				t.Errorf("kubectl get %s: %v: %s, want %s", word, err, printed, want)
			}
		})
	}
}

func TestKubectlPrintsColumns(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string][]string{
		"updateinformers": {"NAME", "ENABLED", "ONLINE", "REACHABLE", "REASON", "ANSWERED"},
		"updateplans":     {"NAME", "TARGET", "FROM", "COMPLETE", "STARTABLE", "UNACCEPTED", "ANALYZED"},
		"updatestatuses":  {"NAME", "STATE", "SINCE", "ACT", "OBSERVED", "SUMMARY"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			name := map[string]string{"updateinformers": "columns", "updateplans": "update-plan-4.14.9", "updatestatuses": "cluster"}[kind]
			object := sample(t, map[string]string{"updateinformers": "UpdateInformer", "updateplans": "UpdatePlan", "updatestatuses": "UpdateStatus"}[kind])
			edits{"metadata.name": name}.apply(t, object)
			if kind == "updateplans" {
				edits{"spec.targetRelease": "4.14.9"}.apply(t, object)
			}
			if err := server.Create(t.Context(), object); client.IgnoreAlreadyExists(err) != nil {
				t.Fatal(err)
			}
			printed := devtest.ParseTable(server.RunKubectl(t, "", "get", kind, name))
			if diff := cmp.Diff(want, printed[0]); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

// A user applies the manifests of the seed as they are. It runs before the parallel tests create
// these objects in another way.
func TestKubectlAppliesEachSample(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(samplesFolder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < len(samples) {
		t.Fatalf("only %d samples", len(files))
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			printed := server.RunKubectl(t, string(data), "apply", "--filename=-", "--validate=strict", "--server-side=false")
			// The seed has three dots in place of insights, which have no fields to merge.
			data = []byte(strings.ReplaceAll(string(data), "      - ... # Insights shared by this informer\n", ""))
			printed += server.RunKubectl(t, string(data), "apply", "--filename=-", "--validate=strict", "--server-side", "--force-conflicts")
			if strings.Contains(printed, "Warning") {
				t.Errorf("kubectl apply prints %s", printed)
			}
		})
	}
}

// TestSamples_work_when_pasted has the API server check what users paste, without a change of other tests' objects.
func TestSamples_work_when_pasted(t *testing.T) {
	printed := server.RunKubectl(t, "", "apply", "--server-side=false", "--dry-run=server", "--validate=strict", "-f", "../../../deploy/samples/update-status", "--namespace=default")
	if strings.Contains(printed, "Warning") || !strings.Contains(printed, "(server dry run)") {
		t.Errorf("kubectl prints %s", printed)
	}
}
