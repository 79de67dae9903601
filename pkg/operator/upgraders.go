// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

// Upgraders makes the ways to upgrade, by spec.type. They are registered
// explicitly: an unknown type is shown on the UpgradeConfig, there is no default.
// They are made anew when the configuration changes.
type Upgraders func(runbooks.Deps) map[string]upgradeconfig.ClusterUpgrader

// maxTypeLen is how long spec.type may be.
const maxTypeLen = 63

// validateUpgraders says what is wrong with the upgraders, all of it.
func validateUpgraders(upgraders map[string]upgradeconfig.ClusterUpgrader) error {
	if len(upgraders) == 0 {
		return errors.New("there are none, so nothing could be upgraded: register at least one")
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(upgraders)) {
		if name == "" || len(name) > maxTypeLen {
			errs = append(errs, fmt.Errorf("upgrader %q: its name is a spec.type, of 1 to %d characters", name, maxTypeLen))
		}
		if upgraders[name] == nil {
			errs = append(errs, fmt.Errorf("upgrader %q is nil", name))
			continue
		}
		if err := upgraders[name].Runbook(&v1alpha1.UpgradeConfig{}).Validate(); err != nil {
			errs = append(errs, fmt.Errorf("the runbook of upgrader %q: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
