// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package runbooks_test

import (
	"context"
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

// A table of another project: lines of this package and one of its own, without silences and extra nodes.
func ExampleNewStepSet() {
	s := runbooks.NewStepSet(runbooks.Deps{Config: config.Default()}, &v1alpha1.UpgradeConfig{})
	book := engine.Runbook{
		Steps: []engine.Step{
			s.VersionPinned(),
			s.PreHealthCheck(),
			{Name: "OnCallInformed", Doc: "Informs who is on call.", Do: func(context.Context, engine.Run) (engine.Result, error) {
				return engine.Done("they know"), nil
			}},
			s.CommenceUpgrade(engine.Gate{Name: "NoOtherUpdate", Check: s.NoOtherUpdate}),
			s.ControlPlaneUpgraded(),
			s.AllWorkerNodesUpgraded(),
		},
		Cleanup: s.Cleanup(),
		Abandon: s.Abandon,
	}
	fmt.Println(book.Validate())
	fmt.Println(book.InsertBefore("Lunch", s.PreHealthCheck()).Validate())
	// Output:
	// <nil>
	// step PreHealthCheck cannot be inserted next to step Lunch, which does not exist
}
