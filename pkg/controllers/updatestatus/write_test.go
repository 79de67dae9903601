// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// The limits for writes. The implementation has its own constants.
const (
	bytesPerSecond = 20 << 10
	shortestPause  = 5 * time.Second
	largestObject  = 900 << 10
)

// flood returns answers of many informers with the given number of insights each. Their texts
// contain number.
func (w *world) flood(informers, each, number int) []insight.Answer {
	var answers []insight.Answer
	for i := range informers {
		var uids []string
		for n := range each {
			uids = append(uids, fmt.Sprintf("uid-%d", n))
		}
		answer := w.reports(fmt.Sprintf("informer-%02d", i), updatev1beta1.LevelWarning, uids...)
		for n := range answer.Insights {
			answer.Insights[n].Impact.Description = strings.Repeat(fmt.Sprintf("%d of %d. ", number, n), 200)
		}
		answers = append(answers, answer)
	}
	return answers
}

func names(count int) []string {
	var all []string
	for i := range count {
		all = append(all, fmt.Sprintf("informer-%02d", i))
	}
	return all
}

// writeFigures describes the writes while informers report new texts every second.
type writeFigures struct {
	writes         int
	bytesPerSecond float64 // the maximum, over all writes, of the average since the first write
	lastNumber     string  // the first description in the final status
}

// writeRate measures the writes while ten informers report new texts every second for that many
// seconds.
func writeRate(tb testing.TB, seconds int) writeFigures {
	tb.Helper()
	w := newWorld(tb)
	w.register(names(10)...)
	w.Begin()
	w.update()
	w.RunFor(time.Minute)
	w.writes = nil
	for second := range seconds {
		w.answer(w.flood(10, 8, second)...)
		w.RunFor(time.Second)
	}
	f := writeFigures{writes: len(w.writes)}
	sum := 0
	for i := range max(0, len(w.writes)-1) {
		sum += w.writes[i].bytes
		f.bytesPerSecond = max(f.bytesPerSecond, float64(sum)/w.writes[i+1].at.Sub(w.writes[0].at).Seconds())
	}
	w.RunFor(time.Minute)
	last := w.object().Status.ControlPlane.UpdateInformers
	f.lastNumber = last[len(last)-1].Insights[0].Impact.Description
	return f
}

func (f writeFigures) check(tb testing.TB, seconds int) {
	tb.Helper()
	if f.writes < 5 {
		tb.Errorf("%d writes in %d seconds", f.writes, seconds)
	}
	if f.bytesPerSecond > bytesPerSecond {
		tb.Errorf("%.0f bytes are written in a second on average, limit %d", f.bytesPerSecond, bytesPerSecond)
	}
	if !strings.HasPrefix(f.lastNumber, fmt.Sprintf("%d of", seconds-1)) {
		tb.Errorf("the last answer was not published: %.40s", f.lastNumber)
	}
}

// TestWrites_stay_within_their_rate lets informers report new texts every second.
func TestWrites_stay_within_their_rate(t *testing.T) {
	t.Parallel()
	const seconds = 90
	writeRate(t, seconds).check(t, seconds)
}

// BenchmarkWrites measures the writes of the status in the worst case, and the largest object.
func BenchmarkWrites(b *testing.B) {
	const seconds = 3 * 60
	b.Logf("Method: virtual time, an update in progress. Ten informers report eight other texts each second for three minutes; the figure is the largest average since "+
		"the first write, at any write. Then 64 informers report as much as they may. Limits: %d KiB/s, and %d KiB for an object.", bytesPerSecond>>10, largestObject>>10)
	for b.Loop() {
		f := writeRate(b, seconds)
		f.check(b, seconds)
		size, _ := largestWrite(b)
		if size > largestObject {
			b.Errorf("the object has %d bytes, limit %d", size, largestObject)
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(f.writes), "writes")
		b.ReportMetric(f.bytesPerSecond/1024, "KiB/s-written")
		b.ReportMetric(float64(size)/1024, "KiB-object")
	}
}

// TestWrites_that_are_small lets an informer report one more insight every second.
func TestWrites_that_are_small(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.RunFor(time.Minute)
	w.writes = nil
	var uids []string
	for second := range 18 {
		uids = append(uids, fmt.Sprintf("uid-%d", second))
		w.answer(w.reports("shop", updatev1beta1.LevelWarning, uids...))
		w.RunFor(time.Second)
	}
	if n := len(w.writes); n < 3 || n > 4 {
		t.Errorf("%d writes", n)
	}
	for i := range w.writes[1:] {
		if pause := w.writes[i+1].at.Sub(w.writes[i].at); pause < shortestPause {
			t.Errorf("%s between two writes", pause)
		}
	}
}

// largestWrite returns the size of the largest object written while 64 informers report as much as
// they may, and the insights of the last informer.
func largestWrite(tb testing.TB) (size int, published map[string]time.Time) {
	tb.Helper()
	w := newWorld(tb)
	w.register(names(64)...)
	w.Begin()
	w.update()
	w.answer(w.flood(64, 40, 0)...)
	w.RunFor(2 * time.Minute)
	if len(w.writes) == 0 {
		tb.Fatal("nothing was written")
	}
	for _, write := range w.writes {
		size = max(size, write.size)
	}
	return size, insights(w.writes[len(w.writes)-1].status)
}

