// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
)

// Kind is the kind of upgrades in a history.
type Kind string

// Kinds of upgrades.
const (
	UpgradeConfigs Kind = "UpgradeConfig"
	UpgradeJobs    Kind = "UpgradeJob"
)

// jobActions returns the actions in histories of UpgradeJobs: actions on UpgradeJobs, hooks, and
// suspension windows, and the common actions on the cluster and the operator.
func jobActions() []action[*runner] {
	own := []action[*runner]{
		{"create an UpgradeJob", 8, (*runner).createJob},
		{"delete an UpgradeJob", 3, (*runner).deleteJob},
		{"edit an UpgradeJob", 1, (*runner).editJob},
		{"retry an UpgradeJob", 5, func(h *runner) { h.annotateJob(maintenancev1beta1.RetryAnnotation) }},
		{"acknowledge an UpgradeJob", 1, func(h *runner) { h.annotateJob(maintenancev1beta1.AcknowledgedAnnotation) }},
		{"suspend all UpgradeJobs", 2, (*runner).suspendJobs},
		{"end the suspension", 3, (*runner).endSuspension},
		{"create a hook", 3, (*runner).createHook},
		{"delete a hook", 1, (*runner).deleteHook},
		{"delete the Jobs of hooks", 2, (*runner).deleteHookJobs},
	}
	shared := []string{
		"start the target elsewhere", "start another target", "withdraw the target", "cordon a node", "uncordon the nodes",
		"pause the worker pool", "resume the worker pool", "degrade an operator", "repair the operators", "an alert fires", "no alert fires",
		"alerts cannot be queried", "delete the lock", "kill the operator", "two leaders", "step the clock", "requests fail", "a cache lags",
		"start another target once the upgrade has commenced", "hold all upgrades", "lift the hold", "the receiver of the webhook is down",
		"the receiver of the webhook is up", "hold all upgrades right after the request",
	}
	for _, a := range upgradeConfigActions() {
		if slices.Contains(shared, a.name) {
			own = append(own, a)
		}
	}
	return append(own, action[*runner]{"create an UpgradeJob once the control plane is updated", 3, func(h *runner) { h.once.completed = h.createJob }},
		action[*runner]{"delete an UpgradeJob in mid-upgrade and create it again", 4, (*runner).recreate},
		action[*runner]{"the operator is down for hours", 2, (*runner).goDown},
		action[*runner]{"the operator goes down for hours at a moment of the upgrade", 4, (*runner).goDownAt},
		action[*runner]{"retry once the upgrade fails, while the receiver of the webhook is down", 3, (*runner).retryUndelivered},
		action[*runner]{"wipe the status of an UpgradeJob", 4, (*runner).wipeJob},
		action[*runner]{"a cache of scheduled maintenance lags", 4, func(h *runner) {
			h.lag("UpgradeJob", "Job", "UpgradeJobHook", "UpgradeSuspensionWindow")
		}},
		action[*runner]{"create an UpgradeJob without a version", 2, (*runner).createHooksOnly},
		action[*runner]{"back up etcd", 2, (*runner).backUp}, action[*runner]{"restore etcd", 1, (*runner).restore},
		action[*runner]{"create an UpgradeConfig", 6, (*runner).createUpgrade}, action[*runner]{"delete the UpgradeConfig", 2, (*runner).deleteUpgrade},
		action[*runner]{"retry the UpgradeConfig", 2, (*runner).retry}, action[*runner]{"postpone the UpgradeConfig", 1, func(h *runner) {
			h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = h.soon() })
		}},
		action[*runner]{"create an UpgradeJob with rare settings", 5, (*runner).createRareJob},
		action[*runner]{"create a hook with rare settings", 4, (*runner).createRareHook},
		action[*runner]{"create a schedule", 6, (*runner).createSchedule},
		action[*runner]{"delete the schedule", 1, (*runner).deleteSchedule},
		action[*runner]{"edit the schedule", 3, func(h *runner) { h.editSchedule(h.scheduleSpec()) }},
		action[*runner]{"wipe the status of the schedule", 2, (*runner).wipeSchedule},
		action[*runner]{"request a scheduled upgrade now", 3, (*runner).runScheduleNow},
		action[*runner]{"delete any UpgradeJob", 3, (*runner).deleteAnyJob})
}

// jobKeys returns the names of all UpgradeJobs that a history may create.
func jobKeys() []client.ObjectKey {
	return []client.ObjectKey{{Namespace: Namespace, Name: "job"}, {Namespace: Namespace, Name: "next"}}
}

