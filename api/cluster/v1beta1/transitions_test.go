// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"strings"
)

// transition is an edited sample, its status, edits of it later, and their rejections.
type transition struct {
	kind   string
	before []edit
	status map[string]any
	edits  []edit
	want   []string
}

const startTime = "2022-06-02T15:20:08Z"

// transitions returns the cases of rules that compare an object with what it was.
func transitions() map[string]transition {
	const upgrade, run = "ManagedClustersUpgrade", "ClusterUpgradeRun"
	inProgress := map[string]any{"startTime": startTime}
	table := map[string]transition{
		"attempt raised":         {kind: upgrade, before: []edit{{"spec.attempt", int64(2)}}, edits: []edit{{"spec.attempt", int64(3)}}},
		"attempt lowered":        {kind: upgrade, before: []edit{{"spec.attempt", int64(2)}}, edits: []edit{{"spec.attempt", int64(1)}}, want: []string{"spec.attempt: " + attemptFalls}},
		"attempt removed":        {kind: upgrade, before: []edit{{"spec.attempt", int64(2)}}, edits: []edit{{"spec.attempt", nil}}, want: []string{"spec.attempt: " + attemptFalls}},
		"first attempt removed":  {kind: upgrade, before: []edit{{"spec.attempt", int64(1)}}, edits: []edit{{"spec.attempt", nil}}},
		"cancelled":              {kind: upgrade, edits: []edit{{"spec.cancelled", true}}},
		"cancellation undone":    {kind: upgrade, before: []edit{{"spec.cancelled", true}}, edits: []edit{{"spec.cancelled", false}}, want: []string{"spec: " + cancelledStays}},
		"cancellation removed":   {kind: upgrade, before: []edit{{"spec.cancelled", true}}, edits: []edit{{"spec.cancelled", nil}}, want: []string{"spec: " + cancelledStays}},
		"cancellation stays":     {kind: upgrade, before: []edit{{"spec.cancelled", true}}, edits: []edit{{"spec.paused", true}}},
		"not cancelled, removed": {kind: upgrade, before: []edit{{"spec.cancelled", false}}, edits: []edit{{"spec.cancelled", nil}}},
		"cancelled in progress":  {kind: upgrade, status: inProgress, edits: []edit{{"spec.cancelled", true}}},
		"all else in progress": {kind: upgrade, status: inProgress, edits: []edit{
			{"spec.placement", named("other")},
			{"spec.clusterSelector.matchExpressions", nil},
			{"spec.upgradeStrategy.maxConcurrency", "10%"},
			{"spec.upgradeStrategy.canaryClusters", nil},
			{"spec.upgradeStrategy.clusterUpgradeTimeout", "4h"},
			{"spec.upgradeStrategy.windows", []any{map[string]any{"cron": "0 22 * * 2", "duration": "1h"}}},
			{"spec.paused", true},
			{"spec.dryRun", true},
			{"spec.attempt", int64(2)},
			{"spec.dependsOn", named("base")},
			{"metadata.labels", map[string]any{"a": "b"}},
		}},
		"operators of one name stay": {kind: upgrade, before: []edit{{"spec.ocpOperators", twins("a", "b")}}, status: inProgress, edits: []edit{{"spec.paused", true}}},
		"operators of one name change": {
			kind: upgrade, before: []edit{{"spec.ocpOperators", twins("a", "b")}}, status: inProgress, edits: []edit{{"spec.ocpOperators", twins("a", "c")}},
			want: []string{fmt.Sprint("spec.ocpOperators: ", started, "other operators", cancelFirst)},
		},

		"run unchanged":     {kind: run, edits: []edit{{"metadata.labels", map[string]any{"a": "b"}}}},
		"run changed":       {kind: run, edits: []edit{{"spec.clusterVersion.version", "4.12.1"}}, want: []string{"spec: " + runChanged}},
		"run, timeout":      {kind: run, edits: []edit{{"spec.timeouts.soak", "1h"}}, want: []string{"spec: " + runChanged}},
		"run retried":       {kind: run, edits: []edit{{"spec.clusterVersion.version", "4.12.1"}, {"spec.attempt", int64(2)}, {"spec.admissionTime", "2022-06-03T15:20:08Z"}}},
		"run, attempt back": {kind: run, before: []edit{{"spec.attempt", int64(2)}}, edits: []edit{{"spec.attempt", int64(1)}}, want: []string{"spec: " + runChanged}},
		"canary admitted":   {kind: run, before: []edit{{"spec.admissionTime", nil}}, edits: []edit{{"spec.admissionTime", "2022-06-03T15:20:08Z"}, {"spec.timeouts.soak", "1h"}}},
		"admission undone":  {kind: run, edits: []edit{{"spec.admissionTime", nil}}}, // the hub withdraws it
		"admission changed": {kind: run, edits: []edit{{"spec.admissionTime", "2023-06-03T15:20:08Z"}}, want: []string{"spec: " + runChanged}},
		"run moved":         {kind: run, edits: []edit{{"spec.attempt", int64(2)}, {"spec.managedClustersUpgrade.uid", "another"}}, want: []string{"spec.managedClustersUpgrade: " + runMoved}},
	}
	template := map[string]any{"type": "OSD", "PDBForceDrainTimeout": int64(60)}
	job := "spec.preUpgradeAction.manifestWork.workload.manifests.0."
	for name, change := range map[string]struct {
		edit  edit
		other string
	}{
		"release":                   {edit{"spec.clusterVersion.version", "4.12.1"}, "another release"},
		"channel":                   {edit{"spec.clusterVersion.channel", "fast-4.12"}, "another release"},
		"release removed":           {edit{"spec.clusterVersion", nil}, "another release"},
		"upgrade config":            {edit{"spec.upgradeConfig", template}, "another runbook"},
		"operators":                 {edit{"spec.ocpOperators.approveAllUpgrades", true}, "other operators"},
		"operators removed":         {edit{"spec.ocpOperators", nil}, "other operators"},
		"pre-upgrade action":        {edit{job + "spec.backoffLimit", int64(3)}, "another action"},
		"pre-upgrade action, kind":  {edit{job + "kind", "CronJob"}, "another action"},
		"pre-upgrade action, name":  {edit{job + "metadata.name", "other"}, "another action"},
		"pre-upgrade action, label": {edit{job + "metadata.labels", map[string]any{"a": "b"}}, "another action"},
		"pre-upgrade action, field": {edit{job + "suspend", true}, "another action"},
		"pre-upgrade action, image": {edit{job + "spec.template.spec.containers.0.image", "example.com/other"}, "another action"},
		"pre-upgrade removed":       {edit{"spec.preUpgradeAction", nil}, "another action"},
		"post-upgrade action":       {edit{"spec.postUpgradeAction.manifestWork.deleteOption", map[string]any{"propagationPolicy": "Orphan"}}, "another action"},
		"post-upgrade removed":      {edit{"spec.postUpgradeAction", nil}, "another action"},
	} {
		field := strings.Join(strings.Split(change.edit.path, ".")[:2], ".")
		table[name+" before the start"] = transition{kind: upgrade, edits: []edit{change.edit}}
		table[name+" in progress"] = transition{kind: upgrade, status: inProgress, edits: []edit{change.edit}, want: []string{fmt.Sprint(field, ": ", started, change.other, cancelFirst)}}
	}
	return table
}

// twins are operators of one name in each of the namespaces.
func twins(namespaces ...string) map[string]any {
	var include []any
	for _, namespace := range namespaces {
		include = append(include, map[string]any{"name": "twin", "namespace": namespace})
	}
	return map[string]any{"include": include}
}
