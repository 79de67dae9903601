// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package externaldeps

import (
	"context"
	"errors"
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// WaitUntilAvailable waits until all dependencies are reachable. After a round that found one
// unavailable, there is no other round within the interval, however often the step is called.
func WaitUntilAvailable(d *Dependencies) engine.UpgradeStep {
	switch {
	case d == nil:
		return func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Result{}, errors.New("the external dependencies are unknown")
		}
	case len(d.urls) == 0:
		return func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Skip("NotConfigured", "there are no external dependencies"), nil
		}
	}
	return d.throttle.Step("", nil, func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		failures := d.checkAll(ctx)
		switch {
		case ctx.Err() != nil: // some responses were not waited for
			return engine.Result{}, fmt.Errorf("checking the external dependencies: %w", ctx.Err())
		case len(failures) > 0:
			return engine.WaitFor(d.options.Interval, "DependenciesUnavailable",
				"external dependencies are not available: %s", text.JoinNames(failures)), nil
		}
		return engine.Done("all external dependencies are available"), nil
	})
}
