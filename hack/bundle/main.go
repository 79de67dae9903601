// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The bundle program separates rendered manifests into those that a bundle of the Operator Lifecycle
// Manager can have, and those that an administrator applies beside it: the Operator Lifecycle Manager
// creates objects in the namespace of the operator only, and not every kind.
//
// Usage: bundle FILE
//
// It reads the manifests from the standard input, writes those for the bundle to the standard
// output, and the other ones to the file. A Namespace is in neither.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// supported are the kinds of our manifests that a bundle can have.
var supported = []string{
	"ClusterRole", "ClusterRoleBinding", "ConfigMap", "CustomResourceDefinition", "Deployment", "PodDisruptionBudget",
	"PrometheusRule", "Role", "RoleBinding", "Service", "ServiceAccount", "ServiceMonitor",
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("got %d arguments, want the file for the manifests beside the bundle", len(os.Args)-1)
	}
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	bundle, beside, err := separate(input)
	if err != nil {
		return err
	}
	if err := os.WriteFile(os.Args[1], beside, 0o644); err != nil { //nolint:gosec // manifests are public
		return err
	}
	_, err = os.Stdout.Write(bundle)
	return err
}

type manifest struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name      string `json:"name"`
		Namespace string `json:"namespace"`
	} `json:"metadata"`
	RoleRef struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
	} `json:"roleRef"`
}

// separate returns the documents for the bundle, and those that are applied beside it.
func separate(input []byte) (bundle, beside []byte, err error) {
	documents := bytes.Split(input, []byte("\n---\n"))
	manifests := make([]manifest, len(documents))
	home, roles := "", map[string]bool{}
	for i, document := range documents {
		m := &manifests[i]
		if err := yaml.Unmarshal(document, m); err != nil {
			return nil, nil, fmt.Errorf("decoding document %d: %w", i+1, err)
		}
		switch m.Kind {
		case "Deployment":
			home = m.Metadata.Namespace
		case "Role", "ClusterRole":
			roles[m.Kind+"/"+m.Metadata.Namespace+"/"+m.Metadata.Name] = true
		}
	}
	for i, m := range manifests {
		if m.Kind == "Namespace" {
			continue
		}
		out := &bundle
		namespaced := m.Metadata.Namespace != ""
		elsewhere := namespaced && m.Metadata.Namespace != home
		// The operator-sdk writes the permissions of a binding into the ClusterServiceVersion, and needs the role for that.
		roleOfOthers := m.RoleRef.Name != "" && !roles[m.RoleRef.Kind+"//"+m.RoleRef.Name] && !roles[m.RoleRef.Kind+"/"+m.Metadata.Namespace+"/"+m.RoleRef.Name]
		if elsewhere || roleOfOthers || !slices.Contains(supported, m.Kind) {
			out = &beside
		}
		*out = append(*out, "---\n"...)
		*out = append(*out, bytes.TrimSpace(documents[i])...)
		*out = append(*out, '\n')
	}
	return bundle, beside, nil
}
