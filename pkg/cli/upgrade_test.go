// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

const upgradeNamespace = "managed-upgrade-operator"

// step returns a step that ran from and to a time before now; to is negative while it runs.
func step(name string, from, to time.Duration, status metav1.ConditionStatus, reason, message string) history.StepCondition {
	c := history.StepCondition{Type: name, Status: status, Reason: reason, Message: message, StartTime: ago(from)}
	if to >= 0 {
		c.CompleteTime = ago(to)
	}
	return c
}

// anUpgrade returns an UpgradeConfig whose upgrade is pending.
func anUpgrade(records ...history.Record) *v1alpha1.UpgradeConfig {
	upgrade := &v1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: upgradeNamespace, Name: "cluster", UID: "upgrade-1"},
		Spec: v1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: "2026-11-23T02:00:00Z", PDBForceDrainTimeout: new(int32(60)),
			Desired: v1alpha1.Update{Version: "4.20.6", Channel: "stable-4.20"},
		},
		Status: v1alpha1.UpgradeConfigStatus{History: records},
	}
	upgrade.Status.Conditions = []metav1.Condition{{Type: history.ConditionProgressing, Message: "the upgrade starts at 2026-11-23 02:00 UTC"}}
	return upgrade
}

// aJob returns an UpgradeJob of aSchedule.
func aJob(name string, records ...history.Record) *v1beta1.UpgradeJob {
	return &v1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: upgradeNamespace, Name: name, UID: "job-1",
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "managedupgrade.appuio.io/v1beta1", Kind: "UpgradeConfig", Name: "tuesdays", UID: "schedule-1"}},
		},
		Spec:   v1beta1.UpgradeJobSpec{StartAfter: "2026-11-23T02:00:00Z", StartBefore: "2026-11-23T03:00:00Z", DesiredVersion: v1beta1.DesiredVersion{Version: "4.20.6"}},
		Status: v1beta1.UpgradeJobStatus{History: records},
	}
}

func aSchedule() *v1beta1.UpgradeConfig {
	return &v1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: upgradeNamespace, Name: "tuesdays", UID: "schedule-1"},
		Spec:       v1beta1.UpgradeConfigSpec{Schedule: v1beta1.UpgradeConfigSchedule{Cron: "0 22 * * 2"}},
	}
}

// The records of attempts at 4.20.6.
func pendingRecord() history.Record {
	return history.Record{Version: "4.20.6", Phase: history.PhasePending, Attempt: 1, Reason: "Scheduled", Message: "the upgrade starts at 2026-11-23 02:00 UTC"}
}

func commencedRecord() history.Record {
	return history.Record{
		Version: "4.20.6", PrecedingVersion: "4.20.5", Phase: history.PhaseUpgrading, Attempt: 2, StartTime: ago(time.Hour), CommenceTime: ago(50 * time.Minute),
		Conditions: []history.StepCondition{
			step("Started", time.Hour, 59*time.Minute, metav1.ConditionTrue, "Done", ""),
			step("CapacityAdded", 59*time.Minute, 59*time.Minute, metav1.ConditionTrue, "NotRequested", ""),
			step("Commenced", 59*time.Minute, 50*time.Minute, metav1.ConditionTrue, "Done", ""),
			step("ControlPlaneUpgraded", 50*time.Minute, -1, metav1.ConditionFalse, "Progressing", "Working towards 4.20.6: 106 of 901 done (11% complete)"),
		},
		PreviousAttempts: []history.PreviousAttempt{{
			Attempt: 1, Phase: history.PhaseFailed, FailedStep: "Healthy", Message: "ClusterOperator dns is degraded", StartTime: ago(26 * time.Hour), CompleteTime: ago(25 * time.Hour),
		}},
	}
}

func failedRecord() history.Record {
	return history.Record{
		Version: "4.20.6", Phase: history.PhaseFailed, Attempt: 1, Reason: "WindowMissed", Message: "the upgrade has not commenced in its window",
		StartTime: ago(2 * time.Hour), CompleteTime: ago(time.Hour),
		Conditions: []history.StepCondition{
			step("Started", 2*time.Hour, 119*time.Minute, metav1.ConditionTrue, "Done", ""),
			step("Healthy", 119*time.Minute, time.Hour, metav1.ConditionFalse, "WindowMissed", "ClusterOperator dns is degraded"),
		},
	}
}

