// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"fmt"
	"strconv"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm/report"
)

// Prefixes of the values of Jobs of actions. No user chooses them, and the names in a manifest must differ.
const (
	jobComplete = "managedUpgradeJobComplete"
	jobFailed   = "managedUpgradeJobFailed"
)

// Target is the release of an upgrade: a version, a pull spec by digest, or both.
type Target struct {
	Version, Image string
}

// filter identifies the target in a list of releases by one of their fields.
func (t Target) filter() string {
	if t.Image != "" {
		return "image==" + strconv.Quote(t.Image)
	}
	return "version==" + strconv.Quote(t.Version)
}

// ClusterVersionRules return the feedback of a ClusterVersion whose upgrade to the target is observed.
func ClusterVersionRules(target Target) []workv1.FeedbackRule {
	entry := ".status.history[?(@." + target.filter() + ")]"
	paths := []workv1.JsonPath{
		{Name: "version", Path: ".status.history[0].version"},
		{Name: "state", Path: ".status.history[0].state"},
		{Name: "verified", Path: ".status.history[0].verified"},
		{Name: "image", Path: ".status.history[0].image"},
		{Name: "targetState", Path: entry + ".state"},
		{Name: "targetVersion", Path: entry + ".version"},
		{Name: "generation", Path: ".metadata.generation"},
		{Name: "observedGeneration", Path: ".status.observedGeneration"},
		{Name: "message", Path: `.status.conditions[?(@.type=="Progressing")].message`},
	}
	return rules(append(paths, statusConditions("Failing", "ReleaseAccepted", "Upgradeable", "Invalid")...))
}

// PreflightRules return the feedback of a ClusterVersion about whether the target can be installed.
func PreflightRules(target Target) []workv1.FeedbackRule {
	conditional := ".status.conditionalUpdates[?(@.release." + target.filter() + ")]"
	paths := append(ClusterVersionRules(target)[0].JsonPaths,
		workv1.JsonPath{Name: "channel", Path: ".spec.channel"},
		workv1.JsonPath{Name: "installed", Path: `.status.history[?(@.state=="Completed")].version`},
		workv1.JsonPath{Name: "offered", Path: ".status.availableUpdates[?(@." + target.filter() + ")].version"},
		workv1.JsonPath{Name: "hold", Path: metadata("annotations", upgradev1alpha1.HoldAnnotation)},
		workv1.JsonPath{Name: "mode", Path: ".spec.desiredUpdate.mode"},
		workv1.JsonPath{Name: "conditional", Path: conditional + ".release.version"},
	)
	return rules(append(paths, conditionPaths("Recommended", conditional+`.conditions[?(@.type=="Recommended")]`)...))
}

// UpgradeConfigRules return the feedback of an UpgradeConfig.
func UpgradeConfigRules() []workv1.FeedbackRule {
	paths := []workv1.JsonPath{
		{Name: "phase", Path: ".status.history[0].phase"},
		{Name: "version", Path: ".status.history[0].version"},
		{Name: "generation", Path: ".metadata.generation"},
		{Name: "observedGeneration", Path: ".status.observedGeneration"},
		{Name: "message", Path: `.status.conditions[?(@.type=="Progressing")].message`},
		{Name: "commenced", Path: `.status.history[0].conditions[?(@.type=="CommenceUpgrade")].status`},
		{Name: "stepStatuses", Path: ".status.history[0].conditions[0].status"},
	}
	paths = append(paths, statusConditions("Accepted", "Succeeded", "Slow", "Stalled")...)
	return rules(append(paths, statusConditions("Ready")[:1]...))
}

// ApproverLabel marks the namespace on a cluster where the hub approves operators.
const ApproverLabel = "upgrade.managed.openshift.io/installplan-approver"

// NamespaceRules return the feedback of a namespace about whether it is the hub's.
func NamespaceRules() []workv1.FeedbackRule {
	return rules([]workv1.JsonPath{{Name: "approver", Path: metadata("labels", ApproverLabel)}})
}

// ApproverJobRules return the feedback of the Job that approves operators, with its report.
func ApproverJobRules() []workv1.FeedbackRule {
	paths := append([]workv1.JsonPath{
		{Name: "succeeded", Path: ".status.succeeded"},
		{Name: "active", Path: ".status.active"},
		{Name: "failed", Path: ".status.failed"},
	}, ActionJobRules()[0].JsonPaths...)
	paths = append(paths, workv1.JsonPath{Name: "operators", Path: metadata("annotations", report.Annotation)})
	for i := range report.Parts {
		paths = append(paths, workv1.JsonPath{Name: operatorsPart(i), Path: metadata("annotations", report.Part(i))})
	}
	return rules(paths)
}

func operatorsPart(i int) string { return "operators" + strconv.Itoa(i) }

// InstallPlanRules return the feedback of an InstallPlan.
func InstallPlanRules() []workv1.FeedbackRule {
	return rules([]workv1.JsonPath{{Name: "approved", Path: ".spec.approved"}, {Name: "phase", Path: ".status.phase"}})
}

// ActionJobRules return the feedback of a Job of an action.
func ActionJobRules() []workv1.FeedbackRule {
	complete := conditionPaths(jobComplete, `.status.conditions[?(@.type=="Complete")]`)[:1:1]
	return rules(append(complete, conditionPaths(jobFailed, `.status.conditions[?(@.type=="Failed")]`)[:3]...))
}

func metadata(field, key string) string {
	return ".metadata." + field + "." + strings.ReplaceAll(key, ".", `\.`)
}

// statusConditions returns the paths of conditions in the status of an object.
func statusConditions(types ...string) []workv1.JsonPath {
	var paths []workv1.JsonPath
	for _, name := range types {
		paths = append(paths, conditionPaths(name, fmt.Sprintf(".status.conditions[?(@.type==%q)]", name))...)
	}
	return paths
}

func conditionPaths(prefix, path string) []workv1.JsonPath {
	return []workv1.JsonPath{
		{Name: prefix + "Status", Path: path + ".status"},
		{Name: prefix + "Reason", Path: path + ".reason"},
		{Name: prefix + "Message", Path: path + ".message"},
		{Name: prefix + "Since", Path: path + ".lastTransitionTime"},
	}
}

func rules(paths []workv1.JsonPath) []workv1.FeedbackRule {
	return []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: paths}}
}
