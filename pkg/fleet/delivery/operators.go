// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
)

// approver is the name of the namespace and of all objects that approve operators. The Job has a hash in
// its name as well.
const approver = "installplan-approver"

// errNoOperators is a ManagedClustersUpgrade that approves no operators.
var errNoOperators = errors.New("the ManagedClustersUpgrade approves no operators")

// OperatorsWork returns the work with the Job that approves the upgrades of operators. image is that of
// the Job, which has the command approve-operators. Another attempt, and another list of operators, has
// another Job.
func OperatorsWork(run *fleetv1alpha1.ClusterUpgradeRun, mcu *fleetv1beta1.ManagedClustersUpgrade, image string) (*workv1.ManifestWork, error) {
	if !ApprovesOperators(mcu) {
		return nil, errNoOperators
	}
	timeout, err := time.ParseDuration(string(cmp.Or(run.Spec.Timeouts.OperatorsUpgrade, fleetv1beta1.DefaultOperatorsUpgradeTimeout)))
	if err != nil {
		return nil, fmt.Errorf("parsing the timeout of the operators: %w", err)
	}
	work := newWork(run, OperatorsName(run.Namespace), FormApply)
	include, exclude := operatorLists(mcu.Spec.OCPOperators)
	hash := sha256.Sum256([]byte(strings.Join([]string{
		run.Spec.ManagedClustersUpgrade.UID, fmt.Sprint(run.Spec.Attempt), timeout.String(), include, exclude, image,
	}, "\n")))
	name := approver + "-" + hex.EncodeToString(hash[:4])
	work.Spec.DeleteOption = &workv1.DeleteOption{PropagationPolicy: workv1.DeletePropagationPolicyTypeForeground}
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{config(
		workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Name: name, Namespace: approver},
		workv1.UpdateStrategyTypeCreateOnly, feedback.JobRules(),
	)}
	account := object{"name": approver, "namespace": approver}
	work.Spec.Workload.Manifests, err = manifests(
		object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": approver}},
		object{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
		clusterRole(approver, false,
			rule("operators.coreos.com", "subscriptions", "list"),
			rule("operators.coreos.com", "clusterserviceversions", "get"),
			rule("operators.coreos.com", "installplans", "get", "patch"),
		),
		object{
			"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding", "metadata": object{"name": approver},
			"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": approver},
			"subjects": []object{{"kind": "ServiceAccount", "name": approver, "namespace": approver}},
		},
		approverJob(name, image, timeout, include, exclude),
	)
	return work, err
}

// LogCommand returns the command that shows the log of the Job of a work that approves operators.
func LogCommand(work *workv1.ManifestWork) string {
	job := approver
	if configs := work.Spec.ManifestConfigs; len(configs) > 0 {
		job = configs[0].ResourceIdentifier.Name
	}
	return "oc -n " + approver + " logs job/" + job
}

// ApprovesOperators reports whether there is an operator to approve. Without one, there is no work: an
// empty list of operators would approve all.
func ApprovesOperators(mcu *fleetv1beta1.ManagedClustersUpgrade) bool {
	operators := mcu.Spec.OCPOperators
	return operators != nil && (operators.ApproveAllUpgrades || len(operators.Include) > 0)
}

// operatorLists returns the operators to approve, which are all if the list is empty, and those not to
// approve.
func operatorLists(operators *fleetv1beta1.OCPOperators) (include, exclude string) {
	exclude = joinOperators(operators.Exclude)
	if operators.ApproveAllUpgrades {
		return "", exclude
	}
	return joinOperators(operators.Include), exclude
}

// joinOperators returns operators as name,namespace, separated by spaces, in their order in the spec.
func joinOperators(operators []fleetv1beta1.OperatorReference) string {
	list := make([]string, len(operators))
	for i := range operators {
		list[i] = operators[i].Name + "," + operators[i].Namespace
	}
	return strings.Join(list, " ")
}

// approverJob returns the Job. A pod that is evicted, as while the nodes are updated, is replaced; one
// that exits with 1 has found that an operator failed, and is not.
func approverJob(name, image string, timeout time.Duration, include, exclude string) object {
	container := object{
		"name": approver, "image": image, "imagePullPolicy": "IfNotPresent",
		"command": []string{"/operator", "approve-operators"},
		"env": []object{
			{"name": "WAITTIME", "value": strconv.FormatInt(int64(timeout.Seconds()), 10)},
			{"name": "INCLUDELIST", "value": include},
			{"name": "EXCLUDELIST", "value": exclude},
		},
		"resources": object{"requests": object{"cpu": "10m", "memory": "64Mi"}},
		"securityContext": object{
			"allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "runAsNonRoot": true,
			"capabilities": object{"drop": []string{"ALL"}}, "seccompProfile": object{"type": "RuntimeDefault"},
		},
		"terminationMessagePolicy": "FallbackToLogsOnError",
	}
	return object{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": object{"name": name, "namespace": approver},
		"spec": object{
			"activeDeadlineSeconds": int64((timeout + operatorsGrace).Seconds()),
			"backoffLimit":          3,
			"podFailurePolicy": object{"rules": []object{
				{"action": "FailJob", "onExitCodes": object{"operator": "In", "values": []int{1}}},
				{"action": "Ignore", "onPodConditions": []object{{"type": "DisruptionTarget", "status": "True"}}},
			}},
			"template": object{"spec": object{
				"restartPolicy": "Never", "serviceAccountName": approver, "containers": []object{container},
			}},
		},
	}
}
