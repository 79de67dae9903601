// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// The results of slots.
const (
	// ResultJobCreated is the result of a slot that has an UpgradeJob.
	ResultJobCreated = "JobCreated"
	// ResultSuspended is the result of a slot that schedule.suspend or a window suspended.
	ResultSuspended = maintenance.ReasonSuspended
	// ResultNoUpdate is the result of a slot for which no update was available.
	ResultNoUpdate = "NoUpdate"
	// ResultUpdatesUnknown is the result of a slot during which the available updates were never known.
	ResultUpdatesUnknown = "UpdatesUnknown"
	// ResultTooManyJobs is the result of a slot during which too many UpgradeJobs had not ended.
	ResultTooManyJobs = "TooManyJobs"
	// ResultJobRejected is the result of a slot during which the API server rejected the UpgradeJob.
	ResultJobRejected = "JobRejected"
	// ResultMissed is the result of a slot that was over when the operator came to it.
	ResultMissed = "Missed"
)

// Results returns all results of slots.
func Results() []string {
	return []string{ResultJobCreated, ResultSuspended, ResultNoUpdate, ResultUpdatesUnknown, ResultTooManyJobs, ResultJobRejected, ResultMissed}
}

const (
	// maxPending bounds the UpgradeJobs of one UpgradeConfig that have not ended: a long
	// pinVersionWindow and a short rhythm would create any number of them.
	maxPending = 16
	// maxPassed bounds the slots that are counted when they are passed over.
	maxPassed = 1000
)

// usesCron reports whether the cron expression, and not a new version alone, decides about starts.
func (s *scope) usesCron() bool { return s.cfg.Spec.Schedule.Cron != "" }

// onUpdate reports whether a version that becomes available starts an upgrade.
func (s *scope) onUpdate() bool {
	return s.cfg.Spec.Schedule.Rhythm == maintenancev1beta1.RhythmUpdateAvailable
}

// next returns the first scheduled start after base. With the rhythm UpdateAvailable there is none
// without a pending update, and without cron there is exactly one, whatever base is.
func (s *scope) next(base time.Time) (time.Time, bool) {
	if !s.onUpdate() {
		return s.cron.Next(base)
	}
	pending := s.status.PendingUpdate
	if pending == nil || pending.Since == nil {
		return time.Time{}, false
	}
	if s.usesCron() {
		if since := pending.Since.Time; since.After(base) {
			base = since
		}
		return s.cron.Next(base)
	}
	return s.afterWindows(pending.Since.Add(s.pin)), true
}

// maxHandled bounds the starts that were handled ahead and are passed over at once.
const maxHandled = 1000

// nextOpen is next without the starts that were decided ahead, when their versions were to be pinned, and
// that have no UpgradeJob: nothing happens at them.
func (s *scope) nextOpen(base time.Time) (time.Time, bool) {
	handled := s.handledUntil()
	for range maxHandled {
		start, found := s.next(base)
		if !found || start.After(handled) || !s.usesCron() || s.hasJob(start) {
			return start, found
		}
		base = start
	}
	return s.next(base)
}

// hasJob reports whether a start has an UpgradeJob, which this pass may have created.
func (s *scope) hasJob(start time.Time) bool {
	last := s.status.LastSlot
	return s.cachedJob(s.slotKey(start)) != nil || last != nil && last.Job != "" && last.Time != nil && last.Time.Time.Equal(start)
}

// afterWindows returns the first time from start on that no window contains.
func (s *scope) afterWindows(start time.Time) time.Time {
	for range len(s.windows) {
		by, suspended := s.window(start, s.slotKey(start))
		if !suspended {
			break
		}
		start = by.End.Add(time.Second - time.Nanosecond).Truncate(time.Second) // spec.startAfter has no fractions
	}
	return start
}

// window returns the window that suspends a start whose UpgradeJob has that value of the slot's label.
func (s *scope) window(start time.Time, slot string) (maintenance.Suspension, bool) {
	if by, suspended := maintenance.SuspendedBy(s.windows, s.cfg.Labels, start, maintenance.SelectedConfigs); suspended {
		return by, true
	}
	return maintenance.SuspendedBy(s.windows, s.jobLabels(slot), start, maintenance.SelectedJobs)
}

