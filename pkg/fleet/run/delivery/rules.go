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

// The names of values. Those of conditions have a suffix.
const (
	nameVersion            = "version"
	nameState              = "state"
	nameVerified           = "verified"
	nameImage              = "image"
	nameTargetState        = "targetState"
	nameTargetVersion      = "targetVersion"
	nameMessage            = "message"
	nameGeneration         = "generation"
	nameObservedGeneration = "observedGeneration"
	nameChannel            = "channel"
	nameInstalled          = "installed"
	nameOffered            = "offered"
	nameConditional        = "conditional"
	nameHold               = "hold"
	nameApprover           = "approver"
	nameOperators          = "operators"
	nameApproved           = "approved"
	nameMode               = "mode"
	namePhase              = "phase"
	nameStepStatuses       = "stepStatuses"
	nameCommenced          = "commenced"
	nameJobSucceeded       = "succeeded"
	nameJobActive          = "active"
	nameJobFailed          = "failed"
	// The values of Jobs of actions have names that no user chooses: the names of all values of a
	// manifest must be different.
	nameJobCompleteCondition = "managedUpgradeJobComplete"
	nameJobFailedCondition   = "managedUpgradeJobFailed"

	suffixStatus  = "Status"
	suffixReason  = "Reason"
	suffixMessage = "Message"
	suffixSince   = "Since"
)

// Target is a release to which a cluster is upgraded: a version, a pull spec by digest, or both.
type Target struct {
	Version, Image string
}

// filter returns the field of a release and its value that identify the target.
func (t Target) filter() (field, value string) {
	if t.Image != "" {
		return "image", strconv.Quote(t.Image)
	}
	return "version", strconv.Quote(t.Version)
}

// ClusterVersionRules return the feedback of a ClusterVersion whose upgrade to the target is observed.
func ClusterVersionRules(target Target) []workv1.FeedbackRule {
	field, value := target.filter()
	entry := fmt.Sprintf(".status.history[?(@.%s==%s)]", field, value)
	paths := []workv1.JsonPath{
		{Name: nameVersion, Path: ".status.history[0].version"},
		{Name: nameState, Path: ".status.history[0].state"},
		{Name: nameVerified, Path: ".status.history[0].verified"},
		{Name: nameImage, Path: ".status.history[0].image"},
		{Name: nameTargetState, Path: entry + ".state"},
		{Name: nameTargetVersion, Path: entry + ".version"},
		{Name: nameGeneration, Path: ".metadata.generation"},
		{Name: nameObservedGeneration, Path: ".status.observedGeneration"},
		{Name: nameMessage, Path: `.status.conditions[?(@.type=="Progressing")].message`},
	}
	for _, condition := range []string{"Failing", "ReleaseAccepted", "Upgradeable", "Invalid"} {
		paths = append(paths, conditionPaths(condition, fmt.Sprintf(".status.conditions[?(@.type==%q)]", condition))...)
	}
	return rules(paths)
}

// PreflightRules return the feedback of a ClusterVersion about whether the target can be installed.
func PreflightRules(target Target) []workv1.FeedbackRule {
	field, value := target.filter()
	conditional := fmt.Sprintf(".status.conditionalUpdates[?(@.release.%s==%s)]", field, value)
	paths := append(ClusterVersionRules(target)[0].JsonPaths,
		workv1.JsonPath{Name: nameChannel, Path: ".spec.channel"},
		workv1.JsonPath{Name: nameInstalled, Path: `.status.history[?(@.state=="Completed")].version`},
		workv1.JsonPath{Name: nameOffered, Path: fmt.Sprintf(".status.availableUpdates[?(@.%s==%s)].version", field, value)},
		workv1.JsonPath{Name: nameHold, Path: ".metadata.annotations." + strings.ReplaceAll(upgradev1alpha1.HoldAnnotation, ".", `\.`)},
		workv1.JsonPath{Name: nameMode, Path: ".spec.desiredUpdate.mode"},
		workv1.JsonPath{Name: nameConditional, Path: conditional + ".release.version"},
	)
	return rules(append(paths, conditionPaths("Recommended", conditional+`.conditions[?(@.type=="Recommended")]`)...))
}

