// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeconfig

import (
	"strings"
	"testing"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// annotate sets an annotation of the UpgradeConfig, or removes it.
func (w *world) annotate(annotation, value string) {
	w.TB.Helper()
	cfg := w.get(upgrade)
	if cfg.Annotations == nil {
		cfg.Annotations = map[string]string{}
	}
	cfg.Annotations[annotation] = value
	if value == "" {
		delete(cfg.Annotations, annotation)
	}
	w.Update(cfg)
}

// fails has the first attempt fail, and returns when.
func (w *world) fails() {
	w.TB.Helper()
	w.cluster.Available = nil
	w.runUntil(func() bool { return w.isFinished(upgrade) })
	if got := w.record(); got.Phase != history.PhaseFailed || got.Attempt != 1 {
		w.TB.Fatalf("the first attempt is %+v", got)
	}
	w.RunFor(time.Minute)
	w.cluster.Offer(desired)
}

// A token starts one more attempt of an upgrade that has failed, although Git applies the old spec again and again.
func TestRetry_by_annotation(t *testing.T) {
	t.Parallel()
	for _, annotation := range []string{upgradev1alpha1.RetryAnnotation, upgradev1alpha1.RunNowAnnotation} {
		t.Run(annotation, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			w.fails()
			at, spec := w.Now().Truncate(time.Second), w.get(upgrade).Spec
			w.annotate(annotation, "again")
			w.RunFor(5 * time.Second)
			answer := w.get(upgrade).Status.Retry
			if annotation == upgradev1alpha1.RunNowAnnotation {
				answer = w.get(upgrade).Status.RunNow
			}
			if answer == nil || answer.Token != "again" || answer.StartTime == nil || answer.StartTime.Sub(at) > 5*time.Second || answer.Message != "" {
				t.Fatalf("the answer is %+v", answer)
			}
			w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) { *s = spec }) // by Git
			w.runUntil(func() bool { return w.isFinished(upgrade) })
			got := w.record()
			if got.Phase != history.PhaseUpgraded || got.Attempt != 2 || !got.UpgradeAt.Equal(answer.StartTime) {
				t.Errorf("the second attempt is %+v", got)
			}
			w.annotate(annotation, "once more")
			w.RunFor(time.Hour)
			if got := w.record(); got.Attempt != 2 || got.Phase != history.PhaseUpgraded {
				t.Errorf("an upgrade that has succeeded is started again: %+v", got)
			}
			if answers := w.get(upgrade).Status; !strings.Contains(answerOf(answers, annotation).Message, "was upgraded to "+desired) {
				t.Errorf("the answers are %+v, %+v", answers.Retry, answers.RunNow)
			}
		})
	}
}

func answerOf(status upgradev1alpha1.UpgradeConfigStatus, annotation string) upgradev1alpha1.StartStatus {
	answer := status.Retry
	if annotation == upgradev1alpha1.RunNowAnnotation {
		answer = status.RunNow
	}
	if answer == nil {
		return upgradev1alpha1.StartStatus{}
	}
	return *answer
}

// A retry does not wait for the end of the attempt to be published, although that keeps the finalizer for
// minutes.
func TestRetry_by_annotation_before_the_end_is_published(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade))
	w.cluster.Available = nil
	w.runUntilStep("VersionPinned")
	w.Writes = refuse("create Event")
	w.runUntil(func() bool { return w.record().CompleteTime != nil })
	w.cluster.Offer(desired)
	if len(w.get(upgrade).Finalizers) == 0 {
		t.Fatal("the end is published")
	}
	w.annotate(upgradev1alpha1.RetryAnnotation, "again")
	w.RunFor(5 * time.Second)
	if answer := answerOf(w.get(upgrade).Status, upgradev1alpha1.RetryAnnotation); answer.StartTime == nil {
		t.Errorf("the answer is %+v", answer)
	}
	w.Writes = nil
	w.runUntil(func() bool { return w.record().Attempt == 2 && w.isFinished(upgrade) })
	if got := w.record(); got.Phase != history.PhaseUpgraded {
		t.Errorf("the second attempt is %+v", got)
	}
}

