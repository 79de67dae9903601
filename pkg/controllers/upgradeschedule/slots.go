// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"context"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Results of slots.
const (
	// ResultJobCreated marks a slot that has an UpgradeJob.
	ResultJobCreated = "JobCreated"
	// ResultSuspended marks a slot that schedule.suspend or a window suspended.
	ResultSuspended = maintenance.ReasonSuspended
	// ResultNoUpdate marks a slot without an available update.
	ResultNoUpdate = "NoUpdate"
	// ResultUpdatesUnknown marks a slot that passed while the available updates were unknown.
	ResultUpdatesUnknown = "UpdatesUnknown"
	// ResultTooManyJobs marks a slot that passed while too many UpgradeJobs were unfinished.
	ResultTooManyJobs = "TooManyJobs"
	// ResultJobRejected marks a slot whose UpgradeJob the API server kept rejecting.
	ResultJobRejected = "JobRejected"
	// ResultMissed marks a slot that had passed before the operator could handle it.
	ResultMissed = "Missed"
)

// Results returns all results of slots.
func Results() []string {
	return []string{ResultJobCreated, ResultSuspended, ResultNoUpdate, ResultUpdatesUnknown, ResultTooManyJobs, ResultJobRejected, ResultMissed}
}

const (
	// maxPending limits the unfinished UpgradeJobs of one UpgradeConfig. A long pinVersionWindow
	// with a frequent schedule could otherwise create any number of them.
	maxPending = 16
	// maxPassed limits how many past slots are counted at once.
	maxPassed = 1000
)

// usesCron reports whether the cron expression determines the starts, rather than new versions
// alone.
func (s *scope) usesCron() bool { return s.cfg.Spec.Schedule.Cron != "" }

// onUpdate reports whether a newly available version starts an upgrade.
func (s *scope) onUpdate() bool {
	return s.cfg.Spec.Schedule.Rhythm == maintenancev1beta1.RhythmUpdateAvailable
}

// next returns the first scheduled start after base. With the rhythm UpdateAvailable, there is none
// without a pending update, and exactly one without cron, regardless of base.
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

// maxHandled limits how many starts that were handled early are skipped at once.
const maxHandled = 1000

// nextOpen is like next, but skips starts that were decided on early, when their versions were due
// to be pinned, and that have no UpgradeJob: nothing happens at such a start.
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

// hasJob reports whether a start has an UpgradeJob that has not ended. This pass may have created it.
func (s *scope) hasJob(start time.Time) bool {
	if job := s.cachedJob(s.slotKey(start)); job != nil {
		_, ended := maintenance.EndPhase(job)
		return !ended
	}
	return s.handled.result == ResultJobCreated && s.hadJob(start)
}

// hadJob reports whether the latest slot is this start and got an UpgradeJob. A user may have deleted it.
func (s *scope) hadJob(start time.Time) bool {
	last := s.status.LastSlot
	return last != nil && last.Job != "" && last.Time != nil && last.Time.Time.Equal(start)
}

// afterWindows returns the first time, at or after start, outside of all windows.
func (s *scope) afterWindows(start time.Time) time.Time {
	for range len(s.windows) {
		by, suspended := s.window(start, s.slotKey(start))
		if !suspended {
			break
		}
		start = by.End.Add(time.Second - time.Nanosecond).Truncate(time.Second) // spec.startAfter has whole seconds only
	}
	return start
}

// window returns the window that suspends a start, given the slot label of its UpgradeJob.
func (s *scope) window(start time.Time, slot string) (maintenance.Suspension, bool) {
	if by, suspended := maintenance.SuspendedBy(s.windows, s.cfg.Labels, start, maintenance.SelectedConfigs); suspended {
		return by, true
	}
	return maintenance.SuspendedBy(s.windows, s.jobLabels(slot), start, maintenance.SelectedJobs)
}

// suspendedBy returns a description of what suspends a start, or "" if nothing does.
func (s *scope) suspendedBy(start time.Time) string {
	if maintenance.IsSuspended(s.cfg) {
		return maintenance.SuspendField
	}
	if by, suspended := s.window(start, s.slotKey(start)); suspended {
		return by.String()
	}
	return ""
}

// handledUntil returns the time of the last handled start. Initially, this is the creation time of
// the UpgradeConfig. If the status was lost, it is a time just before the latest start with an
// UpgradeJob, so that start is handled again and its UpgradeJob is found.
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
		if err == nil && start.After(until) && !maintenance.IsRunNow(job.Labels[maintenancev1beta1.SlotLabel]) {
			until = start.Add(-time.Second)
		}
	}
	return until
}

// observeClock discards handled starts and the first sighting of an update if they were recorded
// while the clock was ahead. Existing UpgradeJobs keep their starts.
func (s *scope) observeClock() {
	if until := s.status.HandledUntil; s.usesCron() && until != nil && until.After(s.now.Add(s.pin)) {
		s.status.HandledUntil = new(metav1.NewTime(s.now.Truncate(time.Second)))
	}
	if pending := s.status.PendingUpdate; pending != nil && pending.Since != nil && pending.Since.After(s.now.Add(text.MaxClockSkew)) {
		pending.Since = new(metav1.NewTime(s.now.Truncate(time.Second)))
	}
}

// observeSchedule compares the schedule with the published starts. If the schedule has changed,
// only future starts count, plus due starts that were published before.
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

