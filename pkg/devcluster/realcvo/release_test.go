// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package realcvo

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

func operator(t *testing.T) *Operator {
	t.Helper()
	key, err := NewKey()
	if err != nil {
		t.Fatal(err)
	}
	return &Operator{options: Options{
		Dir: t.TempDir(), Key: key, Operators: []cvo.OperatorSpec{{Name: "etcd"}, {Name: "network"}},
		Catalog: updategraph.NewCatalog(
			updategraph.Release{Version: "4.20.6", Channels: []string{"stable-4.20"}},
			updategraph.Release{Version: "4.20.7", Refused: "manifest unknown"},
		),
	}}
}

// retrieval returns a pod like the ones that copy a release out of its image for the cluster
// version operator.
func retrieval(version string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Labels: map[string]string{"k8s-app": "retrieve-openshift-release"}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Image: updategraph.Release{Version: version}.Image(), Command: []string{"mv", "/etc/cvo/updatepayloads/new", "/etc/cvo/updatepayloads/hash"},
		}}},
	}
}

func TestPod_writes_the_release_to_its_destination(t *testing.T) {
	t.Parallel()
	o := operator(t)
	if err := o.Run(t.Context(), retrieval("4.20.6")); err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(o.options.Dir, "etc/cvo/updatepayloads/hash")
	for file, holds := range map[string]string{
		"release-manifests/release-metadata":                        `"version":"4.20.6"`,
		"release-manifests/image-references":                        `"name":"4.20.6"`,
		"release-manifests/0000_01_signatures_verification.yaml":    "BEGIN PGP PUBLIC KEY BLOCK",
		"release-manifests/0000_11_network_01_images.yaml":          `"releaseVersion":"4.20.6"`,
		"release-manifests/0000_11_network_02_clusteroperator.yaml": `"version":"4.20.6"`,
		"manifests/0000_00_cluster-version-operator_03_deployment.yaml": "--release-image=" +
			updategraph.Release{Version: "4.20.6"}.Image(),
	} {
		content, err := os.ReadFile(filepath.Join(folder, file))
		if err != nil {
			t.Error(err)
			continue
		}
		if !strings.Contains(string(content), holds) {
			t.Errorf("%s does not hold %s: %s", file, holds, content)
		}
		if !strings.Contains(string(content), included) && strings.HasSuffix(file, ".yaml") {
			t.Errorf("%s would be left out: %s", file, content)
		}
	}
}

func TestPod_that_cannot_unpack_fails_with_the_reason(t *testing.T) {
	t.Parallel()
	stranger := retrieval("4.20.6")
	stranger.Spec.Containers[0].Command = []string{"mv", "/new", "/etc/cvo/../../../elsewhere"}
	for name, test := range map[string]struct {
		pod  *corev1.Pod
		want string
	}{
		"unknown image":       {retrieval("4.20.9"), "manifest unknown"},
		"rejected release":    {retrieval("4.20.7"), "manifest unknown"},
		"unknown destination": {stranger, "no simulator for command"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := operator(t).Run(t.Context(), test.pod)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestPods_of_others_are_ignored(t *testing.T) {
	t.Parallel()
	if err := operator(t).Run(t.Context(), &corev1.Pod{}); err != nil {
		t.Error(err)
	}
}