// suspendedBy returns what suspends a start, or "" if nothing does.
func (s *scope) suspendedBy(start time.Time) string {
	if maintenance.IsSuspended(s.cfg) {
		return maintenance.SuspendField
	}
	if by, suspended := s.window(start, s.slotKey(start)); suspended {
		return by.String()
	}
	return ""
}

// handledUntil returns the time up to which all starts have been handled: at first the creation of
// the UpgradeConfig. If the status was lost, it is just before the latest start that has an
// UpgradeJob, so this slot is handled again and finds it.
func (s *scope) handledUntil() time.Time {
	if s.status.HandledUntil != nil {
		return s.status.HandledUntil.Time
	}
	until := s.cfg.CreationTimestamp.Time
	if s.cfg.Status.ObservedGeneration != 0 {
		return until
	}
	for i := range s.jobs {
		job := &s.jobs[i]
		start, err := maintenance.Time(job.Spec.StartAfter)
		if err == nil && start.After(until) && !strings.HasPrefix(job.Labels[maintenancev1beta1.SlotLabel], maintenancev1beta1.SlotRunNowPrefix) {
			until = start.Add(-time.Second)
		}
	}
	return until
}

// observeClock forgets what was handled, and when an update appeared, while the clock was ahead. Starts that have an
// UpgradeJob keep it.
func (s *scope) observeClock() {
	if until := s.status.HandledUntil; s.usesCron() && until != nil && until.After(s.now.Add(s.pin)) {
		s.status.HandledUntil = new(metav1.NewTime(s.now.Truncate(time.Second)))
	}
	if pending := s.status.PendingUpdate; pending != nil && pending.Since != nil && pending.Since.After(s.now.Add(text.MaxClockSkew)) {
		pending.Since = new(metav1.NewTime(s.now.Truncate(time.Second)))
	}
}

// observeSchedule compares the schedule with the starts that were published. If it has changed,
// only later starts count, and of those that are due the ones that were published before.
func (s *scope) observeSchedule() {
	published := s.cfg.Status.NextPossibleSchedules
	if !s.usesCron() || s.cfg.Status.ObservedGeneration == 0 || s.onUpdate() && len(published) == 0 || s.selectsAll(published) {
		return
	}
	from, handled := s.now.Truncate(time.Second), s.handledUntil()
	for _, p := range published {
		if p.Time.After(handled) && s.isDue(p.Time.Time) && s.selects(p.Time.Time) {
			from = p.Time.Add(-time.Second)
			break
		}
	}
	s.status.HandledUntil = new(metav1.NewTime(from))
}

// selectsAll reports whether the schedule selects these starts, and none between them.
func (s *scope) selectsAll(published []maintenancev1beta1.NextPossibleSchedule) bool {
	handled := s.handledUntil()
	for i, p := range published {
		base := p.Time.Add(-time.Nanosecond)
		if i > 0 {
			base = published[i-1].Time.Time
		}
		for !s.startsNext(base, p.Time.Time) {
			next, found := s.cron.Next(base)
			if !found || next.After(handled) { // those that were handled ahead are not published
				return false
			}
			base = next
		}
	}
	return len(published) > 0
}

func (s *scope) selects(start time.Time) bool {
	return s.startsNext(start.Add(-time.Nanosecond), start)
}

// startsNext reports whether a start is the first one after base.
func (s *scope) startsNext(base, start time.Time) bool {
	next, found := s.cron.Next(base)
	return found && next.Equal(start)
}

