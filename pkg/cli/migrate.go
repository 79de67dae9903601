// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// The ConfigMap of the former operator, and that of this one.
const (
	formerNamespace  = "openshift-managed-upgrade-operator"
	configName       = "managed-upgrade-operator-config"
	configKey        = "config.yaml"
	configNamespace  = "managed-upgrade-operator"
	stdinPlaceholder = "-"
)

// migrateConfigCommand converts the configuration of the former operator.
func (p *Program) migrateConfigCommand() *cobra.Command {
	file, namespace := "", configNamespace
	cmd := &cobra.Command{
		Use:   "migrate-config",
		Short: "Converts the configuration of the former Managed Upgrade Operator.",
		Long: "Converts the configuration of the former Managed Upgrade Operator, and prints the ConfigMap of this operator.\n\n" +
			"It reads ConfigMap " + configName + " in namespace " + formerNamespace + ", or a file. Standard error\n" +
			"has a line for each key that needs attention; the exit code is 30 if one has no equivalent.",
		Example: "  oc update migrate-config > config.yaml\n  oc apply -f config.yaml",
		Args:    manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := p.formerConfig(cmd.Context(), file)
			if err != nil {
				return err
			}
			return p.migrateConfig(text, namespace)
		},
	}
	cmd.Flags().StringVarP(&file, "filename", "f", "", "file with the configuration of the former operator, the ConfigMap or its key config.yaml; - is standard input (default: the ConfigMap of the cluster)")
	cmd.Flags().StringVar(&namespace, "to-namespace", configNamespace, "namespace of this operator")
	return cmd
}

// formerConfig returns the text of the configuration of the former operator.
func (p *Program) formerConfig(ctx context.Context, file string) (string, error) {
	if file == "" {
		cluster, err := p.connect()
		if err != nil {
			return "", err
		}
		var config corev1.ConfigMap
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: formerNamespace, Name: configName}, &config); err != nil {
			return "", fmt.Errorf("reading ConfigMap %s/%s: %w", formerNamespace, configName, err)
		}
		return config.Data[configKey], nil
	}
	read := func() ([]byte, error) { return os.ReadFile(filepath.Clean(file)) }
	if file == stdinPlaceholder {
		read = func() ([]byte, error) { return io.ReadAll(p.Streams.In) }
	}
	content, err := read()
	if err != nil {
		return "", fmt.Errorf("reading the configuration: %w", err)
	}
	var config corev1.ConfigMap
	if err := yaml.Unmarshal(content, &config); err == nil && config.Kind == "ConfigMap" {
		return config.Data[configKey], nil
	}
	return string(content), nil
}

// migrateConfig prints the ConfigMap, and what needs attention.
func (p *Program) migrateConfig(former, namespace string) error {
	m, err := convertConfig(former)
	if err != nil {
		return err
	}
	text, err := m.text()
	if err != nil {
		return err
	}
	printed, err := yaml.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap",
		"metadata": metav1.ObjectMeta{Namespace: namespace, Name: configName},
		"data":     map[string]string{configKey: text},
	})
	if err != nil {
		return err
	}
	if _, err := p.Streams.Out.Write(printed); err != nil {
		return err
	}
	code := ExitDone
	for _, note := range m.notes {
		if note.lost {
			code = ExitActionRequired
		}
		if _, err := fmt.Fprintf(p.Streams.ErrOut, "%s: %s\n", clean(note.key), clean(note.text)); err != nil {
			return err
		}
	}
	return exitWith(code)
}
