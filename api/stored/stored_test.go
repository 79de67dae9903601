// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package stored_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

func TestOneValueDoesNotFailTheList(t *testing.T) {
	t.Parallel()
	const list = `{"metadata": {"resourceVersion": "7"}, "items": [
		{"metadata": {"name": "a"}, "spec": {"start": 5, "end": "2028-01-03T00:00:00Z", "configSelector": {"matchLabels": {"x": "y", "n": 1}, "unknown": 1}},
		 "status": {"matchingConfigs": [{"name": "c"}, "d"], "conditions": [{"type": "Accepted", "lastTransitionTime": "never"}]}},
		{"metadata": {"name": "b"}, "spec": {"start": "2027-12-20T00:00:00Z", "end": "2028-01-03T00:00:00Z"}},
		{"metadata": {"name": "c"}, "spec": "none"},
		{"metadata": {"name": "d"}, "spec": {"configSelector": {"matchExpressions": [{"key": "k", "operator": "In", "values": "v"}]}}}]}`
	var windows maintenancev1beta1.UpgradeSuspensionWindowList
	if err := json.Unmarshal([]byte(list), &windows); err != nil {
		t.Fatal(err)
	}
	var names, problems []string
	for i := range windows.Items {
		names = append(names, windows.Items[i].Name)
		problems = append(problems, windows.Items[i].SpecProblem())
	}
	if diff := cmp.Diff([]string{"a", "b", "c", "d"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	want := []string{
		"spec.configSelector.matchLabels.n: 1 is not a text; spec.start: 5 is not a text", "", `spec: "none" is not an object`,
		`spec.configSelector.matchExpressions[0].values: "v" is not a list`,
	}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	first := windows.Items[0]
	if first.Spec.End == "" || first.Spec.ConfigSelector.MatchLabels["x"] != "y" {
		t.Errorf("spec is %+v, want what decodes", first.Spec)
	}
	if got := first.DeepCopy().LeftOut(); len(got) != 4 {
		t.Errorf("left out are %v, want the copy to have all 4", got)
	}
}

func TestDecodingAgainForgetsWhatWasLeftOut(t *testing.T) {
	t.Parallel()
	var window maintenancev1beta1.UpgradeSuspensionWindow
	for _, text := range []string{`{"spec": {"start": 5}}`, `{"spec": {"start": "x"}}`} {
		if err := json.Unmarshal([]byte(text), &window); err != nil {
			t.Fatal(err)
		}
	}
	if got := window.SpecProblem(); got != "" {
		t.Errorf("problem is %q, want none", got)
	}
	if data, err := json.Marshal(window); err != nil || string(data) != `{"metadata":{},"spec":{"start":"x"}}` {
		t.Errorf("encoded as %s (%v)", data, err)
	}
}
