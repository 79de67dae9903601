// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestWatchMoreNamespaces follows docs/namespaces.md and runs the operator with the flags that its
// Deployment has afterward.
func TestWatchMoreNamespaces(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.openshift(t)
	s.apply(t, kustomized(t))
	if err := s.client.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}); err != nil {
		t.Fatal(err)
	}
	kubeconfig, _ := s.account(t, home)

	early := startReplica(t, kubeconfig, "--leader-elect=false", "--watch-namespaces=shop")
	waitUntil(t, "a replica without the permissions names the namespace", func(ctx context.Context) bool {
		log := early.readLog(t)
		return early.probe(ctx, "/readyz") != http.StatusOK && strings.Contains(log, "forbidden") && strings.Contains(log, `in the namespace \"shop\"`)
	})
	if err := early.process.Stop(time.Minute); err != nil {
		t.Fatal(err)
	}

	for _, block := range shellBlock.FindAllStringSubmatch(readFile(t, "../../docs/namespaces.md"), -1) {
		s.shell(t, block[1])
	}
	operator := startReplica(t, kubeconfig, "--leader-elect=false", s.deployedFlag(t, "--watch-namespaces="))
	waitUntil(t, "the operator is ready", func(ctx context.Context) bool {
		return operator.probe(ctx, "/readyz") == http.StatusOK
	})
	for _, namespace := range []string{home, "shop"} {
		upgrade := object(upgradeConfigKind, namespace, "cluster", map[string]any{"spec": map[string]any{
			"type": "OSD", "upgradeAt": "2030-01-31T01:00:00Z", "PDBForceDrainTimeout": int64(60),
			"desired": map[string]any{"version": "4.20.6", "channel": "stable-4.20"},
		}})
		if err := s.client.Create(t.Context(), upgrade); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, "the UpgradeConfig in "+namespace+" has a status", func(ctx context.Context) error {
			if err := s.client.Get(ctx, client.ObjectKeyFromObject(upgrade), upgrade); err != nil {
				return err
			}
			if conditions, _, err := unstructured.NestedSlice(upgrade.Object, "status", "conditions"); err != nil || len(conditions) == 0 {
				return errors.Join(err, errors.New("there are no conditions"))
			}
			return nil
		})
	}
}

// shell runs a script whose oc is kubectl.
func (s *server) shell(t *testing.T, script string) string {
	t.Helper()
	folder := t.TempDir()
	oc := fmt.Sprintf("#!/usr/bin/env bash\nexec %s --kubeconfig %s \"$@\"\n", filepath.Join(s.BinDir(), "kubectl"), s.kubeconfig)
	if err := os.WriteFile(filepath.Join(folder, "oc"), []byte(oc), 0o700); err != nil {
		t.Fatal(err)
	}
	return terminal{folder}.run(t.Context(), t, "set -e\n"+script)
}

// deployedFlag returns the flag of the deployed operator with that prefix.
func (s *server) deployedFlag(t *testing.T, prefix string) string {
	t.Helper()
	var deployed appsv1.Deployment
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: home, Name: home}, &deployed); err != nil {
		t.Fatal(err)
	}
	args := deployed.Spec.Template.Spec.Containers[0].Args
	i := slices.IndexFunc(args, func(arg string) bool { return strings.HasPrefix(arg, prefix) })
	if i < 0 {
		t.Fatalf("the Deployment has %q, want a flag %s", args, prefix)
	}
	return args[i]
}
