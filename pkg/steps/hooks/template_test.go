// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

func hookOf(podSpec string) *maintenancev1beta1.UpgradeJobHook {
	hook := &maintenancev1beta1.UpgradeJobHook{}
	hook.Spec.Template.Spec = runtime.RawExtension{Raw: []byte(`{"futureField":1,"template":{"spec":` + podSpec + `}}`)}
	return hook
}

func TestTemplate(t *testing.T) {
	t.Parallel()
	pod := map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}
	container := map[string]any{"allowPrivilegeEscalation": false, "capabilities": map[string]any{"drop": []any{"ALL"}}}
	for name, tc := range map[string]struct {
		pod    string
		want   map[string]any
		reason string
	}{
		"defaults": {
			pod: `{"containers":[{"name":"a"}],"initContainers":[{"name":"b"}]}`,
			want: map[string]any{
				"restartPolicy": "Never", "automountServiceAccountToken": false, "securityContext": pod,
				"containers":     []any{map[string]any{"name": "a", "securityContext": container}},
				"initContainers": []any{map[string]any{"name": "b", "securityContext": container}},
			},
		},
		"the template decides": {
			pod: `{"restartPolicy":"OnFailure","securityContext":{"runAsNonRoot":false,"runAsUser":7},"containers":[{"name":"a","securityContext":{"allowPrivilegeEscalation":true,"capabilities":{"add":["NET_ADMIN"]}}}]}`,
			want: map[string]any{
				"restartPolicy": "OnFailure", "automountServiceAccountToken": false,
				"securityContext": map[string]any{"runAsNonRoot": false, "runAsUser": int64(7), "seccompProfile": map[string]any{"type": "RuntimeDefault"}},
				"containers": []any{map[string]any{"name": "a", "securityContext": map[string]any{
					"allowPrivilegeEscalation": true, "capabilities": map[string]any{"add": []any{"NET_ADMIN"}},
				}}},
			},
		},
		"Secrets of hooks": {
			pod: `{"volumes":[{"name":"t","secret":{"secretName":"webhook-token"}}],"containers":[],"imagePullSecrets":[{"name":"default-dockercfg-x7k2p"}]}`,
			want: map[string]any{
				"restartPolicy": "Never", "automountServiceAccountToken": false, "securityContext": pod, "containers": []any{},
				"volumes":          []any{map[string]any{"name": "t", "secret": map[string]any{"secretName": "webhook-token"}}},
				"imagePullSecrets": []any{map[string]any{"name": "default-dockercfg-x7k2p"}},
			},
		},
		"allowed ServiceAccount keeps its token": {
			pod: `{"serviceAccountName":"notifier","containers":[]}`,
			want: map[string]any{
				"serviceAccountName": "notifier", "restartPolicy": "Never", "securityContext": pod, "containers": []any{},
			},
		},
		"token is not mounted without a ServiceAccount": {
			pod: `{"automountServiceAccountToken":true,"serviceAccountName":"","containers":[]}`,
			want: map[string]any{
				"automountServiceAccountToken": false, "serviceAccountName": "", "restartPolicy": "Never", "securityContext": pod, "containers": []any{},
			},
		},
		"Windows has no such security context": {
			pod:  `{"os":{"name":"windows"},"containers":[{"name":"a"}]}`,
			want: map[string]any{"os": map[string]any{"name": "windows"}, "automountServiceAccountToken": false, "restartPolicy": "Never", "containers": []any{map[string]any{"name": "a"}}},
		},
		"values of other types are left to the API server": {
			pod:  `{"containers":{"a":1},"securityContext":7}`,
			want: map[string]any{"automountServiceAccountToken": false, "restartPolicy": "Never", "containers": map[string]any{"a": int64(1)}, "securityContext": int64(7)},
		},
		"ServiceAccount that is not allowed":       {pod: `{"serviceAccountName":"default"}`, reason: ReasonServiceAccountNotAllowed},
		"ServiceAccount under the old name":        {pod: `{"serviceAccount":"admin"}`, reason: ReasonServiceAccountNotAllowed},
		"ServiceAccount that is no text":           {pod: `{"serviceAccountName":7}`, reason: ReasonServiceAccountNotAllowed},
		"ServiceAccount of the operator":           {pod: `{"serviceAccountName":"managed-upgrade-operator"}`, reason: ReasonServiceAccountNotAllowed},
		"both names, the old one is not allowed":   {pod: `{"serviceAccountName":"notifier","serviceAccount":"admin"}`, reason: ReasonServiceAccountNotAllowed},
		"projected token without a ServiceAccount": {pod: `{"volumes":[{"name":"t","projected":{"sources":[{"configMap":{}},{"serviceAccountToken":{"path":"t"}}]}}]}`, reason: ReasonServiceAccountNotAllowed},
		"Secret with a token, as a volume":         {pod: `{"volumes":[{"name":"t","secret":{"secretName":"managed-upgrade-operator-token-x7k2p"}}]}`, reason: ReasonServiceAccountNotAllowed},
		"Secret with a token, projected":           {pod: `{"volumes":[{"name":"t","projected":{"sources":[{"secret":{"name":"builder-token-x7k2p"}}]}}]}`, reason: ReasonServiceAccountNotAllowed},
		"Secret with a token, as a variable":       {pod: `{"containers":[{"name":"a","env":[{"name":"T","valueFrom":{"secretKeyRef":{"name":"managed-upgrade-operator-token-x7k2p","key":"token"}}}]}]}`, reason: ReasonServiceAccountNotAllowed},
		"Secret with a token, as all variables":    {pod: `{"initContainers":[{"name":"a","envFrom":[{"secretRef":{"name":"managed-upgrade-operator-dockercfg-x7k2p"}}]}]}`, reason: ReasonServiceAccountNotAllowed},
		"priority class of the system":             {pod: `{"priorityClassName":"system-cluster-critical"}`, reason: ReasonInvalidTemplate},
		"pod that is not an object":                {pod: `[]`, reason: ReasonInvalidTemplate},
		"pod that is null":                         {pod: `null`, reason: ReasonInvalidTemplate},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			job, err := template(hookOf(tc.pod), []string{"notifier", "managed-upgrade-operator"})
			if invalid := (*invalidError)(nil); tc.reason != "" {
				if !errors.As(err, &invalid) || invalid.reason != tc.reason {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			spec, _ := job.Object["spec"].(map[string]any)
			if spec["futureField"] != int64(1) {
				t.Errorf("a field of another release is lost: %v", spec)
			}
			inner, _ := spec["template"].(map[string]any)
			if diff := cmp.Diff(tc.want, inner["spec"]); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	labeled := `{"template":{"metadata":{"labels":{"app.kubernetes.io/name":"managed-upgrade-operator"}},"spec":{}}}`
	for name, raw := range map[string]string{"nothing": "", "null": "null", "list": "[]", "no template": "{}", "the label of the operator's pods": labeled} {
		hook := &maintenancev1beta1.UpgradeJobHook{}
		hook.Spec.Template.Spec.Raw = []byte(raw)
		if _, err := template(hook, nil); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestAddEnvironment_precedes_that_of_the_template(t *testing.T) {
	t.Parallel()
	job, err := template(hookOf(`{"containers":[{"name":"a","env":[{"name":"MINE","value":"$(EVENT)"}]},{"name":"b"},{"name":"c","env":"x"}]}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	addEnvironment(job, []variable{{"EVENT", `{}`}})
	event := map[string]any{"name": "EVENT", "value": "{}"}
	want := []any{[]any{event, map[string]any{"name": "MINE", "value": "$(EVENT)"}}, []any{event}, "x"}
	var got []any
	for _, container := range containersOf(job) {
		got = append(got, container["env"])
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
