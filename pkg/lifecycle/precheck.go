// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// precheckInterval is how long the result of a pre-check stays valid, whatever changes.
const precheckInterval = time.Minute

// precheckResult is the result of the last pre-check.
type precheckResult struct {
	at        time.Time
	key       precheckKey
	condition condition
}

// precheckKey identifies the subject of a pre-check.
type precheckKey struct {
	attempt    string
	version    string
	generation int64
}

// precheck returns what would block the upgrade if it started now, while there is time to fix it, and when the
// next pre-check is due. Until then, no step is called.
func (s *scope[T]) precheck(ctx context.Context) (condition, time.Time) {
	lead := s.plan.PreCheckLead
	if start := s.upgradeAt.Add(-lead); lead == 0 || s.now.Before(start) {
		return condition{}, start
	}
	wantKey := precheckKey{s.record.Key(), s.record.Version, s.obj.GetGeneration()}
	cached := s.memory.precheck
	if age := s.now.Sub(cached.at); cached.key != wantKey || age < 0 || age >= precheckInterval {
		run := engine.Run{Started: s.now, Since: s.now, Now: s.now}
		cached = precheckResult{at: s.now, key: wantKey, condition: precheckCondition(engine.RunPreChecks(ctx, s.Clock, s.plan.Book, run))}
		s.memory.precheck = cached
	}
	return cached.condition, cached.at.Add(precheckInterval)
}

// precheckWhileUnlocked is precheck for an attempt whose steps wait for the lock. After the requested time, the
// steps themselves show what blocks them.
func (s *scope[T]) precheckWhileUnlocked(ctx context.Context) (condition, time.Time) {
	if !s.plan.waitsForLock(s.record) || !s.now.Before(s.upgradeAt) || s.deleted() {
		return condition{}, time.Time{}
	}
	return s.precheck(ctx)
}

// precheckCondition returns the condition for the results. Its reason names the blocking steps. The message
// also mentions what can be determined only later, except for steps that have nothing to do.
func precheckCondition(results []engine.PreCheckResult) condition {
	var steps, blockers, notes []string
	for _, result := range results {
		sentence := result.Step + ": " + result.Message
		switch {
		case result.Blocking:
			steps, blockers = append(steps, result.Step), append(blockers, sentence)
		case result.Reason != reasonNotConfigured:
			notes = append(notes, sentence)
		}
	}
	if len(steps) == 0 {
		notes = append([]string{"nothing would block the upgrade now"}, notes...)
		return condition{metav1.ConditionTrue, reasonNothingFound, strings.Join(notes, "; ")}
	}
	return condition{metav1.ConditionFalse, strings.Join(steps, ","), strings.Join(append(blockers, notes...), "; ")}
}