// retried returns an UpgradeConfig or an UpgradeJob whose attempt has failed, and that requests another
// one that has not been reconciled.
func retried(target upgradeTarget) upgradeTarget {
	failed := failedRecord()
	failed.UpgradeAt = ago(2 * time.Hour)
	switch target.kind {
	case kindUpgrade:
		target.upgrade.Status.History = []history.Record{failed}
	case kindJob:
		target.job.Status.History = []history.Record{failed}
		metav1.SetMetaDataAnnotation(&target.job.ObjectMeta, v1beta1.RetryAnnotation, "again")
	case kindSchedule:
	}
	return target
}

func upgradedRecord() history.Record {
	r := commencedRecord()
	r.Phase, r.CompleteTime = history.PhaseUpgraded, ago(5*time.Minute)
	r.Conditions[3] = step("ControlPlaneUpgraded", 50*time.Minute, 5*time.Minute, metav1.ConditionTrue, "Done", "")
	r.PreviousAttempts = nil
	return r
}

// withProgram runs a part of a command, in the namespace of the upgrades.
func withProgram(t *testing.T, run func(*Program, context.Context) error) (string, error) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	p := New(Environment{Program: "/usr/bin/oc-update", Clock: clocktesting.NewFakeClock(now), Streams: streams, Terminal: &Terminal{}})
	*p.config.Namespace = upgradeNamespace
	err := run(p, t.Context())
	return out.String(), err
}

func TestHistory(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]client.Object{
		"pending": anUpgrade(pendingRecord()), "commenced": anUpgrade(commencedRecord()), "failed": aJob("night", failedRecord()),
		"upgraded": aJob("night", upgradedRecord()), "not-reconciled": aJob("night"),
	} {
		for _, width := range []int{60, 100} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := New(Environment{Program: "/oc-update", Terminal: &Terminal{Width: width}})
				golden(t, "upgrades/history-"+name+map[int]string{60: "-60", 100: "-100"}[width]+".txt", p.historyScreen(targetOf(target), now), true)
			})
		}
	}
}

func TestHistory_of_a_schedule_is_that_of_its_jobs(t *testing.T) {
	t.Parallel()
	other := aJob("other")
	other.OwnerReferences = nil
	late := aJob("late")
	late.Spec.StartAfter = "2026-11-24T02:00:00Z"
	cluster := newFakeCluster(t, aSchedule(), aJob("early"), late, other)
	targets, err := withHistory(t.Context(), cluster.Cluster, targetOf(aSchedule()))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, target := range targets {
		names = append(names, target.String())
	}
	if diff := cmp.Diff([]string{"upgradejob/late", "upgradejob/early"}, names); diff != "" {
		t.Errorf("UpgradeJobs (-want +got):\n%s", diff)
	}
}

// examplePlan is a runbook whose screens are golden files; docs/runbooks shows the real ones.
var examplePlan = engine.Runbook{
	Steps: []engine.Step{
		{Name: "Started", Doc: "Sends the notification that the upgrade starts."},
		{Name: "Commenced", Doc: "Requests the version.", Commits: true, Gates: []engine.Gate{{Name: "PreChecksAccepted"}, {Name: "NotSuspended"}}},
		{Name: "ControlPlaneUpgraded", Doc: "Waits until the control plane is at the version."},
		{Name: "Upgraded", Doc: "Publishes the end."},
	},
	Cleanup: []engine.Step{{Name: "Withdrawn", Doc: "Withdraws the request."}},
	Finally: []engine.Step{{Name: "Released", Doc: "Releases the lock."}},
}

