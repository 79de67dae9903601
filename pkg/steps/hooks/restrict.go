// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tokenSecret matches the names of Secrets with ServiceAccount tokens. Clusters up to 4.15 have
// them for each ServiceAccount. The operator may not read Secrets, so it can only check names.
var tokenSecret = regexp.MustCompile(`-(token|dockercfg)-[a-z0-9]+$`)

// ownPods lists the values of the label app.kubernetes.io/name that Services, PodDisruptionBudgets,
// and NetworkPolicies use to select the pods of this product.
var ownPods = []string{"managed-upgrade-operator", "update-status-controller", "managed-upgrade-hub"}

const nameLabel = "app.kubernetes.io/name"

// restrict returns an error if the pods of a hook could gain the permissions of an operator's
// program or be mistaken for one.
func restrict(spec, pod map[string]any) error {
	labels, _, _ := unstructured.NestedMap(spec, "template", "metadata", "labels")
	if name, _ := labels[nameLabel].(string); slices.Contains(ownPods, name) {
		return &invalidError{ReasonInvalidTemplate, fmt.Sprintf("the label %s=%s is not allowed: Services and NetworkPolicies would treat the pods of the hook as pods of the operator", nameLabel, name)}
	}
	if class, _ := pod["priorityClassName"].(string); strings.HasPrefix(class, "system-") {
		return &invalidError{ReasonInvalidTemplate, fmt.Sprintf("the priority class %s is not allowed: it is for pods of the system", class)}
	}
	for _, secret := range secretsIn(pod) {
		if tokenSecret.MatchString(secret) {
			return refuseToken(secret)
		}
	}
	return nil
}

func refuseToken(secret string) error {
	return &invalidError{ReasonServiceAccountNotAllowed, fmt.Sprintf("Secret %s holds a token of a ServiceAccount; name the ServiceAccount in serviceAccountName instead", secret)}
}

// restrictSecrets returns an error if the pod of a Job could obtain a ServiceAccount token, because
// it refers to a Secret that a ServiceAccount of its namespace references, whatever the Secret's
// name. It makes no request for a pod without Secrets.
func (r *Runner) restrictSecrets(ctx context.Context, job *unstructured.Unstructured) error {
	pod, _, _ := unstructured.NestedMap(job.Object, "spec", "template", "spec")
	secrets := secretsIn(pod)
	if len(secrets) == 0 {
		return nil
	}
	var accounts corev1.ServiceAccountList
	if err := r.Live.List(ctx, &accounts, client.InNamespace(job.GetNamespace())); err != nil {
		return fmt.Errorf("listing the ServiceAccounts whose Secrets a hook must not use: %w", err)
	}
	for i := range accounts.Items {
		account := &accounts.Items[i]
		for _, ref := range account.Secrets {
			if slices.Contains(secrets, ref.Name) {
				return refuseToken(ref.Name)
			}
		}
		for _, ref := range account.ImagePullSecrets {
			if slices.Contains(secrets, ref.Name) {
				return refuseToken(ref.Name)
			}
		}
	}
	return nil
}

// secretName returns the name of the Secret that a field refers to; empty if it does not refer to
// one.
func secretName(key string, value any) string {
	if name, is := value.(string); is && key == "secretName" {
		return name
	}
	reference, _ := value.(map[string]any)
	name, _ := reference["name"].(string)
	if !strings.Contains(strings.ToLower(key), "secret") {
		return ""
	}
	return name
}

// secretsIn returns the names of the Secrets that a part of a pod refers to in volumes, projected
// volumes, variables, or envFrom. The names of all such fields contain the word secret. It skips
// imagePullSecrets, because only the kubelet reads these.
func secretsIn(value any) []string {
	var names []string
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if key == "imagePullSecrets" {
				continue
			}
			if name := secretName(key, v[key]); name != "" {
				names = append(names, name)
			}
			names = append(names, secretsIn(v[key])...)
		}
	case []any:
		for i := range v {
			names = append(names, secretsIn(v[i])...)
		}
	}
	return names
}
