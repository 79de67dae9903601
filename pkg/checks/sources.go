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

// Prometheus answers queries. Each call is one request.
type Prometheus interface {
	// CriticalAlerts returns the critical alerts of every namespace, firing and pending. Alerts that differ
	// only in other labels count as one.
	CriticalAlerts(context.Context) ([]clusterstate.Alert, error)
	// HasSamples reports whether the result of an expression has a sample.
	HasSamples(ctx context.Context, expression string) (bool, error)
}

// Sources are queried by checks in addition to the cache. All upgrade objects share them, and checks run far more often
// than a source should be queried. Therefore each query is sent at most once an interval on average:
//
//   - While something else blocks, a query is repeated once an interval. In between, the last
//     result counts, also if it is an error.
//   - No gate opens on a result that is older than a few seconds. If nothing else blocks, the query
//     is sent at once, at most twice in a row, and following queries are delayed for that.
type Sources struct {
	// AlertsDisabled means that alerts are not queried. They block only with Options.RequireAlerts.
	AlertsDisabled bool
	// Prometheus is the source of alerts; nil means none is known, and no gate opens.
	Prometheus Prometheus
	// Conditions evaluates the conditions on objects; nil means none can be evaluated.
	Conditions Conditions
	Clock      clock.PassiveClock
	Interval   time.Duration
	// Observe is called with the result of each check of a step that waits; nil means no observer.
	Observe func(check string, ok bool, at time.Time)

	mu   sync.Mutex
	last map[query]idler
}

// query identifies what is queried. A kind has always the same type of result.
type query struct{ kind, id string }

// The kinds of queries.
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

// NewSources returns sources without a Prometheus, whose queries are sent at most once a minute.
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

// errNoPrometheus means that nothing is known about alerts.
var errNoPrometheus = errors.New("no source of alerts is configured")

func (s *Sources) prometheus() (Prometheus, error) {
	if s == nil || s.Prometheus == nil {
		return nil, errNoPrometheus
	}
	return s.Prometheus, nil
}

// once returns the last result of a query, which is sent at most once an interval.
func once[T any](ctx context.Context, s *Sources, q query, send func(context.Context) (T, error)) (T, error) {
	last, err := remember(ctx, s, q, nil, send)
	return last.value, err
}

// remember returns the last result of a query, or sends the query, see limited.get. Without a clock it is
// sent each time.
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

// maxEntries bounds how many results are kept of each kind.
const maxEntries = 4096

// errTooManyQueries is returned if a result could not be kept, so its query would be sent too
// often.
var errTooManyQueries = fmt.Errorf("more than %d different queries are in use", maxEntries)

// hasRoomFor reports whether one more result of a kind can be kept. To make room, results are dropped whose query
// may be sent at once anyway.
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

// idler is a limited of any type.
type idler interface{ idleSince() time.Time }

func (l *limited[T]) idleSince() time.Time { return l.updated }

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
