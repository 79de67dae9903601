// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hack

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestBundle_layout checks that the bundle is where operator-sdk and catalogs expect it: everything
// that bundle.Dockerfile copies is in the top folder and in the build context, and its labels match
// the annotations.
func TestBundle_layout(t *testing.T) {
	t.Parallel()
	image := t.TempDir()
	labels := map[string]string{}
	for line := range strings.Lines(string(readFile(t, "../bundle.Dockerfile"))) {
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "COPY":
			copyContext(t, words[1], filepath.Join(image, words[2]), false)
		case len(words) == 2 && words[0] == "LABEL":
			name, value, _ := strings.Cut(words[1], "=")
			labels[name] = value
		}
	}
	for _, folder := range []string{"manifests", "metadata", "tests/scorecard"} {
		if files, err := os.ReadDir(filepath.Join(image, folder)); err != nil || len(files) == 0 {
			t.Errorf("the image of the bundle has no %s: %v", folder, err)
		}
	}
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	if err := yaml.UnmarshalStrict(readFile(t, "../bundle/metadata/annotations.yaml"), &metadata); err != nil {
		t.Fatal(err)
	}
	for name, value := range metadata.Annotations {
		if labels[name] != value {
			t.Errorf("label %s of the image is %q, and the annotation is %q", name, labels[name], value)
		}
	}
	if len(labels) != len(metadata.Annotations) {
		t.Errorf("the image has %d labels, and the bundle %d annotations", len(labels), len(metadata.Annotations))
	}
}

// TestBundle_has_what_catalogs_want checks the annotations that OpenShift's catalogs use to select
// and show bundles. The releases come from the support matrix and the API server used in tests: 4.y
// contains Kubernetes 1.(y+13).
func TestBundle_has_what_catalogs_want(t *testing.T) {
	t.Parallel()
	var metadata struct {
		Annotations map[string]string `json:"annotations"`
	}
	var version struct {
		Metadata struct {
			Annotations map[string]string `json:"annotations"`
		} `json:"metadata"`
	}
	for file, into := range map[string]any{"metadata/annotations.yaml": &metadata, "manifests/managed-upgrade-operator.clusterserviceversion.yaml": &version} {
		if err := yaml.Unmarshal(readFile(t, "../bundle/"+file), into); err != nil {
			t.Fatal(err)
		}
	}
	oldest := regexp.MustCompile(`\| 4\.(\d+) and later \|`).FindSubmatch(readFile(t, "../docs/migrate.md"))
	tested := regexp.MustCompile(`k8s\.io/kubernetes v1\.(\d+)\.`).FindSubmatch(readFile(t, "tools/kubernetes/go.mod"))
	if oldest == nil || tested == nil {
		t.Fatalf("the support matrix has %s, and the API server of the tests is %s", oldest, tested)
	}
	if got, want := metadata.Annotations["com.redhat.openshift.versions"], "v4."+string(oldest[1]); got != want {
		t.Errorf("the bundle is for OpenShift %q, want %q and later", got, want)
	}
	minor, err := strconv.Atoi(string(tested[1]))
	if err != nil {
		t.Fatal(err)
	}
	var properties []struct{ Type, Value string }
	if err := json.Unmarshal([]byte(version.Metadata.Annotations["olm.properties"]), &properties); err != nil || len(properties) != 1 {
		t.Fatalf("the properties are %v: %v", properties, err)
	}
	if want := fmt.Sprintf("4.%d", minor-13); properties[0].Type != "olm.maxOpenShiftVersion" || properties[0].Value != want {
		t.Errorf("got %v, want at most OpenShift %s, which the tests cover", properties, want)
	}
	for _, feature := range []string{"cnf", "cni", "csi", "disconnected", "fips-compliant", "proxy-aware", "tls-profiles", "token-auth-aws", "token-auth-azure", "token-auth-gcp"} {
		if value := version.Metadata.Annotations["features.operators.openshift.io/"+feature]; value != "true" && value != "false" {
			t.Errorf("feature %s is %q, must be true or false", feature, value)
		}
	}
}