// selectsAll reports whether the schedule selects exactly these starts.
func (s *scope) selectsAll(published []maintenancev1beta1.NextPossibleSchedule) bool {
	handled := s.handledUntil()
	for i, p := range published {
		base := p.Time.Add(-time.Nanosecond)
		if i > 0 {
			base = published[i-1].Time.Time
		}
		for !s.startsNext(base, p.Time.Time) {
			next, found := s.cron.Next(base)
			if !found || next.After(handled) { // starts that were handled early are not published
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

// observeUpdates records the update that the rhythm UpdateAvailable schedules next. It reports
// whether the record has changed, because the record must be saved before it is acted on.
func (s *scope) observeUpdates() bool {
	if !s.onUpdate() {
		s.status.PendingUpdate = nil
		return false
	}
	best, pending := s.newest.Release.Version, s.status.PendingUpdate
	switch {
	case best == "" && s.unknown != "":
		return false // the update service may be unreachable
	case best == "" || best == s.status.LastScheduledVersion && !s.isPostponed(best) || clusterstate.IsLater(s.status.LastScheduledVersion, best):
		s.status.PendingUpdate = nil
	case pending == nil || pending.Since == nil || pending.Version != best || pending.Since.After(s.now) || s.isOver():
		s.status.PendingUpdate = &maintenancev1beta1.PendingUpdate{Version: best, Since: new(metav1.NewTime(s.now.Truncate(time.Second)))}
		return true
	}
	return false
}

// isPostponed reports whether the version of the latest UpgradeJob needs another UpgradeJob,
// because all its UpgradeJobs were suspended or rescheduled before they started. Once this is
// recorded, they may be deleted. If an UpgradeJob was created since then but not recorded, it is
// found by its label.
func (s *scope) isPostponed(version string) bool {
	recorded := s.status.PendingUpdate != nil && s.status.PendingUpdate.Version == version
	postponed := recorded
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
		postponed = postponed || s.isLatest(job)
	}
	return postponed
}

// isLatest reports whether an UpgradeJob is the latest recorded one.
func (s *scope) isLatest(job *maintenancev1beta1.UpgradeJob) bool {
	start, err := maintenance.Time(job.Spec.StartAfter)
	last := s.status.LastScheduledUpgrade
	return err == nil && last != nil && start.Equal(last.Time)
}

// isOver reports whether the start of a pending update without cron is too long ago, for example
// after an outage. The update then counts as first seen now.
func (s *scope) isOver() bool {
	if s.usesCron() || maintenance.IsSuspended(s.cfg) {
		return false
	}
	start, found := s.next(time.Time{})
	return found && !s.now.Before(start.Add(s.delay))
}

// handleSlots handles the next slot if it is due, or passes over past slots.
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

// suspend passes over a suspended slot after its start, because the suspension may end before that.
// Without cron, the version waits for the end of the suspension.
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

// passed summarizes past slots.
type passed struct {
	last, lastMissed  time.Time
	missed, suspended int
	suspendedBy       string                         // of the last suspended slot
	more              bool                           // there are more than were counted
	job               *maintenancev1beta1.UpgradeJob // of the only slot; nil if it has none
}

// passOver passes over all past slots, beginning with the first. It reads the UpgradeJobs from the
// API server, so a slot whose UpgradeJob is missing from the cache does not count as missed.
// Suspended slots do not count as missed either.
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
			fmt.Sprintf("no UpgradeJob starts at %s: %s; suspended starts since %s: %d", text.FormatTime(over.last), message, text.FormatTime(first), over.suspended))
	}
	result, message := ResultMissed, "the operator did not handle the start in time"
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

// collectPassed counts past slots, beginning with the first, up to a limit.
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

// waitedFor returns what a past slot was waiting for, according to the published condition; zero if
// nothing.
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

// slotKey returns the value of the slot's label. A rescheduled version gets a new value.
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

// serve creates the UpgradeJob of a due slot if there is an update. If the slot already has an
// UpgradeJob, because the operator stopped before recording it, serve adopts it.
func (s *scope) serve(ctx context.Context, slot time.Time) error {
	key, release := s.slotKey(slot), s.newest.Release
	if job := s.cachedJob(key); job != nil {
		if err := s.verify(ctx); err != nil {
			return err
		}
		return s.adopt(ctx, slot, job)
	}
	if s.usesCron() && s.hadJob(slot) { // a user has deleted it, and the schedule has changed since
		s.status.HandledUntil = new(metav1.NewTime(slot.UTC()))
		return nil
	}
	switch {
	case s.pendingJobs() >= maxPending:
		s.waiting = condition{ResultTooManyJobs, fmt.Sprintf("%d UpgradeJobs have not ended; the next one is created when one of them ends", maxPending)}
		return nil
	case release.Version == "" && s.unknown != "":
		s.waiting = condition{ResultUpdatesUnknown, "the available updates are unknown: " + s.unknown}
		return nil
	}
	if release.Version == "" && s.cfg.Spec.LatePin == maintenancev1beta1.LatePinAllow && s.now.Before(slot) {
		s.waiting = condition{ResultNoUpdate, fmt.Sprintf("%s; an update that becomes available before %s will be pinned", s.noUpdate(), text.FormatTime(slot))}
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

// excluded explains why an UpgradeJob does not upgrade to a later available version; empty if there
// is no later version.
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

// pendingJobs returns the number of unfinished UpgradeJobs.
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

// exclusions lists the available versions that are not selected, with the reasons.
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

// scheduled records a created UpgradeJob.
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
