// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// watch prints the status until the user interrupts it. A terminal is redrawn each time; elsewhere, the
// status is appended if it has changed, other than by time.
func (p *Program) watch(ctx context.Context, cluster *Cluster, o *statusOptions, s snapshot) error {
	var last updatev1beta1.UpdateStatusStatus
	var lastError string
	for {
		changed, err := updatestatus.HasChanged(last, s.object.Status)
		if err != nil {
			return err
		}
		if p.Terminal.Interactive || changed {
			printed, err := p.screen(ctx, cluster, o, s)
			if err != nil {
				return err
			}
			if err := p.show(printed); err != nil {
				return err
			}
			last = s.object.Status
		}
		select {
		case <-ctx.Done():
			return exitWith(verdict(s))
		case <-p.Clock.After(s.interval()):
		}
		next, err := cluster.readStatus(ctx, o.namespace, s.object)
		switch {
		case err == nil:
			s, lastError = next, ""
		case errors.Is(err, context.Canceled):
		case err.Error() != lastError:
			lastError = err.Error()
			if err := p.show(p.explain(err) + "\n"); err != nil {
				return err
			}
		}
	}
}

// interval returns the time until the status is read again.
func (s snapshot) interval() time.Duration {
	if s.origin.published {
		return pollInterval
	}
	return livePollInterval
}

// show redraws a terminal, or appends a text and an empty line.
func (p *Program) show(printed string) error {
	if p.Terminal.Interactive {
		_, err := fmt.Fprint(p.Streams.Out, redraw+printed)
		return err
	}
	_, err := fmt.Fprintln(p.Streams.Out, printed)
	return err
}
