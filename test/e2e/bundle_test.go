// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// serviceVersion is the part of a ClusterServiceVersion that determines the Deployments,
// ServiceAccounts, and permissions.
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

// TestBundle_installs_what_the_manifests_install compares deploy and deploy/update-status with the bundle
// and the manifests applied beside it: permissions, Deployments, and every other object.
func TestBundle_installs_what_the_manifests_install(t *testing.T) {
	t.Parallel()
	want := objectsByName(t, append(kustomized(t), kustomizedFrom(t, "../../deploy/update-status")...))
	got := objectsByName(t, append(read(t, "../../bundle/manifests"), kustomizedFrom(t, "../../deploy/olm")...))
	addInstalled(t, got)
	for _, policy := range []string{"upgrade-job-hooks", "update-informers"} { // limit what is installed
		for _, kind := range []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"} {
			if name := kind + "//" + policy; got[name] == nil {
				t.Errorf("deploy/olm has no %s", name)
			} else {
				delete(got, name)
			}
		}
	}
	for name, object := range want {
		if object["kind"] == "Namespace" {
			delete(want, name) // the namespace of the bundle
		}
	}
	widen(t, want)
	for _, objects := range []map[string]map[string]any{want, got} {
		sortRules(t, objects)
	}
	if len(want) < 60 {
		t.Errorf("the manifests have %d objects", len(want))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the manifests (-) and the bundle (+) differ; does deploy/olm need 'make bundle'?\n%s", diff)
	}
}

// widen gives what Roles of other namespaces grant in the whole cluster: the Operator Lifecycle Manager creates Roles in the
// namespace of the operator only.
func widen(t *testing.T, objects map[string]map[string]any) {
	t.Helper()
	const home = "managed-upgrade-operator"
	ofOpenShift := map[string][]any{"Role/openshift-monitoring/monitoring-alertmanager-edit": {map[string]any{
		"apiGroups": []any{"monitoring.coreos.com"}, "resources": []any{"alertmanagers/api"}, "resourceNames": []any{"main"},
		"verbs": []any{"create", "delete", "get", "list", "patch", "update"},
	}}}
	widened := 0
	for name, binding := range objects {
		parts := strings.Split(name, "/")
		if parts[0] != "RoleBinding" || parts[1] == home {
			continue
		}
		role, _, err := unstructured.NestedString(binding, "roleRef", "name")
		subjects, _, subjectsErr := unstructured.NestedSlice(binding, "subjects")
		mustSucceed(t, errors.Join(err, subjectsErr))
		account, is := subjects[0].(map[string]any)
		if !is || len(subjects) != 1 {
			t.Fatalf("the subjects of %s are %v", name, subjects)
		}
		from := "Role/" + parts[1] + "/" + role
		rules := ofOpenShift[from]
		if object := objects[from]; object != nil {
			rules, _ = object["rules"].([]any)
		}
		to := objects["ClusterRole//"+account["name"].(string)]
		if to == nil || len(rules) == 0 {
			t.Fatalf("%s binds %d rules of %s", name, len(rules), from)
		}
		present, _ := to["rules"].([]any)
		to["rules"] = append(slices.Clone(rules), present...)
		delete(objects, name)
		widened++
	}
	for name := range objects {
		if parts := strings.Split(name, "/"); parts[0] == "Role" && parts[1] != home {
			delete(objects, name)
		}
	}
	if widened < 5 {
		t.Errorf("%d RoleBindings are of other namespaces", widened)
	}
}

// sortRules sorts the rules of roles.
func sortRules(t *testing.T, objects map[string]map[string]any) {
	t.Helper()
	for _, object := range objects {
		rules, is := object["rules"].([]any)
		if !is {
			continue
		}
		slices.SortFunc(rules, func(a, b any) int {
			first, err := json.Marshal(a)
			second, secondErr := json.Marshal(b)
			mustSucceed(t, errors.Join(err, secondErr))
			return bytes.Compare(first, second)
		})
	}
}

// TestBundle_needs_nothing_beside_it checks that the manifests applied beside the bundle only restrict it and grant nothing,
// because the operator must work without them.
func TestBundle_needs_nothing_beside_it(t *testing.T) {
	t.Parallel()
	limits := []string{"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "NetworkPolicy"}
	for _, object := range kustomizedFrom(t, "../../deploy/olm") {
		// The Operator Lifecycle Manager would remove the CAs that OpenShift injects into the ConfigMap. Its volume is optional.
		if !slices.Contains(limits, object.GetKind()) && object.GetKind()+"/"+object.GetName() != "ConfigMap/managed-upgrade-operator-trusted-ca" {
			t.Errorf("%s %s is not in the bundle", object.GetKind(), object.GetName())
		}
	}
}

// addInstalled adds what the Operator Lifecycle Manager makes of the ClusterServiceVersion.
func addInstalled(t *testing.T, objects map[string]map[string]any) {
	t.Helper()
	const home = "managed-upgrade-operator"
	versions := pick[serviceVersion](t, read(t, "../../bundle/manifests"), "ClusterServiceVersion")
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

// objectsByName returns what matters of objects, by kind, namespace, and name. In a bundle, every namespaced object
// without a namespace is in the namespace of the operator.
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
