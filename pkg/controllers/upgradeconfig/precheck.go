// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// precheckInterval is how long what the early check has found counts: the cluster
// may change many times in it.
const precheckInterval = time.Minute

// precheckResult is what the last early check has found.
type precheckResult struct {
	at        time.Time
	key       precheckKey
	condition condition
}

// precheckKey is what an early check is about.
type precheckKey struct {
	uid        types.UID
	attempt    int32
	version    string
	generation int64
}

// precheck says what would be in the way if the upgrade began now, so that it
// can be put right by daylight, and when to ask that again. Until then it asks nobody.
func (s *scope) precheck(ctx context.Context) (condition, time.Time) {
	lead := s.snapshot.Config.PreChecks.LeadTime.Duration
	if start := s.upgradeAt.Add(-lead); lead == 0 || s.now.Before(start) {
		return condition{}, start
	}
	key := client.ObjectKeyFromObject(s.cfg)
	wantKey := precheckKey{s.cfg.UID, s.record.Attempt, s.record.Version, s.cfg.Generation}
	cached := s.prechecks.get(key)
	if age := s.now.Sub(cached.at); cached.key != wantKey || age < 0 || age >= precheckInterval {
		run := engine.Run{Started: s.now, Since: s.now, Now: s.now}
		cached = precheckResult{at: s.now, key: wantKey, condition: precheckCondition(engine.RunPreChecks(ctx, s.book, run))}
		s.prechecks.set(key, cached)
	}
	return cached.condition, cached.at.Add(precheckInterval)
}

// precheckCondition puts in a sentence what was found. The reason names the steps that
// would be in the way. What can only be known later is said, but for steps that
// have nothing to do.
func precheckCondition(results []engine.PreCheckResult) condition {
	var steps, blockers, notes []string
	for _, f := range results {
		sentence := f.Step + ": " + f.Message
		switch {
		case f.Blocking:
			steps, blockers = append(steps, f.Step), append(blockers, sentence)
		case f.Reason != reasonNotConfigured:
			notes = append(notes, sentence)
		}
	}
	if len(steps) == 0 {
		notes = append([]string{"nothing would be in the way of the upgrade now"}, notes...)
		return condition{metav1.ConditionTrue, reasonNothingFound, strings.Join(notes, "; ")}
	}
	return condition{metav1.ConditionFalse, strings.Join(steps, ","), strings.Join(append(blockers, notes...), "; ")}
}
