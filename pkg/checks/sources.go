// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// Prometheus answers queries. Each call sends one request.
type Prometheus interface {
	// CriticalAlerts returns the firing and pending critical alerts of all namespaces. Alerts that differ
	// only in other labels count as one.
	CriticalAlerts(context.Context) ([]clusterstate.Alert, error)
	// HasSamples reports whether an expression returns any samples.
	HasSamples(ctx context.Context, expression string) (bool, error)
}

// Sources are queried by checks in addition to the cache. All upgrade objects share them, and checks run far more often
// than a source should be queried. Therefore each query is sent at most once per interval on average:
//
//   - While something else blocks, a query is repeated once per interval. In between, the last
//     result counts, even if it is an error.
//   - A gate opens only on a result that is at most a few seconds old. If nothing else blocks, the query
//     is sent immediately, at most twice in a row, and later queries are delayed to make up for it.
type Sources struct {
	// AlertsDisabled is set if alerts are not queried. This blocks only with GateOptions.RequireAlerts.
	AlertsDisabled bool
	// Prometheus is the source of alerts. If it is nil, no source is known, and gates stay closed.
	Prometheus Prometheus
	// Conditions evaluates the conditions of objects. If it is nil, conditions cannot be evaluated.
	Conditions Conditions
	Clock      clock.PassiveClock
	Interval   time.Duration
	// Observe is called with the result of each check while a step waits. It may be nil.
	Observe func(check string, ok bool, at time.Time)

	mu   sync.Mutex
	last map[query]idler
}

// query identifies a query. All queries of a kind have the same result type.
type query struct{ kind, id string }

// Kinds of queries.
const (
	queryCriticalAlerts = "critical alerts"
	queryActiveAlerts   = "active alerts"
	querySamples        = "samples"
	queryMachines       = "machines"
	queryOverlaps       = "overlaps"
	queryObjects        = "objects"
	queryPodsOfNode     = "pods of a node"
	queryPodsIn         = "pods of a namespace"
)

// NewSources returns sources without a Prometheus. Queries are sent at most once a minute.
func NewSources(clk clock.PassiveClock) *Sources { return &Sources{Clock: clk, Interval: time.Minute} }

func (s *Sources) observe(check string, ok bool, at time.Time) {
	if s != nil && s.Observe != nil && !at.IsZero() {
		s.Observe(check, ok, at)
	}
}

// now returns the time, or zero if there is no clock.
func (s *Sources) now() time.Time {
	if s == nil || s.Clock == nil {
		return time.Time{}
	}
	return s.Clock.Now()
}

// errNoPrometheus is returned if nothing is known about alerts.
var errNoPrometheus = errors.New("no source of alerts is configured")

func (s *Sources) prometheus() (Prometheus, error) {
	if s == nil || s.Prometheus == nil {
		return nil, errNoPrometheus
	}
	return s.Prometheus, nil
}

// once returns the last result of a query, or sends it. It sends a query at most once per interval.
func once[T any](ctx context.Context, s *Sources, q query, send func(context.Context) (T, error)) (T, error) {
	last, err := remember(ctx, s, q, nil, send)
	return last.value, err
}

// remember returns the last result of a query, or sends it. See limited.get. Without a clock, it sends the
// query every time.
func remember[T any](ctx context.Context, s *Sources, q query, urgent func(T) bool, send func(context.Context) (T, error)) (result[T], error) {
	if s == nil || s.Clock == nil {
		value, err := send(ctx)
		return result[T]{value: value, fresh: true}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	last, known := s.last[q].(*limited[T])
	if !known {
		if !s.hasRoomFor(q.kind) {
			return result[T]{}, errTooManyQueries
		}
		last = &limited[T]{}
		s.last[q] = last
	}
	return last.get(ctx, s, urgent, send)
}

// maxEntries limits the number of cached results per kind.
const maxEntries = 4096

// errTooManyQueries is returned if a result cannot be cached, because its query would be sent too often.
var errTooManyQueries = fmt.Errorf("more than %d different queries are in use", maxEntries)

// hasRoomFor reports whether another result of a kind can be cached. If necessary, it drops results whose
// queries could be sent immediately anyway.
func (s *Sources) hasRoomFor(kind string) bool {
	if s.last == nil {
		s.last = map[query]idler{}
	}
	if len(s.last) < maxEntries {
		return true
	}
	now, kept := s.Clock.Now(), 0
	maps.DeleteFunc(s.last, func(q query, l idler) bool {
		drop := q.kind == kind && now.Sub(l.idleSince()) >= maxCredit*s.Interval
		if q.kind == kind && !drop {
			kept++
		}
		return drop
	})
	return kept < maxEntries
}

// idler is implemented by limited of any type.
type idler interface{ idleSince() time.Time }

func (l *limited[T]) idleSince() time.Time { return l.updated }

// maxResultAge is the maximum age of a result that opens a gate.
const maxResultAge = 5 * time.Second

// Limits on the credit of a query, in intervals. A repeated query leaves some credit for an urgent one.
const (
	maxCredit    = 3
	repeatCredit = 2
	urgentCredit = 1
)

// limited holds the last result of a query and limits it to one request per interval on average.
type limited[T any] struct {
	sent    time.Time     // when the last query was answered; zero if never
	updated time.Time     // when the credit was last updated
	credit  time.Duration // a query costs one interval
	value   T
	err     error
}

// result is a possibly outdated result.
type result[T any] struct {
	value T
	// fresh is set if the result is recent enough to open a gate.
	fresh bool
	// urgentIn and repeatIn are the times until an urgent query and any query can be sent again.
	urgentIn, repeatIn time.Duration
}

// get returns the last result, or sends the query. If urgent returns true for an outdated result, the query
// is sent immediately as far as the credit allows. Errors are renewed only once per interval. If urgent is
// nil, an outdated result is sufficient.
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
		if ctx.Err() != nil { // the call was aborted, so there is no result
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
