// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgrade

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/screen"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// retried returns an UpgradeConfig or UpgradeJob with a failed attempt and a request for another attempt that
// has not been reconciled.
func retried(target upgradeTarget) upgradeTarget {
	failed := clitest.FailedRecord()
	failed.UpgradeAt = clitest.Ago(2 * time.Hour)
	switch target.kind {
	case kindUpgrade:
		target.upgrade.Status.History = []history.Record{failed}
	case kindJob:
		target.job.Status.History = []history.Record{failed}
		metav1.SetMetaDataAnnotation(&target.job.ObjectMeta, maintenancev1beta1.RetryAnnotation, "again")
	case kindSchedule:
	}
	return target
}

// withProgram runs part of a command in the namespace of the upgrades.
func withProgram(t *testing.T, run func(context.Context, *session.Session) error) (string, error) {
	t.Helper()
	streams, _, out, _ := genericiooptions.NewTestIOStreams()
	p := session.New(session.Environment{Program: "/usr/bin/oc-update", Clock: clocktesting.NewFakeClock(clitest.Now), Streams: streams, Terminal: &screen.Terminal{}})
	*p.Config.Namespace = clitest.Namespace
	err := run(t.Context(), p)
	return out.String(), err
}

func TestHistory(t *testing.T) {
	t.Parallel()
	for name, target := range map[string]client.Object{
		"pending": clitest.AnUpgrade(clitest.PendingRecord()), "commenced": clitest.AnUpgrade(clitest.CommencedRecord()), "failed": clitest.AJob("night", clitest.FailedRecord()),
		"upgraded": clitest.AJob("night", clitest.UpgradedRecord()), "not-reconciled": clitest.AJob("night"),
	} {
		for _, width := range []int{60, 100} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := session.New(session.Environment{Program: "/oc-update", Terminal: &screen.Terminal{Width: width}})
				clitest.Golden(t, "upgrades/history-"+name+map[int]string{60: "-60", 100: "-100"}[width]+".txt", historyScreen(p, targetOf(target), clitest.Now), true)
			})
		}
	}
}

func TestHistory_with_a_clock_that_is_behind(t *testing.T) {
	t.Parallel()
	p := session.New(session.Environment{Program: "/oc-update", Terminal: &screen.Terminal{Width: 100}})
	if out := historyScreen(p, targetOf(clitest.AnUpgrade(clitest.CommencedRecord())), clitest.Now.Add(-24*time.Hour)); strings.Contains(out, "invalid>") {
		t.Errorf("printed:\n%s", out)
	}
}