func (h *runner) anyJob() client.ObjectKey { return jobKeys()[h.random.IntN(len(jobKeys()))] }

// timestamp formats a time the way users write it.
func timestamp(t time.Time) maintenancev1beta1.Timestamp {
	return maintenancev1beta1.Timestamp(t.UTC().Format(time.RFC3339))
}

// createJob creates an UpgradeJob that is likely to succeed.
func (h *runner) createJob() {
	key, start := h.anyJob(), h.world.Now().Add(h.upTo(12*time.Minute))
	job := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: maintenancev1beta1.UpgradeJobSpec{
			StartAfter: timestamp(start), StartBefore: timestamp(start.Add(20*time.Minute + h.upTo(40*time.Minute))),
			DesiredVersion: maintenancev1beta1.DesiredVersion{Version: []string{"4.20.6", "4.20.7"}[h.random.IntN(2)]},
			Config:         maintenancev1beta1.UpgradeJobConfig{UpgradeTimeout: "4h", ForceDrainAfter: "20m"},
		},
	}
	if h.random.IntN(2) == 0 {
		worker := maintenancev1beta1.MachineConfigPoolSelector{}
		worker.MatchLabels.Labels = map[string]string{"pools.operator.machineconfiguration.openshift.io/worker": ""}
		job.Spec.Config.MachineConfigPools = []maintenancev1beta1.MachineConfigPoolConfig{{
			MachineConfigPoolSelector: worker, DelayUpgrade: maintenancev1beta1.DelayUpgrade{DelayMin: "30m", DelayMax: "2h"},
		}}
	}
	if err := h.cluster.Client.Create(context.Background(), job); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

// scheduleKey is the name of the only schedule.
var scheduleKey = client.ObjectKey{Namespace: Namespace, Name: "schedule"}

// scheduleSpec returns a schedule with several starts an hour, or for each new version.
func (h *runner) scheduleSpec() maintenancev1beta1.UpgradeConfigSpec {
	spec := maintenancev1beta1.UpgradeConfigSpec{
		Schedule: maintenancev1beta1.UpgradeConfigSchedule{
			Cron:    []string{"*/20 * * * *", "7 * * * *", "*/45 * * * *"}[h.random.IntN(3)],
			Suspend: new(h.random.IntN(4) == 0),
		},
		PinVersionWindow:           new([]maintenancev1beta1.Duration{"0s", "10m", "70m"}[h.random.IntN(3)]),
		MaxUpgradeStartDelay:       []maintenancev1beta1.Duration{"5m", "30m", "2h"}[h.random.IntN(3)],
		SuccessfulJobsHistoryLimit: new(int32(h.random.IntN(3))), FailedJobsHistoryLimit: new(int32(h.random.IntN(3))),
	}
	spec.JobTemplate.Spec.Config = maintenancev1beta1.UpgradeJobConfig{UpgradeTimeout: "3h", ForceDrainAfter: "20m"}
	if h.random.IntN(3) == 0 {
		spec.Schedule.Rhythm = maintenancev1beta1.RhythmUpdateAvailable
		if h.random.IntN(2) == 0 {
			spec.Schedule.Cron = ""
		}
	}
	if h.random.IntN(4) == 0 {
		spec.WhenNoUpdate = maintenancev1beta1.NoUpdateRunHooks
	}
	return spec
}

