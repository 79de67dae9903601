// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm/report"
)

// approver is the prefix of the names of Jobs that approve operators.
const approver = "installplan-approver"

// Remove has a user of the cluster delete an object.
func (c *Cluster) Remove(o *unstructured.Unstructured) { delete(c.objects, idOf(o)) }

// Put has a user of the cluster create an object.
func (c *Cluster) Put(o *unstructured.Unstructured) { c.objects[idOf(o)] = o }

// BeginJob has a Job begin. A Job that approves operators reports the InstallPlans of the cluster.
func (c *Cluster) BeginJob(job *unstructured.Unstructured) {
	if !strings.HasPrefix(job.GetName(), approver) {
		return
	}
	var plans []types.NamespacedName
	for _, plan := range c.Objects("InstallPlan") {
		plans = append(plans, types.NamespacedName{Namespace: plan.GetNamespace(), Name: plan.GetName()})
	}
	written := report.New(len(plans), plans)
	all, err := written.Annotations()
	if err != nil {
		return // there are too many
	}
	annotations := map[string]string{}
	for name, value := range all {
		if value != nil {
			annotations[name] = fmt.Sprint(value)
		}
	}
	job.SetAnnotations(annotations)
}

// EndJob has a Job end with a condition, Complete or Failed. A Job that approves operators has approved
// the InstallPlans of the namespaces in which it may.
func (c *Cluster) EndJob(job *unstructured.Unstructured, end string, at time.Time) {
	c.SetCondition(job, end, "True", end, "the Job is "+end, at)
	if !strings.HasPrefix(job.GetName(), approver) {
		return
	}
	c.BeginJob(job)
	for _, plan := range c.Objects("InstallPlan") {
		if end == "Complete" && c.Object("rbac.authorization.k8s.io", "RoleBinding", plan.GetNamespace(), approver+":approve") != nil {
			plan.Object["spec"], plan.Object["status"] = map[string]any{"approved": true}, map[string]any{"phase": "Complete"}
		}
	}
}
