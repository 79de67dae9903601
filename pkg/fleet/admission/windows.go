// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"time"

	"k8s.io/utils/ptr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/schedule"
)

const maxOverlaps = 100 // bounds how many starts of windows are joined to one window

// Windows computes the state of maintenance windows. It keeps parsed schedules, because reading a location is expensive. Its
// zero value is ready to use, by one goroutine.
type Windows struct {
	parsed map[[3]string]schedule.Schedule // by cron, week, and location
}

type window struct {
	schedule schedule.Schedule
	duration time.Duration
}

// State returns the state of the windows; nil if there are none. While a window cannot be read, none is open.
func (w *Windows) State(list []fleetv1beta1.AdmissionWindow, now time.Time) *rollout.Window {
	if len(list) == 0 {
		return nil
	}
	windows := make([]window, len(list))
	for i := range list {
		var err error
		if windows[i], err = w.parse(&list[i]); err != nil {
			return &rollout.Window{Invalid: fmt.Sprintf("spec.upgradeStrategy.windows[%d]: %v", i, err)}
		}
	}
	state := &rollout.Window{Until: now}
	for range maxOverlaps {
		end := openUntil(windows, state.Until)
		if end.IsZero() {
			break
		}
		state.Open, state.Until = true, end
	}
	if state.Open {
		return state
	}
	state.Until = time.Time{}
	for _, window := range windows {
		if start, found := window.schedule.Next(now); found && (state.Until.IsZero() || start.Before(state.Until)) {
			state.Until = start
		}
	}
	return state
}

// openUntil returns the latest end of the windows that are open at a time; zero if none is.
func openUntil(windows []window, at time.Time) time.Time {
	var latest time.Time
	for _, window := range windows {
		start, found := window.schedule.Next(at.Add(-window.duration))
		if end := start.Add(window.duration); found && !start.After(at) && end.After(latest) {
			latest = end
		}
	}
	return latest
}

func (w *Windows) parse(spec *fleetv1beta1.AdmissionWindow) (window, error) {
	key := [3]string{spec.Cron, ptr.Deref(spec.ISOWeek, ""), spec.Location}
	parsed, found := w.parsed[key]
	if !found {
		var err error
		if parsed, err = schedule.Parse(key[0], key[1], key[2]); err != nil {
			return window{}, err
		}
		if w.parsed == nil {
			w.parsed = map[[3]string]schedule.Schedule{}
		}
		w.parsed[key] = parsed
	}
	duration, err := time.ParseDuration(string(spec.Duration))
	if err != nil {
		return window{}, fmt.Errorf("duration: %w", err)
	}
	return window{schedule: parsed, duration: duration}, nil
}
