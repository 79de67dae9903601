// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package engine

import "fmt"

// AttemptRef is the attempt for which something is done outside of the record:
// alerts are silenced, nodes are added.
type AttemptRef struct {
	UID, Namespace, Name string // of the object that asks for the upgrade
	Attempt              int32
	Version              string // to which it leads
}

// Key is unique among the attempts of the object: each version's are counted from 1.
func (s AttemptRef) Key() string { return fmt.Sprintf("%s/%d", s.Version, s.Attempt) }
