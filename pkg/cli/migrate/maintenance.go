// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// maintenanceKinds lists the kinds of the other controller in the API group, in the order in which they are
// read and printed. NodeForceDrain is first because it is converted to a field of other objects.
var maintenanceKinds = []string{"NodeForceDrain", "ClusterVersion", "UpgradeConfig", "UpgradeJob", "UpgradeJobHook", "UpgradeSuspensionWindow"}

// migrateMaintenanceOptions holds the flags of the command migrate-maintenance.
type migrateMaintenanceOptions struct {
	*session.Session
	session.NoArguments

	file, namespace string
	all             bool
}

// NewMaintenanceCommand returns the command that converts the objects of another controller in the API group.
func NewMaintenanceCommand(p *session.Session) *cobra.Command {
	o := &migrateMaintenanceOptions{Session: p}
	cmd := &cobra.Command{
		Use:   "migrate-maintenance (-f DIR | -A)",
		Short: "Convert objects of another controller for managedupgrade.appuio.io",
		Long: "Convert UpgradeConfigs, hooks, windows, and the ClusterVersion written for another controller for\n" +
			"managedupgrade.appuio.io, and print the objects for this operator.\n\n" +
			"Each field that needs attention is reported on standard error. The exit code is 30 if a field has no equivalent.",
		Example: "  oc update migrate-maintenance -f manifests/ > maintenance.yaml\n  oc apply -f maintenance.yaml",
		Args:    manager.NoArgs,
		RunE:    session.RunE(o),
	}
	cmd.Flags().StringVarP(&o.file, "filename", "f", "", "file or directory that contains the objects; use - for standard input")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "read the objects in all namespaces of the cluster")
	cmd.Flags().StringVar(&o.namespace, "to-namespace", configNamespace, "namespace of this operator")
	return cmd
}

// Validate checks the flags.
func (o *migrateMaintenanceOptions) Validate() error {
	if o.all == (o.file != "") {
		return session.UsageError("set either --filename or --all-namespaces")
	}
	return nil
}

// Run prints the converted objects.
func (o *migrateMaintenanceOptions) Run(ctx context.Context) error {
	objects, err := o.maintenanceObjects(ctx)
	if err != nil {
		return err
	}
	return o.migrateMaintenance(objects)
}

// maintenanceObjects reads the objects in the API group.
func (o *migrateMaintenanceOptions) maintenanceObjects(ctx context.Context) ([]*unstructured.Unstructured, error) {
	switch {
	case o.all:
		return o.maintenanceInCluster(ctx)
	case o.file == session.StdinPlaceholder:
		return readObjects(o.Streams.In)
	}
	var objects []*unstructured.Unstructured
	err := filepath.WalkDir(filepath.Clean(o.file), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if path != filepath.Clean(o.file) && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		content, err := os.ReadFile(filepath.Clean(path)) //nolint:gosec // The user names the folder, and may read what it links to.
		if err != nil {
			return fmt.Errorf("reading the objects: %w", err)
		}
		found, err := readObjects(bytes.NewReader(content))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		objects = append(objects, found...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", o.file, err)
	}
	return objects, nil
}

// maintenanceInCluster reads the objects from the cluster. Kinds that are not served are skipped.
func (o *migrateMaintenanceOptions) maintenanceInCluster(ctx context.Context) ([]*unstructured.Unstructured, error) {
	cluster, err := o.Connect()
	if err != nil {
		return nil, err
	}
	var objects []*unstructured.Unstructured
	for _, kind := range maintenanceKinds {
		var list unstructured.UnstructuredList
		list.SetGroupVersionKind(maintenancev1beta1.GroupVersion.WithKind(kind + "List"))
		switch err := cluster.List(ctx, &list); {
		case meta.IsNoMatchError(err):
			continue
		case err != nil:
			return nil, fmt.Errorf("listing %ss: %w", kind, err)
		}
		for i := range list.Items {
			objects = append(objects, &list.Items[i])
		}
	}
	return objects, nil
}

// readObjects returns the objects in the API group from a stream of documents, including list items.
func readObjects(in io.Reader) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	add := func(object *unstructured.Unstructured) {
		if object.GroupVersionKind().Group == maintenancev1beta1.GroupVersion.Group {
			objects = append(objects, object)
		}
	}
	decoder := utilyaml.NewYAMLOrJSONDecoder(in, 4096)
	for {
		object := &unstructured.Unstructured{}
		switch err := decoder.Decode(&object.Object); {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, fmt.Errorf("decoding an object: %w", err)
		}
		if object.IsList() {
			list, err := object.ToList()
			if err != nil {
				return nil, fmt.Errorf("decoding a list: %w", err)
			}
			for i := range list.Items {
				add(&list.Items[i])
			}
			continue
		}
		if object.Object != nil {
			add(object)
		}
	}
}

// migrateMaintenance prints the converted objects and everything that needs attention.
func (o *migrateMaintenanceOptions) migrateMaintenance(objects []*unstructured.Unstructured) error {
	slices.SortStableFunc(objects, func(a, b *unstructured.Unstructured) int {
		return slices.Index(maintenanceKinds, a.GetKind()) - slices.Index(maintenanceKinds, b.GetKind())
	})
	m := maintenanceMigration{namespace: o.namespace}
	for _, object := range objects {
		converted := m.convert(object)
		if converted == nil {
			continue
		}
		printed, err := yaml.Marshal(converted)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", object.GetName(), err)
		}
		if _, err := fmt.Fprintf(o.Streams.Out, "---\n%s", printed); err != nil {
			return err
		}
	}
	return printNotes(o.Session, m.notes)
}