func TestHistory_of_a_schedule_is_that_of_its_jobs(t *testing.T) {
	t.Parallel()
	other := clitest.AJob("other")
	other.OwnerReferences = nil
	late := clitest.AJob("late")
	late.Spec.StartAfter = "2026-11-24T02:00:00Z"
	cluster := clitest.NewFakeCluster(t, clitest.ASchedule(), clitest.AJob("early"), late, other)
	targets, err := withHistory(t.Context(), cluster.Cluster, targetOf(clitest.ASchedule()))
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

// examplePlan is a runbook for golden files. docs/runbooks shows the real ones.
var examplePlan = engine.Runbook{
	Steps: []engine.Step{
		{Name: "Started", Doc: "Sends the notification that the upgrade starts."},
		{Name: "Commenced", Doc: "Requests the version.", Commit: &engine.Commit{}, Gates: []engine.Gate{{Name: "PreChecksAccepted"}, {Name: "NotSuspended"}}},
		{Name: "ControlPlaneUpgraded", Doc: "Waits until the control plane is at the version."},
		{Name: "Upgraded", Doc: "Publishes the end."},
	},
	Cleanup: []engine.Step{{Name: "Withdrawn", Doc: "Withdraws the request."}},
	Finally: []engine.Step{{Name: "Released", Doc: "Releases the lock."}},
}

func TestPreview(t *testing.T) {
	t.Parallel()
	failing := clitest.PendingRecord() // its cleanup is running
	failing.Phase, failing.StartTime = history.PhaseUpgrading, clitest.Ago(time.Hour)
	failing.Conditions = []history.StepCondition{
		clitest.Step("Started", time.Hour, time.Hour, metav1.ConditionTrue, "NotRequested", ""),
		clitest.Step("Commenced", time.Hour, 10*time.Minute, metav1.ConditionFalse, "TargetRefused", "the signature is missing"),
		clitest.Step("Withdrawn", 10*time.Minute, -1, metav1.ConditionUnknown, "Unknown", "the API server does not answer"),
	}
	for name, target := range map[string]client.Object{"upgrade": clitest.AnUpgrade(clitest.PendingRecord()), "running": clitest.AnUpgrade(clitest.CommencedRecord()), "failing": clitest.AnUpgrade(failing), "job": clitest.AJob("night"), "schedule": clitest.ASchedule()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := session.New(session.Environment{Program: "/oc-update", Terminal: &screen.Terminal{}})
			clitest.Golden(t, "upgrades/preview-"+name+".txt", previewScreen(p, targetOf(target), examplePlan), true)

			book, err := runbookOf(t.Context(), targetOf(target), "")
			if err != nil {
				t.Fatal(err)
			}
			screen := previewScreen(p, targetOf(target), book)
			for _, s := range slices.Concat(book.Steps, book.Cleanup, book.Finally) {
				if !strings.Contains(screen, "  "+s.Name+"\n") && !strings.Contains(screen, "  "+s.Name+" (") {
					t.Errorf("the screen lacks step %s:\n%s", s.Name, screen)
				}
			}
		})
	}
	custom := clitest.AnUpgrade()
	custom.Spec.Type = "Custom"
	printed, err := json.Marshal(examplePlan)
	if err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "operator") // responds like an operator
	answer := "#!/bin/sh\n[ \"$*\" = 'docs --output=json -- Custom' ] || { echo 'unknown type' >&2; exit 1; }\ncat <<'END'\n" +
		string(printed) + "\nEND\n"
	if err := os.WriteFile(program, []byte(answer), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := runbookOf(t.Context(), targetOf(custom), ""); err == nil || !strings.Contains(err.Error(), `"Custom"`) {
		t.Errorf("the steps of another type: %v", err)
	}
	book, err := runbookOf(t.Context(), targetOf(custom), program)
	if err != nil {
		t.Fatal(err)
	}
	p := session.New(session.Environment{Program: "/oc-update", Terminal: &screen.Terminal{}})
	if diff := cmp.Diff(previewScreen(p, targetOf(custom), examplePlan), previewScreen(p, targetOf(custom), book)); diff != "" {
		t.Errorf("the steps of another type (-want +got):\n%s", diff)
	}
	custom.Spec.Type = "Other"
	if _, err := runbookOf(t.Context(), targetOf(custom), program); err == nil || !strings.Contains(err.Error(), "unknown type") {
		t.Errorf("the steps of a type that the operator does not have: %v", err)
	}
}