// observeUpdates records the update for which the rhythm UpdateAvailable creates the next
// UpgradeJob. It reports whether the record has changed: it is saved before it is acted on.
func (s *scope) observeUpdates() bool {
	if !s.onUpdate() {
		s.status.PendingUpdate = nil
		return false
	}
	best, pending := s.newest.Release.Version, s.status.PendingUpdate
	switch {
	case best == "" && s.unknown != "":
		return false // the update service may only be unreachable
	case best == "" || best == s.status.LastScheduledVersion && !s.isPostponed(best) || clusterstate.IsLater(s.status.LastScheduledVersion, best):
		s.status.PendingUpdate = nil
	case pending == nil || pending.Since == nil || pending.Version != best || pending.Since.After(s.now) || s.isOver():
		s.status.PendingUpdate = &maintenancev1beta1.PendingUpdate{Version: best, Since: new(metav1.NewTime(s.now.Truncate(time.Second)))}
		return true
	}
	return false
}

// isPostponed reports whether the version that got the latest UpgradeJob must get another one: all its UpgradeJobs were
// suspended or rescheduled before they started. Once that is recorded, they may be deleted. An UpgradeJob that was
// created for it since then, but not recorded, is found by its label.
func (s *scope) isPostponed(version string) bool {
	recorded := s.status.PendingUpdate != nil && s.status.PendingUpdate.Version == version
	postponed, last := recorded, s.status.LastScheduledUpgrade
	for i := range s.jobs {
		job := &s.jobs[i]
		switch {
		case job.Spec.DesiredVersion.Version != version:
			continue
		case recorded && job.Labels[maintenancev1beta1.SlotLabel] == s.slotKey(time.Time{}):
			return true
		case !maintenance.IsPostponed(job):
			return false
		}
		start, err := maintenance.Time(job.Spec.StartAfter)
		postponed = postponed || err == nil && last != nil && start.Equal(last.Time) // the cache holds the latest one
	}
	return postponed
}

// isOver reports whether the start that a pending update has without cron is too long ago, for
// example after an outage: then it counts as observed now.
func (s *scope) isOver() bool {
	if s.usesCron() || maintenance.IsSuspended(s.cfg) {
		return false
	}
	start, found := s.next(time.Time{})
	return found && !s.now.Before(start.Add(s.delay))
}

// handleSlots handles the next slot if it is due, or passes over those that are over.
func (s *scope) handleSlots(ctx context.Context) error {
	base := s.handledUntil()
	slot, found := s.next(base)
	if found && !s.now.Before(slot.Add(s.delay)) && s.usesCron() {
		return s.passOver(ctx, slot)
	}
	switch {
	case !found:
		return nil
	case s.now.Before(slot.Add(-s.pin)):
		s.wakeAt(slot.Add(-s.pin))
		return nil
	}
	if by := s.suspendedBy(slot); by != "" {
		return s.suspend(ctx, slot, by)
	}
	s.wakeAt(slot.Add(s.delay))
	s.due = slot
	return s.serve(ctx, slot)
}

// suspend passes over a slot that is suspended, once it has begun: until then the suspension may
// end. Without cron, a version waits for the end of the suspension.
func (s *scope) suspend(ctx context.Context, slot time.Time, by string) error {
	if s.now.Before(slot) || !s.usesCron() {
		s.wakeAt(slot)
		return nil
	}
	job, err := s.findJob(ctx, s.slotKey(slot))
	if err != nil {
		return err
	}
	if job != nil {
		return s.adopt(ctx, slot, job)
	}
	message := "suspended by " + by
	s.finish(slot, ResultSuspended, message, "")
	return s.publish(ctx, slotID(slot), corev1.EventTypeNormal, "SlotSuspended", fmt.Sprintf("no UpgradeJob starts at %s: %s", text.FormatTime(slot), message))
}

// passed are slots that are over.
type passed struct {
	last, lastMissed  time.Time
	missed, suspended int
	suspendedBy       string                         // of the last one that was suspended
	more              bool                           // whether there were more than were counted
	job               *maintenancev1beta1.UpgradeJob // of the only one; nil if it has none
}