func (h *runner) createSchedule() {
	cfg := &maintenancev1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: scheduleKey.Namespace, Name: scheduleKey.Name}, Spec: h.scheduleSpec()}
	if err := h.cluster.Client.Create(context.Background(), cfg); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) deleteSchedule() {
	cfg := &maintenancev1beta1.UpgradeConfig{ObjectMeta: metav1.ObjectMeta{Namespace: scheduleKey.Namespace, Name: scheduleKey.Name}}
	if err := h.cluster.Client.Delete(context.Background(), cfg, client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) editSchedule(spec maintenancev1beta1.UpgradeConfigSpec) {
	edit(h.driver, &maintenancev1beta1.UpgradeConfig{}, scheduleKey, func(cfg *maintenancev1beta1.UpgradeConfig) { cfg.Spec = spec })
}

func (h *runner) wipeSchedule() {
	var cfg maintenancev1beta1.UpgradeConfig
	if err := h.cluster.Client.Get(context.Background(), scheduleKey, &cfg); err != nil {
		return
	}
	h.checker.tampered[cfg.UID] = true
	cfg.Status = maintenancev1beta1.UpgradeConfigStatus{}
	if err := h.cluster.Client.Status().Update(context.Background(), &cfg); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) runScheduleNow() {
	token := strconv.Itoa(h.random.IntN(1 << 20))
	edit(h.driver, &maintenancev1beta1.UpgradeConfig{}, scheduleKey, func(cfg *maintenancev1beta1.UpgradeConfig) {
		metav1.SetMetaDataAnnotation(&cfg.ObjectMeta, maintenancev1beta1.RunNowAnnotation, token)
	})
}

func (h *runner) deleteAnyJob() {
	names := slices.SortedFunc(maps.Keys(h.checker.jobs.jobs), func(a, b client.ObjectKey) int { return strings.Compare(a.Name, b.Name) })
	if len(names) == 0 {
		return
	}
	key := names[h.random.IntN(len(names))]
	if err := h.cluster.Client.Delete(context.Background(), &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

// createRareJob creates an UpgradeJob with settings that may end or delay its upgrade.
func (h *runner) createRareJob() {
	oneOf := func(values ...maintenancev1beta1.Duration) maintenancev1beta1.Duration {
		return values[h.random.IntN(len(values))]
	}
	key, start := h.anyJob(), h.world.Now().Add(h.upTo(12*time.Minute))
	job := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec: maintenancev1beta1.UpgradeJobSpec{
			StartAfter: timestamp(start), StartBefore: timestamp(start.Add(time.Minute + h.upTo(3*time.Hour))),
			DesiredVersion:                  maintenancev1beta1.DesiredVersion{Version: []string{"4.20.6", "4.20.7", "4.21.0"}[h.random.IntN(3)]},
			DesiredVersionCheckAvailability: new(h.random.IntN(3) > 0),
			Config: maintenancev1beta1.UpgradeJobConfig{
				UpgradeTimeout: oneOf("45m", "2h", "6h"), ForceDrainAfter: oneOf("", "0s", "5m"),
				PreUpgradeHealthChecks:  maintenancev1beta1.HealthChecks{Timeout: oneOf("1m", "20m", "2h")},
				PostUpgradeHealthChecks: maintenancev1beta1.HealthChecks{Timeout: oneOf("1m", "20m")},
			},
		},
	}
	worker := maintenancev1beta1.MachineConfigPoolSelector{}
	worker.MatchLabels.Labels = map[string]string{"pools.operator.machineconfiguration.openshift.io/worker": ""}
	if h.random.IntN(3) == 0 {
		job.Spec.Config.PauseMachineConfigPoolsOnFailure = &worker
	}
	if delays := []maintenancev1beta1.DelayUpgrade{{}, {DelayMin: "0s", DelayMax: "10m"}, {DelayMin: "20m", DelayMax: "21m"}, {DelayMin: "40m", DelayMax: "5h"}}[h.random.IntN(4)]; delays.DelayMax != "" {
		job.Spec.Config.MachineConfigPools = []maintenancev1beta1.MachineConfigPoolConfig{{MachineConfigPoolSelector: worker, DelayUpgrade: delays}}
	}
	if err := h.cluster.Client.Create(context.Background(), job); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

// releaseDrains deletes the PodDisruptionBudgets if an UpgradeJob never forces drains, or its upgrade would not end.
func (h *runner) releaseDrains() {
	for _, job := range h.checker.jobs.jobs {
		if after := job.Spec.Config.ForceDrainAfter; after != "" && after != "0s" {
			continue
		}
		if err := h.cluster.Client.DeleteAllOf(context.Background(), &policyv1.PodDisruptionBudget{}, client.InNamespace("shop")); err != nil {
			h.violate("deleting PodDisruptionBudgets: %s", err)
		}
	}
}

// createRareHook creates a hook that takes long, or runs for other events or upgrades.
func (h *runner) createRareHook() {
	events := []maintenancev1beta1.HookEvent{
		maintenancev1beta1.EventCreate, maintenancev1beta1.EventStart, maintenancev1beta1.EventUpgradeStart, maintenancev1beta1.EventUpgradeComplete,
		maintenancev1beta1.EventMachineConfigPoolUnpause, maintenancev1beta1.EventMachineConfigPoolUpdated, maintenancev1beta1.EventSuccess,
		maintenancev1beta1.EventFailure, maintenancev1beta1.EventFinish, maintenancev1beta1.EventSkip,
	}
	h.random.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	hook := &maintenancev1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "hook-" + strconv.Itoa(h.random.IntN(3))},
		Spec: maintenancev1beta1.UpgradeJobHookSpec{
			Events: events[:1+h.random.IntN(3)], Run: []maintenancev1beta1.HookRun{maintenancev1beta1.HookRunNext, ""}[h.random.IntN(2)],
			FailurePolicy: []maintenancev1beta1.HookFailurePolicy{maintenancev1beta1.HookFailureAbort, maintenancev1beta1.HookFailureIgnore}[h.random.IntN(2)],
		},
	}
	behavior := []string{`"duration":"10m"`, `"duration":"50m"`, `"never-ends":"true"`, `"exit-code":"1"`, `"image-pull":"fail"`}[h.random.IntN(5)]
	spec := `{"backoffLimit":0,"ttlSecondsAfterFinished":60,"activeDeadlineSeconds":5400,"template":{"metadata":{"annotations":{` +
		strings.Replace(behavior, `"`, `"devcluster.openshift.io/`, 1) + `}},"spec":{"containers":[{"name":"hook","image":"hook"}],"restartPolicy":"Never"}}}`
	hook.Spec.Template.Spec = runtime.RawExtension{Raw: []byte(spec)}
	if err := h.cluster.Client.Create(context.Background(), hook); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

// createHooksOnly creates an UpgradeJob that only runs its hooks.
func (h *runner) createHooksOnly() {
	key, start := h.anyJob(), h.world.Now().Add(h.upTo(12*time.Minute))
	job := &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name},
		Spec:       maintenancev1beta1.UpgradeJobSpec{StartAfter: timestamp(start), StartBefore: timestamp(start.Add(time.Hour))},
	}
	if err := h.cluster.Client.Create(context.Background(), job); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

// wipeJob removes the status of an UpgradeJob as another client.
func (h *runner) wipeJob() {
	var job maintenancev1beta1.UpgradeJob
	if err := h.cluster.Client.Get(context.Background(), h.anyJob(), &job); err != nil {
		return
	}
	h.checker.tampered[job.UID] = true
	job.Status = maintenancev1beta1.UpgradeJobStatus{}
	if err := h.cluster.Client.Status().Update(context.Background(), &job); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) deleteJob() {
	key := h.anyJob()
	job := &maintenancev1beta1.UpgradeJob{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := h.cluster.Client.Delete(context.Background(), job); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

// editJob changes the version, which is immutable.
func (h *runner) editJob() {
	edit(h.driver, &maintenancev1beta1.UpgradeJob{}, h.anyJob(), func(job *maintenancev1beta1.UpgradeJob) { job.Spec.DesiredVersion.Version = "4.20.9" })
}

func (h *runner) annotateJob(name string) {
	token := strconv.Itoa(h.random.IntN(1 << 20))
	edit(h.driver, &maintenancev1beta1.UpgradeJob{}, h.anyJob(), func(job *maintenancev1beta1.UpgradeJob) { metav1.SetMetaDataAnnotation(&job.ObjectMeta, name, token) })
}

func suspension() *maintenancev1beta1.UpgradeSuspensionWindow {
	return &maintenancev1beta1.UpgradeSuspensionWindow{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "freeze"}}
}

func (h *runner) suspendJobs() {
	now, window := h.world.Now(), suspension()
	window.Spec.Start, window.Spec.End = timestamp(now.Add(-time.Hour)), timestamp(now.Add(time.Hour))
	window.Spec.JobSelector = &maintenancev1beta1.LabelSelector{}
	if err := h.cluster.Client.Create(context.Background(), window); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) endSuspension() {
	if err := h.cluster.Client.Delete(context.Background(), suspension()); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) createHook() {
	hook := &maintenancev1beta1.UpgradeJobHook{
		ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "hook-" + strconv.Itoa(h.random.IntN(2))},
		Spec: maintenancev1beta1.UpgradeJobHookSpec{
			Events: []maintenancev1beta1.HookEvent{[]maintenancev1beta1.HookEvent{
				maintenancev1beta1.EventCreate, maintenancev1beta1.EventStart, maintenancev1beta1.EventUpgradeStart, maintenancev1beta1.EventUpgradeComplete,
				maintenancev1beta1.EventMachineConfigPoolUnpause, maintenancev1beta1.EventSuccess, maintenancev1beta1.EventFailure, maintenancev1beta1.EventFinish,
			}[h.random.IntN(8)], maintenancev1beta1.EventSkip},
			FailurePolicy: []maintenancev1beta1.HookFailurePolicy{maintenancev1beta1.HookFailureAbort, maintenancev1beta1.HookFailureIgnore}[h.random.IntN(2)],
		},
	}
	code := []string{"0", "0", "1"}[h.random.IntN(3)]
	hook.Spec.Template.Spec = runtime.RawExtension{Raw: fmt.Appendf(nil,
		`{"backoffLimit":0,"template":{"metadata":{"annotations":{"devcluster.openshift.io/exit-code":%q}},"spec":{"containers":[{"name":"hook","image":"hook"}],"restartPolicy":"Never"}}}`, code)}
	if err := h.cluster.Client.Create(context.Background(), hook); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) deleteHook() {
	hook := &maintenancev1beta1.UpgradeJobHook{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "hook-0"}}
	if err := h.cluster.Client.Delete(context.Background(), hook); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) deleteHookJobs() {
	var jobs batchv1.JobList
	if err := h.cluster.Client.List(context.Background(), &jobs, client.InNamespace(Namespace)); err != nil {
		return
	}
	for i := range jobs.Items {
		if err := h.cluster.Client.Delete(context.Background(), &jobs.Items[i], client.PropagationPolicy(metav1.DeletePropagationBackground)); err != nil {
			h.world.Logf("rejected: %s", firstLine(err))
		}
	}
}

