// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools

import (
	"context"
)

// AreUndelayedUpdated reports whether all pools that are not delayed are updated. A negative answer
// is confirmed with the API server, because the upgrade may fail because of it.
func (d Delayed) AreUndelayedUpdated(ctx context.Context) (bool, error) {
	return d.confirm(ctx, func(s survey) bool { return s.OperatorBehind == "" && len(s.undelayed()) == 0 })
}

// AreUpdated reports whether all pools are updated, including the delayed ones. A negative answer
// is confirmed with the API server, because the upgrade may fail because of it.
func (d Delayed) AreUpdated(ctx context.Context) (bool, error) {
	return d.confirm(ctx, func(s survey) bool { return s.OperatorBehind == "" && len(s.Outdated()) == 0 })
}

func (d Delayed) confirm(ctx context.Context, holds func(survey) bool) (bool, error) {
	s, err := d.survey(ctx, d.Client)
	if err == nil && !holds(s) {
		s, err = d.survey(ctx, d.Live)
	}
	return err == nil && holds(s), err
}
