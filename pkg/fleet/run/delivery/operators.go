// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package delivery

import (
	"cmp"
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

// Names of the objects that approve operators. The Job also has a hash in its name.
const (
	approver = "installplan-approver"
	// Users of OpenShift cannot request this namespace: a user who may edit it has the rights of the ServiceAccount. It
	// stays when the work is deleted.
	approverNamespace = "openshift-installplan-approver"
	patcherRole       = approver + ":approve"
	reporterRole      = approver + ":report"
	observerRole      = approver + ":observe" // the agent reads InstallPlans by it
)

var errNoOperators = errors.New("the ManagedClustersUpgrade approves no operators")

// ApproverNamespace returns the namespace of the Job, and the label that marks it.
func ApproverNamespace() (name, label string) { return approverNamespace, ApproverLabel }

// OperatorsPreflightWork returns the work of the operators in the form FormReadOnly. It observes whether the namespaces
// exist in which OperatorsWork creates objects, and whether the hub has created the namespace of the Job.
func OperatorsPreflightWork(run *fleetv1alpha1.ClusterUpgradeRun, mcu *fleetv1beta1.ManagedClustersUpgrade) (*workv1.ManifestWork, error) {
	if !ApprovesOperators(mcu) {
		return nil, errNoOperators
	}
	objects := []object{agentRole(approver+":preflight", rule("", "namespaces", reads...))}
	var configs []workv1.ManifestConfigOption
	for _, name := range append([]string{approverNamespace}, operatorNamespaces(mcu)...) {
		objects = append(objects, manifest("v1", "Namespace", "", name, nil))
		configs = append(configs, config(namespaceID(name), workv1.UpdateStrategyTypeReadOnly, NamespaceRules()))
	}
	return fill(newWork(run, OperatorsName(run.Namespace), FormReadOnly), configs, objects...)
}

// OperatorsWork returns the work with the Job that approves the upgrades of operators. Its image has the command
// approve-operators. Another attempt, or another list of operators, has another Job. exists reports whether the cluster
// has a namespace.
//
// The Job may read in all namespaces, and approve in the namespaces of the operators that the spec names. If the spec names
// none, it may approve nowhere until AdaptOperatorsWork gives it the right.
func OperatorsWork(run *fleetv1alpha1.ClusterUpgradeRun, mcu *fleetv1beta1.ManagedClustersUpgrade, image string, exists func(namespace string) bool) (*workv1.ManifestWork, error) {
	if !ApprovesOperators(mcu) {
		return nil, errNoOperators
	}
	timeout, err := time.ParseDuration(string(cmp.Or(run.Spec.Timeouts.OperatorsUpgrade, fleetv1beta1.DefaultOperatorsUpgradeTimeout)))
	if err != nil {
		return nil, fmt.Errorf("parsing the timeout of the operators: %w", err)
	}
	include, exclude := "", joinOperators(mcu.Spec.OCPOperators.Exclude)
	if !mcu.Spec.OCPOperators.ApproveAllUpgrades {
		include = joinOperators(mcu.Spec.OCPOperators.Include)
	}
	hash := text.Hash(strings.Join([]string{
		run.Spec.ManagedClustersUpgrade.UID, fmt.Sprint(run.Spec.Attempt), timeout.String(), include, exclude, image,
	}, "\n"), 4)
	name := approver + "-" + hash
	report := rule("batch", "jobs", "patch")
	report["resourceNames"] = []string{name}
	objects := []object{
		labeled(manifest("v1", "Namespace", "", approverNamespace, nil), ApproverLabel),
		manifest("v1", "ServiceAccount", approverNamespace, approver, nil),
		role("ClusterRole", "", approver,
			rule(OLM, "subscriptions", "list"),
			rule(OLM, "installplans", "get"),
			rule(OLM, "clusterserviceversions", "get"),
			rule(OLM, "catalogsources", "get"),
			rule("config.openshift.io", "clusterversions", "get"),
		),
		binding("ClusterRole", "", approver),
		role("Role", approverNamespace, reporterRole, report),
		binding("Role", approverNamespace, reporterRole),
	}
	for _, namespace := range operatorNamespaces(mcu) {
		if exists(namespace) {
			objects = append(objects, approvalIn(namespace)...)
		}
	}
	id := workv1.ResourceIdentifier{Group: "batch", Resource: "jobs", Name: name, Namespace: approverNamespace}
	configs := []workv1.ManifestConfigOption{config(id, workv1.UpdateStrategyTypeCreateOnly, ApproverJobRules())}
	work, err := fill(newWork(run, OperatorsName(run.Namespace), FormApply), configs, append(objects, approverJob(name, image, timeout, include, exclude))...)
	work.Spec.DeleteOption = orphan(namespaceID(approverNamespace))
	return work, err
}

// operatorNamespaces returns the sorted namespaces of the operators in the spec; none stands for all namespaces.
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

func approvalIn(namespace string) []object {
	return []object{role("Role", namespace, patcherRole, rule(OLM, "installplans", "patch")), binding("Role", namespace, patcherRole)}
}

func namespaceID(name string) workv1.ResourceIdentifier {
	return workv1.ResourceIdentifier{Resource: "namespaces", Name: name}
}

// binding gives a role to the ServiceAccount of the Job.
func binding(kind, namespace, role string) object {
	return manifest(rbacVersion, kind+"Binding", namespace, role, object{
		"roleRef":  object{"apiGroup": "rbac.authorization.k8s.io", "kind": kind, "name": role},
		"subjects": []object{{"kind": "ServiceAccount", "name": approver, "namespace": approverNamespace}},
	})
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

// joinOperators returns operators as name,namespace, separated by spaces, in their order in the spec.
func joinOperators(operators []fleetv1beta1.OperatorReference) string {
	list := make([]string, len(operators))
	for i := range operators {
		list[i] = operators[i].Name + "," + operators[i].Namespace
	}
	return strings.Join(list, " ")
}

// approverJob returns the Job; an empty include approves all operators. An evicted pod, for example while the nodes
// are updated, is replaced. One that exits with 1 has found that an operator failed, and is not.
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
	return manifest("batch/v1", "Job", approverNamespace, name, object{"spec": object{
		"activeDeadlineSeconds": int64((timeout + operatorsGrace).Seconds()),
		"backoffLimit":          3,
		"podFailurePolicy": object{"rules": []object{
			{"action": "FailJob", "onExitCodes": object{"operator": "In", "values": []int{1}}},
			{"action": "Ignore", "onPodConditions": []object{{"type": "DisruptionTarget", "status": "True"}}},
		}},
		"template": object{"spec": object{
			"restartPolicy": "Never", "serviceAccountName": approver, "containers": []object{container},
		}},
	}})
}

// reportAnnotation on the work of the operators identifies the report that the work is adapted to.
const reportAnnotation = "upgrade.managed.openshift.io/operators"

// Reports reports whether the Job of a work names the InstallPlans that decide. The Job of an earlier release does not.
func Reports(work *workv1.ManifestWork) bool {
	configs := work.Spec.ManifestConfigs
	return len(configs) > 0 && len(configs[0].FeedbackRules) > 0 &&
		len(configs[0].FeedbackRules[0].JsonPaths) == len(ApproverJobRules()[0].JsonPaths)
}

// AdaptOperatorsWork adapts the work of the operators to the report of its Job. While the Job runs, it may approve in the
// namespaces of the operators if the spec does not name them. Once it is complete, it may approve nowhere, and the agent
// observes the InstallPlans. The Job itself is not changed.
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
			objects = append(objects, manifest(OLM+"/v1alpha1", KindInstallPlan, plan.Namespace, plan.Name, nil))
		}
	}
	if !approval.Reported || len(objects) == 0 || !approval.Over && !mcu.Spec.OCPOperators.ApproveAllUpgrades {
		return work, nil
	}
	if approval.Over {
		objects = append(objects, agentRole(observerRole, rule(OLM, "installplans", reads...)))
	}
	added, err := manifests(objects...)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{} // several plans may be in one namespace
	added = slices.DeleteFunc(added, func(m workv1.Manifest) bool {
		isKnown := seen[string(m.Raw)]
		seen[string(m.Raw)] = true
		return isKnown
	})
	adapted := work.DeepCopy()
	workload := &adapted.Spec.Workload
	workload.Manifests = append(slices.DeleteFunc(workload.Manifests, isAdapted), added...)
	adapted.Spec.DeleteOption, adapted.Spec.ManifestConfigs = orphan(kept...), configs
	metav1.SetMetaDataAnnotation(&adapted.ObjectMeta, reportAnnotation, text.Hash(fmt.Sprint(added), 4))
	return adapted, nil
}

// isAdapted reports whether AdaptOperatorsWork decides about a manifest.
func isAdapted(m workv1.Manifest) bool {
	o, _ := identify(&m)
	return o.Kind == KindInstallPlan || o.Name == observerRole || strings.HasPrefix(o.Kind, "Role") && o.Name == patcherRole
}
