// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informers

import (
	"sync"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// memoryInterval is how long what was read from other sources than the cache is used.
const memoryInterval = time.Minute

// Memory keeps what costs requests for a minute. The zero Memory is ready to use, by several
// goroutines at a time.
type Memory struct {
	mu     sync.Mutex
	alerts remembered[[]clusterstate.Alert]
	pods   map[podsKey]remembered[[]clusterstate.Pod]
}

// podsKey is what pods were read of: a node, or a namespace.
type podsKey struct{ node, namespace string }

// remembered is an answer, or the error that took its place.
type remembered[T any] struct {
	at    time.Time
	value T
	err   error
}

// isValid reports whether the answer is used at that time. It is not if the clock was set back.
func (r remembered[T]) isValid(now time.Time) bool {
	return !r.at.IsZero() && !now.Before(r.at) && now.Sub(r.at) < memoryInterval
}