func TestPreview(t *testing.T) {
	t.Parallel()
	failing := pendingRecord() // its cleanup runs
	failing.Phase, failing.StartTime = history.PhaseUpgrading, ago(time.Hour)
	failing.Conditions = []history.StepCondition{
		step("Started", time.Hour, time.Hour, metav1.ConditionTrue, "NotRequested", ""),
		step("Commenced", time.Hour, 10*time.Minute, metav1.ConditionFalse, "TargetRefused", "the signature is missing"),
		step("Withdrawn", 10*time.Minute, -1, metav1.ConditionUnknown, "Unknown", "the API server does not answer"),
	}
	for name, target := range map[string]client.Object{"upgrade": anUpgrade(pendingRecord()), "running": anUpgrade(commencedRecord()), "failing": anUpgrade(failing), "job": aJob("night"), "schedule": aSchedule()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := New(Environment{Program: "/oc-update", Terminal: &Terminal{}})
			golden(t, "upgrades/preview-"+name+".txt", p.previewScreen(targetOf(target), examplePlan), true)

			book, err := runbookOf(targetOf(target))
			if err != nil {
				t.Fatal(err)
			}
			screen := p.previewScreen(targetOf(target), book)
			for _, s := range slices.Concat(book.Steps, book.Cleanup, book.Finally) {
				if !strings.Contains(screen, "  "+s.Name+"\n") && !strings.Contains(screen, "  "+s.Name+" (") {
					t.Errorf("the screen lacks step %s:\n%s", s.Name, screen)
				}
			}
		})
	}
	custom := anUpgrade()
	custom.Spec.Type = "Custom"
	if _, err := runbookOf(targetOf(custom)); err == nil || !strings.Contains(err.Error(), `"Custom"`) {
		t.Errorf("the steps of another type: %v", err)
	}
}

// TestActions runs each action on each kind in each state.
func TestActions(t *testing.T) {
	t.Parallel()
	actions := map[string]action{"pause": pause(true), "resume": pause(false), "cancel": cancel, "retry": retry, "run-now": runNow}
	started := pendingRecord()
	started.StartTime, started.Phase = ago(time.Minute), history.PhaseUpgrading
	states := map[string][]history.Record{
		"new": nil, "pending": {pendingRecord()}, "started": {started}, "commenced": {commencedRecord()}, "failed": {failedRecord()}, "upgraded": {upgradedRecord()},
		"retried": nil,
	}
	const at = "2026-11-23T01:00:00Z"
	// What is changed, by "ACTION KIND"; the states that are not listed are refused.
	want := map[string]map[string]string{
		"pause upgrade":     {"new": "paused", "pending": "paused", "started": "paused", "failed": "paused", "upgraded": "paused", "retried": "paused"},
		"resume upgrade":    {"new": "unpaused", "pending": "unpaused", "started": "unpaused", "commenced": "unpaused", "failed": "unpaused", "upgraded": "unpaused", "retried": "unpaused"},
		"cancel upgrade":    {"new": "deleted", "pending": "deleted", "started": "deleted", "retried": "deleted"},
		"retry upgrade":     {"failed": "upgradeAt " + at},
		"run-now upgrade":   {"new": "upgradeAt " + at, "pending": "upgradeAt " + at, "failed": "upgradeAt " + at, "retried": "upgradeAt " + at},
		"cancel upgradejob": {"new": "deleted", "pending": "deleted", "started": "deleted", "retried": "deleted"},
		"retry upgradejob":  {"failed": "retry " + at},
		"pause upgradejob":  {}, "resume upgradejob": {}, "run-now upgradejob": {},
		"pause uc":   {"new": "suspended"},
		"resume uc":  {"new": "unsuspended"},
		"run-now uc": {"new": "run-now " + at},
		"cancel uc":  {}, "retry uc": {},
	}
	for name, do := range actions {
		for state, records := range states {
			for _, object := range []client.Object{anUpgrade(records...), aJob("night", records...), aSchedule()} {
				target := targetOf(object)
				if target.kind == kindSchedule && state != "new" {
					continue
				}
				if state == "retried" {
					target = retried(target)
				}
				command := name + " " + string(target.kind)
				t.Run(command+" "+state, func(t *testing.T) {
					t.Parallel()
					cluster := newFakeCluster(t, object)
					printed, err := withProgram(t, func(p *Program, ctx context.Context) error {
						found, err := p.findUpgrade(ctx, cluster.Cluster, []string{target.String()}, choice{})
						if err != nil {
							return err
						}
						_, err = do(ctx, p, cluster.Cluster, found)
						return err
					})
					wantChange := want[command][state]
					if got := changeOf(t, cluster, target); got != wantChange {
						t.Errorf("it changed %q, want %q: %v %s", got, wantChange, err, printed)
					}
					if (err != nil) != (wantChange == "") || err != nil && exitCode(err) != ExitActionRequired {
						t.Errorf("error %v with exit code %d", err, exitCode(err))
					}
				})
			}
		}
	}
}

