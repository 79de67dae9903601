// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// olderDefinitions returns the shipped CustomResourceDefinition in the file without fields of the
// status, as the API server has it when the definitions are older than the controller.
func olderDefinitions(t *testing.T, file string, fields ...string) fs.FS {
	t.Helper()
	data, err := os.ReadFile("../../../deploy/update-status/crds/" + file)
	if err != nil {
		t.Fatal(err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(data, &crd); err != nil {
		t.Fatal(err)
	}
	for i := range crd.Spec.Versions {
		status := crd.Spec.Versions[i].Schema.OpenAPIV3Schema.Properties["status"]
		for _, field := range fields {
			if _, has := status.Properties[field]; !has {
				t.Fatalf("%s has no field status.%s", file, field)
			}
			delete(status.Properties, field)
		}
	}
	if data, err = yaml.Marshal(crd); err != nil {
		t.Fatal(err)
	}
	return fstest.MapFS{file: &fstest.MapFile{Data: data}}
}

// TestPlanAfterARestoreOfEtcd restores the state before the last write of a plan: the object has the
// resource version that this write has replaced, and no cache is behind.
func TestPlanAfterARestoreOfEtcd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.runFor(time.Minute)
	w.expect(complete, startable, current)
	backup := w.Backup()
	before := w.get(target).ResourceVersion
	w.setOperator(configv1.ConditionTrue)
	w.runFor(10 * time.Second)
	w.expect(complete, rest, current)
	w.Restore(backup)
	w.setOperator(configv1.ConditionTrue)
	if got := w.get(target).ResourceVersion; got != before {
		t.Fatalf("resource version %s after the restore, want %s", got, before)
	}
	w.runFor(2 * time.Minute)
	w.expect(complete, rest, current)
}

// TestPlanWithAnOlderDefinition has an API server that drops a field of the status: writes that change
// nothing else leave the resource version as it is.
func TestPlanWithAnOlderDefinition(t *testing.T) {
	t.Parallel()
	w := newWorldWith(t, olderDefinitions(t, "config.openshift.io_updateplans.yaml", "counts"))
	w.create(target)
	w.runFor(time.Minute)
	w.expect(complete, startable, current)
	w.setOperator(configv1.ConditionTrue)
	w.runFor(10 * time.Second)
	w.expect(complete, rest, current)
	w.runFor(time.Minute)
	w.setOperator(configv1.ConditionFalse)
	w.runFor(10 * time.Second)
	w.expect(complete, startable, current)
}
