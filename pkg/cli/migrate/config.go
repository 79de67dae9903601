// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// ConfigMaps of the former operator and of this operator.
const (
	formerNamespace = "openshift-managed-upgrade-operator"
	configName      = "managed-upgrade-operator-config"
	configKey       = "config.yaml"
	configNamespace = "managed-upgrade-operator"
)

// migrateConfigOptions holds the flags of the command migrate-config.
type migrateConfigOptions struct {
	*session.Session
	session.NoArguments
	session.NoFlags

	file, namespace string
}

// NewConfigCommand returns the command that converts the configuration of the former operator.
func NewConfigCommand(p *session.Session) *cobra.Command {
	o := &migrateConfigOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "migrate-config",
		Short: "Convert the configuration of the former Managed Upgrade Operator",
		Long: "Convert the configuration of the former Managed Upgrade Operator, and print the ConfigMap for this operator.\n\n" +
			"By default, the command reads the ConfigMap " + configName + " in the namespace\n" + formerNamespace + ".\n" +
			"Each setting that needs attention is reported on standard error. The exit code is 30 if a setting has no equivalent.",
		Example: "  oc update migrate-config > config.yaml\n  oc apply -f config.yaml",
		Args:    manager.NoArgs,
		RunE:    session.RunE(o),
	}
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "file that contains the former operator's ConfigMap or its key config.yaml; use - for standard input (default: the ConfigMap in the cluster)")
	cmd.Flags().StringVar(&o.namespace, "to-namespace", configNamespace, "namespace of this operator")
	return cmd
}

// Run prints the converted configuration.
func (o *migrateConfigOptions) Run(ctx context.Context) error {
	former, err := o.formerConfig(ctx)
	if err != nil {
		return err
	}
	return o.migrateConfig(former)
}

// formerConfig returns the former operator's configuration as text.
func (o *migrateConfigOptions) formerConfig(ctx context.Context) (string, error) {
	if o.file == "" {
		cluster, err := o.Connect()
		if err != nil {
			return "", err
		}
		var config corev1.ConfigMap
		if err := cluster.Get(ctx, client.ObjectKey{Namespace: formerNamespace, Name: configName}, &config); err != nil {
			return "", fmt.Errorf("reading ConfigMap %s/%s: %w", formerNamespace, configName, err)
		}
		return config.Data[configKey], nil
	}
	read := func() ([]byte, error) { return os.ReadFile(filepath.Clean(o.file)) }
	if o.file == session.StdinPlaceholder {
		read = func() ([]byte, error) { return io.ReadAll(o.Streams.In) }
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

// migrateConfig prints the ConfigMap and everything that needs attention.
func (o *migrateConfigOptions) migrateConfig(former string) error {
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
		"metadata": metav1.ObjectMeta{Namespace: o.namespace, Name: configName},
		"data":     map[string]string{configKey: text},
	})
	if err != nil {
		return err
	}
	if _, err := o.Streams.Out.Write(printed); err != nil {
		return err
	}
	return printNotes(o.Session, m.notes)
}

// printNotes prints the notes of a migration to standard error. If any setting is lost, it returns an error
// with the exit code for required user action.
func printNotes(p *session.Session, notes []migrationNote) error {
	code := session.ExitDone
	for _, note := range notes {
		if note.lost {
			code = session.ExitActionRequired
		}
		if _, err := fmt.Fprintf(p.Streams.ErrOut, "%s: %s\n", screen.Clean(note.key), screen.Clean(note.text)); err != nil {
			return err
		}
	}
	return session.ExitWith(code)
}
