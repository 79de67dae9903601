// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// memory is what is remembered of each UpgradeConfig for as long as the process lives.
type memory[T any] struct {
	mu    sync.Mutex
	known map[client.ObjectKey]T
}

// recall is what is remembered of one; zero if nothing is.
func (m *memory[T]) recall(key client.ObjectKey) T {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known[key]
}

func (m *memory[T]) remember(key client.ObjectKey, what T) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.known == nil {
		m.known = map[client.ObjectKey]T{}
	}
	m.known[key] = what
}

func (m *memory[T]) forget(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, key)
}