// TestActions runs each action on each kind in each state.
func TestActions(t *testing.T) {
	t.Parallel()
	actions := map[string]action{"pause": pause(true), "resume": pause(false), "cancel": cancel, "retry": retry, "run-now": runNow}
	started := clitest.PendingRecord()
	started.StartTime, started.Phase = clitest.Ago(time.Minute), history.PhaseUpgrading
	states := map[string][]history.Record{
		"new": nil, "pending": {clitest.PendingRecord()}, "started": {started}, "commenced": {clitest.CommencedRecord()}, "failed": {clitest.FailedRecord()}, "upgraded": {clitest.UpgradedRecord()},
		"retried": nil,
	}
	const at = "2026-11-23T01:00:00Z"
	// Expected changes by "ACTION KIND". States that are not listed are refused.
	want := map[string]map[string]string{
		"pause upgrade":     {"new": "paused", "pending": "paused", "started": "paused", "failed": "paused", "upgraded": "paused", "retried": "paused"},
		"resume upgrade":    {"new": "unpaused", "pending": "unpaused", "started": "unpaused", "commenced": "unpaused", "failed": "unpaused", "upgraded": "unpaused", "retried": "unpaused"},
		"cancel upgrade":    {"new": "deleted", "pending": "deleted", "started": "deleted", "retried": "deleted"},
		"retry upgrade":     {"failed": "retry " + at},
		"run-now upgrade":   {"new": "run-now " + at, "pending": "run-now " + at, "failed": "run-now " + at, "retried": "run-now " + at},
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
			for _, object := range []client.Object{clitest.AnUpgrade(records...), clitest.AJob("night", records...), clitest.ASchedule()} {
				target := targetOf(object)
				if target.kind == kindSchedule && state != "new" {
					continue
				}
				if state == "retried" {
					target = retried(target)
				}
				if name == "resume" && target.kind == kindUpgrade {
					target.upgrade.Spec.Paused, target.upgrade.Annotations = new(true), map[string]string{upgradev1alpha1.PauseAnnotation: "freeze"}
				}
				command := name + " " + string(target.kind)
				t.Run(command+" "+state, func(t *testing.T) {
					t.Parallel()
					cluster := clitest.NewFakeCluster(t, object)
					printed, err := withProgram(t, func(ctx context.Context, p *session.Session) error {
						found, err := findUpgrade(ctx, p, cluster.Cluster, []string{target.String()}, choice{})
						if err != nil {
							return err
						}
						return (&actionOptions{Session: p, ChangeOptions: session.ChangeOptions{Yes: true}, verb: name, do: do}).act(ctx, cluster.Cluster, found)
					})
					wantChange := want[command][state]
					if got := changeOf(t, cluster, target); got != wantChange {
						t.Errorf("it changed %q, want %q: %v %s", got, wantChange, err, printed)
					}
					if (err != nil) != (wantChange == "") || err != nil && session.CodeOf(err) != session.ExitActionRequired {
						t.Errorf("error %v with exit code %d", err, session.CodeOf(err))
					}
				})
			}
		}
	}
}

// A hold on an upgrade also applies to an upgrade that is started now.
func TestActions_on_a_held_upgrade(t *testing.T) {
	t.Parallel()
	paused, annotated := clitest.AnUpgrade(clitest.FailedRecord()), clitest.AnUpgrade(clitest.FailedRecord())
	paused.Spec.Paused = new(true)
	annotated.Annotations = map[string]string{upgradev1alpha1.PauseAnnotation: "freeze"}
	held := func(c *clitest.FakeCluster) error {
		version := &configv1.ClusterVersion{ObjectMeta: metav1.ObjectMeta{Name: "version"}}
		return c.Client.Patch(t.Context(), version, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+upgradev1alpha1.HoldAnnotation+`":"no\nchanges"}}}`)))
	}
	denied := func(c *clitest.FakeCluster) error {
		c.Err = func(kind string) error {
			if kind == "ClusterVersion" {
				return clitest.Forbidden()
			}
			return nil
		}
		return nil
	}
	free := func(*clitest.FakeCluster) error { return nil }
	for name, tc := range map[string]struct {
		do      action
		object  client.Object
		prepare func(*clitest.FakeCluster) error
		want    string // the beginning of the output, or of the refusal
	}{
		"run-now, paused":           {runNow, paused, free, "not started: the upgrade is paused by spec.paused"},
		"retry, paused":             {retry, paused, free, "not retried: the upgrade is paused by spec.paused"},
		"retry, annotated":          {retry, annotated, free, "not retried: the upgrade is paused by annotation upgrade.managed.openshift.io/pause"},
		"run-now, free":             {runNow, clitest.AnUpgrade(), free, "starts now"},
		"run-now, held":             {runNow, clitest.AnUpgrade(), held, "starts now; "},
		"run-now, hold unknown":     {runNow, clitest.AnUpgrade(), denied, "starts now; "},
		"run-now of a uc, held":     {runNow, clitest.ASchedule(), held, "will create an UpgradeJob now, if an update is available"},
		"retry, held":               {retry, clitest.AnUpgrade(clitest.FailedRecord()), held, "will be retried"},
		"retry of a job, held":      {retry, clitest.AJob("night", clitest.FailedRecord()), held, "will be retried"},
		"resume of a paused, free":  {pause(false), paused, free, "resumed"},
		"retry of a job, not ended": {retry, clitest.AJob("night", clitest.PendingRecord()), held, "not retried: the upgrade has not ended"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clitest.NewFakeCluster(t, tc.object)
			if err := tc.prepare(cluster); err != nil {
				t.Fatal(err)
			}
			got := ""
			_, err := withProgram(t, func(ctx context.Context, p *session.Session) error {
				p.Name = "oc update"
				found, err := findUpgrade(ctx, p, cluster.Cluster, []string{targetOf(tc.object).String()}, choice{})
				if err != nil {
					return err
				}
				c, err := tc.do(ctx, p, cluster.Cluster, found)
				if err != nil {
					return err
				}
				got = c.Done
				return c.Apply(cluster.Client)
			})
			said := got
			if err != nil {
				said = err.Error()
			}
			golden.Texts(t, "", said)
			if !strings.HasPrefix(said, tc.want) || (err != nil) != strings.HasPrefix(tc.want, "not ") || err != nil && got != "" {
				t.Errorf("got %q, %v, want %q", got, err, tc.want)
			}
			if err != nil && changeOf(t, cluster, targetOf(tc.object)) != "" {
				t.Error("it changed the upgrade")
			}
		})
	}
}

