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

// AnnotationPausedBy is the mark of a MachineConfigPool that the operator has paused, see PoolMark.
const AnnotationPausedBy = "managedupgrade.appuio.io/paused-by"

// PoolMark shows that the operator has paused a pool, and when it unpauses it. It is set in the very
// request that pauses the pool and removed in the one that unpauses it, so a paused pool without a
// valid mark is one that a user paused.
//
// As a text it is <uid>/<attempt>/<releaseAfter>/<releaseBefore>, or <uid>/<attempt>/never/<time> for
// a pool that only a user unpauses.
//
// A mark does not make the pause of a user one of the operator: if the API server records that another
// client has set spec.paused, also after the operator had, the mark does not count.
type PoolMark struct {
	// OwnerUID and Attempt identify the attempt that paused the pool, see maintenance.Owner.
	OwnerUID string
	Attempt  int32
	// ReleaseAfter and ReleaseBefore are the window in which the operator unpauses the pool.
	ReleaseAfter, ReleaseBefore time.Time
	// KeptSince is when the pool was paused because the upgrade failed: only a user unpauses it. Zero
	// means the operator unpauses it in the window.
	KeptSince time.Time
}

const (
	markSeparator = "/"
	markNever     = "never"
	markTime      = "2006-01-02T15:04:05Z"
)

var markUID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.-]*$`)

// maxMarkUID bounds a UID. A pattern with the limit would take 100 KiB of memory.
const maxMarkUID = 128

// ParsePoolMark parses the value of the annotation. It accepts what PoolMark.String returns and
// nothing else: a pool with another value counts as paused by a user.
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

// Kept reports whether only a user unpauses the pool.
func (m PoolMark) Kept() bool { return !m.KeptSince.IsZero() }

// markOf returns the mark of a pool, or nil if it has none that counts.
func markOf(pool *mcfgv1.MachineConfigPool) *PoolMark {
	mark, ok := ParsePoolMark(pool.Annotations[AnnotationPausedBy])
	if !ok || pool.Spec.Paused && OwnedByOthers(pool.ManagedFields, "paused") {
		return nil
	}
	return &mark
}

// PausedByMark reports whether the operator has paused the pool.
func (p Pool) PausedByMark() bool { return p.Paused && p.Mark != nil }

// Delayed reports whether the operator has paused the pool and is going to unpause it.
func (p Pool) Delayed() bool { return p.PausedByMark() && !p.Mark.Kept() }
