// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"os"
	"sync"
	"testing"
	"time"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const definitionsFolder = "../../../deploy/crds"

var definitions = sync.OnceValues(func() ([]*simulation.Definition, error) {
	return simulation.Definitions(os.DirFS(definitionsFolder))
})

// checkForeign has the operator manage an UpgradeConfig whose metadata and status another client has written.
func checkForeign(t *testing.T, seed uint64) (accepted bool) {
	t.Helper()
	definitions, err := definitions()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorldWith(t, definitions)
	w.foreign = true
	cfg := upgradeConfig(upgrade)
	return crdtest.Foreign[*upgradev1alpha1.UpgradeConfig]{
		World: w.World, Definition: crdtest.Definition(t, definitionsFolder, upgradev1alpha1.GroupVersion.Group, "UpgradeConfig"),
		Object: cfg, Status: &cfg.Status, History: &cfg.Status.History,
		Versions: []string{"4.4.5", desired, "4.5.1"}, Start: tenPast,
		Annotations: []string{"upgrade.managed.openshift.io/type", "upgrade.managed.openshift.io/requested", upgradev1alpha1.HoldAnnotation},
		Finalizers:  []string{upgradev1alpha1.Finalizer},
	}.Run(t, seed, time.Hour)
}

func TestForeignObjects(t *testing.T) {
	t.Parallel()
	crdtest.CheckForeign(t, 40, func(seed uint64) bool { return checkForeign(t, seed) })
}

func FuzzForeignObjects(f *testing.F) {
	f.Add(uint64(1))
	f.Fuzz(func(t *testing.T, seed uint64) { checkForeign(t, seed) })
}
