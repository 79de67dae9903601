// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"testing"
	"time"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

// checkForeign has the operator manage an UpgradeJob whose metadata and status another client has written.
func checkForeign(t *testing.T, seed uint64) (accepted bool) {
	t.Helper()
	w := newWorld(t)
	job := newJob(soon)
	return crdtest.Foreign[*maintenancev1beta1.UpgradeJob]{
		World: w.World, Definition: crdtest.Definition(t, "../../../deploy/crds", maintenancev1beta1.GroupVersion.Group, "UpgradeJob"),
		Object: job, Status: &job.Status, History: &job.Status.History,
		Versions: []string{installed, desired, "4.5.1"}, Start: noon.Truncate(time.Minute).Add(5 * time.Minute),
		Annotations: []string{maintenancev1beta1.RetryAnnotation, maintenancev1beta1.AcknowledgedAnnotation, maintenancev1beta1.RunNowAnnotation},
		Finalizers:  []string{maintenancev1beta1.Finalizer},
	}.Run(t, seed, time.Hour)
}

func TestForeignObjects(t *testing.T) {
	t.Parallel()
	crdtest.CheckForeign(t, 16, func(seed uint64) bool { return checkForeign(t, seed) })
}

func FuzzForeignObjects(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkForeign(t, seed) })
}
