// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

// FuzzRead reads works whose spec and status any client may have written. Nothing is available or
// complete unless the current generation is applied, and the values support it.
func FuzzRead(f *testing.F) {
	target := Target{Version: "4.20.6"}
	for _, work := range []*workv1.ManifestWork{
		agent{}.work(f, simulatedVersion(entry("4.20.6", "Completed", 6)), ClusterVersionRules(target)),
		agent{}.work(f, simulatedVersion(entry("4.20.7", "Partial", 7), entry("4.20.6", "Completed", 6)), PreflightRules(target)),
		agent{rawJSON: true}.work(f, upgradeConfig, UpgradeConfigRules()),
		agent{}.work(f, configMap, ActionJobRules()),
		agent{}.work(f, reportedJob, ApproverJobRules()),
	} {
		data, err := json.Marshal(work)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var work workv1.ManifestWork
		if json.Unmarshal(data, &work) != nil {
			return
		}
		before := work.DeepCopy()
		feedback := Read(&work)
		checkInvariants(t, feedback, target)
		after, _ := json.Marshal(work)
		if want, _ := json.Marshal(before); string(after) != string(want) {
			t.Errorf("the work changed: %s, want %s", after, want)
		}
	})
}

// reportedJob is a Job that approves operators, and has ended.
const reportedJob = `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"approver","namespace":"a","annotations":{
	"upgrade.managed.openshift.io/operators":"1","upgrade.managed.openshift.io/operators-0":"a/install-a"}},
	"status":{"conditions":[{"type":"Complete","status":"True"}]}}`

func checkInvariants(t *testing.T, f *Feedback, target Target) {
	t.Helper()
	state, message := f.Action()
	if state == fleetv1alpha1.ActionAvailable && (f.Applied != metav1.ConditionTrue || f.Available != metav1.ConditionTrue) {
		t.Errorf("available without being applied: %+v", f)
	}
	operators, why := f.Operators()
	if operators == fleetv1alpha1.ActionAvailable && (state != operators || !f.Approval().Reported || !f.Approval().Over && f.find("batch", "Job", "", "") != nil) {
		t.Errorf("operators are upgraded without a report: %+v", f)
	}
	if len(message) > maxMessage+maxName+100 || len(why) > maxMessage+maxName+100 {
		t.Errorf("message of %d bytes", len(message))
	}
	if f.Applied == metav1.ConditionTrue {
		for i := range f.Manifests {
			if f.Manifests[i].Applied != metav1.ConditionTrue {
				t.Errorf("applied, but manifest %d is not", i)
			}
		}
	}
	v, c := f.ClusterVersion(), f.UpgradeConfig()
	if stage := v.Stage(target); stage == StageCompleted || stage == StagePartial {
		if m := f.find("config.openshift.io", "ClusterVersion", "", ""); m.Available != metav1.ConditionTrue || !v.Version.IsKnown() || f.Deleting {
			t.Errorf("stage %s of %+v", stage, m)
		}
	}
	for _, value := range []Value{v.Version, v.State, v.Image, v.TargetState, c.Phase} {
		if len(value.Text) > maxName || !value.IsKnown() && value.Text != "" {
			t.Errorf("value %+v", value)
		}
	}
}
