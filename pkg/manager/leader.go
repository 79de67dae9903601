// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/pflag"
)

// LeaderElection contains the leader election flags.
type LeaderElection struct {
	// Enabled enables leader election among the replicas.
	Enabled bool
	// LeaseDuration is how long other replicas wait after the last observed renewal before they take
	// over from a leader that has not released its Lease.
	LeaseDuration time.Duration
	// RenewDeadline is how long the leader tries to renew its Lease before it exits.
	RenewDeadline time.Duration
	// RetryPeriod is the interval between accesses of the Lease by the leader and by every other
	// replica.
	RetryPeriod time.Duration
}

// DefaultLeaderElection returns OpenShift's defaults for operators. With them, a leader survives 78
// seconds without the API server, and clocks may differ by 30 seconds. Another replica takes over
// within 58 seconds after a graceful shutdown and within 253 seconds after a crash: client-go
// extends the retry period of a standby by up to 120 percent. Source:
// github.com/openshift/library-go, pkg/config/leaderelection.
func DefaultLeaderElection() LeaderElection {
	return LeaderElection{Enabled: true, LeaseDuration: 137 * time.Second, RenewDeadline: 107 * time.Second, RetryPeriod: 26 * time.Second}
}

// bind adds the flags to a flag set, using the same names as the Kubernetes components.
func (l *LeaderElection) bind(flags *pflag.FlagSet) {
	defaults := DefaultLeaderElection()
	flags.BoolVar(&l.Enabled, "leader-elect", defaults.Enabled, "elect a leader among the replicas; only the leader reconciles")
	flags.DurationVar(&l.LeaseDuration, "leader-elect-lease-duration", defaults.LeaseDuration, "how long other replicas wait before they take over from a leader that crashed")
	flags.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", defaults.RenewDeadline, "how long the leader tries to renew its Lease before it ends; must be shorter than the lease duration")
	flags.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", defaults.RetryPeriod, "time between two requests for the Lease; must be shorter than the renew deadline")
}

// retryJitter is the maximum factor by which client-go randomly extends the retry period.
const retryJitter = 1.2

// validate rejects the same values as client-go but names the flags.
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
