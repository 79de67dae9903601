// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
)

// AnnotationPausedBy marks a MachineConfigPool that the operator has paused. See PoolMark.
const AnnotationPausedBy = "managedupgrade.appuio.io/paused-by"

// PoolMark records that the operator has paused a pool and when it will unpause it. The mark is set in the same request
// that pauses the pool and removed in the same request that unpauses it. A paused pool without a valid mark was
// therefore paused by a user.
//
// The text format is <uid>/<attempt>/<releaseAfter>/<releaseBefore>, or <uid>/<attempt>/never/<time> for a pool that
// stays paused until a user unpauses it.
//
// A mark does not turn a user's pause into the operator's. If the API server records another client as the manager of
// spec.paused, even after the operator has paused the pool, the mark does not count.
type PoolMark struct {
	// OwnerUID and Attempt identify the attempt that paused the pool. See maintenance.Owner.
	OwnerUID string
	Attempt  int32
	// ReleaseAfter and ReleaseBefore bound the window in which the operator unpauses the pool.
	ReleaseAfter, ReleaseBefore time.Time
	// KeptSince is when a failed upgrade left the pool paused until a user unpauses it. If zero, the operator
	// unpauses the pool in the window.
	KeptSince time.Time
}

const (
	markSeparator = "/"
	markNever     = "never"
	markTime      = "2006-01-02T15:04:05Z"
)

var markUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// maxMarkUID limits the length of a UID. As part of the pattern, the limit would take 100 KiB of memory.
const maxMarkUID = 128

// ParsePoolMark parses the value of the annotation. It accepts only values that PoolMark.String returns. A
// pool with any other value counts as paused by a user.
func ParsePoolMark(value string) (PoolMark, bool) {
	parts := strings.Split(value, markSeparator)
	if len(parts) != 4 || len(parts[0]) > maxMarkUID || !markUID.MatchString(parts[0]) {
		return PoolMark{}, false
	}
	attempt, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil || attempt < 1 {
		return PoolMark{}, false
	}
	mark := PoolMark{OwnerUID: parts[0], Attempt: int32(attempt)}
	last, err := time.Parse(markTime, parts[3])
	if err != nil {
		return PoolMark{}, false
	}
	if parts[2] == markNever {
		mark.KeptSince = last
	} else {
		mark.ReleaseBefore = last
		if mark.ReleaseAfter, err = time.Parse(markTime, parts[2]); err != nil || last.Before(mark.ReleaseAfter) {
			return PoolMark{}, false
		}
	}
	return mark, mark.String() == value
}

// String returns the value of the annotation.
func (m PoolMark) String() string {
	after, last := markNever, m.KeptSince
	if !m.Kept() {
		after, last = m.ReleaseAfter.UTC().Format(markTime), m.ReleaseBefore
	}
	return fmt.Sprintf("%s/%d/%s/%s", m.OwnerUID, m.Attempt, after, last.UTC().Format(markTime))
}

// Kept reports whether the pool stays paused until a user unpauses it.
func (m PoolMark) Kept() bool { return !m.KeptSince.IsZero() }

// markOf returns the mark of a pool, or nil if it has no valid mark.
func markOf(pool *mcfgv1.MachineConfigPool) *PoolMark {
	mark, ok := ParsePoolMark(pool.Annotations[AnnotationPausedBy])
	if !ok || pool.Spec.Paused && OwnedByOthers(pool.ManagedFields, "paused") {
		return nil
	}
	return &mark
}

// PausedByMark reports whether the operator has paused the pool.
func (p Pool) PausedByMark() bool { return p.Paused && p.Mark != nil }

// Delayed reports whether the operator has paused the pool and will unpause it.
func (p Pool) Delayed() bool { return p.PausedByMark() && !p.Mark.Kept() }
