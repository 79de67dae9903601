// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package insight_test

import (
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
)

// sent is an answer in a history, with the time at which it is applied.
type sent struct {
	answer insight.Answer
	now    time.Time
	// restart makes the controller restart before the answer.
	restart bool
}

var uids = []string{"a", "b", "c", "d"}

// drawHistory draws answers of one informer in any order, with clock steps and restarts.
func drawHistory(t *rapid.T) []sent {
	results := []insight.Result{insight.Success, insight.Success, insight.Success, insight.Failure, insight.Wait, insight.Unreachable, insight.Invalid}
	var history []sent
	now := received
	for n := range rapid.IntRange(1, 12).Draw(t, "answers") {
		now = now.Add(time.Duration(rapid.IntRange(1, 200).Draw(t, "seconds")) * time.Second)
		if rapid.IntRange(0, 9).Draw(t, "step") == 0 {
			now = now.Add(time.Duration(rapid.IntRange(-7200, 7200).Draw(t, "clock step")) * time.Second)
		}
		s := sent{now: now, restart: rapid.IntRange(0, 5).Draw(t, "restart") == 0}
		s.answer = insight.Answer{Informer: "mco", Result: rapid.SampledFrom(results).Draw(t, "result"), At: now, Message: strconv.Itoa(n)}
		if late := rapid.IntRange(0, 5).Draw(t, "late"); late == 0 {
			s.answer.At = now.Add(-time.Duration(rapid.IntRange(1, 600).Draw(t, "late by")) * time.Second)
		}
		for _, uid := range uids {
			if rapid.Bool().Draw(t, uid) {
				i := updatev1beta1.Insight{UID: uid, Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.LevelWarning, Summary: uid}}
				if rapid.Bool().Draw(t, "dated") {
					i.AcquisitionTime = metav1.NewTime(now.Add(-time.Duration(rapid.IntRange(-30, 300).Draw(t, "age")) * time.Second))
				}
				s.answer.Insights = append(s.answer.Insights, i)
			}
		}
		history = append(history, s)
	}
	return history
}

func lists(answer insight.Answer, uid string) bool {
	for _, i := range answer.Insights {
		if i.UID == uid {
			return true
		}
	}
	return false
}

// TestStore_ResolvesOnlyWhatWasSeenResolved checks after each answer of any history that an insight
// disappears only if it was missing from a Success applied since it was shown. Restarts, clock steps, and
// other answers resolve nothing.
func TestStore_ResolvesOnlyWhatWasSeenResolved(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		store := insight.NewStore()
		missed := map[string]bool{} // missing from a Success since it was last reported
		before := map[string]bool{}
		var latest time.Time // time of the latest answer: an older answer that arrives later confirms nothing
		for _, s := range drawHistory(t) {
			if s.restart {
				published := publish(store, s.now)
				store = insight.NewStore()
				store.Restore(published)
				latest = time.Time{}
				for uid := range before {
					missed[uid] = false // the controller lost track of what it had seen
				}
			}
			confirms := !s.answer.At.Before(latest)
			if confirms {
				latest = s.answer.At
			}
			store.Apply(s.answer, s.now)
			store.Settle(s.now)
			for _, uid := range uids {
				if s.answer.Result == insight.Success && !lists(s.answer, uid) {
					missed[uid] = true
				}
			}
			after := map[string]bool{}
			for _, of := range store.Insights() {
				for _, i := range of.Insights {
					if of.Name == "mco" {
						after[i.UID] = true
					}
				}
			}
			for uid := range before {
				if !after[uid] && !missed[uid] {
					t.Fatalf("%s was resolved by %s at %s", uid, s.answer.Result, s.now)
				}
			}
			for uid := range after {
				if confirms && lists(s.answer, uid) {
					missed[uid] = false
				}
			}
			before = after
		}
	})
}