// passOver passes over all slots that are over, from the first one on. Those that were suspended
// are not missed, nor is one whose UpgradeJob the cache does not hold yet: the UpgradeJobs are read
// from the API server.
func (s *scope) passOver(ctx context.Context, first time.Time) error {
	if err := s.verify(ctx); err != nil {
		return err
	}
	if err := s.listJobs(ctx, s.live); err != nil {
		return err
	}
	over := s.collectPassed(first)
	if over.job != nil {
		return s.adopt(ctx, over.last, over.job)
	}
	if over.missed == 0 {
		message := "suspended by " + over.suspendedBy
		s.finish(over.last, ResultSuspended, message, "")
		s.handled.slots = over.suspended
		return s.publish(ctx, slotID(over.last), corev1.EventTypeNormal, "SlotSuspended",
			fmt.Sprintf("no UpgradeJob starts at %s: %s; scheduled starts from %s on that were suspended: %d", text.FormatTime(over.last), message, text.FormatTime(first), over.suspended))
	}
	result, message := ResultMissed, "the operator did not handle it before it was over"
	if c := s.waitedFor(); over.missed == 1 && c.reason != "" {
		result, message = c.reason, c.message
	}
	s.finish(over.last, result, message, "")
	s.handled.slots = over.missed
	n := strconv.Itoa(over.missed)
	if over.more {
		n = "more than " + n
	}
	return s.publish(ctx, slotID(over.last), corev1.EventTypeWarning, "SlotsMissed",
		fmt.Sprintf("scheduled starts without an UpgradeJob: %s, from %s to %s: %s", n, text.FormatTime(first), text.FormatTime(over.lastMissed), message))
}

// collectPassed counts the slots that are over, from the first one on, up to a limit.
func (s *scope) collectPassed(first time.Time) passed {
	var over passed
	for slot, found := first, true; found && !s.now.Before(slot.Add(s.delay)); slot, found = s.next(slot) {
		if over.missed+over.suspended == maxPassed {
			over.last, over.more = s.now.Add(-s.delay).Truncate(time.Second), true
			break
		}
		if job := s.cachedJob(s.slotKey(slot)); job != nil {
			if over.last.IsZero() {
				over.last, over.job = slot, job
			}
			break // it is handled next
		}
		over.last = slot
		if by := s.suspendedBy(slot); by != "" {
			over.suspended, over.suspendedBy = over.suspended+1, by
		} else {
			over.missed, over.lastMissed = over.missed+1, slot
		}
	}
	return over
}

// waitedFor returns what the slot that is over has waited for, by the published condition; zero
// means nothing.
func (s *scope) waitedFor() condition {
	for _, c := range s.cfg.Status.Conditions {
		if c.Type != maintenancev1beta1.ConditionScheduled {
			continue
		}
		switch c.Reason {
		case ResultUpdatesUnknown, ResultTooManyJobs, ResultJobRejected:
			return condition{c.Reason, text.Sanitize(c.Message, maxSlotMessage)}
		}
	}
	return condition{}
}

// slotKey returns the value of the slot's label. A version that is scheduled again has another one.
func (s *scope) slotKey(slot time.Time) string {
	pending := s.status.PendingUpdate
	if !s.onUpdate() || pending == nil {
		return slotID(slot)
	}
	value := pending.Version
	if value == s.status.LastScheduledVersion && pending.Since != nil {
		value += "_" + slotID(pending.Since.Time)
	}
	return maintenancev1beta1.SlotVersionPrefix + labelValue(value)
}

