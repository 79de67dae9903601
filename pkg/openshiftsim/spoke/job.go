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

// approver is the name prefix of Jobs that approve operators.
const approver = "installplan-approver"

// Remove deletes an object as a user of the cluster would.
func (c *Cluster) Remove(o *unstructured.Unstructured) { delete(c.objects, idOf(o)) }

// Put creates an object as a user of the cluster would.
func (c *Cluster) Put(o *unstructured.Unstructured) { c.objects[idOf(o)] = o }

// BeginJob starts a Job. A Job that approves operators reports the cluster's InstallPlans.
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
		return // too many to report
	}
	annotations := map[string]string{}
	for name, value := range all {
		if value != nil {
			annotations[name] = fmt.Sprint(value)
		}
	}
	job.SetAnnotations(annotations)
}

// EndJob ends a Job with the condition Complete or Failed. A Job that approves operators approves
// the InstallPlans in the namespaces that it is allowed to approve.
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
