// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"context"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// earlyInterval is how long what the early check has found counts: the cluster
// may change many times in it.
const earlyInterval = time.Minute

// foresight is what the last early check of each UpgradeConfig has found.
type foresight struct {
	mu   sync.Mutex
	last map[client.ObjectKey]foreseen
}

type foreseen struct {
	at      time.Time
	about   string // the attempt and the spec that it was about
	verdict condition
}

// foresee says what would be in the way if the upgrade began now, so that it
// can be put right by daylight, and when to ask that again. Until then it asks nobody.
func (l *look) foresee(ctx context.Context) (condition, time.Time) {
	lead := l.setup.Config.EarlyCheck.LeadTime.Duration
	if begins := l.upgradeAt.Add(-lead); lead == 0 || l.now.Before(begins) {
		return condition{}, begins
	}
	key := client.ObjectKeyFromObject(l.cfg)
	about := engine.ID(string(l.cfg.UID), l.record.Attempt, l.record.Version, time.Duration(l.cfg.Generation).String())
	known := l.foresight.recall(key)
	if age := l.now.Sub(known.at); known.about != about || age < 0 || age >= earlyInterval {
		run := engine.Run{Started: l.now, Since: l.now, Now: l.now}
		known = foreseen{at: l.now, about: about, verdict: verdictOf(engine.Foresee(ctx, l.book, run))}
		l.foresight.remember(key, known)
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

func (f *foresight) recall(key client.ObjectKey) foreseen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last[key]
}

func (f *foresight) remember(key client.ObjectKey, what foreseen) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.last == nil {
		f.last = map[client.ObjectKey]foreseen{}
	}
	f.last[key] = what
}

func (f *foresight) forget(key client.ObjectKey) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.last, key)
}