// serve creates the UpgradeJob of a slot that is due, if there is an update. A slot that has one
// already, since the operator ended before it recorded that, keeps it.
func (s *scope) serve(ctx context.Context, slot time.Time) error {
	key, release := s.slotKey(slot), s.newest.Release
	if job := s.cachedJob(key); job != nil {
		if err := s.verify(ctx); err != nil {
			return err
		}
		return s.adopt(ctx, slot, job)
	}
	switch {
	case s.pendingJobs() >= maxPending:
		s.waiting = condition{ResultTooManyJobs, fmt.Sprintf("%d UpgradeJobs have not ended; the next one is created when one of them has", maxPending)}
		return nil
	case release.Version == "" && s.unknown != "":
		s.waiting = condition{ResultUpdatesUnknown, "the available updates are not known: " + s.unknown}
		return nil
	}
	if release.Version == "" && s.cfg.Spec.LatePin == maintenancev1beta1.LatePinAllow && s.now.Before(slot) {
		s.waiting = condition{ResultNoUpdate, fmt.Sprintf("%s; one that becomes available before %s is pinned then", s.noUpdate(), text.FormatTime(slot))}
		s.wakeAt(slot)
		return nil
	}
	job, err := s.findJob(ctx, key)
	if err == nil && job == nil {
		if release.Version == "" && s.cfg.Spec.WhenNoUpdate != maintenancev1beta1.NoUpdateRunHooks {
			s.finish(slot, ResultNoUpdate, s.noUpdate(), "")
			return s.publish(ctx, slotID(slot), corev1.EventTypeNormal, "SlotSkipped", fmt.Sprintf("no UpgradeJob starts at %s: %s", text.FormatTime(slot), s.noUpdate()))
		}
		job, err = s.createJob(ctx, request{slot: key, start: slot, release: release, name: string(s.cfg.UID)})
	}
	if manager.IsRejected(err) {
		s.waiting = condition{ResultJobRejected, "the API server rejects the UpgradeJob: " + text.Reason(err.Error())}
	}
	if err != nil {
		return err
	}
	return s.adopt(ctx, slot, job)
}

// adopt records the UpgradeJob of a slot.
func (s *scope) adopt(ctx context.Context, slot time.Time, job *maintenancev1beta1.UpgradeJob) error {
	excluded := s.excluded(job)
	s.finish(slot, ResultJobCreated, excluded, job.Name)
	s.scheduled(job)
	if s.onUpdate() {
		s.status.PendingUpdate = nil
	}
	return s.publish(ctx, job.Labels[maintenancev1beta1.SlotLabel], corev1.EventTypeNormal, "JobCreated", joinSentences(describeJob(job), excluded))
}

// excluded explains why an UpgradeJob does not upgrade the cluster to a later version that is offered;
// empty if there is none.
func (s *scope) excluded(job *maintenancev1beta1.UpgradeJob) string {
	if version := job.Spec.DesiredVersion.Version; version == "" || version != s.newest.Release.Version || len(s.newest.Excluded) == 0 {
		return ""
	}
	return "later versions are not selected: " + s.exclusions()
}

func joinSentences(first, second string) string {
	if second == "" {
		return first
	}
	return first + "; " + second
}

// pendingJobs returns the number of UpgradeJobs that have not ended.
func (s *scope) pendingJobs() int {
	n := 0
	for i := range s.jobs {
		if _, ended := maintenance.EndPhase(&s.jobs[i]); !ended {
			n++
		}
	}
	return n
}

// noUpdate explains why there is nothing to install.
func (s *scope) noUpdate() string {
	if len(s.newest.Excluded) == 0 {
		return "no update is available"
	}
	return "no update is available, except for " + s.exclusions()
}

// exclusions names the versions that are offered and not selected, with the reasons.
func (s *scope) exclusions() string {
	var excluded []string
	for _, e := range s.newest.Excluded {
		excluded = append(excluded, text.WithReason(text.Excerpt(e.Version), e.Reason))
	}
	return text.JoinInPlace(excluded)
}

// finish records the result of a slot.
func (s *scope) finish(slot time.Time, result, message, job string) {
	at := metav1.NewTime(slot.UTC())
	s.status.HandledUntil = &at
	s.status.LastSlot = &maintenancev1beta1.UpgradeSlot{Time: at.DeepCopy(), Result: result, Message: text.Truncate(message, maxSlotMessage), Job: job}
	s.handled = outcome{result, 1}
}

// scheduled records an UpgradeJob that was created.
func (s *scope) scheduled(job *maintenancev1beta1.UpgradeJob) {
	if start, err := maintenance.Time(job.Spec.StartAfter); err == nil {
		s.status.LastScheduledUpgrade = new(metav1.NewTime(start))
	}
	if version := job.Spec.DesiredVersion.Version; version != "" {
		s.status.LastScheduledVersion = version
		if pending := s.status.PendingUpdate; pending != nil && pending.Version == version {
			s.status.PendingUpdate = nil
		}
	}
}

func slotID(slot time.Time) string { return strconv.FormatInt(slot.Unix(), 10) }