// What holds an upgrade also holds one that is started now.
func TestActions_on_a_held_upgrade(t *testing.T) {
	t.Parallel()
	paused := anUpgrade(failedRecord())
	paused.Spec.Paused = new(true)
	held := func(c *fakeCluster) error {
		version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
		return c.Client.Patch(t.Context(), version, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+v1alpha1.HoldAnnotation+`":"no\nchanges"}}}`)))
	}
	denied := func(c *fakeCluster) error {
		c.err = func(kind string) error {
			if kind == "ClusterVersion" {
				return forbidden()
			}
			return nil
		}
		return nil
	}
	free := func(*fakeCluster) error { return nil }
	const (
		resume  = `not started: spec.paused holds the upgrade; run "oc update resume upgrade/cluster -n managed-upgrade-operator" first`
		release = `; no upgrade commences while the annotation upgrade.managed.openshift.io/hold of the ClusterVersion holds the cluster (no changes): remove it with "oc annotate clusterversion version upgrade.managed.openshift.io/hold-"`
		unknown = `; whether the annotation upgrade.managed.openshift.io/hold of the ClusterVersion holds the cluster is unknown: you are not allowed to read it`
	)
	for name, tc := range map[string]struct {
		do      action
		object  client.Object
		prepare func(*fakeCluster) error
		want    string // what is printed
		refusal string
	}{
		"run-now, paused":           {runNow, paused, free, "", resume},
		"retry, paused":             {retry, paused, free, "", strings.Replace(resume, "started", "retried", 1)},
		"run-now, free":             {runNow, anUpgrade(), free, "starts at 2026-11-23T01:00:00Z", ""},
		"run-now, held":             {runNow, anUpgrade(), held, "starts at 2026-11-23T01:00:00Z" + release, ""},
		"run-now, hold unknown":     {runNow, anUpgrade(), denied, "starts at 2026-11-23T01:00:00Z" + unknown, ""},
		"run-now of a uc, held":     {runNow, aSchedule(), held, "is going to create an UpgradeJob now, if an update is available" + release, ""},
		"retry, held":               {retry, anUpgrade(failedRecord()), held, "starts at 2026-11-23T01:00:00Z" + release, ""},
		"retry of a job, held":      {retry, aJob("night", failedRecord()), held, "is going to be retried" + release, ""},
		"resume of a paused, free":  {pause(false), paused, free, "resumed", ""},
		"retry of a job, not ended": {retry, aJob("night", pendingRecord()), held, "", `not retried: the upgrade has not ended; follow it with "oc update watch upgradejob/night -n managed-upgrade-operator"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t, tc.object)
			if err := tc.prepare(cluster); err != nil {
				t.Fatal(err)
			}
			got := ""
			_, err := withProgram(t, func(p *Program, ctx context.Context) error {
				p.name = "oc update"
				found, err := p.findUpgrade(ctx, cluster.Cluster, []string{targetOf(tc.object).String()}, choice{})
				if err != nil {
					return err
				}
				got, err = tc.do(ctx, p, cluster.Cluster, found)
				return err
			})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("it printed (-want +got):\n%s", diff)
			}
			refusal := ""
			if err != nil {
				refusal = err.Error()
			}
			if diff := cmp.Diff(tc.refusal, refusal); diff != "" {
				t.Errorf("refused (-want +got):\n%s", diff)
			}
			if err != nil && changeOf(t, cluster, targetOf(tc.object)) != map[bool]string{true: "paused"}[targetOf(tc.object).isPaused()] {
				t.Error("it changed the upgrade")
			}
		})
	}
}

// changeOf returns how an object differs from what it was before an action.
func changeOf(t *testing.T, cluster *fakeCluster, old upgradeTarget) string {
	t.Helper()
	after := newTarget(old.kind, client.ObjectKeyFromObject(old.object))
	err := cluster.Get(t.Context(), client.ObjectKeyFromObject(old.object), after.object)
	switch {
	case apierrors.IsNotFound(err):
		return "deleted"
	case err != nil:
		t.Fatal(err)
	}
	annotations := after.object.GetAnnotations()
	switch {
	case annotations[v1beta1.RetryAnnotation] != old.object.GetAnnotations()[v1beta1.RetryAnnotation]:
		return "retry " + annotations[v1beta1.RetryAnnotation]
	case annotations[v1beta1.RunNowAnnotation] != "":
		return "run-now " + annotations[v1beta1.RunNowAnnotation]
	case after.kind == kindUpgrade && after.upgrade.Spec.Paused != nil:
		return map[bool]string{true: "paused", false: "unpaused"}[*after.upgrade.Spec.Paused]
	case after.kind == kindUpgrade && after.upgrade.Spec.UpgradeAt != old.upgrade.Spec.UpgradeAt:
		return "upgradeAt " + after.upgrade.Spec.UpgradeAt
	case after.kind == kindSchedule && after.schedule.Spec.Schedule.Suspend != nil:
		return map[bool]string{true: "suspended", false: "unsuspended"}[*after.schedule.Spec.Schedule.Suspend]
	}
	return ""
}

// An object that changes between the read and the write is not changed.
func TestActions_on_an_object_that_has_changed(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]action{"pause": pause(true), "cancel": cancel, "run-now": runNow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t, anUpgrade(pendingRecord()))
			_, err := withProgram(t, func(p *Program, ctx context.Context) error {
				found, err := p.findUpgrade(ctx, cluster.Cluster, []string{"upgrade/cluster"}, choice{})
				if err != nil {
					return err
				}
				meanwhile := found.upgrade.DeepCopy()
				meanwhile.Status.History = []history.Record{commencedRecord()}
				if err := cluster.Client.Update(ctx, meanwhile); err != nil {
					return err
				}
				_, err = do(ctx, p, cluster.Cluster, found)
				return err
			})
			if !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict", err)
			}
			if got := changeOf(t, cluster, targetOf(anUpgrade())); got != "" {
				t.Errorf("it changed %q", got)
			}
		})
	}
}

// TestFindUpgrade_without_an_argument runs the choice of each command.
func TestFindUpgrade_without_an_argument(t *testing.T) {
	t.Parallel()
	failed, next := aJob("failed", failedRecord()), aJob("next", pendingRecord())
	done, again := aJob("done", upgradedRecord()), retried(targetOf(aJob("again"))).object
	for name, tc := range map[string]struct {
		choice  choice
		objects []client.Object
		want    string // a target, or several that the error names
	}{
		"retry: the failed one of two":         {toRetry(), []client.Object{failed, next}, "upgradejob/failed"},
		"retry: the failed one of two ended":   {toRetry(), []client.Object{failed, done}, "upgradejob/failed"},
		"retry: the failed upgrade":            {toRetry(), []client.Object{anUpgrade(failedRecord()), next}, "upgrade/cluster"},
		"retry: not one that is retried":       {toRetry(), []client.Object{failed, again}, "upgradejob/failed"},
		"retry: two have failed":               {toRetry(), []client.Object{failed, anUpgrade(failedRecord())}, "upgrade/cluster, upgradejob/failed"},
		"retry: the only one":                  {toRetry(), []client.Object{next}, "upgradejob/next"},
		"watch: the open one":                  {isOpen(kindUpgrade, kindJob), []client.Object{failed, next}, "upgradejob/next"},
		"watch: the one that is retried":       {isOpen(kindUpgrade, kindJob), []client.Object{failed, again}, "upgradejob/again"},
		"watch: an upgrade that has ended":     {isOpen(kindUpgrade, kindJob), []client.Object{anUpgrade(upgradedRecord()), next}, "upgradejob/next"},
		"watch: all have ended":                {isOpen(kindUpgrade, kindJob), []client.Object{failed, done}, "upgradejob/done, upgradejob/failed"},
		"run-now: an upgrade that has failed":  {isNotUpgraded(kindUpgrade, kindSchedule), []client.Object{anUpgrade(failedRecord()), aSchedule()}, "uc/tuesdays, upgrade/cluster"},
		"run-now: an upgrade that is complete": {isNotUpgraded(kindUpgrade, kindSchedule), []client.Object{anUpgrade(upgradedRecord()), aSchedule()}, "uc/tuesdays"},
		"run-now: an upgrade in progress":      {isNotUpgraded(kindUpgrade, kindSchedule), []client.Object{anUpgrade(commencedRecord()), aSchedule()}, "uc/tuesdays, upgrade/cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t, tc.objects...)
			got := ""
			_, err := withProgram(t, func(p *Program, ctx context.Context) error {
				found, err := p.findUpgrade(ctx, cluster.Cluster, nil, tc.choice)
				if err == nil {
					got = found.String()
				}
				return err
			})
			if err != nil {
				_, got, _ = strings.Cut(strings.ReplaceAll(err.Error(), "-n managed-upgrade-operator ", ""), "choose one: ")
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("found (-want +got):\n%s\n%v", diff, err)
			}
		})
	}
}

func TestFindUpgrade(t *testing.T) {
	t.Parallel()
	all := isOpen(kindUpgrade, kindSchedule, kindJob)
	for name, tc := range map[string]struct {
		objects []client.Object
		args    []string
		want    string
		wantErr string
	}{
		"by its name":              {[]client.Object{anUpgrade(), aSchedule()}, []string{"uc/tuesdays"}, "uc/tuesdays", ""},
		"by its full name":         {[]client.Object{anUpgrade(), aSchedule()}, []string{"UpgradeConfig.managedupgrade.appuio.io/tuesdays"}, "uc/tuesdays", ""},
		"the only one":             {[]client.Object{anUpgrade()}, nil, "upgrade/cluster", ""},
		"the only one in progress": {[]client.Object{aJob("early", failedRecord()), aJob("late")}, nil, "upgradejob/late", ""},
		"one of several":           {[]client.Object{anUpgrade(), aSchedule()}, nil, "", "choose one: -n managed-upgrade-operator uc/tuesdays, -n managed-upgrade-operator upgrade/cluster"},
		"there is none":            {nil, nil, "", "no upgrade was found"},
		"one that does not exist":  {nil, []string{"upgradejob/night"}, "", "upgradejob/night in namespace managed-upgrade-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t, tc.objects...)
			_, err := withProgram(t, func(p *Program, ctx context.Context) error {
				found, err := p.findUpgrade(ctx, cluster.Cluster, tc.args, all)
				if err == nil && found.String() != tc.want {
					t.Errorf("found %s, want %s", found, tc.want)
				}
				return err
			})
			if (err == nil) != (tc.wantErr == "") || err != nil && !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("got %v, want %q", err, tc.wantErr)
			}
		})
	}
	for _, arg := range []string{"upgradeconfig/cluster", "cluster", "upgrade/", "node/a"} {
		if got := run(t, "history", arg); got.code != ExitUsage || !strings.Contains(got.errOut, "upgrade/NAME, upgradejob/NAME, or uc/NAME") {
			t.Errorf("history %s: exit code %d: %s", arg, got.code, got.errOut)
		}
	}
	if got := run(t, "cancel", "--replay", "."); got.code != ExitUsage || !strings.Contains(got.errOut, "--replay") {
		t.Errorf("cancel in a dump: exit code %d: %s", got.code, got.errOut)
	}
}

func TestWatchUpgrade(t *testing.T) {
	t.Parallel()
	skipped := failedRecord()
	skipped.Phase = history.PhaseSkipped
	commenced, job := anUpgrade(commencedRecord()), aJob("night", commencedRecord())
	closing := aJob("night", failedRecord()) // its end is going to be published
	closing.Finalizers = []string{v1beta1.Finalizer}
	for name, tc := range map[string]struct {
		object client.Object
		first  history.Phase
		end    *history.Record // nil means that the object is deleted
		code   ExitCode
	}{
		"upgraded":                    {commenced, history.PhaseUpgrading, new(upgradedRecord()), ExitDone},
		"failed":                      {commenced, history.PhaseUpgrading, new(failedRecord()), ExitActionRequired},
		"skipped":                     {commenced, history.PhaseUpgrading, &skipped, ExitActionRequired},
		"deleted":                     {commenced, history.PhaseUpgrading, nil, ExitActionRequired},
		"job upgraded":                {job, history.PhaseUpgrading, new(upgradedRecord()), ExitDone},
		"job failed, with finalizer":  {closing, history.PhaseFailed, new(failedRecord()), ExitActionRequired},
		"retried, not reconciled":     {retried(targetOf(anUpgrade())).object, history.PhaseNew, new(upgradedRecord()), ExitDone},
		"job retried, not reconciled": {retried(targetOf(aJob("night"))).object, history.PhaseNew, new(upgradedRecord()), ExitDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := newFakeCluster(t, tc.object)
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			clock := clocktesting.NewFakeClock(now)
			p := New(Environment{Program: "/usr/bin/oc-update", Clock: clock, Streams: streams, Terminal: &Terminal{}})
			*p.config.Namespace = upgradeNamespace
			target, err := p.findUpgrade(t.Context(), cluster.Cluster, []string{targetOf(tc.object).String()}, choice{})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- p.watchUpgrade(t.Context(), cluster.Cluster, target) }()
			for !clock.HasWaiters() {
				if len(ended) > 0 {
					t.Fatalf("it ended at once, %v: %s", <-ended, out)
				}
				runtime.Gosched()
			}
			if err := endUpgrade(t.Context(), cluster.Client, target, tc.end); err != nil {
				t.Fatal(err)
			}
			clock.Step(pollInterval)
			if got := exitCode(<-ended); got != tc.code {
				t.Errorf("exit code %d, want %d", got, tc.code)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			wantLast := tc.first
			if tc.end != nil {
				wantLast = tc.end.Phase
			}
			if !strings.HasPrefix(lines[0], "2026-11-23T01:00:00Z  "+string(tc.first)+":") || !strings.Contains(lines[len(lines)-1], string(wantLast)+":") {
				t.Errorf("it printed %q", lines)
			}
		})
	}
}

// endUpgrade replaces the history of an upgrade by the record of an attempt that has ended, and answers
// a request for it. Without a record, it deletes the object.
func endUpgrade(ctx context.Context, c client.Client, target upgradeTarget, end *history.Record) error {
	next := targetOf(target.object.DeepCopyObject().(client.Object))
	if end == nil {
		return c.Delete(ctx, next.object)
	}
	switch next.kind {
	case kindUpgrade:
		next.upgrade.Status.History = []history.Record{*end}
	case kindJob:
		next.job.Status.History = []history.Record{*end}
		next.job.Finalizers = nil
		if token := next.job.Annotations[v1beta1.RetryAnnotation]; token != "" {
			next.job.Status.Retry = &v1beta1.RetryStatus{Token: token}
		}
	case kindSchedule:
	}
	return c.Update(ctx, next.object)
}

// The hint names a ClusterRole that grants what was refused.
func TestHint_of_a_forbidden_request(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		group, resource, verb string
		want                  string // the ClusterRole; empty means that none is named
	}{
		"read an UpgradeConfig":         {"upgrade.managed.openshift.io", "upgradeconfigs", "get", "managed-upgrade-viewer"},
		"list UpgradeJobs":              {"managedupgrade.appuio.io", "upgradejobs", "list", "managed-upgrade-viewer"},
		"change an UpgradeConfig":       {"upgrade.managed.openshift.io", "upgradeconfigs", "patch", "managed-upgrade-editor"},
		"delete an UpgradeJob":          {"managedupgrade.appuio.io", "upgradejobs", "delete", "managed-upgrade-editor"},
		"read an UpdateStatus":          {"config.openshift.io", "updatestatuses", "get", "update-viewer"},
		"change a ClusterVersion":       {"config.openshift.io", "clusterversions", "patch", ""},
		"create an UpdatePlan":          {"config.openshift.io", "updateplans", "create", "update-planner"},
		"read a ClusterUpgradeRun":      {"upgrade.managed.openshift.io", "clusterupgraderuns", "list", "fleet-viewer"},
		"read the upgrade of a fleet":   {"cluster.open-cluster-management.io", "managedclustersupgrades", "get", "fleet-viewer"},
		"change the upgrade of a fleet": {"cluster.open-cluster-management.io", "managedclustersupgrades", "patch", "fleet-editor"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cause := fmt.Errorf("User \"ada\" cannot %s resource %q in API group %q in the namespace %q", tc.verb, tc.resource, tc.group, upgradeNamespace)
			err := apierrors.NewForbidden(schema.GroupResource{Group: tc.group, Resource: tc.resource}, "cluster", cause)
			hint := New(Environment{Program: "/oc-update"}).hint(fmt.Errorf("reading it: %w", err))
			_, role, _ := strings.Cut(hint, "ClusterRole ")
			role, _, _ = strings.Cut(role, ",")
			if role != tc.want || hint == "" {
				t.Errorf("hint %q, want ClusterRole %q", hint, tc.want)
			}
		})
	}
}
