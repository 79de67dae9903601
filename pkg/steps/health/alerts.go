// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// maxAlertAge is how old an answer may be by which a gate opens.
const maxAlertAge = 5 * time.Second

// Alerts is what gates know about alerts. All gates share one, and are asked
// far more often than alerts are to be asked for. So there are two rules:
//
//   - Alerts are asked for once in an interval at most, whoever wants to know. In
//     between the last answer counts, also one that they could not be found out.
//   - No gate opens by an answer that is older than a few seconds. If nothing
//     else is in its way, it waits until the interval is over and asks again.
type Alerts struct {
	// Disabled says that alerts are not to be asked for, and close no gate.
	Disabled bool
	// Source names the alerts that are firing now. Without one nothing is
	// known about them, and no gate opens.
	Source interface {
		FiringAlerts(context.Context) ([]string, error)
	}
	Clock    clock.PassiveClock
	Interval time.Duration
	// Observe is told of each check that a step makes whether all was well; nil: nobody is.
	Observe func(check string, ok bool, at time.Time)

	mutex       sync.Mutex
	lastChecked time.Time // zero: never
	names       []string
	err         error
}

// observe tells what came of a check.
func (a *Alerts) observe(check string, ok bool, at time.Time) {
	if a != nil && a.Observe != nil && !at.IsZero() {
		a.Observe(check, ok, at)
	}
}

// check names the alerts that are firing. If again is not zero, the answer
// does not open a gate, and there is another one to be had after that time.
func (a *Alerts) check(ctx context.Context) (firing []string, retryAfter time.Duration, err error) {
	switch {
	case a != nil && a.Disabled:
		return nil, 0, nil
	case a == nil || a.Source == nil:
		return nil, 0, errors.New("no source of alerts is given")
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	now := a.Clock.Now()
	age := now.Sub(a.lastChecked)
	if a.lastChecked.IsZero() || age < 0 || age >= a.Interval {
		names, err := a.Source.FiringAlerts(ctx)
		if ctx.Err() != nil { // it was not waited for
			return nil, 0, ctx.Err()
		}
		a.lastChecked, a.names, a.err, age = now, names, err, 0
	}
	if age > maxAlertAge || len(a.names) > 0 {
		retryAfter = a.Interval - age
	}
	return a.names, retryAfter, a.err
}