// changeOf describes how an action has changed an object.
func changeOf(t *testing.T, cluster *clitest.FakeCluster, old upgradeTarget) string {
	t.Helper()
	after := newTarget(old.kind, client.ObjectKeyFromObject(old.object))
	err := cluster.Get(t.Context(), client.ObjectKeyFromObject(old.object), after.object)
	switch {
	case apierrors.IsNotFound(err):
		return "deleted"
	case err != nil:
		t.Fatal(err)
	}
	for action, annotation := range map[string][]string{
		"retry ": {maintenancev1beta1.RetryAnnotation, upgradev1alpha1.RetryAnnotation}, "run-now ": {maintenancev1beta1.RunNowAnnotation, upgradev1alpha1.RunNowAnnotation},
	} {
		for _, key := range annotation {
			if value := after.object.GetAnnotations()[key]; value != old.object.GetAnnotations()[key] {
				return action + value
			}
		}
	}
	switch {
	case after.kind == kindUpgrade && (old.pausedBy() == "") != (after.pausedBy() == ""):
		return map[bool]string{true: "paused", false: "unpaused"}[after.pausedBy() != ""]
	case after.kind == kindSchedule && after.schedule.Spec.Schedule.Suspend != nil:
		return map[bool]string{true: "suspended", false: "unsuspended"}[*after.schedule.Spec.Schedule.Suspend]
	}
	return ""
}

// An object that changes between read and write is left alone.
func TestActions_on_an_object_that_has_changed(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]action{"pause": pause(true), "cancel": cancel, "run-now": runNow} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clitest.NewFakeCluster(t, clitest.AnUpgrade(clitest.PendingRecord()))
			_, err := withProgram(t, func(ctx context.Context, p *session.Session) error {
				found, err := findUpgrade(ctx, p, cluster.Cluster, []string{"upgrade/cluster"}, choice{})
				if err != nil {
					return err
				}
				meanwhile := found.upgrade.DeepCopy()
				meanwhile.Status.History = []history.Record{clitest.CommencedRecord()}
				if err := cluster.Client.Update(ctx, meanwhile); err != nil {
					return err
				}
				return (&actionOptions{Session: p, ChangeOptions: session.ChangeOptions{Yes: true}, verb: name, do: do}).act(ctx, cluster.Cluster, found)
			})
			if !apierrors.IsConflict(err) {
				t.Errorf("got %v, want a conflict", err)
			}
			if got := changeOf(t, cluster, targetOf(clitest.AnUpgrade())); got != "" {
				t.Errorf("it changed %q", got)
			}
		})
	}
}

