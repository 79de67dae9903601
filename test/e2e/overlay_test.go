// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

// namespaceReference matches references to the operator's namespace in the manifests.
var namespaceReference = regexp.MustCompile(strings.Join([]string{
	`(?m)^\s*(?:- )?namespace: NAME$`,                       // metadata, subjects of bindings, labels of alerts
	`kind: Namespace\nmetadata:(?:\n  .*)*?\n  name: NAME$`, // the namespace itself
	`system:serviceaccount:NAME:`,                           // user name in admission policies
	`'\["NAME"\]'`,                                          // watched namespaces in the warning
	`namespace="NAME"`,                                      // expressions of alerts
	`\.NAME\.svc\b`,                                         // host names
}, "|"))

// references returns the number of references to a namespace, by object.
func references(t *testing.T, objects []*unstructured.Unstructured, namespace string) map[string]int {
	t.Helper()
	pattern := regexp.MustCompile(strings.ReplaceAll(namespaceReference.String(), "NAME", regexp.QuoteMeta(namespace)))
	found := map[string]int{}
	for _, o := range objects {
		text, err := yaml.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		name := o.GetName()
		if o.GetKind() == "Namespace" {
			name = ""
		}
		if n := len(pattern.FindAllIndex(text, -1)); n > 0 {
			place := o.GetNamespace()
			if place == namespace {
				place = "the operator's"
			}
			found[o.GetKind()+" "+place+"/"+name] = n
		}
	}
	return found
}

func TestInstall_into_another_namespace(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		base    []string
		overlay string
		kinds   []string // that name the namespace
		stay    []string // namespaces whose permissions stay
	}{
		"operator": {
			[]string{deployFolder},
			"testdata/overlay",
			[]string{"Namespace", "ServiceAccount", "Deployment", "ClusterRoleBinding", "RoleBinding", "PrometheusRule", "ServiceMonitor", "ValidatingAdmissionPolicy"},
			[]string{"openshift-machine-api", "openshift-monitoring"},
		},
		"Update Status Controller": {
			[]string{deployFolder + "/update-status", deployFolder + "/update-status/start-gate"},
			"testdata/overlay-update-status",
			[]string{"Namespace", "ServiceAccount", "Deployment", "ClusterRoleBinding", "RoleBinding", "PrometheusRule", "ServiceMonitor", "ValidatingAdmissionPolicy", "NetworkPolicy"},
			[]string{"default", "openshift-config", "openshift-config-managed"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var base []*unstructured.Unstructured
			for _, folder := range tc.base {
				base = append(base, kustomizedFrom(t, folder)...)
			}
			checkOverlay(t, base, kustomizedFrom(t, tc.overlay), tc.kinds, tc.stay)
		})
	}
}

// checkOverlay compares the references to the namespace in the manifests with the references to the other namespace
// in an overlay.
func checkOverlay(t *testing.T, base, overlay []*unstructured.Unstructured, kinds, stay []string) {
	t.Helper()
	if len(overlay) != len(base) {
		t.Errorf("the overlay has %d objects, want %d", len(overlay), len(base))
	}
	for _, kind := range kinds {
		if !slices.ContainsFunc(base, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == kind && len(references(t, []*unstructured.Unstructured{o}, home)) > 0
		}) {
			t.Errorf("no %s names the namespace: this test does not recognize it", kind)
		}
	}
	if diff := cmp.Diff(references(t, base, home), references(t, overlay, "openshift-managed-upgrade-operator")); diff != "" {
		t.Errorf("references to the namespace (-deploy +overlay):\n%s", diff)
	}
	if left := references(t, overlay, home); len(left) > 0 {
		t.Errorf("references to the default namespace are left: %v", left)
	}
	for _, namespace := range stay {
		if !slices.ContainsFunc(overlay, func(o *unstructured.Unstructured) bool { return o.GetNamespace() == namespace }) {
			t.Errorf("no permissions are left in %s", namespace)
		}
	}
}

// A cluster without OpenShift lacks its namespaces and kinds. It accepts every applied object of a
// built-in kind in an existing namespace.
func TestInstall_of_update_status_without_OpenShift(t *testing.T) {
	t.Parallel()
	base, overlay := kustomizedFrom(t, deployFolder+"/update-status"), kustomizedFrom(t, deployFolder+"/update-status-without-openshift")
	if foreign := foreignObjects(base); len(foreign) == 0 {
		t.Error("no object of deploy/update-status needs OpenShift: this test does not recognize them")
	}
	if foreign := foreignObjects(overlay); len(foreign) > 0 {
		t.Errorf("these objects need OpenShift: %v", foreign)
	}
}

// foreignObjects returns the objects that only OpenShift accepts.
func foreignObjects(objects []*unstructured.Unstructured) []string {
	var foreign []string
	for _, o := range objects {
		group := o.GroupVersionKind().Group
		builtIn := !strings.Contains(group, ".") || strings.HasSuffix(group, ".k8s.io")
		if !builtIn || !slices.Contains([]string{"", "default", home}, o.GetNamespace()) {
			foreign = append(foreign, o.GetKind()+" "+o.GetNamespace()+"/"+o.GetName())
		}
	}
	return foreign
}
