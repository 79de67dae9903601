// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package procedures

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

// table is all procedures, by the names under which they are configured.
var table = map[string]procedure{
	"FileIntegrityReinit": fileIntegrityReinit,
}

// Names are those of all procedures, sorted.
func Names() []string { return slices.Sorted(maps.Keys(table)) }

// Cluster is where procedures are carried out.
type Cluster struct {
	Live   client.Reader // reads from the API server
	Writer client.Writer
}

const (
	// patience is for how long a procedure is tried before the upgrade ends without it.
	patience = 10 * time.Minute
	// longest bounds one call of a procedure.
	longest = 20 * time.Second
)

// Done carries out the procedures of these names, in this order. The attempt is
// unique among all upgrades of the cluster. What cannot be done keeps nothing
// else from being done, and is tried again, each time after half as long as it
// has been tried for; after ten minutes it is left.
func Done(on Cluster, attempt string, names []string) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		if len(names) == 0 {
			return engine.Skip("NotConfigured", "no procedures are configured"), nil
		}
		done, err := carryOut(ctx, on, attempt, names)
		if err == nil {
			return engine.Done("%s", strings.Join(done, "; ")), nil
		}
		trouble := strings.ReplaceAll(err.Error(), "\n", "; ")
		again, goOn := run.Retry(patience)
		if !goOn {
			return engine.Skip("NotDone", "not done in %s of trying: %s", patience, trouble), nil
		}
		return engine.WaitFor(again, "NotDone", "not done yet: %s", trouble), nil
	}
}

// carryOut returns what was done and what could not be, each with its procedure's name.
func carryOut(ctx context.Context, on Cluster, attempt string, names []string) ([]string, error) {
	var done []string
	var wrong []error
	for _, name := range names {
		do, known := table[name]
		if !known {
			wrong = append(wrong, fmt.Errorf("%s: there is no such procedure", name))
			continue
		}
		what, err := do.within(ctx, longest, on, attempt)
		if err != nil {
			wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			continue
		}
		done = append(done, name+": "+what)
	}
	return done, errors.Join(wrong...)
}

func (p procedure) within(ctx context.Context, limit time.Duration, on Cluster, attempt string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return p(ctx, on, attempt)
}