// TestStore_Order checks that, in whatever order answers arrive, the insights of the latest answer are shown.
func TestStore_Order(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		history := drawHistory(t)
		var latest *insight.Answer
		now := received
		for i := range history {
			answer := &history[i].answer
			answer.At = received.Add(time.Duration(i) * time.Minute) // all times differ
			if answer.Result == insight.Success {
				latest = answer
			}
			now = answer.At
		}
		store := insight.NewStore()
		for _, s := range rapid.Permutation(history).Draw(t, "order") {
			store.Apply(s.answer, now)
		}
		store.Settle(now)
		shown := map[string]bool{}
		for _, of := range store.Insights() {
			for _, i := range of.Insights {
				shown[i.UID] = true
			}
		}
		for _, uid := range uids {
			if latest != nil && latest == &history[len(history)-1].answer && lists(*latest, uid) && !shown[uid] {
				t.Fatalf("%s is missing", uid)
			}
		}
	})
}

// TestStore_Deterministic checks that the same history always produces the same bytes and that applying an
// answer again changes nothing.
func TestStore_Deterministic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		history := drawHistory(t)
		run := func(times int) string {
			store := insight.NewStore()
			for _, s := range history {
				for range times {
					store.Apply(s.answer, s.now)
					store.Settle(s.now)
				}
			}
			return encode(t, publish(store, received))
		}
		first := run(1)
		for range 10 {
			if again := run(1); again != first {
				t.Fatalf("got\n%s\nthen\n%s", first, again)
			}
		}
		if twice := run(2); twice != first {
			t.Fatalf("once\n%s\ntwice\n%s", first, twice)
		}
	})
}

// FuzzStore applies arbitrary answers. Nothing may panic, and the published insights must stay within the
// limits.
func FuzzStore(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add([]byte("Success without it, then Failure, then Wait, then nothing for a while"))
	f.Add([]byte{255, 254, 253, 0, 0, 0, 128, 64, 32, 16, 8, 4, 2, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		results := []insight.Result{insight.Success, insight.Failure, insight.Wait, insight.Unreachable, insight.Invalid, insight.Disabled, insight.Deleted, insight.NotQueried, "odd"}
		store, now := insight.NewStore(), received
		data = data[:min(len(data), 256)] // each byte can produce an answer of 255 insights with long texts
		for n := 0; n+3 < len(data); n += 4 {
			now = now.Add(time.Duration(int8(data[n+1])) * time.Minute)
			answer := insight.Answer{
				Informer: string(rune('a' + data[n]%3)), Result: results[int(data[n])%len(results)], At: now.Add(time.Duration(int8(data[n+3])) * time.Second),
				Message: string(data[n:]), Degraded: string(data[n : n+int(data[n]%2)]), Live: data[n+2]%2 == 0,
			}
			for i := range int(data[n+2]) {
				answer.Insights = append(answer.Insights, updatev1beta1.Insight{
					UID: string(data[n:min(n+1+i%3, len(data))]), Impact: updatev1beta1.InsightImpact{Level: updatev1beta1.Level(data[:n]), Summary: string(data[n:])},
					Remediation: updatev1beta1.InsightRemediation{Resolved: new(i%2 == 0)},
				})
			}
			store.Apply(answer, now)
			if data[n]%5 == 0 {
				store.EndUpdate(nil, now)
			}
			if data[n]%7 == 0 {
				published := publish(store, now)
				store = insight.NewStore()
				store.Restore(published)
			}
			store.Settle(now)
		}
		if len(store.RecentlyResolved()) > insight.MaxListed || len(store.Retained()) > insight.MaxListed {
			t.Error("a list is too long")
		}
		for _, of := range store.Insights() {
			for _, i := range of.Insights {
				if len(i.UID) > insight.MaxUID || len(i.Impact.Summary) > insight.MaxSummary || i.UUID == "" {
					t.Errorf("got %+v", i)
				}
			}
		}
	})
}
