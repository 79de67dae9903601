// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

type buildReader struct {
	client.Reader
	items []mcfgv1.MachineOSBuild
}

func (r buildReader) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	list.(*mcfgv1.MachineOSBuildList).Items = r.items
	return nil
}

func TestStripImageBuild(t *testing.T) {
	t.Parallel()
	build := &mcfgv1.MachineOSBuild{ObjectMeta: metav1.ObjectMeta{Name: "b", Annotations: map[string]string{"a": "b"}}}
	build.Spec.MachineConfig.Name, build.Spec.RenderedImagePushSpec = "rendered-worker-1", "registry.example.com/os:latest"
	build.Status.Conditions = []metav1.Condition{
		{Type: "Building", Status: metav1.ConditionTrue, Reason: "R", Message: "m"}, {Type: "Prepared", Status: metav1.ConditionFalse},
	}
	if _, err := clusterstate.StripImageBuild(build); err != nil {
		t.Fatal(err)
	}
	want := &mcfgv1.MachineOSBuild{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	want.Spec.MachineConfig.Name = "rendered-worker-1"
	want.Status.Conditions = []metav1.Condition{{Type: "Building", Status: metav1.ConditionTrue, Reason: "R"}}
	if diff := cmp.Diff(want, build); diff != "" {
		t.Errorf("what is cached (-want +got):\n%s", diff)
	}
}

func TestListImageBuilds(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	build := func(config string, created time.Time, conditions ...mcfgv1.BuildProgress) mcfgv1.MachineOSBuild {
		b := mcfgv1.MachineOSBuild{ObjectMeta: metav1.ObjectMeta{Name: config + created.Format("1504"), CreationTimestamp: metav1.NewTime(created)}}
		b.Spec.MachineConfig.Name = config
		for _, c := range conditions {
			b.Status.Conditions = append(b.Status.Conditions, metav1.Condition{Type: string(c), Status: metav1.ConditionTrue, Reason: string(c)})
		}
		if _, err := clusterstate.StripImageBuild(&b); err != nil {
			t.Fatal(err)
		}
		return b
	}
	begun := build("building", start, mcfgv1.MachineOSBuilding)
	begun.Status.BuildStart = new(metav1.NewTime(start.Add(time.Minute)))
	deleted := build("deleted", start, mcfgv1.MachineOSBuilding)
	deleted.DeletionTimestamp = new(metav1.NewTime(start))
	got, err := clusterstate.ListImageBuilds(t.Context(), buildReader{items: []mcfgv1.MachineOSBuild{
		build("building", start.Add(-2*time.Hour), mcfgv1.MachineOSBuildPrepared), begun, deleted, build("building", start.Add(-time.Hour), mcfgv1.MachineOSBuildPrepared), build("new", start),
		build("done", start, mcfgv1.MachineOSBuildSucceeded), build("failed", start, mcfgv1.MachineOSBuildFailed), build("stopped", start, mcfgv1.MachineOSBuildInterrupted),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got["building"].Start != start.Add(time.Minute) || got["building"].Phase == "" || got["new"].Start != start {
		t.Errorf("builds %+v, want those that have not ended", got)
	}
}