// jobChecker checks the invariants of UpgradeJobs. It shares its knowledge of the cluster with the
// checker of UpgradeConfigs.
type jobChecker struct {
	*checker

	jobs      map[client.ObjectKey]*maintenancev1beta1.UpgradeJob
	deletedAt map[types.UID]time.Time
	// slots are the UpgradeJobs that the operator has created for each slot of a schedule.
	slots map[string]types.UID
}

// slot checks that a slot of a schedule gets one UpgradeJob, whatever happens to it.
func (c *jobChecker) slot(change simulation.Change, job *maintenancev1beta1.UpgradeJob) {
	if change.Old != nil || change.Actor != operatorActor {
		return
	}
	config := job.Labels[maintenancev1beta1.ConfigLabel]
	id := config + "/" + job.Labels[maintenancev1beta1.SlotLabel]
	if other, is := c.slots[id]; is && other != job.UID && !c.tampered[types.UID(config)] && !c.restored && !c.h.clockStepped {
		c.h.violate("schedule: slot %s gets another UpgradeJob, %s", id, job.Name)
	}
	c.slots[id] = job.UID
}

func (c *jobChecker) observe(change simulation.Change, job *maintenancev1beta1.UpgradeJob) {
	key := client.ObjectKeyFromObject(job)
	before := c.jobs[key]
	c.succession(change, job.Spec.DesiredVersion.Version, job.Status.History)
	if change.New == nil {
		delete(c.jobs, key)
		delete(c.deletedAt, job.UID)
		return
	}
	c.jobs[key] = job
	if before == nil || before.UID != job.UID {
		before = &maintenancev1beta1.UpgradeJob{}
		c.slot(change, job)
	}
	c.noteWindow(change, before, job)
	if _, was := c.deletedAt[job.UID]; job.DeletionTimestamp != nil && !was {
		c.deletedAt[job.UID] = change.Time
		c.h.report.Deletion = true
	}
	if change.Actor == operatorActor && len(job.Status.History) > 0 {
		c.status(change, key, before, job)
	}
}

