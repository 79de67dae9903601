// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const manifests = `kind: A
note: the image managed-upgrade-operator:latest
spec:
  env:
  - name: IMAGE
    value: managed-upgrade-operator:latest
  image: managed-upgrade-operator:latest
---
generation: 9007199254740993
runbook_url: https://example.com/blob/main/docs/alerts/A.md
script: |
  ---
  image: managed-upgrade-operator:latest
`

func TestRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"render": {[]string{"render", "example.com/operator:v1", "v1"}, `kind: A
note: the image managed-upgrade-operator:latest
spec:
  env:
  - name: IMAGE
    value: example.com/operator:v1
  image: example.com/operator:v1
---
generation: 9007199254740993
runbook_url: https://example.com/blob/v1/docs/alerts/A.md
script: |
  ---
  image: managed-upgrade-operator:latest
`},
		"hive": {[]string{"hive"}, `apiVersion: hive.openshift.io/v1
kind: SelectorSyncSet
metadata:
  name: managed-upgrade-operator
spec:
  applyBehavior: CreateOrUpdate
  clusterDeploymentSelector:
    matchLabels:
      upgrade.managed.openshift.io/operator: installed
  resourceApplyMode: Upsert
  resources:
  - kind: A
    note: the image managed-upgrade-operator:latest
    spec:
      env:
      - name: IMAGE
        value: managed-upgrade-operator:latest
      image: managed-upgrade-operator:latest
  - generation: 9007199254740993
    runbook_url: https://example.com/blob/main/docs/alerts/A.md
    script: |
      ---
      image: managed-upgrade-operator:latest
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := run(tc.args, strings.NewReader(manifests), &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for name, tc := range map[string][2]string{
		"arguments": {"render", "kind: A"}, "no YAML": {"hive", "a: b: c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := run([]string{tc[0]}, strings.NewReader(tc[1]), &strings.Builder{}); err == nil {
				t.Error("no error")
			}
		})
	}
}

func TestRun_objects(t *testing.T) {
	t.Parallel()
	const objects = `# A comment.
kind: Namespace
metadata:
  name: home
---
kind: Deployment
metadata:
  labels:
    name: other
  namespace: home
  name: "operator"
`
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"names":   {[]string{"names"}, "Namespace - home\nDeployment home operator\n"},
		"without": {[]string{"without", "Deployment", "operator"}, "kind: Namespace\nmetadata:\n  name: home\n"},
		"without, of a kind": {[]string{"without", "Deployment", "home"}, strings.Replace(strings.Replace(objects, "# A comment.\n", "", 1), `  namespace: home
  name: "operator"
`, "  name: operator\n  namespace: home\n", 1)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			if err := run(tc.args, strings.NewReader(objects), &out); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRun_chart(t *testing.T) {
	t.Parallel()
	const manifests = `kind: Namespace
metadata:
  name: namespace-of-the-release
---
kind: PrometheusRule
metadata:
  namespace: namespace-of-the-release
text: 'failed at {{ $value }}'
---
kind: CustomResourceDefinition
metadata:
  annotations:
    a: b
`
	var out strings.Builder
	if err := run([]string{"chart"}, strings.NewReader(manifests), &out); err != nil {
		t.Fatal(err)
	}
	want := `kind: PrometheusRule
metadata:
  namespace: {{ .Release.Namespace }}
text: failed at {{ "{{" }} $value {{ "}}" }}
---
kind: CustomResourceDefinition
metadata:
  annotations:
    a: b
    helm.sh/resource-policy: keep
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
