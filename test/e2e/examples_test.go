// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/updategraph"
)

// TestExamples runs the commands of docs/first-upgrade.md and of deploy/samples that create an UpgradeConfig. What
// they create is accepted and scheduled soon, and nothing would block it. It also approves an upgrade as
// docs/concepts/approvals.md does.
func TestExamples(t *testing.T) { //nolint:tparallel // all create an object of one name
	t.Parallel()
	cluster := startCluster(t, devcluster.Spec{Speed: fast, Releases: []updategraph.Release{
		{Version: "4.20.6", Channels: []string{channel}},
		{Version: "4.20.10", Channels: []string{channel}},
		{Version: "4.20.11", Channels: []string{channel}, Risks: []updategraph.Risk{
			{Name: "SlowBoots", Message: "Nodes boot slowly.", URL: "https://example.com", Applies: updategraph.Yes}, {Name: "OldFirmware", Message: "The firmware is old.", URL: "https://example.com", Applies: updategraph.Yes},
		}},
	}})
	userClient := newUserClient(t, cluster)
	operator := startOperator(t, cluster, devcluster.OperatorOptions{})
	term := newTerminal(t, cluster, operator)
	samples, err := filepath.Abs(filepath.Join(deployFolder, "samples"))
	if err != nil {
		t.Fatal(err)
	}
	intro := shellBlock.FindStringSubmatch(readFile(t, filepath.Join(repository, "docs/first-upgrade.md")))[1]

	for name, tc := range map[string]struct {
		command  string
		versions string
		risks    int
	}{
		"first upgrade":                {intro, "4.20.6|4.20.10", 0},
		"upgradeconfig.sh":             {filepath.Join(samples, "upgradeconfig.sh") + " | oc apply --validate=strict -f -", "4.20.10", 0},
		"upgradeconfig-conditional.sh": {filepath.Join(samples, "upgradeconfig-conditional.sh") + " | oc apply --validate=strict -f -", "4.20.11", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if printed := term.run(t.Context(), t, "set -euo pipefail; "+tc.command); !strings.HasSuffix(printed, "/managed-upgrade-config created\n") || strings.Contains(printed, "Warning") {
				t.Fatalf("it prints %s", printed)
			}
			created := &v1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "managed-upgrade-config"}}
			awaitStatus(t, userClient, created, v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Scheduled")
			awaitStatus(t, userClient, created, v1alpha1.ConditionPreCheckPassed, metav1.ConditionTrue, ".*")
			if got := created.Spec.Desired; !regexp.MustCompile("^("+tc.versions+")$").MatchString(got.Version) || got.Channel != channel || len(got.AcceptedRisks) != tc.risks {
				t.Errorf("it requests %+v, want version %s of %s with %d accepted risks", got, tc.versions, channel, tc.risks)
			}
			at, err := time.Parse(time.RFC3339, created.Spec.UpgradeAt)
			if err != nil || time.Until(at) < 5*time.Minute || time.Until(at) > 10*time.Minute {
				t.Errorf("it requests the upgrade at %s, want ten minutes from now", created.Spec.UpgradeAt)
			}
			if err := userClient.Delete(t.Context(), created); err != nil {
				t.Fatal(err)
			}
			eventually(t, time.Minute, "the UpgradeConfig is deleted", func(ctx context.Context) error {
				err := userClient.Get(ctx, client.ObjectKeyFromObject(created), created)
				if err == nil {
					return errors.New("it exists")
				}
				return client.IgnoreNotFound(err)
			})
		})
	}
	t.Run("approval", func(t *testing.T) {
		approved := upgradeTo("4.20.6")
		approved.Name, approved.Spec.UpgradeAt = "cluster", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		approved = applyUpgrade(t, userClient, approved)
		awaitStatus(t, userClient, approved, v1alpha1.ConditionProgressing, metav1.ConditionFalse, "Scheduled")
		block := shellBlock.FindStringSubmatch(readFile(t, filepath.Join(repository, "docs/concepts/approvals.md")))[1]
		if printed := term.run(t.Context(), t, strings.ReplaceAll(block, "kubectl ", "oc ")); !strings.HasSuffix(printed, "/cluster serverside-applied\n") {
			t.Fatalf("it prints %s", printed)
		}
		awaitStatus(t, userClient, approved, v1alpha1.ConditionApproved, metav1.ConditionTrue, "CHG0042")
	})
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestDocumentedManifests applies each object that a page shows, as a dry run.
func TestDocumentedManifests(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))
	pages := []string{filepath.Join(repository, "README.md"), filepath.Join(repository, "CONTRIBUTING.md")}
	err := filepath.WalkDir(filepath.Join(repository, "docs"), func(path string, entry fs.DirEntry, err error) error {
		if err == nil && filepath.Ext(path) == ".md" && !entry.IsDir() {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, page := range pages {
		for _, block := range yamlBlock.FindAllStringSubmatch(readFile(t, page), -1) {
			example := &unstructured.Unstructured{}
			if err := yaml.Unmarshal([]byte(block[1]), &example.Object); err != nil {
				t.Errorf("%s: %v\n%s", page, err, block[1])
				continue
			}
			if example.GetKind() == "" {
				continue // a part of a file
			}
			found++
			if example.GetKind() == config.Kind {
				if _, err := config.Parse([]byte(block[1])); err != nil {
					t.Errorf("%s: %v", page, err)
				}
				continue
			}
			if err := server.client.Create(t.Context(), example, client.DryRunAll); err != nil && !apierrors.IsAlreadyExists(err) {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
	if found < 2 {
		t.Errorf("found %d manifests in %d pages", found, len(pages))
	}
}

// Without an offer the samples report that, and print no manifest.
func TestSamplesWithoutAnUpdate(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	script := "#!/usr/bin/env bash\n[[ $* != *channel* ]] || echo -n stable-4.20\n"
	if err := os.WriteFile(filepath.Join(folder, "oc"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, sample := range []string{"upgradeconfig.sh", "upgradeconfig-conditional.sh"} {
		cmd := exec.CommandContext(t.Context(), filepath.Join(deployFolder, "samples", sample))
		cmd.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		stdout, err := cmd.Output()
		if err == nil || len(stdout) > 0 || !strings.HasPrefix(stderr.String(), "no update is ") {
			t.Errorf("%s: error %v, prints %q, and %q to stderr", sample, err, stdout, &stderr)
		}
	}
}