// A request during the wait or the run of an upgrade has no effect later.
func TestRetry_by_annotation_before_the_end(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		until   func(*world)
		message string
	}{
		"from the start":     {func(w *world) { w.RunFor(time.Minute) }, "the upgrade has not ended"},
		"while it runs":      {func(w *world) { w.runUntilStep("CommenceUpgrade") }, "the upgrade is in progress"},
		"after it commenced": {func(w *world) { w.runUntilStep("ControlPlaneUpgraded") }, "the upgrade is in progress"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade))
			tc.until(w)
			w.annotate(upgradev1alpha1.RetryAnnotation, "early")
			w.runToCompletion()
			if got := w.record(); got.Phase != history.PhaseUpgraded || got.Attempt != 1 || !got.UpgradeAt.Time.Equal(tenPast) {
				t.Errorf("the attempt is %+v", got)
			}
			if got := answerOf(w.get(upgrade).Status, upgradev1alpha1.RetryAnnotation); got.Token != "early" || !strings.Contains(got.Message, tc.message) {
				t.Errorf("the answer is %+v", got)
			}
			w.RunFor(time.Hour)
			if got := w.record(); got.Attempt != 1 {
				t.Errorf("the request has started %+v", got)
			}
		})
	}
}

// An upgrade scheduled for later starts now. Another spec.upgradeAt replaces the request.
func TestRunNow_by_annotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, upgradeConfig(upgrade, newTime(noon.Add(48*time.Hour))))
	w.RunFor(time.Minute)
	w.annotate(upgradev1alpha1.PauseAnnotation, "freeze")
	w.annotate(upgradev1alpha1.RunNowAnnotation, "1")
	w.RunFor(5 * time.Minute)
	if c := w.condition(upgradev1alpha1.ConditionProgressing); !strings.Contains(c, "paused by annotation upgrade.managed.openshift.io/pause: freeze") {
		t.Errorf("Progressing is %s", c)
	}
	if w.record().CommenceTime != nil {
		t.Error("it has commenced although it is paused")
	}
	w.annotate(upgradev1alpha1.PauseAnnotation, "")
	w.runToCompletion()
	got, answer := w.record(), answerOf(w.get(upgrade).Status, upgradev1alpha1.RunNowAnnotation)
	if got.Phase != history.PhaseUpgraded || got.CommenceTime.Sub(noon) > time.Hour || !got.UpgradeAt.Equal(answer.StartTime) {
		t.Errorf("the attempt is %+v, and the answer %+v", got, answer)
	}
	w.cluster.Offer("4.4.7")
	later := w.Now().Add(3 * time.Hour).Truncate(time.Second)
	w.updateSpec(upgrade, func(s *upgradev1alpha1.UpgradeConfigSpec) {
		s.Desired.Version, s.UpgradeAt = "4.4.7", formatTime(later)
	})
	w.RunFor(time.Hour)
	if got := w.record(); got.Phase != history.PhasePending || !got.UpgradeAt.Time.Equal(later) {
		t.Errorf("the old request applies to another time: %+v", got)
	}
}

// Losing the status with the answer to a request neither cancels the started attempt nor starts another one.
func TestRequest_by_annotation_and_lost_status(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"PreHealthCheck", "ControlPlaneUpgraded"} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, upgradeConfig(upgrade, newTime(noon.Add(48*time.Hour))))
			w.RunFor(time.Minute)
			if step == "PreHealthCheck" {
				w.cordonWorker(true)
			}
			w.annotate(upgradev1alpha1.RunNowAnnotation, "1")
			w.runUntilStep(step)
			start := w.record().UpgradeAt
			w.Restart()
			w.clearStatus(upgrade)
			w.RunFor(time.Minute)
			w.cordonWorker(false)
			w.runToCompletion()
			if got := w.record(); got.Phase != history.PhaseUpgraded || !got.UpgradeAt.Equal(start) {
				t.Errorf("it began at %s: %+v", start, got)
			}
			if got := answerOf(w.get(upgrade).Status, upgradev1alpha1.RunNowAnnotation); got.Token != "1" || !got.StartTime.Equal(start) {
				t.Errorf("the answer is %+v", got)
			}
		})
	}
}
