// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The objects that approve operators. The Job has a hash in its name as well.
const (
	approver = "installplan-approver"
	// approverNamespace is a namespace that users of OpenShift cannot request: a user who may edit it has the
	// rights of the ServiceAccount. It stays when the work is deleted.
	approverNamespace = "openshift-installplan-approver"
	patcherRole       = approver + ":approve" // the Role with the right to approve
	reporterRole      = approver + ":report"  // the Role with the right to report
	observerRole      = approver + ":observe" // the ClusterRole by which the agent reads InstallPlans
)

var errNoOperators = errors.New("the ManagedClustersUpgrade approves no operators")

// ApproverNamespace returns the namespace of the Job, and the label by which the hub knows it as its own.
func ApproverNamespace() (name, label string) { return approverNamespace, ApproverLabel }

// OperatorsPreflightWork returns the work of the operators in the form FormReadOnly. It observes whether the namespaces
// exist in which the work of the form FormApply creates objects, and whose the namespace of the Job is.
func OperatorsPreflightWork(run *fleetv1alpha1.ClusterUpgradeRun, mcu *fleetv1beta1.ManagedClustersUpgrade) (*workv1.ManifestWork, error) {
	if !ApprovesOperators(mcu) {
		return nil, errNoOperators
	}
	objects := []object{clusterRole(approver+":preflight", true, rule("", "namespaces", reads...))}
	var configs []workv1.ManifestConfigOption
	for _, name := range append([]string{approverNamespace}, operatorNamespaces(mcu)...) {
		objects = append(objects, namespaceOf(name, nil))
		configs = append(configs, config(namespaceID(name), workv1.UpdateStrategyTypeReadOnly, NamespaceRules()))
	}
	return fill(newWork(run, OperatorsName(run.Namespace), FormReadOnly), configs, objects...)
}

// OperatorsWork returns the work with the Job that approves the upgrades of operators. image is the image of the Job,
// which has the command approve-operators. Another attempt, and another list of operators, has another Job. exists
// reports whether the cluster has a namespace.
//
// The Job may read in all namespaces. It may approve where the operators are that the spec names. If the spec
// names none, it may approve nowhere until AdaptOperatorsWork gives it the right.
func OperatorsWork(run *fleetv1alpha1.ClusterUpgradeRun, mcu *fleetv1beta1.ManagedClustersUpgrade, image string, exists func(namespace string) bool) (*workv1.ManifestWork, error) {
	if !ApprovesOperators(mcu) {
		return nil, errNoOperators
	}
	timeout, err := time.ParseDuration(string(cmp.Or(run.Spec.Timeouts.OperatorsUpgrade, fleetv1beta1.DefaultOperatorsUpgradeTimeout)))
	if err != nil {
		return nil, fmt.Errorf("parsing the timeout of the operators: %w", err)
	}
	work := newWork(run, OperatorsName(run.Namespace), FormApply)
	include, exclude := operatorLists(mcu.Spec.OCPOperators)
	id := text.Hash(strings.Join([]string{
		run.Spec.ManagedClustersUpgrade.UID, fmt.Sprint(run.Spec.Attempt), timeout.String(), include, exclude, image,
	}, "\n"), 4)
	name := approver + "-" + id
	work.Spec.DeleteOption = orphan(namespaceID(approverNamespace))
	work.Spec.ManifestConfigs = []workv1.ManifestConfigOption{config(
		workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Name: name, Namespace: approverNamespace},
		workv1.UpdateStrategyTypeCreateOnly, ApproverJobRules(),
	)}
	report := rule("batch", "jobs", "patch")
	report["resourceNames"] = []string{name}
	rules := []object{
		rule(OLM, "subscriptions", "list"),
		rule(OLM, "installplans", "get"),
		rule(OLM, "clusterserviceversions", "get"),
		rule(OLM, "catalogsources", "get"),
		rule("config.openshift.io", "clusterversions", "get"),
	}
	objects := []object{
		namespaceOf(approverNamespace, object{ApproverLabel: "true"}),
		{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": object{"name": approver, "namespace": approverNamespace}},
		clusterRole(approver, false, rules...),
		binding("ClusterRole", approver, ""),
		role(reporterRole, approverNamespace, report),
		binding("Role", reporterRole, approverNamespace),
	}
	for _, namespace := range operatorNamespaces(mcu) {
		if exists(namespace) {
			objects = append(objects, approvalIn(namespace)...)
		}
	}
	work.Spec.Workload.Manifests, err = manifests(append(objects, approverJob(name, image, timeout, include, exclude))...)
	return work, err
}

// operatorNamespaces returns the namespaces of the operators that the spec names, sorted; none means all namespaces.
func operatorNamespaces(mcu *fleetv1beta1.ManagedClustersUpgrade) []string {
	if mcu.Spec.OCPOperators.ApproveAllUpgrades {
		return nil
	}
	var names []string
	for i := range mcu.Spec.OCPOperators.Include {
		names = append(names, mcu.Spec.OCPOperators.Include[i].Namespace)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func role(name, namespace string, rule object) object {
	return object{"apiVersion": rbacVersion, "kind": "Role", "metadata": object{"name": name, "namespace": namespace}, "rules": []object{rule}}
}

func approvalIn(namespace string) []object {
	return []object{role(patcherRole, namespace, rule(OLM, "installplans", "patch")), binding("Role", patcherRole, namespace)}
}

const rbacVersion = "rbac.authorization.k8s.io/v1"

func namespaceID(name string) workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Resource: "namespaces", Name: name}
}

