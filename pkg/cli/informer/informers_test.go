// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// TestInformers prints informers in each state as text and as objects.
func TestInformers(t *testing.T) {
	t.Parallel()
	replay := func(t *testing.T, format, now string) string {
		t.Helper()
		args := []string{"informers", "--replay", "testdata/dumps/informers", "--now", now}
		if format != "" {
			args = append(args, "-o", format)
		}
		got := run(t, args...)
		if got.Code != session.ExitDone || got.ErrOut != "" {
			t.Fatalf("exit code %d, error %q", got.Code, got.ErrOut)
		}
		return got.Out
	}
	const now = "2026-11-22T14:00:00Z"
	for name, format := range map[string]string{"text": "", "wide": "wide"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clitest.Golden(t, "informers/"+name+".txt", replay(t, format, now), true)
		})
	}
	t.Run("clock that is behind", func(t *testing.T) {
		t.Parallel()
		if out := replay(t, "", "2026-11-22T13:00:00Z"); strings.Contains(out, "invalid>") {
			t.Errorf("printed:\n%s", out)
		}
	})
	for _, format := range []string{"json", "yaml"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			out := replay(t, format, now)
			var list updatev1beta1.UpdateInformerList
			if err := yaml.UnmarshalStrict([]byte(out), &list); err != nil {
				t.Fatal(err)
			}
			if list.Kind != "UpdateInformerList" || len(list.Items) != 9 || list.Items[0].Kind != "UpdateInformer" || list.Items[1].Status.Conditions[0].Reason != "Timeout" {
				t.Errorf("printed:\n%s", out)
			}
			if (format == "json") != strings.HasPrefix(out, "{") {
				t.Errorf("this is no %s:\n%s", format, out)
			}
		})
	}
}
