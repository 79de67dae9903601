// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serviceVersion is the part of a ClusterServiceVersion from which the Operator Lifecycle Manager
// makes Deployments, ServiceAccounts, and their permissions.
type serviceVersion struct {
	Spec struct {
		RelatedImages []struct {
			Image string `json:"image"`
		} `json:"relatedImages"`
		Install struct {
			Spec struct {
				ClusterPermissions []accountRules `json:"clusterPermissions"`
				Permissions        []accountRules `json:"permissions"`
				Deployments        []struct {
					Name string         `json:"name"`
					Spec map[string]any `json:"spec"`
				} `json:"deployments"`
			} `json:"spec"`
		} `json:"install"`
	} `json:"spec"`
}

type accountRules struct {
	ServiceAccountName string `json:"serviceAccountName"`
	Rules              []any  `json:"rules"`
}

// TestBundle_installs_what_the_manifests_install compares the bundle, and what is applied beside it,
// with deploy and deploy/update-status: permissions, Deployments, and every other object.
func TestBundle_installs_what_the_manifests_install(t *testing.T) {
	t.Parallel()
	want := objectsByName(t, append(kustomized(t), kustomizedFrom(t, "../../deploy/update-status")...))
	got := objectsByName(t, append(read(t, "../../deploy/olm/bundle/manifests"), kustomizedFrom(t, "../../deploy/olm")...))
	addInstalled(t, got)
	for name, object := range want {
		if object["kind"] == "Namespace" {
			delete(want, name) // the one in which the bundle is installed
		}
	}
	if len(want) < 70 {
		t.Errorf("the manifests have %d objects", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the manifests (-) and the bundle (+) differ; does deploy/olm need 'make bundle'?\n%s", diff)
	}
}

// addInstalled adds what the Operator Lifecycle Manager makes of the ClusterServiceVersion.
func addInstalled(t *testing.T, objects map[string]map[string]any) {
	t.Helper()
	const home = "managed-upgrade-operator"
	versions := pick[serviceVersion](t, read(t, "../../deploy/olm/bundle/manifests"), "ClusterServiceVersion")
	if len(versions) != 1 {
		t.Fatalf("the bundle has %d ClusterServiceVersions", len(versions))
	}
	version := versions[0]
	install := version.Spec.Install.Spec
	if len(install.Deployments) != 2 || len(version.Spec.RelatedImages) != 1 {
		t.Fatalf("the bundle has %d Deployments and %d related images", len(install.Deployments), len(version.Spec.RelatedImages))
	}
	image := version.Spec.RelatedImages[0].Image
	for _, d := range install.Deployments {
		object := map[string]any{"kind": "Deployment", "spec": d.Spec}
		containers, _, err := unstructured.NestedSlice(object, "spec", "template", "spec", "containers")
		if err != nil || len(containers) != 1 {
			t.Fatalf("the containers of %s: %v, %v", d.Name, containers, err)
		}
		container, _ := containers[0].(map[string]any)
		if container["image"] != image {
			t.Errorf("%s has the image %v, which is not among the related images", d.Name, container["image"])
		}
		container["image"] = "managed-upgrade-operator:latest"
		if err := unstructured.SetNestedSlice(object, containers, "spec", "template", "spec", "containers"); err != nil {
			t.Fatal(err)
		}
		objects["Deployment/"+home+"/"+d.Name] = payload(object)
	}
	for _, each := range []struct {
		kind, namespace string
		permissions     []accountRules
	}{{"ClusterRole", "", install.ClusterPermissions}, {"Role", home, install.Permissions}} {
		for _, p := range each.permissions {
			name := each.namespace + "/" + p.ServiceAccountName
			objects[each.kind+"/"+name] = map[string]any{"kind": each.kind, "rules": p.Rules}
			objects[each.kind+"Binding/"+name] = map[string]any{
				"kind":     each.kind + "Binding",
				"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": each.kind, "name": p.ServiceAccountName},
				"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": p.ServiceAccountName, "namespace": home}},
			}
			objects["ServiceAccount/"+home+"/"+p.ServiceAccountName] = map[string]any{"kind": "ServiceAccount"}
		}
	}
}

// objectsByName returns what matters of objects, by kind, namespace, and name. In a bundle, every
// namespaced object without a namespace is in that of the operator.
func objectsByName(t *testing.T, objects []*unstructured.Unstructured) map[string]map[string]any {
	t.Helper()
	clusterScoped := map[string]bool{
		"ClusterRole": true, "ClusterRoleBinding": true, "CustomResourceDefinition": true, "Namespace": true,
		"ValidatingAdmissionPolicy": true, "ValidatingAdmissionPolicyBinding": true,
	}
	named := map[string]map[string]any{}
	for _, object := range objects {
		if object.GetKind() == "ClusterServiceVersion" {
			continue
		}
		key := client.ObjectKeyFromObject(object)
		if key.Namespace == "" && !clusterScoped[object.GetKind()] {
			key.Namespace = "managed-upgrade-operator"
		}
		named[object.GetKind()+"/"+key.Namespace+"/"+key.Name] = payload(object.Object)
	}
	return named
}

// payload returns an object without its metadata and status.
func payload(object map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range object {
		if key != "apiVersion" && key != "metadata" && key != "status" {
			out[key] = value
		}
	}
	return out
}