func namespaceOf(name string, labels object) object {
	metadata := object{"name": name}
	if labels != nil {
		metadata["labels"] = labels
	}
	return object{"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}
}

func binding(kind, role, namespace string) object {
	metadata := object{"name": role}
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return object{
		"apiVersion": rbacVersion, "kind": kind + "Binding", "metadata": metadata,
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
		"subjects": []object{{"kind": "ServiceAccount", "name": approver, "namespace": approverNamespace}},
	}
}

// LogCommand returns the command that shows the log of the Job of a work that approves operators.
func LogCommand(work *workv1.ManifestWork) string {
	job := approver
	if configs := work.Spec.ManifestConfigs; len(configs) > 0 {
		job = configs[0].ResourceIdentifier.Name
	}
	return "oc -n " + approverNamespace + " logs job/" + job
}

// ApprovesOperators reports whether there is an operator to approve: an empty list in the work would approve all.
func ApprovesOperators(mcu *fleetv1beta1.ManagedClustersUpgrade) bool {
	operators := mcu.Spec.OCPOperators
	return operators != nil && (operators.ApproveAllUpgrades || len(operators.Include) > 0)
}

// operatorLists returns the operators to approve, which are all if the list is empty, and those not to approve.
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
			{"name": "REPORT", "value": name + "," + approverNamespace},
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
		"metadata": object{"name": name, "namespace": approverNamespace},
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

// reportAnnotation on the work of the operators identifies the report of the Job to which the work is adapted.
const reportAnnotation = "upgrade.managed.openshift.io/operators"

// Reports reports whether the Job of a work reports which InstallPlans decide. The Job of an earlier release does not.
func Reports(work *workv1.ManifestWork) bool {
	configs := work.Spec.ManifestConfigs
	return len(configs) > 0 && len(configs[0].FeedbackRules) > 0 &&
		len(configs[0].FeedbackRules[0].JsonPaths) == len(ApproverJobRules()[0].JsonPaths)
}

// AdaptOperatorsWork returns the work of the operators as the report of its Job requires. While the Job runs, it
// may approve in the namespaces of the operators, if the spec does not name them. Once it is complete, it may
// approve nowhere, and the agent observes the InstallPlans. The Job itself is not changed.
func AdaptOperatorsWork(work *workv1.ManifestWork, mcu *fleetv1beta1.ManagedClustersUpgrade, approval *Approval) (*workv1.ManifestWork, error) {
	var objects []object
	kept := []workv1.ResourceIdentifier{namespaceID(approverNamespace)}
	configs := slices.Clip(work.Spec.ManifestConfigs[:min(1, len(work.Spec.ManifestConfigs))])
	for _, plan := range approval.Report.Plans {
		switch {
		case !approval.Over:
			objects = append(objects, approvalIn(plan.Namespace)...)
		case plan.Name != "":
			id := workv1.ResourceIdentifier{Group: OLM, Resource: "installplans", Namespace: plan.Namespace, Name: plan.Name}
			kept = append(kept, id)
			configs = append(configs, config(id, workv1.UpdateStrategyTypeReadOnly, InstallPlanRules()))
			objects = append(objects, object{
				"apiVersion": OLM + "/v1alpha1", "kind": KindInstallPlan,
				"metadata": object{"name": plan.Name, "namespace": plan.Namespace},
			})
		}
	}
	if !approval.Reported || len(objects) == 0 || !approval.Over && !mcu.Spec.OCPOperators.ApproveAllUpgrades {
		return work, nil
	}
	if approval.Over {
		objects = append(objects, clusterRole(observerRole, true, rule(OLM, "installplans", reads...)))
	}
	added, err := manifests(compact(objects)...)
	if err != nil {
		return nil, err
	}
	adapted := work.DeepCopy()
	workload := &adapted.Spec.Workload
	workload.Manifests = append(slices.DeleteFunc(workload.Manifests, isAdapted), added...)
	adapted.Spec.DeleteOption, adapted.Spec.ManifestConfigs = orphan(kept...), configs
	metav1.SetMetaDataAnnotation(&adapted.ObjectMeta, reportAnnotation, text.Hash(fmt.Sprint(added), 4))
	return adapted, nil
}

// compact drops objects that occur more than once: several plans may be in one namespace.
func compact(objects []object) []object {
	seen := map[string]bool{}
	return slices.DeleteFunc(objects, func(o object) bool {
		metadata, _ := o["metadata"].(object)
		key := fmt.Sprint(o["kind"], metadata["namespace"], metadata["name"])
		found := seen[key]
		seen[key] = true
		return found
	})
}

// isAdapted reports whether AdaptOperatorsWork decides about a manifest.
func isAdapted(manifest workv1.Manifest) bool {
	var o metav1.PartialObjectMetadata
	if err := json.Unmarshal(manifest.Raw, &o); err != nil {
		return false
	}
	return o.Kind == KindInstallPlan || o.Name == observerRole || strings.HasPrefix(o.Kind, "Role") && o.Name == patcherRole
}
