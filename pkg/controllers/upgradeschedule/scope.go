// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/schedule"
)

// Reasons for not accepting an UpgradeConfig.
const (
	reasonInvalidSchedule = "InvalidSchedule"
	reasonNeverRuns       = "NeverRuns"
	reasonInvalidTemplate = "InvalidTemplate"
)

// condition holds the reason and the message of a condition; the zero value is no condition.
type condition struct{ reason, message string }

// scope is one pass over one UpgradeConfig.
type scope struct {
	*Reconciler
	cfg    *maintenancev1beta1.UpgradeConfig      // from the cache
	status maintenancev1beta1.UpgradeConfigStatus // the status that this pass publishes
	now    time.Time

	cron       schedule.Schedule // selects no start without a cron expression
	pin, delay time.Duration
	problem    condition // why no slot is handled; zero if slots are handled
	pools      condition // why the entries for pools do not match the cluster; zero if they do

	windows []maintenancev1beta1.UpgradeSuspensionWindow // in the namespace
	jobs    []maintenancev1beta1.UpgradeJob              // its UpgradeJobs, from the cache, or live before slots are passed over
	newest  clusterstate.Newest
	unknown string // why the available updates are unknown; empty if they are known

	due     time.Time // the due slot; zero if none is due
	waiting condition // what that slot waits for; zero if nothing
	handled outcome   // what this pass has handled; zero if nothing
	wake    time.Time // time of the next pass; zero if none is needed
}

// outcome is the result of one or more slots.
type outcome struct {
	result string
	slots  int
}

// newScope reads everything from the cache.
func (r *Reconciler) newScope(ctx context.Context, cfg *maintenancev1beta1.UpgradeConfig, now time.Time) (*scope, error) {
	s := &scope{Reconciler: r, cfg: cfg, status: *cfg.Status.DeepCopy(), now: now}
	s.validate()
	version, err := clusterstate.GetClusterVersion(ctx, r.client)
	switch {
	case apierrors.IsNotFound(err):
		s.unknown = "there is no ClusterVersion"
	case err != nil:
		return nil, err
	default:
		s.newest, s.unknown = version.NewestUpdate(cfg.Spec.UpdatePolicy == maintenancev1beta1.UpdatePolicyPatchOnly), version.UpdatesUnknown()
	}
	if err := s.listWindows(ctx); err != nil {
		return nil, err
	}
	if err := s.listJobs(ctx, r.client); err != nil {
		return nil, err
	}
	if cfg.Spec.UpdatePolicy != maintenancev1beta1.UpdatePolicyPatchOnly && version.WaitsForAcknowledgment() && !s.hasExpired(version) {
		acknowledged, err := s.isAcknowledgedByHook(ctx)
		if err != nil {
			return nil, err
		}
		if acknowledged {
			s.newest = version.NewestOnceAcknowledged()
		}
	}
	s.unknown = cmp.Or(s.unknown, s.newest.Unknown())
	return s, s.validatePools(ctx)
}

// validatePools compares the entries for pools with the cluster. Pools may change until the upgrade
// starts, so UpgradeJobs are created even if the entries do not match. They are skipped if the
// entries still do not match at the start.
func (s *scope) validatePools(ctx context.Context) error {
	if s.ConfigProblem == nil || !needsObservation(&s.cfg.Spec.JobTemplate.Spec.Config) {
		return nil
	}
	reason, message, err := s.ConfigProblem(ctx, s.newJob(request{start: s.now}), s.now)
	if err == nil && reason != "" {
		s.pools = condition{reason, "spec.jobTemplate: " + message}
	}
	return err
}

// hasExpired reports whether an UpgradeJob to another minor version has expired. If so, the hooks
// of event Create had their chance and did not give the missing acknowledgments.
func (s *scope) hasExpired(version clusterstate.Version) bool {
	return slices.ContainsFunc(s.jobs, func(job maintenancev1beta1.UpgradeJob) bool {
		phase, _ := maintenance.EndPhase(&job)
		change, err := version.ChangeTo(clusterstate.Target{Version: job.Spec.DesiredVersion.Version})
		return err == nil && change.CrossesMinor() && phase == maintenancev1beta1.PhaseSkipped && maintenance.LatestAttempt(&job).Reason == maintenance.ReasonExpired
	})
}

