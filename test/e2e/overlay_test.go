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

// namespaceReference matches the places in which the manifests name the operator's namespace.
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
	base, overlay := kustomized(t), kustomizedFrom(t, "testdata/overlay")
	if len(overlay) != len(base) {
		t.Errorf("the overlay has %d objects, want %d", len(overlay), len(base))
	}
	want := references(t, base, home)
	for _, kind := range []string{"Namespace", "ServiceAccount", "Deployment", "ClusterRoleBinding", "RoleBinding", "PrometheusRule", "ServiceMonitor", "ValidatingAdmissionPolicy"} {
		if !slices.ContainsFunc(base, func(o *unstructured.Unstructured) bool {
			return o.GetKind() == kind && len(references(t, []*unstructured.Unstructured{o}, home)) > 0
		}) {
			t.Errorf("no %s names the namespace: this test does not recognize it", kind)
		}
	}
	if diff := cmp.Diff(want, references(t, overlay, "upgrades")); diff != "" {
		t.Errorf("references to the namespace (-deploy +overlay):\n%s", diff)
	}
	if left := references(t, overlay, home); len(left) > 0 {
		t.Errorf("references to the default namespace are left: %v", left)
	}
	for _, namespace := range []string{"openshift-machine-api", "openshift-monitoring"} {
		if !slices.ContainsFunc(overlay, func(o *unstructured.Unstructured) bool { return o.GetNamespace() == namespace }) {
			t.Errorf("no permissions are left in %s", namespace)
		}
	}
}
