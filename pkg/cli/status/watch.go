// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"errors"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// follow prints the status until the user interrupts it. It redraws a terminal each time. For other outputs,
// it appends the status only if more than the time has changed.
func (o *statusOptions) follow(ctx context.Context, cluster *session.Cluster, s snapshot) error {
	var last updatev1beta1.UpdateStatusStatus
	var lastError string
	for {
		changed, err := updatestatus.HasChanged(last, s.object.Status)
		if err != nil {
			return err
		}
		if o.Terminal.Interactive || changed {
			printed, err := o.screen(ctx, cluster, s)
			if err != nil {
				return err
			}
			if err := o.Show(printed); err != nil {
				return err
			}
			last = s.object.Status
		}
		select {
		case <-ctx.Done():
			return session.ExitWith(verdict(s))
		case <-o.Clock.After(s.interval()):
		}
		next, err := readStatus(ctx, cluster, o.namespace, s.object)
		switch {
		case err == nil:
			s, lastError = next, ""
		case errors.Is(err, context.Canceled):
		case err.Error() != lastError:
			lastError = err.Error()
			if err := o.Show(o.Explain(err) + "\n"); err != nil {
				return err
			}
		}
	}
}

// interval returns the time until the next read of the status.
func (s snapshot) interval() time.Duration {
	if s.origin.published {
		return session.PollInterval
	}
	return livePollInterval
}
