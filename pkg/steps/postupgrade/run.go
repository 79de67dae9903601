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

// procedure does one thing, once for each attempt of an upgrade, however often
// it is called, and says what was done.
type procedure func(ctx context.Context, on Cluster, attempt string) (string, error)

// registry is all procedures, by the names under which they are configured.
var registry = map[string]procedure{
	"FileIntegrityReinit": fileIntegrityReinit,
}

// Names are those of all procedures, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }

// Cluster is where procedures are carried out.
type Cluster struct {
	Live   client.Reader // reads from the API server
	Writer client.Writer
}

const (
	// timeout is for how long a procedure is tried before the upgrade ends without it.
	timeout = 10 * time.Minute
	// callTimeout bounds one call of a procedure.
	callTimeout = 20 * time.Second
)

// Run carries out the procedures of these names, in this order. The attempt is
// unique among all upgrades of the cluster. What cannot be done keeps nothing
// else from being done, and is tried again, each time after half as long as it
// has been tried for; after ten minutes it is left.
func Run(on Cluster, attempt string, names []string) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if len(names) == 0 {
			return engine.Skip("NotConfigured", "no procedures are configured"), nil
		}
		done, err := runAll(ctx, on, attempt, names)
		if err == nil {
			return engine.Done("%s", strings.Join(done, "; ")), nil
		}
		message := strings.ReplaceAll(err.Error(), "\n", "; ")
		retryAfter, ok := run.Retry(timeout)
		if !ok {
			return engine.Skip("NotDone", "not done in %s of trying: %s", timeout, message), nil
		}
		return engine.WaitFor(retryAfter, "NotDone", "not done yet: %s", message), nil
	}
}

// runAll returns what was done and what could not be, each with its procedure's name.
func runAll(ctx context.Context, on Cluster, attempt string, names []string) ([]string, error) {
	var done []string
	var errs []error
	for _, name := range names {
		do, ok := registry[name]
		if !ok {
			errs = append(errs, fmt.Errorf("%s: there is no such procedure", name))
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
