// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package alerts

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
)

// promtool runs promtool and returns its output, and whether it succeeded.
func promtool(t *testing.T, args ...string) (string, bool) {
	t.Helper()
	bin, err := controlplane.FindBinDir()
	if err != nil {
		t.Fatal(err)
	}
	if err := controlplane.RequireBuilt(bin, "make bin/promtool", "promtool"); err != nil {
		t.Fatal(err)
	}
	printed, err := exec.CommandContext(t.Context(), filepath.Join(bin, "promtool"), args...).CombinedOutput()
	return string(printed), err == nil
}

// writeFiles writes the rules and the cases into one folder.
func writeFiles(t *testing.T, rules groups) (rulesFile, casesFile string) {
	t.Helper()
	folder := t.TempDir()
	rulesFile, casesFile = filepath.Join(folder, "rules.yaml"), filepath.Join(folder, "cases.yaml")
	text, err := yaml.Marshal(rules)
	if err != nil {
		t.Fatal(err)
	}
	all, err := os.ReadFile("cases.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string][]byte{rulesFile: text, casesFile: all} {
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return rulesFile, casesFile
}

func TestAlertsFireAsExpected(t *testing.T) {
	t.Parallel()
	rules, cases := writeFiles(t, loadRules(t))
	if printed, ok := promtool(t, "check", "rules", "--lint=all", "--lint-fatal", rules); !ok {
		t.Errorf("promtool check rules:\n%s", printed)
	}
	if printed, ok := promtool(t, "test", "rules", cases); !ok {
		t.Errorf("promtool test rules:\n%s", printed)
	}
}

// The cases are worth something only if they fail for a broken alert.
func TestAlertCasesFailForBrokenAlerts(t *testing.T) {
	t.Parallel()
	for what, breaks := range map[string]func(*rule){
		"never fires":          func(r *rule) { r.Expr = "vector(1) > 2" },
		"always fires":         func(r *rule) { r.Expr = "(" + r.Expr + ") or vector(1)" },
		"has no description":   func(r *rule) { r.Annotations["description"] = "" },
		"has another severity": func(r *rule) { r.Labels["severity"] = "info" },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			broken := loadRules(t)
			for _, group := range broken.Groups {
				for i := range group.Rules {
					breaks(&group.Rules[i])
				}
			}
			_, cases := writeFiles(t, broken)
			printed, ok := promtool(t, "test", "rules", cases)
			if ok {
				t.Fatal("promtool accepts the rules")
			}
			for _, r := range alerts(t) {
				if !strings.Contains(printed, "alertname: "+r.Alert+",") {
					t.Errorf("%s: %s, and promtool accepts it", r.Alert, what)
				}
			}
		})
	}
}
