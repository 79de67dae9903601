// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// Upgraders returns the cluster upgraders by spec.type. They must be registered explicitly: there
// is no default, and unknown types are reported in the UpgradeConfig. The function is called again
// when the configuration changes. An error rejects the configuration: the operator does not start,
// or keeps the previous configuration.
type Upgraders func(upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error)

// maxTypeLen is the maximum length of spec.type.
const maxTypeLen = 63

// validateUpgraders returns all errors in the upgraders.
func validateUpgraders(byType map[string]upgraders.ClusterUpgrader) error {
	if len(byType) == 0 {
		return errors.New("there are none, so nothing could be upgraded: register at least one")
	}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(byType)) {
		if name == "" || len(name) > maxTypeLen {
			errs = append(errs, fmt.Errorf("upgrader %q: its name is a spec.type, of 1 to %d characters", name, maxTypeLen))
		}
		if byType[name] == nil {
			errs = append(errs, fmt.Errorf("upgrader %q is nil", name))
			continue
		}
		book := byType[name].Runbook(upgraders.Attempt{})
		if err := book.Validate(); err != nil {
			errs = append(errs, fmt.Errorf("the runbook of upgrader %q: %w", name, err))
		}
		if len(book.SkipReasons) > 0 {
			errs = append(errs, fmt.Errorf("the runbook of upgrader %q: it has SkipReasons, but an UpgradeConfig has no phase Skipped: it fails", name))
		}
	}
	return errors.Join(errs...)
}
