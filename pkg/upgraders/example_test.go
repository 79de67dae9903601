// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgraders_test

import (
	"context"
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// A table of another project: lines of this package and one of its own, without silences and extra nodes.
func ExampleNewStepSet() {
	s := upgraders.NewStepSet(upgraders.Deps{Config: config.Default()}, upgraders.Attempt{})
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
