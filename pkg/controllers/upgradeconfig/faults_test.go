// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
)

// isFinished says whether all is over for that object: its attempt, the finalizer and the lock.
func (w *world) isFinished(key client.ObjectKey) bool {
	cfg := w.get(key)
	return len(cfg.Status.History) > 0 && isFinished(cfg.Status.History[0]) && len(cfg.Finalizers) == 0 && w.holder() == ""
}

// runToCompletion plays an upgrade to its end, and checks that it went as it must whatever happened to it.
func (w *world) runToCompletion() {
	w.t.Helper()
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	record := w.get(upgrade).Status.History[0]
	if record.Phase != history.PhaseUpgraded {
		w.t.Fatalf("the phase is %s; %s", record.Phase, w.describe())
	}
	if len(w.requestedVersions) != 1 || w.requestedVersions[0] != desired {
		w.t.Errorf("the cluster version operator was asked for %q", w.requestedVersions)
	}
	for _, reason := range []string{"UpgradeStarted", "UpgradeCompleted"} {
		if n := w.events(reason); n != 1 {
			w.t.Errorf("%d Events %s", n, reason)
		}
	}
	for step, n := range w.completions {
		if n != 1 {
			w.t.Errorf("the end of %s was recorded %d times", step, n)
		}
	}
}

// upgradeWrites are the writes that an upgrade makes to which nothing happens.
func upgradeWrites(t *testing.T) []string {
	t.Helper()
	w := newWorld(t, upgradeConfig(upgrade))
	w.runToCompletion()
	if len(w.writes) < 20 {
		t.Fatalf("only these writes: %q", w.writes)
	}
	return w.writes
}

// writesExcept are the numbers of the writes, from 1, but for those of a kind.
func writesExcept(writes []string, but string) []int {
	var numbers []int
	for i, what := range writes {
		if what != but {
			numbers = append(numbers, i+1)
		}
	}
	return numbers
}

func TestAnUpgradeEndsWellWhateverBecomesOfItsWrites(t *testing.T) {
	t.Parallel()
	writes := upgradeWrites(t)
	for name, fate := range map[string]answer{
		"refused": refused, "conflicting": conflicting, "applied and answered with an error": answeredWithError,
		"the process dies before it": crashBefore, "the process dies after it": crashAfter,
	} {
		for n := 1; n <= len(writes); n++ {
			t.Run(fmt.Sprintf("write %d of %d is %s", n, len(writes), name), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, upgradeConfig(upgrade))
				w.plan = func(i int, _ string) answer {
					if i == n {
						return fate
					}
					return applied
				}
				w.runToCompletion()
			})
		}
	}
}

// TestAnUpgradeEndsWellWithACacheThatIsBehind lets the cache hear nothing of a
// kind for a minute and a half after each write, while other events make the
// operator look.
func TestAnUpgradeEndsWellWithACacheThatIsBehind(t *testing.T) {
	t.Parallel()
	writes := upgradeWrites(t)
	for name, c := range map[string]struct {
		behind []string
		answer answer
	}{
		"in UpgradeConfigs from write %d":                              {behind: []string{"UpgradeConfig"}},
		"in UpgradeConfigs from write %d, which answers with an error": {behind: []string{"UpgradeConfig"}, answer: answeredWithError},
		"in the lock from write %d":                                    {behind: []string{"Lease"}},
		"in ClusterVersions from write %d":                             {behind: []string{"ClusterVersion"}},
		"in all from write %d":                                         {behind: slices.Collect(maps.Keys(kinds))},
	} {
		for _, n := range writesExcept(writes, "create Event") {
			t.Run(fmt.Sprintf(name, n), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, upgradeConfig(upgrade))
				w.plan = func(i int, _ string) answer {
					if i == n {
						w.freeze(90*time.Second, c.behind...)
						return c.answer
					}
					return applied
				}
				w.runToCompletion()
			})
		}
	}
}

// freeze lets the cache hear nothing of those kinds for that long, and makes the operator look meanwhile.
func (w *world) freeze(d time.Duration, kinds ...string) {
	for _, kind := range kinds {
		w.frozen[kind] = true
		w.after(d, func() { delete(w.frozen, kind) })
	}
	for _, at := range []time.Duration{0, 100 * time.Millisecond, time.Second, 10 * time.Second, time.Minute} {
		w.after(at, func() { w.queue(upgrade) })
	}
}

// TestAnUpgradeEndsWellIfItsRecordIsLost wipes the status after each write.
// What is lost is what it said; what is done is not done again.
func TestAnUpgradeEndsWellIfItsRecordIsLost(t *testing.T) {
	t.Parallel()
	for _, n := range writesExcept(upgradeWrites(t), "create Event") {
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.plan = func(i int, _ string) answer {
				if i == n {
					w.after(0, func() {
						w.clearStatus(upgrade)
					})
				}
				return applied
			}
			w.runToCompletion()
		})
	}
}

// TestDeletionNeverHangsAndLeavesNothingBehind deletes the object after each write.
func TestDeletionNeverHangsAndLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	for _, n := range writesExcept(upgradeWrites(t), "") {
		t.Run(fmt.Sprintf("after write %d", n), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			commenced := false
			w.plan = func(i int, _ string) answer {
				if i == n {
					w.after(0, func() {
						commenced = w.clusterVersion().Status.History[0].Version == desired
						w.remove(upgrade)
					})
				}
				return applied
			}
			w.runUntil(func() bool { return !w.exists(upgrade) })
			if len(w.errors) > 0 {
				t.Errorf("errors: %v", w.errors)
			}
			gone := w.clock.Now()
			at, ok := w.deleted[upgrade]
			if !ok || gone.Sub(at.Time) > 5*time.Second {
				t.Errorf("deleted at %s, gone at %s", at, gone)
			}
			if holder := w.holder(); holder != "" && len(w.requestedVersions) > 0 {
				t.Errorf("the lock is still held by %q", holder)
			}
			w.runFor(time.Hour)
			if requested := w.clusterVersion().Spec.DesiredUpdate != nil; requested != commenced {
				t.Errorf("commenced: %t, still asked for: %t", commenced, requested)
			}
			if moved := w.clusterVersion().Status.History[0].Version == desired; moved != commenced {
				t.Errorf("commenced when it was deleted: %t, in the end: %t", commenced, moved)
			}
		})
	}
}
