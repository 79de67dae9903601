// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

var queriesCheck = Check{
	Name: NameQueries,
	Doc:  "The result of a custom query has samples.",
	Find: findQueries,
}

// maxFailedQueries bounds how many queries of an upgrade object may fail before the rest is not
// sent: a source that does not respond must not delay the pass by the timeout of each query.
const maxFailedQueries = 3

func findQueries(ctx context.Context, in Input) ([]Finding, error) {
	var found []Finding
	var errs []error
	for _, expression := range in.Options.Queries {
		samples, err := in.Sources.hasSamples(ctx, expression, func(outdated bool) bool { return in.urgent && !outdated })
		if err != nil {
			errs = append(errs, fmt.Errorf("custom query %s: %w", text.Excerpt(expression), err))
			if len(errs) == maxFailedQueries {
				break
			}
			continue
		}
		in.retry.wait(retryAfter(samples, in.urgent, samples.value))
		if samples.value {
			f := newFinding("QueryHasSamples", "custom queries with samples")
			f.Key, f.Description = expression, text.Excerpt(expression)
			found = append(found, f)
		}
	}
	return found, errors.Join(errs...)
}