// TestObject_stays_within_its_size lets each informer report as much as it may.
func TestObject_stays_within_its_size(t *testing.T) {
	t.Parallel()
	size, last := largestWrite(t)
	if size > largestObject {
		t.Errorf("the object has %d bytes, limit %d", size, largestObject)
	}
	if _, noted := last["update-status-controller Truncated/status"]; !noted {
		t.Errorf("%d insights are published, and none is about those that are not", len(last))
	}
}

// TestStatusTime refuses the writes for a while. An alert tells the published status, which is outdated, from one that
// does not change.
func TestStatusTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	current := func(name string, want bool) {
		t.Helper()
		w.RunFor(5 * time.Minute)
		if is := w.Now().Sub(w.current) <= time.Minute; is != want {
			t.Errorf("%s: at %s, the status is current as of %s", name, w.Now(), w.current)
		}
	}
	current("idle", true)
	w.Plan = simulation.Fault{Outcome: simulation.Refuse}.If(simulation.Request.IsWrite)
	current("idle, without writes", true)
	w.update()
	current("outdated", false)
	w.Plan = nil
	current("updating", true)
}

// TestConflict lets another client write between the controller's read and write, several times.
func TestConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.RunFor(time.Minute)
	conflicts := 0
	w.Plan = func(r simulation.Request) simulation.Fault {
		if r.Kind == "UpdateStatus" && r.IsWrite() && conflicts < 3 {
			conflicts++
			object := w.object()
			object.Annotations = map[string]string{updatev1beta1.AcknowledgedAnnotation: fmt.Sprintf("uuid-%d", conflicts)}
			w.Update(object)
		}
		return simulation.Fault{}
	}
	w.takeEvents()
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
	w.RunFor(30 * time.Second)
	if conflicts != 3 {
		t.Errorf("%d conflicts", conflicts)
	}
	object := w.object()
	if got := object.Annotations[updatev1beta1.AcknowledgedAnnotation]; got != "uuid-3" {
		t.Errorf("the annotation of the other client is %q", got)
	}
	if _, published := insights(object.Status)["shop disk"]; !published {
		t.Error("the insight is not published")
	}
	want := []string{"Warning InsightReported: Summary of disk (error of shop)"}
	if diff := cmp.Diff(want, w.takeEvents()); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

// TestAnswer_that_is_lost expects each status to be written once, even if the API server's response
// is lost.
func TestAnswer_that_is_lost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.RunFor(time.Minute)
	w.writes = nil
	lost := false
	w.Plan = func(r simulation.Request) simulation.Fault {
		if r.Kind == "UpdateStatus" && r.IsWrite() && !lost {
			lost = true
			return simulation.Fault{Outcome: simulation.LoseAnswer}
		}
		return simulation.Fault{}
	}
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
	w.RunFor(40 * time.Second)
	if len(w.writes) != 1 {
		t.Errorf("%d writes", len(w.writes))
	}
}

// TestStale_cache cuts the cache off from the UpdateStatus for a while. Writes during that time are
// not undone.
func TestStale_cache(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.RunFor(time.Minute)
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
	w.Process.Lag("UpdateStatus", 40*time.Second)
	w.RunFor(10 * time.Second)
	w.writes, w.events = nil, nil
	first := insights(w.object().Status)["shop disk"]
	if first.IsZero() {
		t.Fatal("the insight is not published")
	}
	w.RunFor(20 * time.Second)
	if len(w.writes) > 0 {
		t.Errorf("%d writes with a stale cache", len(w.writes))
	}
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk", "memory"))
	w.RunFor(time.Minute)
	got := insights(w.object().Status)
	if !got["shop disk"].Equal(first) || got["shop memory"].IsZero() {
		t.Errorf("insights after the cache has caught up: %v", got)
	}
	if diff := cmp.Diff([]string{"Warning InsightReported: Summary of memory (error of shop)"}, w.takeEvents()); diff != "" {
		t.Errorf("Events (-want +got):\n%s", diff)
	}
}

// TestUpdateStatus_that_is_deleted expects the object to be re-created with the previous insights.
func TestUpdateStatus_that_is_deleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
	w.RunFor(time.Minute)
	before := insights(w.object().Status)
	w.Delete(w.object())
	w.RunFor(30 * time.Second)
	if diff := cmp.Diff(before, insights(w.object().Status)); diff != "" {
		t.Errorf("insights (-before +after):\n%s", diff)
	}
}

// TestAcknowledgement_that_is_hostile uses an annotation of the maximum size that acknowledges only
// nonexistent insights.
func TestAcknowledgement_that_is_hostile(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Begin()
	w.RunFor(time.Minute)
	object := w.object()
	object.Annotations = map[string]string{updatev1beta1.AcknowledgedAnnotation: strings.Repeat(",x ", 50_000)}
	w.Update(object)
	w.update()
	w.RunFor(time.Minute)
	if !updatestatus.IsActive(w.object().Status) {
		t.Error("the update is not published")
	}
}