// isAcknowledgedByHook reports whether a hook of event Create runs for the UpgradeJobs and so can
// give the acknowledgments that a minor version needs. The UpgradeJob still waits for them.
func (s *scope) isAcknowledgedByHook(ctx context.Context) (bool, error) {
	var hooks maintenancev1beta1.UpgradeJobHookList
	if err := s.client.List(ctx, &hooks, client.InNamespace(s.cfg.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return false, fmt.Errorf("listing the UpgradeJobHooks: %w", err)
	}
	jobLabels := labels.Set(s.jobLabels(""))
	for i := range hooks.Items {
		hook := &hooks.Items[i]
		claimed := hook.Spec.Run == maintenancev1beta1.HookRunNext && hook.Status.ClaimedBy != nil && hook.Status.ClaimedBy.UID != ""
		if claimed || hook.SpecProblem() != "" || !slices.Contains(hook.Spec.Events, maintenancev1beta1.EventCreate) ||
			meta.IsStatusConditionFalse(hook.Status.Conditions, maintenancev1beta1.ConditionAccepted) {
			continue
		}
		if hook.Spec.Selector == nil {
			return true, nil
		}
		if selector, err := maintenance.Selector(hook.Spec.Selector); err == nil && selector.Matches(jobLabels) {
			return true, nil
		}
	}
	return false, nil
}

// listWindows lists the windows that may suspend starts of this UpgradeConfig.
func (s *scope) listWindows(ctx context.Context) error {
	var windows maintenancev1beta1.UpgradeSuspensionWindowList
	if err := s.client.List(ctx, &windows, client.InNamespace(s.cfg.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the UpgradeSuspensionWindows: %w", err)
	}
	s.windows = windows.Items
	return nil
}

// listJobs lists the UpgradeJobs that this UpgradeConfig created.
func (s *scope) listJobs(ctx context.Context, from client.Reader) error {
	var jobs maintenancev1beta1.UpgradeJobList
	own := client.MatchingLabels{maintenancev1beta1.ConfigLabel: string(s.cfg.UID)}
	if err := from.List(ctx, &jobs, client.InNamespace(s.cfg.Namespace), own, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing the UpgradeJobs: %w", err)
	}
	s.jobs = nil
	for i := range jobs.Items {
		if maintenance.OwnerUID(&jobs.Items[i]) == string(s.cfg.UID) {
			s.jobs = append(s.jobs, jobs.Items[i])
		}
	}
	return nil
}

// validate checks what the schema cannot.
func (s *scope) validate() {
	spec := &s.cfg.Spec
	var cronErr, pinErr, delayErr error
	s.cron, cronErr = s.parse(s.cfg)
	if spec.PinVersionWindow != nil {
		s.pin, pinErr = maintenance.Duration(*spec.PinVersionWindow)
	}
	s.delay, delayErr = maintenance.Duration(spec.MaxUpgradeStartDelay)
	if delayErr != nil || s.delay <= 0 {
		s.delay = time.Hour
	}
	if err := errors.Join(cronErr, pinErr, delayErr); err != nil {
		s.problem = condition{reason: reasonInvalidSchedule, message: err.Error()}
		return
	}
	if _, runs := s.cron.Next(s.now); !runs && spec.Schedule.Cron != "" {
		s.problem = condition{
			reason:  reasonNeverRuns,
			message: fmt.Sprintf("cron %q with isoWeek %q selects no day within 41 years: no year has such a day in such a week", spec.Schedule.Cron, isoWeek(spec)),
		}
		return
	}
	if template := spec.JobTemplate.Metadata; template != nil {
		path := field.NewPath("spec", "jobTemplate", "metadata")
		errs := metav1validation.ValidateLabels(template.Labels, path.Child("labels"))
		errs = append(errs, validation.ValidateAnnotations(template.Annotations, path.Child("annotations"))...)
		if len(errs) > 0 {
			s.problem = condition{reason: reasonInvalidTemplate, message: errs.ToAggregate().Error()}
		}
	}
}

func isoWeek(spec *maintenancev1beta1.UpgradeConfigSpec) string {
	if spec.Schedule.ISOWeek == nil {
		return ""
	}
	return *spec.Schedule.ISOWeek
}

// wakeAt requests a pass at a point in time.
func (s *scope) wakeAt(at time.Time) {
	if at.After(s.now) {
		s.wake = engine.Earliest(s.wake, at)
	}
}

// requeue returns the time until the next pass.
func (s *scope) requeue() time.Duration {
	if s.wake.IsZero() {
		return maxRequeue
	}
	return min(s.wake.Sub(s.now), maxRequeue)
}

// needsObservation reports whether validating a configuration requires the cluster or the evaluator
// of expressions.
func needsObservation(config *maintenancev1beta1.UpgradeJobConfig) bool {
	return len(config.MachineConfigPools) > 0 || len(config.PreUpgradeHealthChecks.Objects) > 0 || len(config.PostUpgradeHealthChecks.Objects) > 0
}