// noteWindow records the window of an UpgradeJob or of a retry. The window of a retry has the same
// length and starts when the retry is requested.
func (c *jobChecker) noteWindow(change simulation.Change, before, job *maintenancev1beta1.UpgradeJob) {
	start, errStart := time.Parse(time.RFC3339, string(job.Spec.StartAfter))
	end, errEnd := time.Parse(time.RFC3339, string(job.Spec.StartBefore))
	if errStart != nil || errEnd != nil {
		return
	}
	version := job.Spec.DesiredVersion.Version
	if before.UID == "" {
		c.asked[version] = append(c.asked[version], schedule{at: start, until: end, seen: change.Time})
	}
	newest := record.Record{}
	for _, r := range job.Status.History {
		if r.Attempt > newest.Attempt {
			newest = r
		}
	}
	if newest.Attempt > 1 && newest.UpgradeAt != nil {
		at := newest.UpgradeAt.Time
		c.asked[version] = append(c.asked[version], schedule{at: at, until: at.Add(end.Sub(start)), seen: change.Time})
	}
}

// attemptOf returns the record of an attempt, or the zero record.
func attemptOf(all []record.Record, attempt int32) record.Record {
	for _, r := range all {
		if r.Attempt == attempt {
			return r
		}
	}
	return record.Record{}
}

