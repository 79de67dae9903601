// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// plugin is a krew manifest, apiVersion krew.googlecontainertools.github.com/v1alpha2. See
// https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest/.
type plugin struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Spec struct {
		Version          string     `json:"version"`
		Homepage         string     `json:"homepage"`
		ShortDescription string     `json:"shortDescription"`
		Description      string     `json:"description"`
		Caveats          string     `json:"caveats"`
		Platforms        []platform `json:"platforms"`
	} `json:"spec"`
}

type platform struct {
	Selector struct {
		MatchLabels map[string]string `json:"matchLabels"`
	} `json:"selector"`
	URI    string `json:"uri"`
	SHA256 string `json:"sha256"`
	Bin    string `json:"bin"`
}

// TestKrewManifest checks the manifest against the rules of krew's index, after filling in the version and
// checksums like hack/krew.sh does.
func TestKrewManifest(t *testing.T) {
	t.Parallel()
	const path = "../../deploy/krew/openshift-update.yaml"
	template, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	filled := regexp.MustCompile(`SHA256_[a-z0-9_]+`).ReplaceAllString(strings.ReplaceAll(string(template), "VERSION", "v1.2.3"), strings.Repeat("0a", 32))
	var p plugin
	if err := yaml.UnmarshalStrict([]byte(filled), &p); err != nil {
		t.Fatal(err)
	}
	name := strings.TrimSuffix(path[strings.LastIndex(path, "/")+1:], ".yaml")
	switch {
	case p.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || p.Kind != "Plugin":
		t.Errorf("it is a %s of %s", p.Kind, p.APIVersion)
	case p.Metadata.Name != name || !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(name):
		t.Errorf("the name %q must be that of the file, in lower case and with dashes", p.Metadata.Name)
	case p.Spec.Version != "v1.2.3" || p.Spec.Homepage == "" || p.Spec.Description == "":
		t.Errorf("the version, homepage, or description is missing: %+v", p.Spec)
	case len(p.Spec.ShortDescription) == 0 || len(p.Spec.ShortDescription) > 50 || strings.HasSuffix(p.Spec.ShortDescription, "."):
		t.Errorf("the short description %q must be a phrase of at most 50 characters", p.Spec.ShortDescription)
	case strings.Contains(strings.ToLower(p.Spec.ShortDescription), "kubectl"):
		t.Errorf("the short description %q repeats kubectl", p.Spec.ShortDescription)
	}
	seen := map[string]bool{}
	for _, of := range p.Spec.Platforms {
		system, arch := of.Selector.MatchLabels["os"], of.Selector.MatchLabels["arch"]
		program := "kubectl-update"
		if system == "windows" {
			program += ".exe"
		}
		if seen[system+arch] || len(of.Selector.MatchLabels) != 2 || of.Bin != program {
			t.Errorf("platform %v is repeated, or has another program than %s: %q", of.Selector.MatchLabels, program, of.Bin)
		}
		seen[system+arch] = true
		archive := p.Spec.Homepage + "/releases/download/v1.2.3/kubectl-update_" + system + "_" + arch + ".tar.gz"
		if of.URI != archive || !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(of.SHA256) {
			t.Errorf("platform %s/%s: archive %s with checksum %s, want %s", system, arch, of.URI, of.SHA256, archive)
		}
		if !strings.Contains(string(template), "SHA256_"+system+"_"+arch+"\n") {
			t.Errorf("platform %s/%s has the checksum of another one", system, arch)
		}
	}
	for _, want := range []string{"linuxamd64", "linuxarm64", "darwinamd64", "darwinarm64", "windowsamd64"} {
		if !seen[want] {
			t.Errorf("the platforms are %v, want %s", seen, want)
		}
	}
}
