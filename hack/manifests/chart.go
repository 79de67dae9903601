// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// releaseNamespace is the namespace in the manifests of deploy/helm.
const releaseNamespace = "namespace-of-the-release"

// fromValues lists the fields of the Deployment that are set by chart values.
var fromValues = map[string]string{
	"replicas": ".Values.replicas", "tolerations": ".Values.tolerations", "resources": ".Values.resources",
}

// chart replaces fields of the manifests with values of a Helm chart. It returns the objects and a
// replacer that turns their YAML into a template. The Namespace is omitted, because Helm stores the
// release there before it creates anything.
func chart(objects []any) ([]any, *strings.Replacer) {
	kept := make([]any, 0, len(objects))
	escapes := []string{"{{", `{{ "{{" }}`, "}}", `{{ "}}" }}`, releaseNamespace, "{{ .Release.Namespace }}"}
	// insert returns a placeholder for the value of a template expression.
	insert := func(expression string) string {
		text := fmt.Sprintf("expression-%d-", len(escapes))
		escapes = append(escapes, text, "{{ toJson ("+expression+") }}")
		return text
	}
	for _, value := range objects {
		object, _ := value.(map[string]any)
		switch object["kind"] {
		case "Namespace":
			continue
		case "CustomResourceDefinition": // uninstalling the release keeps the upgrades and their histories
			annotations, _ := field(object, "metadata", "annotations").(map[string]any)
			annotations["helm.sh/resource-policy"] = "keep"
		case "Deployment":
			parameterize(object, insert)
		}
		kept = append(kept, value)
	}
	return kept, strings.NewReplacer(escapes...)
}

func parameterize(deployment map[string]any, insert func(expression string) string) {
	spec, _ := field(deployment, "spec").(map[string]any)
	pod, _ := field(spec, "template", "spec").(map[string]any)
	containers, _ := pod["containers"].([]any)
	container, _ := containers[0].(map[string]any)
	// Helm merges maps: if the values contained the default, a user's selector would be added to it.
	selector, err := json.Marshal(pod["nodeSelector"])
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	pod["nodeSelector"] = insert(fmt.Sprintf(".Values.nodeSelector | default (fromJson %q)", selector))
	for name, expression := range fromValues {
		for _, of := range []map[string]any{spec, pod, container} {
			if _, found := of[name]; found {
				of[name] = insert(expression)
			}
		}
	}
	container["image"] = insert(fmt.Sprintf(".Values.image | default %q", container["image"]))
	args, _ := container["args"].([]any)
	list := make([]string, 0, len(args))
	for _, arg := range args {
		list = append(list, fmt.Sprintf("%q", arg))
	}
	container["args"] = insert("concat (list " + strings.Join(list, " ") + ") .Values.extraArgs")
	env, _ := container["env"].([]any)
	for _, variable := range env {
		if variable, _ := variable.(map[string]any); variable["name"] == "GOMEMLIMIT" {
			variable["value"] = insert(".Values.goMemLimit")
		}
	}
}

// field returns a nested field of an object.
func field(object any, path ...string) any {
	for _, name := range path {
		fields, _ := object.(map[string]any)
		object = fields[name]
	}
	return object
}
