// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// Reasons why a hook cannot run.
const (
	ReasonInvalidTemplate          = "InvalidTemplate"
	ReasonServiceAccountNotAllowed = "ServiceAccountNotAllowed"
	ReasonInvalidSelector          = "InvalidSelector"
	reasonEnvironmentTooLarge      = "EnvironmentTooLarge"
)

// operatorServiceAccount is the ServiceAccount of the operator. Hooks must not use it, because it
// may upgrade the cluster.
const operatorServiceAccount = "managed-upgrade-operator"

// invalidError is the reason why a hook cannot run until a user changes something.
type invalidError struct{ reason, message string }

// Error implements error.
func (e *invalidError) Error() string { return e.message }

// template returns the Job of a hook without the parts that depend on the event. It keeps fields of
// Kubernetes releases that this package does not know. Its errors are invalidErrors.
func template(hook *maintenancev1beta1.UpgradeJobHook, serviceAccounts []string) (*unstructured.Unstructured, error) {
	var spec map[string]any
	if err := utiljson.Unmarshal(hook.Spec.Template.Spec.Raw, &spec); err != nil || spec == nil {
		return nil, &invalidError{ReasonInvalidTemplate, "spec.template.spec is not an object"}
	}
	job := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	job.SetGroupVersionKind(batchv1.SchemeGroupVersion.WithKind("Job"))
	if metadata := hook.Spec.Template.Metadata; metadata != nil {
		job.SetLabels(merge(metadata.Labels))
		job.SetAnnotations(merge(metadata.Annotations))
	}
	pod, found, err := unstructured.NestedMap(spec, "template", "spec")
	if err != nil || !found {
		return nil, &invalidError{ReasonInvalidTemplate, "spec.template.spec.template.spec is not an object"}
	}
	if err := restrict(spec, pod); err != nil {
		return nil, err
	}
	if err := setServiceAccount(pod, serviceAccounts); err != nil {
		return nil, err
	}
	setDefault(pod, "restartPolicy", "Never")
	setSecurityContext(pod)
	return job, unstructured.SetNestedMap(spec, pod, "template", "spec")
}

// setServiceAccount checks the ServiceAccount of a pod. A pod without one gets no token.
func setServiceAccount(pod map[string]any, allowed []string) error {
	named := false
	for _, field := range []string{"serviceAccountName", "serviceAccount"} { // serviceAccount is the old name
		name, isText := pod[field].(string)
		switch {
		case pod[field] == nil || name == "" && isText:
			continue
		case name == operatorServiceAccount:
			return &invalidError{ReasonServiceAccountNotAllowed, "the ServiceAccount of the operator is not allowed; create another one, and add it to hooks.serviceAccounts of the operator's configuration"}
		case !slices.Contains(allowed, name):
			return &invalidError{ReasonServiceAccountNotAllowed, fmt.Sprintf("ServiceAccount %q is not allowed; add it to hooks.serviceAccounts of the operator's configuration, or remove it from the template", name)}
		}
		named = true
	}
	if named {
		return nil
	}
	pod["automountServiceAccountToken"] = false
	volumes, _ := pod["volumes"].([]any)
	if slices.ContainsFunc(volumes, mountsToken) {
		return &invalidError{ReasonServiceAccountNotAllowed, "a volume with a serviceAccountToken requires serviceAccountName, and that it is in hooks.serviceAccounts of the operator's configuration"}
	}
	return nil
}

// mountsToken reports whether a volume projects the token of the pod's ServiceAccount.
func mountsToken(volume any) bool {
	object, ok := volume.(map[string]any)
	if !ok {
		return false
	}
	sources, _, _ := unstructured.NestedSlice(object, "projected", "sources")
	return slices.ContainsFunc(sources, func(source any) bool {
		projection, ok := source.(map[string]any)
		return ok && projection["serviceAccountToken"] != nil
	})
}

// setSecurityContext sets the fields that the Pod Security Standard "restricted" requires, unless
// the template sets them. Windows pods do not have these fields.
func setSecurityContext(pod map[string]any) {
	if name, _, _ := unstructured.NestedString(pod, "os", "name"); name == "windows" {
		return
	}
	if context := object(pod, "securityContext"); context != nil {
		setDefault(context, "runAsNonRoot", true)
		setDefault(context, "seccompProfile", map[string]any{"type": "RuntimeDefault"})
	}
	for _, container := range podContainers(pod) {
		if context := object(container, "securityContext"); context != nil {
			setDefault(context, "allowPrivilegeEscalation", false)
			setDefault(context, "capabilities", map[string]any{"drop": []any{"ALL"}})
		}
	}
}

// object returns a nested object, and creates it if it is absent. It returns nil if the field has
// another type; the API server then rejects the Job.
func object(parent map[string]any, key string) map[string]any {
	setDefault(parent, key, map[string]any{})
	child, _ := parent[key].(map[string]any)
	return child
}

func setDefault(object map[string]any, key string, value any) {
	if object[key] == nil {
		object[key] = value
	}
}

// podContainers returns the containers of a pod, including its init containers.
func podContainers(pod map[string]any) []map[string]any {
	var containers []map[string]any
	for _, field := range []string{"initContainers", "containers"} {
		list, _ := pod[field].([]any)
		for _, element := range list {
			if container, ok := element.(map[string]any); ok {
				containers = append(containers, container)
			}
		}
	}
	return containers
}

// containersOf returns the containers of a Job for in-place changes.
func containersOf(job *unstructured.Unstructured) []map[string]any {
	pod := job.Object
	for _, field := range []string{"spec", "template", "spec"} {
		pod, _ = pod[field].(map[string]any)
	}
	return podContainers(pod)
}

// addEnvironment adds the variables to all containers. They precede the variables of the template,
// so these may refer to them and override them.
func addEnvironment(job *unstructured.Unstructured, variables []variable) {
	for _, container := range containersOf(job) {
		own, isList := container["env"].([]any)
		if container["env"] != nil && !isList {
			continue // the API server rejects it
		}
		env := make([]any, 0, len(variables)+len(own))
		for _, v := range variables {
			env = append(env, map[string]any{"name": v.name, "value": v.value})
		}
		container["env"] = append(env, own...)
	}
}
