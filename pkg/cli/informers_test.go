// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
)

// TestInformers prints informers in each state, as text and as objects.
func TestInformers(t *testing.T) {
	t.Parallel()
	replay := func(t *testing.T, format string) string {
		t.Helper()
		args := []string{"informers", "--replay", "testdata/dumps/informers", "--now", "2026-11-22T14:00:00Z"}
		if format != "" {
			args = append(args, "-o", format)
		}
		got := run(t, args...)
		if got.code != ExitDone || got.errOut != "" {
			t.Fatalf("exit code %d, error %q", got.code, got.errOut)
		}
		return got.out
	}
	for name, format := range map[string]string{"text": "", "wide": "wide"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			golden(t, "informers/"+name+".txt", replay(t, format), true)
		})
	}
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			out := replay(t, format)
			var list updatev1beta1.UpdateInformerList
			if err := yaml.UnmarshalStrict([]byte(out), &list); err != nil {
				t.Fatal(err)
			}
			if list.Kind != "UpdateInformerList" || len(list.Items) != 6 || list.Items[0].Kind != "UpdateInformer" || list.Items[1].Status.Conditions[0].Reason != "Timeout" {
				t.Errorf("printed:\n%s", out)
			}
			if (format == "json") != strings.HasPrefix(out, "{") {
				t.Errorf("this is no %s:\n%s", format, out)
			}
		})
	}
}
