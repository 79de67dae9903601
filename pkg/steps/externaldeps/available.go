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

// WaitUntilAvailable waits until all dependencies can be reached. However often it is
// asked, there is one round of questions in an interval at most: in between,
// what the last one found stands.
func WaitUntilAvailable(d *Dependencies) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		switch {
		case d == nil:
			return engine.Result{}, errors.New("it is not known whether there are external dependencies")
		case len(d.urls) == 0:
			return engine.Skip("NotConfigured", "there are no external dependencies"), nil
		}
		d.mutex.Lock()
		defer d.mutex.Unlock()
		age := run.Now.Sub(d.lastChecked)
		if len(d.failures) == 0 || age < 0 || age >= d.options.Interval {
			failures := d.checkAll(ctx)
			if ctx.Err() != nil { // it was not waited for
				return engine.Result{}, fmt.Errorf("asking for the external dependencies: %w", ctx.Err())
			}
			d.lastChecked, d.failures, age = run.Now, failures, 0
		}
		if len(d.failures) > 0 {
			return engine.WaitFor(d.options.Interval-age, "DependenciesUnavailable",
				"external dependencies are not available: %s", text.JoinNames(d.failures)), nil
		}
		return engine.Done("all external dependencies are available"), nil
	}
}