// TestFindUpgrade_without_an_argument tests the choice of each command.
func TestFindUpgrade_without_an_argument(t *testing.T) {
	t.Parallel()
	failed, next := clitest.AJob("failed", clitest.FailedRecord()), clitest.AJob("next", clitest.PendingRecord())
	done, again := clitest.AJob("done", clitest.UpgradedRecord()), retried(targetOf(clitest.AJob("again"))).object
	for name, tc := range map[string]struct {
		choice  choice
		objects []client.Object
		want    string // a target, or several targets named in the error
	}{
		"retry: the failed one of two":         {toRetry(), []client.Object{failed, next}, "upgradejob/failed"},
		"retry: the failed one of two ended":   {toRetry(), []client.Object{failed, done}, "upgradejob/failed"},
		"retry: the failed upgrade":            {toRetry(), []client.Object{clitest.AnUpgrade(clitest.FailedRecord()), next}, "upgrade/cluster"},
		"retry: not one that is retried":       {toRetry(), []client.Object{failed, again}, "upgradejob/failed"},
		"retry: two have failed":               {toRetry(), []client.Object{failed, clitest.AnUpgrade(clitest.FailedRecord())}, "upgrade/cluster, upgradejob/failed"},
		"retry: the only one":                  {toRetry(), []client.Object{next}, "upgradejob/next"},
		"watch: the open one":                  {isOpen(kindUpgrade, kindJob), []client.Object{failed, next}, "upgradejob/next"},
		"watch: the one that is retried":       {isOpen(kindUpgrade, kindJob), []client.Object{failed, again}, "upgradejob/again"},
		"watch: an upgrade that has ended":     {isOpen(kindUpgrade, kindJob), []client.Object{clitest.AnUpgrade(clitest.UpgradedRecord()), next}, "upgradejob/next"},
		"watch: all have ended":                {isOpen(kindUpgrade, kindJob), []client.Object{failed, done}, "upgradejob/done, upgradejob/failed"},
		"run-now: an upgrade that has failed":  {isNotUpgraded(kindUpgrade, kindSchedule), []client.Object{clitest.AnUpgrade(clitest.FailedRecord()), clitest.ASchedule()}, "uc/tuesdays, upgrade/cluster"},
		"run-now: an upgrade that is complete": {isNotUpgraded(kindUpgrade, kindSchedule), []client.Object{clitest.AnUpgrade(clitest.UpgradedRecord()), clitest.ASchedule()}, "uc/tuesdays"},
		"run-now: an upgrade in progress":      {isNotUpgraded(kindUpgrade, kindSchedule), []client.Object{clitest.AnUpgrade(clitest.CommencedRecord()), clitest.ASchedule()}, "uc/tuesdays, upgrade/cluster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clitest.NewFakeCluster(t, tc.objects...)
			got := ""
			_, err := withProgram(t, func(ctx context.Context, p *session.Session) error {
				found, err := findUpgrade(ctx, p, cluster.Cluster, nil, tc.choice)
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
		"by its name":              {[]client.Object{clitest.AnUpgrade(), clitest.ASchedule()}, []string{"uc/tuesdays"}, "uc/tuesdays", ""},
		"by its full name":         {[]client.Object{clitest.AnUpgrade(), clitest.ASchedule()}, []string{"UpgradeConfig.managedupgrade.appuio.io/tuesdays"}, "uc/tuesdays", ""},
		"the only one":             {[]client.Object{clitest.AnUpgrade()}, nil, "upgrade/cluster", ""},
		"the only one in progress": {[]client.Object{clitest.AJob("early", clitest.FailedRecord()), clitest.AJob("late")}, nil, "upgradejob/late", ""},
		"one of several":           {[]client.Object{clitest.AnUpgrade(), clitest.ASchedule()}, nil, "", "choose one: -n managed-upgrade-operator uc/tuesdays, -n managed-upgrade-operator upgrade/cluster"},
		"there is none":            {nil, nil, "", "no upgrade was found"},
		"one that does not exist":  {nil, []string{"upgradejob/night"}, "", "upgradejob/night in namespace managed-upgrade-operator"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clitest.NewFakeCluster(t, tc.objects...)
			_, err := withProgram(t, func(ctx context.Context, p *session.Session) error {
				found, err := findUpgrade(ctx, p, cluster.Cluster, tc.args, all)
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
		if got := run(t, "history", arg); got.Code != session.ExitUsage || !strings.Contains(got.ErrOut, "upgrade/NAME, upgradejob/NAME, or uc/NAME") {
			t.Errorf("history %s: exit code %d: %s", arg, got.Code, got.ErrOut)
		}
	}
	if got := run(t, "cancel", "upgrade/cluster", "--replay", "."); got.Code != session.ExitUsage || !strings.Contains(got.ErrOut, "--replay") {
		t.Errorf("cancel in a dump: exit code %d: %s", got.Code, got.ErrOut)
	}
}

func TestWatchUpgrade(t *testing.T) {
	t.Parallel()
	skipped := clitest.FailedRecord()
	skipped.Phase = history.PhaseSkipped
	commenced, job := clitest.AnUpgrade(clitest.CommencedRecord()), clitest.AJob("night", clitest.CommencedRecord())
	closing := clitest.AJob("night", clitest.FailedRecord()) // its end has not been published yet
	closing.Finalizers = []string{maintenancev1beta1.Finalizer}
	for name, tc := range map[string]struct {
		object client.Object
		first  history.Phase
		end    *history.Record // nil if the object is deleted
		code   session.ExitCode
	}{
		"upgraded":                    {commenced, history.PhaseUpgrading, new(clitest.UpgradedRecord()), session.ExitDone},
		"failed":                      {commenced, history.PhaseUpgrading, new(clitest.FailedRecord()), session.ExitActionRequired},
		"skipped":                     {commenced, history.PhaseUpgrading, &skipped, session.ExitActionRequired},
		"deleted":                     {commenced, history.PhaseUpgrading, nil, session.ExitActionRequired},
		"job upgraded":                {job, history.PhaseUpgrading, new(clitest.UpgradedRecord()), session.ExitDone},
		"job failed, with finalizer":  {closing, history.PhaseFailed, new(clitest.FailedRecord()), session.ExitActionRequired},
		"retried, not reconciled":     {retried(targetOf(clitest.AnUpgrade())).object, history.PhaseNew, new(clitest.UpgradedRecord()), session.ExitDone},
		"job retried, not reconciled": {retried(targetOf(clitest.AJob("night"))).object, history.PhaseNew, new(clitest.UpgradedRecord()), session.ExitDone},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clitest.NewFakeCluster(t, tc.object)
			streams, _, out, _ := genericiooptions.NewTestIOStreams()
			clock := clocktesting.NewFakeClock(clitest.Now)
			p := session.New(session.Environment{Program: "/usr/bin/oc-update", Clock: clock, Streams: streams, Terminal: &screen.Terminal{}})
			*p.Config.Namespace = clitest.Namespace
			target, err := findUpgrade(t.Context(), p, cluster.Cluster, []string{targetOf(tc.object).String()}, choice{})
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- watchUpgrade(t.Context(), p, cluster.Cluster, target) }()
			for !clock.HasWaiters() {
				if len(ended) > 0 {
					t.Fatalf("it ended at once, %v: %s", <-ended, out)
				}
				runtime.Gosched()
			}
			if err := endUpgrade(t.Context(), cluster.Client, target, tc.end); err != nil {
				t.Fatal(err)
			}
			clock.Step(session.PollInterval)
			if got := session.CodeOf(<-ended); got != tc.code {
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

// endUpgrade replaces the history of an upgrade with the record of an ended attempt and answers the request
// for it. Without a record, it deletes the object.
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
		if token := next.job.Annotations[maintenancev1beta1.RetryAnnotation]; token != "" {
			next.job.Status.Retry = &maintenancev1beta1.RetryStatus{Token: token}
		}
	case kindSchedule:
	}
	return c.Update(ctx, next.object)
}
