// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package postupgrade

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// procedure does one thing, once for each attempt of an upgrade, however often it is called. It
// returns a description of what it did.
type procedure func(ctx context.Context, on Cluster, attempt string) (string, error)

// registry maps the configured names to procedures.
var registry = map[string]procedure{
	"FileIntegrityReinit": fileIntegrityReinit,
}

// Names returns the sorted names of all procedures.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }

// Cluster holds the clients that procedures use.
type Cluster struct {
	Live   client.Reader // reads from the API server
	Writer client.Writer
}

const (
	// timeout is how long procedures are retried before the upgrade continues without them.
	timeout = 10 * time.Minute
	// callTimeout limits one call of a procedure.
	callTimeout = 20 * time.Second
)

// Run runs the procedures with these names in order. The attempt is unique across all upgrades of
// the cluster. A failed procedure does not stop the others. Failed procedures are retried for ten
// minutes; then the step is skipped.
func Run(on Cluster, attempt string, names []string) engine.UpgradeStep {
	if len(names) == 0 {
		return func(context.Context, engine.Run) (engine.Result, error) {
			return engine.Skip("NotConfigured", "no procedures are configured"), nil
		}
	}
	retry := engine.Retry{Timeout: timeout, Reason: "NotDone", Failing: "not done"}
	return retry.Step(func(ctx context.Context, _ engine.Run) (engine.Result, error) {
		done, err := runAll(ctx, on, attempt, names)
		if err != nil {
			return engine.Result{}, err
		}
		return engine.Done("%s", strings.Join(done, "; ")), nil
	})
}

// runAll returns descriptions of completed work, and the errors of failed procedures, each with the
// name of its procedure.
func runAll(ctx context.Context, on Cluster, attempt string, names []string) ([]string, error) {
	var done []string
	var errs []error
	for _, name := range names {
		do, ok := registry[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: unknown procedure", name))
			continue
		}
		result, err := do.runWithTimeout(ctx, callTimeout, on, attempt)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		done = append(done, name+": "+result)
	}
	return done, errors.Join(errs...)
}

func (p procedure) runWithTimeout(ctx context.Context, limit time.Duration, on Cluster, attempt string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return p(ctx, on, attempt)
}
