// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/dump"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/scheme"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// computed returns the output of "status" and the underlying status.
func computed(t *testing.T, cluster *session.Cluster) (clitest.Result, updatev1beta1.UpdateStatusStatus) {
	t.Helper()
	s, err := readStatus(t.Context(), cluster, session.ControllerNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	return runStatus(t, cluster, statusOptions{details: true}, ""), s.object.Status
}

// A dump has the same verdict as its cluster, except for optional sources missing from the dump.
func TestStatus_of_a_dump_is_that_of_the_cluster(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]time.Duration{"idle": 0, "control plane": 20 * time.Minute, "workers": 30 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := clitest.NewSimulated(t, openshiftsim.ClusterSpec{})
			if after > 0 {
				s.Update(t, after)
			}
			live, want := computed(t, s.Connect())
			d, err := dump.Read(s.Dump(t), scheme.Shared(), dump.DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			replayed, got := computed(t, &session.Cluster{Reader: d, Clock: session.FixedClock(s.World.Now()), Dump: d, Prometheus: d})
			if diff := cmp.Diff(want, got, cmpopts.IgnoreSliceElements(isOptional)); diff != "" || replayed.Code != live.Code {
				t.Errorf("exit code %d, want %d, status (-live +replayed):\n%s", replayed.Code, live.Code, diff)
			}
			if len(d.Problems) > 0 {
				t.Errorf("problems: %q", d.Problems)
			}
		})
	}
}

// A dump with an UpdateStatus was taken while the Update Status Controller was running. It has the
// controller's verdict and its times of first observation.
func TestStatus_of_a_dump_with_an_UpdateStatus(t *testing.T) {
	t.Parallel()
	s := clitest.NewSimulated(t, openshiftsim.ClusterSpec{})
	s.Update(t, 20*time.Minute)
	first, err := readStatus(t.Context(), s.Connect(), session.ControllerNamespace, nil)
	if err != nil {
		t.Fatal(err)
	}
	published := first.object.DeepCopy()
	if err := s.World.RunFor(5 * time.Minute); err != nil {
		t.Fatal(err)
	}
	want := assess(t.Context(), s.Connect(), publication{object: published}, s.World.Now()).object.Status
	dir := s.Dump(t)
	published.APIVersion, published.Kind = updatev1beta1.GroupVersion.String(), "UpdateStatus"
	content, err := yaml.Marshal(published)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "updatestatus"), content, 0o600); err != nil {
		t.Fatal(err)
	}
	d, err := dump.Read(dir, scheme.Shared(), dump.DefaultLimits)
	if err != nil {
		t.Fatal(err)
	}
	_, got := computed(t, &session.Cluster{Reader: d, Clock: session.FixedClock(s.World.Now()), Dump: d, Prometheus: d})
	if diff := cmp.Diff(want, got, cmpopts.IgnoreSliceElements(isOptional)); diff != "" {
		t.Errorf("status (-live +replayed):\n%s", diff)
	}
	if since := got.Assessment.Since; !since.Equal(&published.Status.Assessment.Since) {
		t.Errorf("the state is since %s, and in the UpdateStatus since %s", since, published.Status.Assessment.Since)
	}
}

// spec.versionManagement is read from a dump, although no API server stores it yet. An annotation that
// contains it, such as the one by kubectl apply, does not pause anything, because the API server has dropped
// the field.
func TestStatus_of_a_dump_with_versionManagement(t *testing.T) {
	s := clitest.NewSimulated(t, openshiftsim.ClusterSpec{})
	s.Update(t, 30*time.Minute)
	managed := func(value string) func(map[string]any) {
		return func(object map[string]any) {
			object["spec"].(map[string]any)["versionManagement"] = map[string]any{"pausedUntil": value}
		}
	}
	annotated := func(object map[string]any) {
		object["metadata"].(map[string]any)["annotations"] = map[string]any{
			"kubectl.kubernetes.io/last-applied-configuration": `{"spec":{"versionManagement":{"pausedUntil":"true"}}}`,
		}
	}
	for name, tc := range map[string]struct {
		file   string
		change func(map[string]any)
		code   session.ExitCode
		want   string
	}{
		"ClusterVersion":               {"versions", managed("true"), session.ExitActionRequired, `{"spec":{"versionManagement":{"pausedUntil":null}}}`},
		"ClusterVersion, malformed":    {"versions", managed("soon"), session.ExitUnknown, "Correct spec.versionManagement.pausedUntil of ClusterVersion version."},
		"ClusterVersion, annotation":   {"versions", annotated, session.ExitProgressing, "UPDATING"},
		"MachineSet, malformed":        {"sets", managed("soon"), session.ExitUnknown, "Correct spec.versionManagement.pausedUntil of MachineSet openshift-machine-api/"},
		"MachineSet, annotation":       {"sets", annotated, session.ExitProgressing, "UPDATING"},
		"MachineSet, until a past day": {"sets", managed("2020-01-01T00:00:00Z"), session.ExitProgressing, "UPDATING"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := s.Dump(t)
			set := ""
			changeDumped(t, filepath.Join(dir, tc.file), func(object map[string]any) {
				tc.change(object)
				set, _, _ = unstructured.NestedString(object, "metadata", "name")
			})
			changeDumped(t, filepath.Join(dir, "nodes"), func(object map[string]any) { // a machine of the set
				name, _, _ := unstructured.NestedString(object, "metadata", "name")
				machine := "openshift-machine-api/" + set + "-" + strings.ReplaceAll(name, "-", "")
				if err := unstructured.SetNestedField(object, machine, "metadata", "annotations", "machine.openshift.io/machine"); err != nil {
					t.Fatal(err)
				}
			})
			d, err := dump.Read(dir, scheme.Shared(), dump.DefaultLimits)
			if err != nil {
				t.Fatal(err)
			}
			got := runStatus(t, &session.Cluster{Reader: d, Clock: session.FixedClock(s.World.Now()), Dump: d, Prometheus: d}, statusOptions{}, "")
			if words := strings.Join(strings.Fields(got.Out), " "); got.Code != tc.code || !strings.Contains(words, tc.want) {
				t.Errorf("exit code %d, want %d and %q:\n%s", got.Code, tc.code, tc.want, got.Out)
			}
		})
	}
}

// changeDumped changes each object in a file of a dump.
func changeDumped(t *testing.T, path string, change func(map[string]any)) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var list map[string]any
	if err := yaml.Unmarshal(content, &list); err != nil {
		t.Fatal(err)
	}
	items, _ := list["items"].([]any)
	if len(items) == 0 {
		t.Fatalf("%s has no objects", path)
	}
	for _, item := range items {
		change(item.(map[string]any))
	}
	if content, err = yaml.Marshal(list); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}
