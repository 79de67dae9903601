// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

const (
	packageName = "managed-upgrade-operator"
	versionFile = "manifests/" + packageName + ".clusterserviceversion.yaml"
)

// writeBase writes the base of the ClusterServiceVersion.
func writeBase(image, version string) error {
	base, err := read("deploy/olm/base.yaml")
	if err != nil {
		return err
	}
	icon, err := os.ReadFile("deploy/olm/icon.svg")
	if err != nil {
		return err
	}
	description, found, err := unstructured.NestedString(base, "spec", "description")
	if !found {
		return errors.Join(err, errors.New("the base has no description"))
	}
	err = errors.Join(
		unstructured.SetNestedField(base, strings.ReplaceAll(description, "?ref=v0.0.0", "?ref="+version), "spec", "description"),
		unstructured.SetNestedField(base, image, "metadata", "annotations", "containerImage"),
		unstructured.SetNestedSlice(base, []any{map[string]any{"base64data": base64.StdEncoding.EncodeToString(icon), "mediatype": "image/svg+xml"}}, "spec", "icon"),
	)
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(base)
	if err == nil {
		_, err = os.Stdout.Write(text)
	}
	return err
}

// catalogAnnotations are bundle annotations that operator-sdk does not write.
var catalogAnnotations = map[string]any{
	"operators.operatorframework.io.test.config.v1":    "tests/scorecard/",
	"operators.operatorframework.io.test.mediatype.v1": "scorecard+v1",
	"com.redhat.openshift.versions":                    "v4.17",
}

// complete completes the bundle in the folder bundle. operator-sdk writes the time and its own
// name, and finds images only in environment variables.
func complete(image string, replaces []string) error {
	version, err := read("bundle/" + versionFile)
	if err != nil {
		return err
	}
	for _, name := range []string{"createdAt", "operators.operatorframework.io/builder", "operators.operatorframework.io/project_layout"} {
		unstructured.RemoveNestedField(version, "metadata", "annotations", name)
	}
	err = unstructured.SetNestedSlice(version, []any{map[string]any{"image": image, "name": packageName}}, "spec", "relatedImages")
	if err == nil && len(replaces) > 0 {
		err = unstructured.SetNestedField(version, packageName+"."+replaces[0], "spec", "replaces")
	}
	if err == nil {
		err = write("bundle/"+versionFile, version)
	}
	if err != nil {
		return err
	}
	const file = "bundle/metadata/annotations.yaml"
	metadata, err := read(file)
	if err != nil {
		return err
	}
	annotations, is := metadata["annotations"].(map[string]any)
	if !is {
		return fmt.Errorf("%s has no annotations", file)
	}
	for name := range annotations {
		if strings.HasPrefix(name, "operators.operatorframework.io.metrics") {
			delete(annotations, name)
		}
	}
	maps.Copy(annotations, catalogAnnotations)
	return write(file, metadata)
}

// writeChannel writes the package and the channel of a catalog.
func writeChannel(bundles []string) error {
	var entries []any
	for _, bundle := range bundles {
		version, err := read(filepath.Join(bundle, versionFile))
		if err != nil {
			return err
		}
		name, found, err := unstructured.NestedString(version, "metadata", "name")
		if !found {
			return errors.Join(err, fmt.Errorf("%s has no name", bundle))
		}
		entry := map[string]any{"name": name}
		if replaces, found, _ := unstructured.NestedString(version, "spec", "replaces"); found {
			entry["replaces"] = replaces
		}
		entries = append(entries, entry)
	}
	for _, document := range []map[string]any{
		{"schema": "olm.package", "name": packageName, "defaultChannel": "stable"},
		{"schema": "olm.channel", "package": packageName, "name": "stable", "entries": entries},
	} {
		text, err := yaml.Marshal(document)
		if err != nil {
			return err
		}
		fmt.Printf("---\n%s", text)
	}
	return nil
}

func read(file string) (map[string]any, error) {
	text, err := os.ReadFile(file) //nolint:gosec // the caller names the files
	if err != nil {
		return nil, err
	}
	var object map[string]any
	if err := yaml.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("decoding %s: %w", file, err)
	}
	return object, nil
}

func write(file string, object map[string]any) error {
	text, err := yaml.Marshal(object)
	if err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o644) //nolint:gosec // manifests are public
}
