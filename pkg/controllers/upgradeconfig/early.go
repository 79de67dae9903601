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

// earlyInterval is how long what the early check has found counts: the cluster
// may change many times in it.
const earlyInterval = time.Minute

// foreseen is what the last early check has found.
type foreseen struct {
	at      time.Time
	about   question
	verdict condition
}

// question is what an early check is about.
type question struct {
	uid        types.UID
	attempt    int32
	version    string
	generation int64
}

// foresee says what would be in the way if the upgrade began now, so that it
// can be put right by daylight, and when to ask that again. Until then it asks nobody.
func (l *look) foresee(ctx context.Context) (condition, time.Time) {
	lead := l.setup.Config.EarlyCheck.LeadTime.Duration
	if begins := l.upgradeAt.Add(-lead); lead == 0 || l.now.Before(begins) {
		return condition{}, begins
	}
	key := client.ObjectKeyFromObject(l.cfg)
	about := question{l.cfg.UID, l.record.Attempt, l.record.Version, l.cfg.Generation}
	known := l.foreseen.recall(key)
	if age := l.now.Sub(known.at); known.about != about || age < 0 || age >= earlyInterval {
		run := engine.Run{Started: l.now, Since: l.now, Now: l.now}
		known = foreseen{at: l.now, about: about, verdict: verdictOf(engine.Foresee(ctx, l.book, run))}
		l.foreseen.remember(key, known)
	}
	return known.verdict, known.at.Add(earlyInterval)
}

// verdictOf puts in a sentence what was found. The reason names the steps that
// would be in the way. What can only be known later is said, but for steps that
// have nothing to do.
func verdictOf(found []engine.Prospect) condition {
	var steps, obstacles, remarks []string
	for _, f := range found {
		sentence := f.Step + ": " + f.Message
		switch {
		case f.InTheWay:
			steps, obstacles = append(steps, f.Step), append(obstacles, sentence)
		case f.Reason != reasonNotConfigured:
			remarks = append(remarks, sentence)
		}
	}
	if len(steps) == 0 {
		remarks = append([]string{"nothing would be in the way of the upgrade now"}, remarks...)
		return condition{metav1.ConditionTrue, reasonNothingFound, strings.Join(remarks, "; ")}
	}
	return condition{metav1.ConditionFalse, strings.Join(steps, ","), strings.Join(append(obstacles, remarks...), "; ")}
}
