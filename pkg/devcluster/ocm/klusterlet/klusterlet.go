// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package klusterlet contains the permissions of Open Cluster Management's agents on a managed
// cluster, as its operator creates them when it deploys a klusterlet.
//
// It does not start the agents.
package klusterlet

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

const (
	// Namespace is the namespace of the agents. Objects does not include it.
	Namespace = "open-cluster-management-agent"
	// WorkServiceAccount is the ServiceAccount of the work agent.
	WorkServiceAccount = name + "-work-sa"
	// RegistrationServiceAccount is the ServiceAccount of the registration agent.
	RegistrationServiceAccount = name + "-registration-sa"

	// name is the name of the Klusterlet.
	name = "klusterlet"
)

//go:embed managed/*.yaml management/*.yaml
var templates embed.FS

// values are the values that the templates use.
type values struct {
	KlusterletName, KlusterletNamespace, AgentNamespace string
	WorkServiceAccount, RegistrationServiceAccount      string
	Labels                                              map[string]string
	ManagedClusterRoleArn                               string
	RegistrationDriver                                  struct{ AuthType string }
}

// Objects returns the ServiceAccounts of the agents with their permissions.
func Objects() ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, folder := range []string{"managed", "management"} {
		parsed, err := template.ParseFS(templates, folder+"/*.yaml")
		if err != nil {
			return nil, fmt.Errorf("parsing the permissions of the agents: %w", err)
		}
		for _, one := range parsed.Templates() {
			var text bytes.Buffer
			if err := one.Execute(&text, values{
				KlusterletName: name, KlusterletNamespace: Namespace, AgentNamespace: Namespace,
				WorkServiceAccount: WorkServiceAccount, RegistrationServiceAccount: RegistrationServiceAccount,
			}); err != nil {
				return nil, fmt.Errorf("rendering the permissions of the agents: %w", err)
			}
			decoded, err := manifests.Decode(text.Bytes())
			if err != nil {
				return nil, fmt.Errorf("decoding %s/%s: %w", folder, one.Name(), err)
			}
			objects = append(objects, decoded...)
		}
	}
	return objects, nil
}

// Aggregate returns the ClusterRole that collects the permissions that ManifestWorks grant to the
// work agent. The operator of Open Cluster Management has no manifest for it.
func Aggregate() *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "open-cluster-management:" + name + "-work:aggregate"},
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{
			MatchLabels: map[string]string{"open-cluster-management.io/aggregate-to-work": "true"},
		}}},
	}
}
