// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// TestExamples runs the commands of docs/first-upgrade.md that create an UpgradeConfig, and applies deploy/samples. What
// they create is accepted and scheduled soon, and nothing would block it. It also approves an upgrade as
// docs/concepts/approvals.md does.
func TestExamples(t *testing.T) { //nolint:tparallel // all create an object of one name
	t.Parallel()
	cluster := startCluster(t, openshiftsim.ClusterSpec{Speed: fast, Releases: []updategraph.Release{
		{Version: "4.20.6", Channels: []string{channel}},
		{Version: "4.20.10", Channels: []string{channel}},
		{Version: "4.20.11", Channels: []string{channel}, Risks: []updategraph.Risk{
			{Name: "SlowBoots", Message: "Nodes boot slowly.", URL: "https://example.com", Applies: updategraph.Yes}, {Name: "OldFirmware", Message: "The firmware is old.", URL: "https://example.com", Applies: updategraph.Yes},
		}},
	}})
	userClient := newUserClient(t, cluster)
	operator := startOperator(t, cluster, devcluster.OperatorOptions{})
	term := newTerminal(t, cluster, operator)
	intro := strings.TrimSpace(shellBlock.FindStringSubmatch(readFile(t, filepath.Join(repository, "docs/first-upgrade.md")))[1])
	program := "KUBECONFIG=" + cluster.Path("kubeconfig") + " " + filepath.Join(cluster.BinDir(), "kubectl-update")

	for name, tc := range map[string]struct {
		command  string
		versions string
		risks    int
	}{
		"first upgrade": {strings.Replace(intro, "oc update", program, 1) + " -y", "4.20.10", 0},
		"a release":     {program + " schedule --to 4.20.6 -o yaml | oc apply --validate=strict -f -", "4.20.6", 0},
		"known risks":   {program + " schedule -y --to 4.20.11 --accept-risk SlowBoots,OldFirmware", "4.20.11", 2},
	} {
		t.Run(name, func(t *testing.T) {
			if printed := term.run(t.Context(), t, "set -euo pipefail; "+tc.command); !strings.Contains(printed, "/managed-upgrade-config ") || strings.Contains(printed, "Warning") {
				t.Fatalf("it prints %s", printed)
			}
			created := &upgradev1alpha1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: home, Name: "managed-upgrade-config"}}
			awaitStatus(t, userClient, created, upgradev1alpha1.ConditionProgressing, metav1.ConditionFalse, "Scheduled")
			awaitStatus(t, userClient, created, upgradev1alpha1.ConditionPreCheckPassed, metav1.ConditionTrue, ".*")
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
	t.Run("samples", func(t *testing.T) {
		for _, folder := range []string{"upgrade", "scheduled-maintenance"} {
			printed := term.run(t.Context(), t, "oc apply --validate=strict -f "+filepath.Join(deployFolder, "samples", folder))
			if strings.Count(printed, " created\n") != strings.Count(printed, "\n") {
				t.Errorf("samples/%s: it prints %s", folder, printed)
			}
		}
		eventually(t, time.Minute, "each sample is accepted", func(ctx context.Context) error {
			printed := term.run(ctx, t, `oc get upgrade,maintenance -n `+home+` -o jsonpath='{range .items[*]}{.kind} {.status.conditions[?(@.type=="Accepted")].status}{"\n"}{end}'`)
			for line := range strings.Lines(printed) {
				if kind, accepted, _ := strings.Cut(strings.TrimSpace(line), " "); accepted != "True" && kind != "UpgradeSuspensionWindow" {
					return fmt.Errorf("accepted: %s", printed)
				}
			}
			return nil
		})
		term.run(t.Context(), t, "oc delete upgrade,maintenance -n "+home+" --all")
	})
	t.Run("approval", func(t *testing.T) {
		approved := upgradeTo("4.20.6")
		approved.Name, approved.Spec.UpgradeAt = "cluster", time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
		approved = applyUpgrade(t, userClient, approved)
		awaitStatus(t, userClient, approved, upgradev1alpha1.ConditionProgressing, metav1.ConditionFalse, "Scheduled")
		block := shellBlock.FindStringSubmatch(readFile(t, filepath.Join(repository, "docs/concepts/approvals.md")))[1]
		if printed := term.run(t.Context(), t, strings.ReplaceAll(block, "kubectl ", "oc ")); !strings.HasSuffix(printed, "/cluster serverside-applied\n") {
			t.Fatalf("it prints %s", printed)
		}
		awaitStatus(t, userClient, approved, upgradev1alpha1.ConditionApproved, metav1.ConditionTrue, "CHG0042")
	})
}

var yamlBlock = regexp.MustCompile("(?ms)^```yaml\n(.*?)^```$")

// TestDocumentedManifests applies each object that a page shows, as a dry run.
func TestDocumentedManifests(t *testing.T) {
	t.Parallel()
	server := startServer(t)
	server.openshift(t)
	server.apply(t, kustomized(t))
	server.apply(t, kustomizedFrom(t, deployFolder+"/hub/crds"))
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
