// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The bundle program splits rendered manifests into those that belong to a bundle for the Operator
// Lifecycle Manager and those that must be applied separately, because the Operator Lifecycle
// Manager does not create every kind.
//
// It creates Roles and RoleBindings only in the namespace of the operator. In a bundle, permissions
// in other namespaces become ClusterRoles and ClusterRoleBindings, so the operator works without
// further objects.
//
// Usage:
//
//	bundle separate FILE              reads manifests from stdin, writes those for the bundle to stdout, and the others
//	                                  to FILE. Neither output contains a Namespace.
//	bundle base IMAGE VERSION         writes the ClusterServiceVersion of deploy/olm with the icon, the image, and the version.
//	bundle complete IMAGE [VERSION]   completes the bundle that operator-sdk has written to the folder bundle; it replaces VERSION.
//	bundle channel FOLDER...          writes the package and the channel of a catalog with these bundles, oldest first.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"slices"

	"sigs.k8s.io/yaml"
)

// supported lists the kinds in our manifests that a bundle can contain and that are not changed
// after installation. ConfigMaps are not included: OpenShift injects CAs into them, and the
// Operator Lifecycle Manager would remove these with every upgrade.
var supported = []string{
	"ClusterRole", "ClusterRoleBinding", "CustomResourceDefinition", "Deployment", "PodDisruptionBudget",
	"PrometheusRule", "Role", "RoleBinding", "Service", "ServiceAccount", "ServiceMonitor",
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bundle:", err)
		os.Exit(1)
	}
}

func run() error {
	args := os.Args[1:]
	switch {
	case len(args) == 2 && args[0] == "separate":
		input, err := io.ReadAll(os.Stdin)
		if err != nil {
			return err
		}
		bundle, beside, err := separate(input)
		if err != nil {
			return err
		}
		if err := os.WriteFile(args[1], beside, 0o644); err != nil { //nolint:gosec // manifests are public
			return err
		}
		_, err = os.Stdout.Write(bundle)
		return err
	case len(args) == 3 && args[0] == "base":
		return writeBase(args[1], args[2])
	case len(args) >= 2 && len(args) <= 3 && args[0] == "complete":
		return complete(args[1], args[2:])
	case len(args) >= 2 && args[0] == "channel":
		return writeChannel(args[1:])
	}
	return fmt.Errorf("got the arguments %q, want separate, base, complete, or channel", args)
}

type manifest struct {
	Kind     string   `json:"kind"`
	Metadata metadata `json:"metadata"`
	RoleRef  roleRef  `json:"roleRef"`
}

type metadata struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}

type roleRef struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
}

// rulesOfOthers contains the rules of OpenShift's Roles by namespace and name. The bundle copies
// them to a ClusterRole because it cannot bind Roles in other namespaces.
var rulesOfOthers = map[string][]map[string]any{
	"openshift-monitoring/monitoring-alertmanager-edit": {{
		"apiGroups": []string{"monitoring.coreos.com"}, "resources": []string{"alertmanagers/api"}, "resourceNames": []string{"main"},
		"verbs": []string{"create", "delete", "get", "list", "patch", "update"},
	}},
}

// separate returns the documents for the bundle and those to apply separately.
func separate(input []byte) (bundle, beside []byte, err error) {
	documents := bytes.Split(input, []byte("\n---\n"))
	manifests := make([]manifest, len(documents))
	home := ""
	for i, document := range documents {
		m := &manifests[i]
		if err := yaml.Unmarshal(document, m); err != nil {
			return nil, nil, fmt.Errorf("decoding document %d: %w", i+1, err)
		}
		if m.Kind == "Deployment" {
			home = m.Metadata.Namespace
		}
	}
	for i, m := range manifests {
		out := &bundle
		added := [][]byte{bytes.TrimSpace(documents[i])}
		elsewhere := m.Metadata.Namespace != "" && m.Metadata.Namespace != home
		switch {
		case m.Kind == "Namespace":
			continue
		case elsewhere && (m.Kind == "Role" || m.Kind == "RoleBinding"):
			if added, err = forCluster(documents[i], m); err != nil {
				return nil, nil, fmt.Errorf("%s %s in namespace %s: %w", m.Kind, m.Metadata.Name, m.Metadata.Namespace, err)
			}
		case elsewhere || !slices.Contains(supported, m.Kind):
			out = &beside
		}
		for _, document := range added {
			*out = append(*out, "---\n"...)
			*out = append(*out, bytes.TrimSpace(document)...)
			*out = append(*out, '\n')
		}
	}
	return bundle, beside, nil
}

// forCluster converts a namespaced Role or RoleBinding to a cluster-wide object. It also returns
// the ClusterRole that replaces a Role of OpenShift.
func forCluster(document []byte, m manifest) ([][]byte, error) {
	var object map[string]any
	if err := yaml.Unmarshal(document, &object); err != nil {
		return nil, err
	}
	labels := any(nil)
	if from, is := object["metadata"].(map[string]any); is {
		labels = from["labels"]
	}
	rename := func(name string) string { return name + "-" + m.Metadata.Namespace }
	object["kind"] = "Cluster" + m.Kind
	object["metadata"] = map[string]any{"name": rename(m.Metadata.Name), "labels": labels}
	objects := []map[string]any{object}
	if m.Kind == "RoleBinding" {
		object["roleRef"] = map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": rename(m.RoleRef.Name)}
		if rules := rulesOfOthers[m.Metadata.Namespace+"/"+m.RoleRef.Name]; rules != nil {
			objects = append(objects, map[string]any{
				"apiVersion": object["apiVersion"], "kind": "ClusterRole", "rules": rules,
				"metadata": map[string]any{"name": rename(m.RoleRef.Name), "labels": labels},
			})
		}
	}
	var documents [][]byte
	for _, each := range objects {
		text, err := yaml.Marshal(each)
		if err != nil {
			return nil, err
		}
		documents = append(documents, text)
	}
	return documents, nil
}
