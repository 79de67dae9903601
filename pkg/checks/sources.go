// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Alert is an alert of Prometheus. Alerts that differ only in other labels count as one.
type Alert struct {
	Name      string
	Namespace string // empty means that it has none
	Pending   bool   // it does not fire yet, because its condition has not held long enough
}

// Prometheus answers queries. Each call is one request.
type Prometheus interface {
	// CriticalAlerts returns the critical alerts of every namespace, firing and pending.
	CriticalAlerts(context.Context) ([]Alert, error)
	// HasSamples reports whether the result of an expression has a sample.
	HasSamples(ctx context.Context, expression string) (bool, error)
}

// Sources are what checks query beside the cache. All upgrade objects share them, and checks run
// far more often than a source is to be queried. Therefore each query is sent at most once an
// interval on average:
//
//   - While something else blocks, a query is repeated once an interval. In between, the last
//     result counts, also if it is an error.
//   - No gate opens on a result that is older than a few seconds. If nothing else blocks, the query
//     is sent at once, at most twice in a row, and following queries are delayed for that.
type Sources struct {
	// AlertsDisabled means that alerts are not queried and never block.
	AlertsDisabled bool
	// Prometheus is the source of alerts; nil means that none is known, and no gate opens.
	Prometheus Prometheus
	Clock      clock.PassiveClock
	Interval   time.Duration
	// Observe is called with the result of each check of a step that waits; nil means no observer.
	Observe func(check string, ok bool, at time.Time)

	mu       sync.Mutex
	alerts   limited[[]Alert]
	queries  map[string]*limited[bool]
	machines limited[map[string]bool]
	overlaps map[string]*limited[[]pdbPair]
}

func (s *Sources) observe(check string, ok bool, at time.Time) {
	if s != nil && s.Observe != nil && !at.IsZero() {
		s.Observe(check, ok, at)
	}
}

// now returns the time; zero means that there is no clock.
func (s *Sources) now() time.Time {
	if s == nil || s.Clock == nil {
		return time.Time{}
	}
	return s.Clock.Now()
}

// errNoPrometheus means that nothing is known about alerts.
var errNoPrometheus = errors.New("no source of alerts is configured")

// criticalAlerts returns the critical alerts. The query is urgent if nothing but an outdated result
// without blocking alerts keeps a gate closed.
func (s *Sources) criticalAlerts(ctx context.Context, urgent func([]Alert) bool) (result[[]Alert], error) {
	if s == nil || s.Prometheus == nil {
		return result[[]Alert]{}, errNoPrometheus
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.alerts.get(ctx, s, urgent, s.Prometheus.CriticalAlerts)
}

// hasSamples reports whether the result of an expression has a sample.
func (s *Sources) hasSamples(ctx context.Context, expression string, urgent func(bool) bool) (result[bool], error) {
	if s == nil || s.Prometheus == nil {
		return result[bool]{}, errNoPrometheus
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, err := entry(&s.queries, hashKey(expression), s)
	if err != nil {
		return result[bool]{}, err
	}
	return last.get(ctx, s, urgent, func(ctx context.Context) (bool, error) {
		return s.Prometheus.HasSamples(ctx, expression)
	})
}

// deletingMachines returns the Machines that are being deleted, listed at most once an interval.
func (s *Sources) deletingMachines(ctx context.Context, list func(context.Context) (map[string]bool, error)) (map[string]bool, error) {
	if s == nil || s.Clock == nil {
		return list(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	machines, err := s.machines.get(ctx, s, nil, list)
	return machines.value, err
}

// overlappingPDBs returns the budgets that select common pods, determined at most once an interval.
func (s *Sources) overlappingPDBs(ctx context.Context, key string, find func(context.Context) ([]pdbPair, error)) ([]pdbPair, error) {
	if s == nil || s.Clock == nil {
		return find(ctx)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, err := entry(&s.overlaps, key, s)
	if err != nil {
		return nil, err
	}
	found, err := last.get(ctx, s, nil, find)
	return found.value, err
}

// maxEntries bounds how many results are kept of each kind.
const maxEntries = 4096

// errTooManyQueries means that a result could not be kept, so that its query would be sent too
// often.
var errTooManyQueries = fmt.Errorf("more than %d different queries are in use", maxEntries)

// entry returns the last result of a query. To make room, results are dropped whose query may be
// sent at once anyway.
func entry[T any](entries *map[string]*limited[T], key string, s *Sources) (*limited[T], error) {
	if found := (*entries)[key]; found != nil {
		return found, nil
	}
	if len(*entries) >= maxEntries {
		now := s.Clock.Now()
		maps.DeleteFunc(*entries, func(_ string, l *limited[T]) bool { return now.Sub(l.updated) >= maxCredit*s.Interval })
	}
	if len(*entries) >= maxEntries {
		return nil, errTooManyQueries
	}
	if *entries == nil {
		*entries = map[string]*limited[T]{}
	}
	added := &limited[T]{}
	(*entries)[key] = added
	return added, nil
}

// hashKey returns a short key of a long text.
func hashKey(long string) string {
	hash := sha256.Sum256([]byte(long))
	return string(hash[:])
}

// maxResultAge is the age of the oldest result that opens a gate.
const maxResultAge = 5 * time.Second

// Bounds of the credit of a query, in intervals. A repeated query leaves some credit for an urgent
// one.
const (
	maxCredit    = 3
	repeatCredit = 2
	urgentCredit = 1
)

// limited is the last result of a query that is sent at most once an interval on average.
type limited[T any] struct {
	sent    time.Time     // when the last query was answered; zero means never
	updated time.Time     // when the credit was updated
	credit  time.Duration // a query costs one interval
	value   T
	err     error
}

// result is a result that may be outdated.
type result[T any] struct {
	value T
	// fresh reports that the result may open a gate.
	fresh bool
	// urgentIn and repeatIn are when an urgent query and any query is sent again.
	urgentIn, repeatIn time.Duration
}

// get returns the last result, or sends the query. An outdated result for which urgent returns true
// is renewed at once, as far as the credit allows; an error is renewed with the interval only. A
// nil function means that an outdated result suffices.
func (l *limited[T]) get(ctx context.Context, s *Sources, urgent func(T) bool, query func(context.Context) (T, error)) (result[T], error) {
	now := s.Clock.Now()
	if l.updated.IsZero() || now.Before(l.updated) { // the clock was set back
		l.sent, l.credit = time.Time{}, maxCredit*s.Interval
	} else {
		l.credit = min(l.credit+now.Sub(l.updated), maxCredit*s.Interval)
	}
	l.updated = now
	age := now.Sub(l.sent)
	due := l.sent.IsZero() || age >= s.Interval && l.credit >= repeatCredit*s.Interval
	outdated := l.err == nil && age > maxResultAge && urgent != nil && urgent(l.value)
	if due || outdated && l.credit >= urgentCredit*s.Interval {
		value, err := query(ctx)
		if ctx.Err() != nil { // the call was aborted: this is no result
			return result[T]{}, ctx.Err()
		}
		l.sent, l.value, l.err, age = now, value, err, 0
		l.credit = max(l.credit-s.Interval, 0)
	}
	return result[T]{
		value: l.value, fresh: age <= maxResultAge,
		urgentIn: max(urgentCredit*s.Interval-l.credit, time.Second),
		repeatIn: max(s.Interval-age, repeatCredit*s.Interval-l.credit, time.Second),
	}, l.err
}
