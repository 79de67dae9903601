// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The process-template program processes an OpenShift Template as "oc process" does, with the same
// library, and prints its objects as a List.
//
// Usage: process-template FILE [NAME=VALUE]...
package main

import (
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"strings"

	templatev1 "github.com/openshift/api/template/v1"
	"github.com/openshift/library-go/pkg/template/generator"
	"github.com/openshift/library-go/pkg/template/templateprocessing"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: process-template FILE [NAME=VALUE]...")
		os.Exit(2)
	}
	list, err := process(os.Args[1], os.Args[2:])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(list)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "process-template:", err)
		os.Exit(1)
	}
}

// process returns the objects of the template in a file, with the parameters of the arguments.
func process(file string, args []string) (*corev1.List, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var template templatev1.Template
	if err := yaml.UnmarshalStrict(content, &template); err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	for _, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		parameter := templateprocessing.GetParameterByName(&template, name)
		if parameter == nil {
			return nil, fmt.Errorf("the template has no parameter %q", name)
		}
		parameter.Value, parameter.Generate = value, ""
	}
	random := generator.NewExpressionValueGenerator(rand.New(rand.NewSource(1)))
	processor := templateprocessing.NewProcessor(map[string]generator.Generator{"expression": random})
	if errs := processor.Process(&template); len(errs) > 0 {
		return nil, errs.ToAggregate()
	}
	return &corev1.List{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "List"}, Items: template.Objects}, nil
}
