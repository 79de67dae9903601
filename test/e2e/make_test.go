// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
)

// TestMake_installs_and_removes runs the targets of make that kubebuilder users expect, in two orders: the CRDs
// alone, and the whole operator.
func TestMake_installs_and_removes(t *testing.T) {
	t.Parallel()
	s := startServerWith(t, controlplane.Options{Controllers: []string{"namespace-controller", "garbage-collector-controller"}})
	s.openshift(t)
	kubectl := fmt.Sprintf("KUBECTL=%s --kubeconfig=%s", filepath.Join(s.BinDir(), "kubectl"), s.kubeconfig)
	const image = "IMG=registry.example.com/operator:v0.1.0"
	operator := client.ObjectKey{Namespace: home, Name: home}

	for _, step := range []struct {
		target         string
		crds, deployed bool
	}{
		{target: "install", crds: true},
		{target: "uninstall"},
		{target: "deploy", crds: true, deployed: true},
		{target: "undeploy"},
	} {
		run := exec.CommandContext(t.Context(), "make", "-C", repository, step.target, kubectl, image)
		if printed, err := run.CombinedOutput(); err != nil {
			t.Fatalf("make %s: %v\n%s", step.target, err, printed)
		}
		for _, object := range kustomizedFrom(t, deployFolder+"/crds") {
			if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(object), object); (err == nil) != step.crds {
				t.Errorf("after make %s, %s: %v", step.target, object.GetName(), err)
			}
		}
		var deployed appsv1.Deployment
		if err := s.client.Get(t.Context(), operator, &deployed); (err == nil) != step.deployed {
			t.Errorf("after make %s, the Deployment: %v", step.target, err)
		} else if step.deployed && "IMG="+deployed.Spec.Template.Spec.Containers[0].Image != image {
			t.Errorf("make deploy installs %s, want %s", deployed.Spec.Template.Spec.Containers[0].Image, image)
		}
	}
}
