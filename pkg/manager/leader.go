// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// LeaderElection holds the flags of the leader election.
type LeaderElection struct {
	// Enabled reports whether the replicas elect a leader.
	Enabled bool
	// LeaseDuration is how long other replicas wait, from the last renewal that they saw, before they
	// take over from a leader that has not released its Lease.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew its Lease before it ends.
	RenewDeadline time.Duration
	// RetryPeriod is the time between two requests for the Lease, by the leader and by every other
	// replica.
	RetryPeriod time.Duration
}

// DefaultLeaderElection returns OpenShift's convention for operators: a leader survives an API server that
// is down for 78 seconds, and clocks may differ by 30 seconds. A replica takes over within 58 seconds of a
// shutdown and within 253 seconds of a crash: client-go stretches the retry period of a standby by up to 120
// percent. Source: github.com/openshift/library-go, pkg/config/leaderelection.
func DefaultLeaderElection() LeaderElection {
	return LeaderElection{Enabled: true, LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second}
}

// bind adds the flags to a flag set, by the names that the components of Kubernetes use.
func (l *LeaderElection) bind(flags *pflag.FlagSet) {
	defaults := DefaultLeaderElection()
	flags.BoolVar(&l.Enabled, "leader-elect", defaults.Enabled, "elect a leader among the replicas; only the leader reconciles")
	flags.DurationVar(&l.LeaseDuration, "leader-elect-lease-duration", defaults.LeaseDuration, "how long other replicas wait before they take over from a leader that crashed")
	flags.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", defaults.RenewDeadline, "how long the leader tries to renew its Lease before it ends; must be shorter than the lease duration")
	flags.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", defaults.RetryPeriod, "time between two requests for the Lease; must be shorter than the renew deadline")
}

// retryJitter is the factor by which client-go extends the retry period at random.
const retryJitter = 1.2

// validate rejects what client-go rejects, with the names of the flags.
func (l *LeaderElection) validate() error {
	if !l.Enabled {
		return nil
	}
	var errs []error
	if l.RetryPeriod < time.Second {
		errs = append(errs, fmt.Errorf("--leader-elect-retry-period: is %s, must be at least 1s", l.RetryPeriod))
	}
	if shortest := time.Duration(retryJitter * float64(l.RetryPeriod)); l.RenewDeadline <= shortest {
		errs = append(errs, fmt.Errorf("--leader-elect-renew-deadline: is %s, must be longer than %s, 1.2 times the retry period", l.RenewDeadline, shortest))
	}
	if l.LeaseDuration <= l.RenewDeadline {
		errs = append(errs, fmt.Errorf("--leader-elect-lease-duration: is %s, must be longer than the renew deadline, %s", l.LeaseDuration, l.RenewDeadline))
	}
	return errors.Join(errs...)
}