// UpgradeConfigRules return the feedback of an UpgradeConfig.
func UpgradeConfigRules() []workv1.FeedbackRule {
	paths := []workv1.JsonPath{
		{Name: namePhase, Path: ".status.history[0].phase"},
		{Name: nameVersion, Path: ".status.history[0].version"},
		{Name: nameGeneration, Path: ".metadata.generation"},
		{Name: nameObservedGeneration, Path: ".status.observedGeneration"},
		{Name: nameMessage, Path: `.status.conditions[?(@.type=="Progressing")].message`},
		{Name: nameCommenced, Path: `.status.history[0].conditions[?(@.type=="CommenceUpgrade")].status`},
		{Name: nameStepStatuses, Path: ".status.history[0].conditions[0].status"},
	}
	for _, condition := range []string{"Accepted", "Succeeded", "Slow", "Stalled"} {
		paths = append(paths, conditionPaths(condition, fmt.Sprintf(".status.conditions[?(@.type==%q)]", condition))...)
	}
	paths = append(paths, conditionPaths("Ready", `.status.conditions[?(@.type=="Ready")]`)[:1]...)
	return rules(paths)
}

// ApproverLabel is the label of the namespace in which the hub approves operators on a cluster.
const ApproverLabel = "upgrade.managed.openshift.io/installplan-approver"

// NamespaceRules return the feedback of a namespace about whether it is the hub's.
func NamespaceRules() []workv1.FeedbackRule {
	return rules([]workv1.JsonPath{{Name: nameApprover, Path: ".metadata.labels." + strings.ReplaceAll(ApproverLabel, ".", `\.`)}})
}

// JobRules return the feedback of a Job that the hub writes.
func JobRules() []workv1.FeedbackRule {
	return rules(append([]workv1.JsonPath{
		{Name: nameJobSucceeded, Path: ".status.succeeded"},
		{Name: nameJobActive, Path: ".status.active"},
		{Name: nameJobFailed, Path: ".status.failed"},
	}, jobPaths()...))
}

// ApproverJobRules return the feedback of the Job that approves operators, with its report.
func ApproverJobRules() []workv1.FeedbackRule {
	annotation := func(name string) string { return ".metadata.annotations." + strings.ReplaceAll(name, ".", `\.`) }
	all := JobRules()
	paths := append(all[0].JsonPaths, workv1.JsonPath{Name: nameOperators, Path: annotation(report.Annotation)})
	for i := range report.Parts {
		paths = append(paths, workv1.JsonPath{Name: operatorsPart(i), Path: annotation(report.Part(i))})
	}
	return rules(paths)
}

func operatorsPart(i int) string { return nameOperators + strconv.Itoa(i) }

// InstallPlanRules return the feedback of an InstallPlan.
func InstallPlanRules() []workv1.FeedbackRule {
	return rules([]workv1.JsonPath{{Name: nameApproved, Path: ".spec.approved"}, {Name: namePhase, Path: ".status.phase"}})
}

// ActionJobRules return the feedback of a Job of an action.
func ActionJobRules() []workv1.FeedbackRule { return rules(jobPaths()) }

func jobPaths() []workv1.JsonPath {
	complete := conditionPaths(nameJobCompleteCondition, `.status.conditions[?(@.type=="Complete")]`)
	return append(complete[:1:1], conditionPaths(nameJobFailedCondition, `.status.conditions[?(@.type=="Failed")]`)[:3]...)
}

func conditionPaths(prefix, path string) []workv1.JsonPath {
	return []workv1.JsonPath{
		{Name: prefix + suffixStatus, Path: path + ".status"},
		{Name: prefix + suffixReason, Path: path + ".reason"},
		{Name: prefix + suffixMessage, Path: path + ".message"},
		{Name: prefix + suffixSince, Path: path + ".lastTransitionTime"},
	}
}

func rules(paths []workv1.JsonPath) []workv1.FeedbackRule {
	return []workv1.FeedbackRule{{Type: workv1.JSONPathsType, JsonPaths: paths}}
}