// status checks a status written by the operator.
func (c *jobChecker) status(change simulation.Change, key client.ObjectKey, before, job *maintenancev1beta1.UpgradeJob) {
	for _, now := range job.Status.History {
		was := attemptOf(before.Status.History, now.Attempt)
		c.note(now)
		if now.Phase == record.PhaseUpgraded && was.Phase != record.PhaseUpgraded && now.Version != "" && !c.held(now.Version, change.Time) {
			c.h.violate("outcome: %s is Upgraded to %s, but the cluster is not: control plane %s, pools %s", key, now.Version, newest(c.version), c.describePools())
		}
		if now.Phase == record.PhaseFailed && was.Phase != record.PhaseFailed {
			c.h.soonAfter(&c.h.once.failed)
		}
		if was.CompleteTime != nil && now.CompleteTime == nil {
			c.h.violate("record: attempt %d of %s has ended and goes on", now.Attempt, key)
		}
		if now.CompleteTime != nil && was.CompleteTime == nil && now.RequestTime != nil && now.CommenceTime == nil && newest(c.version) == now.Version &&
			c.commencedAt.After(now.RequestTime.Time) && change.Time.Sub(c.commencedAt) > reaction && c.calm(change.Time) {
			c.h.violate("outcome: attempt %d of %s ends as %s: %s, but the control plane has moved to %s since %s", now.Attempt, key, now.Phase, now.Reason, now.Version, c.commencedAt.UTC().Format(time.TimeOnly))
		}
		if was.CompleteTime != nil && was.Phase != now.Phase {
			c.h.violate("record: attempt %d of %s has ended as %s and becomes %s", now.Attempt, key, was.Phase, now.Phase)
		}
		if now.CompleteTime != nil {
			c.ended[stepKey(string(job.UID), now, "")] = now
		}
	}
}

// jobInProgress reports whether an attempt has not ended.
func jobInProgress(job *maintenancev1beta1.UpgradeJob) bool {
	return slices.ContainsFunc(job.Status.History, func(r record.Record) bool { return r.CompleteTime == nil })
}

// awaitsRetry reports whether a requested retry is still pending.
func awaitsRetry(job *maintenancev1beta1.UpgradeJob) bool {
	token := job.Annotations[maintenancev1beta1.RetryAnnotation]
	return token != "" && (job.Status.Retry == nil || job.Status.Retry.Token != token)
}

// unrest describes an UpgradeJob that has not finished, or returns an empty string.
func (c *jobChecker) unrest() string {
	for _, key := range slices.SortedFunc(maps.Keys(c.jobs), func(a, b client.ObjectKey) int { return strings.Compare(a.Name, b.Name) }) {
		job := c.jobs[key]
		if job.DeletionTimestamp != nil || jobInProgress(job) || len(job.Status.History) == 0 || len(job.Finalizers) > 0 || awaitsRetry(job) {
			var parts []string
			for _, r := range job.Status.History {
				parts = append(parts, fmt.Sprintf("%d %s %s", r.Attempt, r.Phase, r.Message))
				if n := len(r.Conditions); n > 0 {
					parts = append(parts, fmt.Sprintf("%s %s: %s", r.Conditions[n-1].Type, r.Conditions[n-1].Reason, r.Conditions[n-1].Message))
				}
			}
			return fmt.Sprintf("%s is not over: deleted %t, finalizers %v, %s", key, job.DeletionTimestamp != nil, job.Finalizers, strings.Join(parts, "; "))
		}
	}
	return ""
}

// leftBehind describes what finished upgrades have left behind.
func (c *jobChecker) leftBehind() string {
	series, err := c.h.registry.Gather()
	if err != nil {
		return err.Error()
	}
	// Other clients replace and withdraw the operator's requests, so the operator repeats them. The
	// checker follows each request, so the number of requests is not checked here.
	scene := aftermath.Scene{Objects: c.h.cluster.Client, Namespace: Namespace, Now: c.h.world.Now(), Series: series}
	if err := scene.Check(context.Background()); err != nil {
		return err.Error()
	}
	return ""
}
