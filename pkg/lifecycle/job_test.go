// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lifecycle"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	namespace = "upgrades"
	version   = "4.4.6"
	window    = 2 * time.Hour
)

var startAfter = simulation.Start.Truncate(time.Minute).Add(6 * time.Hour)

// fakeCluster is upgraded by the runbooks of these tests, one upgrade at a time.
type fakeCluster struct {
	t           testing.TB
	now         func() time.Time
	duration    time.Duration
	current     string // the upgrade that the cluster is busy with
	began       time.Time
	upgrades    []string // each upgrade that has commenced, once
	withdrawn   int
	hooks       map[string]int
	outcomes    map[string][]engine.Outcome // of attempts that did not succeed
	installed   bool                        // the version, by another client
	refuse      bool                        // the version is not offered
	pausedUntil time.Time                   // pools
	conflicts   int                         // calls that have no effect
	inConflict  bool                        // whether the next one has none
}

// commence begins an upgrade unless it has begun.
func (c *fakeCluster) commence(name string) {
	if c.current == name {
		return
	}
	if c.current != "" {
		c.t.Errorf("the upgrade of %s commences while that of %s is in progress", name, c.current)
	}
	c.current, c.began = name, c.now()
	c.upgrades = append(c.upgrades, name)
}

// book returns the runbook of an upgrade.
func (c *fakeCluster) book(name string) engine.Runbook {
	// All upgrades have the same target version, so the cluster does not show whose upgrade it is.
	commenced := func() bool { return c.current != "" }
	return engine.Runbook{
		MissedAs: "Expired", SkipReasons: []string{"Expired", "UpgradeWithdrawn", "AlreadyAtVersion"}, PauseReasons: []string{"DelaySet"},
		Steps: []engine.Step{
			{Name: "StartedNotificationSent", Milestone: engine.MilestoneStarted, Do: done},
			{Name: "Offered", Do: func(context.Context, engine.Run) (engine.Result, error) {
				if c.refuse {
					return engine.Fail("UpgradeWithdrawn", "it is not offered"), nil
				}
				return engine.Done("offered"), nil
			}},
			{
				Name: "Commenced", Commit: &engine.Commit{
					Observe: func(context.Context, engine.Run) (engine.Observed, engine.Result, error) {
						if !commenced() {
							return engine.ObservedNone, engine.Result{}, nil
						}
						return engine.ObservedBegun, engine.Done("commenced"), nil
					},
					Withdraw: func(context.Context, engine.Run) (engine.Result, error) { return engine.Done("undone"), nil },
				},
				Do: func(ctx context.Context, run engine.Run) (engine.Result, error) {
					if c.inConflict {
						c.conflicts++
						return engine.WaitFor(time.Second, "Retrying", "conflict").WithoutEffect(), nil
					}
					if c.now().Sub(run.Since) < time.Minute {
						return engine.WaitFor(time.Second, "Requested", "requested"), nil
					}
					if err := run.Renew(ctx, ""); err != nil {
						return engine.Result{}, err
					}
					c.commence(name)
					return engine.Done("commenced"), nil
				},
			},
			{Name: "Upgraded", Do: func(context.Context, engine.Run) (engine.Result, error) {
				if end := c.began.Add(max(c.duration, 10*time.Minute)); c.now().Before(end) {
					return engine.WaitFor(time.Minute, "Upgrading", "upgrading"), nil
				}
				if c.now().Before(c.pausedUntil) {
					return engine.WaitUntil(c.pausedUntil, "DelaySet", "later"), nil
				}
				return engine.Done("upgraded"), nil
			}},
		},
		Cleanup: []engine.Step{
			{Name: "Withdrawn", Do: func(_ context.Context, run engine.Run) (engine.Result, error) {
				if run.Requested {
					c.withdrawn++
				}
				return engine.Done("withdrawn"), nil
			}},
			{Name: "FailureNotificationSent", Milestone: engine.MilestoneFailed, Do: func(_ context.Context, run engine.Run) (engine.Result, error) {
				c.outcomes[name] = append(c.outcomes[name], run.Outcome)
				return engine.Done("sent"), nil
			}},
		},
		Finally: []engine.Step{{Name: "Ended", Do: func(context.Context, engine.Run) (engine.Result, error) {
			if c.current == name {
				c.current = ""
			}
			return engine.Done("ended"), nil
		}}},
	}
}

func done(context.Context, engine.Run) (engine.Result, error) { return engine.Done("done"), nil }

// jobKind describes UpgradeJobs whose runbook acquires the lock after its hooks.
type jobKind struct{ c *fakeCluster }

func (jobKind) GroupVersionKind() schema.GroupVersionKind {
	return maintenancev1beta1.GroupVersion.WithKind("UpgradeJob")
}
func (jobKind) Finalizer() string                   { return "example.com/job" }
func (jobKind) New() *maintenancev1beta1.UpgradeJob { return &maintenancev1beta1.UpgradeJob{} }
func (jobKind) HistoryKey() lifecycle.HistoryKey    { return lifecycle.ByAttempt }
func (jobKind) LockKey(*maintenancev1beta1.UpgradeJob) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: lock.Name}
}

func (jobKind) List(ctx context.Context, r client.Reader) ([]*maintenancev1beta1.UpgradeJob, error) {
	var list maintenancev1beta1.UpgradeJobList
	err := r.List(ctx, &list)
	var all []*maintenancev1beta1.UpgradeJob
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, err
}

func (jobKind) Status(j *maintenancev1beta1.UpgradeJob) lifecycle.Status {
	return lifecycle.Status{
		Conditions: &j.Status.Conditions, ObservedGeneration: &j.Status.ObservedGeneration, NextTime: &j.Status.NextTime, History: &j.Status.History,
	}
}

func (jobKind) Request(j *maintenancev1beta1.UpgradeJob) lifecycle.AttemptRequest {
	at := startAfter
	if j.Status.Retry != nil {
		at, _ = time.Parse(time.RFC3339, j.Status.Retry.Token)
	}
	return lifecycle.AttemptRequest{Version: version, At: at}
}

func (k jobKind) Plan(j *maintenancev1beta1.UpgradeJob, _ history.Record, _ string, acquire engine.UpgradeStep) lifecycle.AttemptPlan {
	book := k.c.book(j.Name)
	book.Steps = append([]engine.Step{
		{Name: "HooksDone", Do: func(context.Context, engine.Run) (engine.Result, error) {
			k.c.hooks[j.Name]++
			return engine.Done("done"), nil
		}},
		{Name: "LockAcquired", Do: acquire},
	}, book.Steps...)
	book.CommitStep().Commit.After = "LockAcquired"
	book.Admission = []engine.Gate{{Name: "NotThereYet", Check: func(context.Context, engine.Run) (engine.Result, error) {
		if k.c.installed {
			return engine.Fail(engine.ReasonAlreadyAtVersion, "there is nothing to do"), nil
		}
		return engine.Done("not installed"), nil
	}}}
	return lifecycle.AttemptPlan{Known: true, Type: "job", Book: book, Window: window, CancelTimeout: 10 * time.Minute, Observe: observe}
}
func (jobKind) Hold(context.Context) (string, error)         { return "", nil }
func (jobKind) CacheIsCurrent(context.Context) (bool, error) { return true, nil }

func observe(context.Context, history.Record) (lifecycle.Observation, error) {
	return lifecycle.Observation{Version: "4.4.5"}, nil
}

// rivalKind describes UpgradeConfigs that acquire the lock before their first step.
type rivalKind struct{ c *fakeCluster }

func (rivalKind) GroupVersionKind() schema.GroupVersionKind {
	return upgradev1alpha1.GroupVersion.WithKind("UpgradeConfig")
}
func (rivalKind) Finalizer() string                   { return "example.com/config" }
func (rivalKind) New() *upgradev1alpha1.UpgradeConfig { return &upgradev1alpha1.UpgradeConfig{} }
func (rivalKind) HistoryKey() lifecycle.HistoryKey    { return lifecycle.ByVersion }
func (rivalKind) LockKey(*upgradev1alpha1.UpgradeConfig) client.ObjectKey {
	return client.ObjectKey{Namespace: namespace, Name: lock.Name}
}

func (rivalKind) List(ctx context.Context, r client.Reader) ([]*upgradev1alpha1.UpgradeConfig, error) {
	var list upgradev1alpha1.UpgradeConfigList
	err := r.List(ctx, &list)
	var all []*upgradev1alpha1.UpgradeConfig
	for i := range list.Items {
		all = append(all, &list.Items[i])
	}
	return all, err
}

func (rivalKind) Status(c *upgradev1alpha1.UpgradeConfig) lifecycle.Status {
	return lifecycle.Status{
		Conditions: &c.Status.Conditions, ObservedGeneration: &c.Status.ObservedGeneration, NextTime: &c.Status.NextTime, History: &c.Status.History,
	}
}

func (rivalKind) Request(c *upgradev1alpha1.UpgradeConfig) lifecycle.AttemptRequest {
	at, _ := time.Parse(time.RFC3339, c.Spec.UpgradeAt)
	return lifecycle.AttemptRequest{Version: version, At: at, RunbookType: "OSD"}
}

func (k rivalKind) Plan(c *upgradev1alpha1.UpgradeConfig, _ history.Record, _ string, _ engine.UpgradeStep) lifecycle.AttemptPlan {
	return lifecycle.AttemptPlan{Known: true, Type: "OSD", Book: k.c.book(c.Name), Window: window, CancelTimeout: 10 * time.Minute, Observe: observe}
}
func (rivalKind) Hold(context.Context) (string, error)         { return "", nil }
func (rivalKind) CacheIsCurrent(context.Context) (bool, error) { return true, nil }

// jobWorld is a cluster with an operator that runs both kinds.
type jobWorld struct {
	*simulation.Harness
	cluster *fakeCluster
	forgot  webhook
}

// webhook records the UIDs of objects for which the notifier forgets what it has published.
type webhook map[string]bool

func (webhook) Publish(context.Context, corev1.ObjectReference, engine.Notification) error {
	return nil
}

func (webhook) PublishSteps(context.Context, corev1.ObjectReference, history.Record) error {
	return nil
}
func (webhook) PendingError(string) error { return nil }
func (w webhook) Reset(uid string)        { w[uid] = true }

func newJobWorld(t *testing.T) *jobWorld {
	t.Helper()
	var definitions []*simulation.Definition
	for _, folder := range []string{"../../deploy/crds", "../../deploy/crds/scheduled-maintenance"} {
		definitions = append(definitions, simulation.DefinitionsIn(t, folder)...)
	}
	w := &jobWorld{Harness: simulation.NewHarness(t, simulation.WorldOptions{Definitions: definitions}), forgot: webhook{}}
	w.cluster = &fakeCluster{t: t, now: w.Now, hooks: map[string]int{}, outcomes: map[string][]engine.Outcome{}}
	w.Run(w.controllers)
	return w
}

func (w *jobWorld) controllers(env simulation.Env) ([]manager.Controller, error) {
	observed, err := metrics.NewUpgrades(w.Registry)
	if err != nil {
		return nil, err
	}
	holders := &lock.Holders{Live: env.Live, Mapper: env.Client.RESTMapper(), Clock: env.Clock}
	notifier := notify.MultiPublisher{Events: &notify.Events{Client: env.Client, Clock: env.Clock, OnFailure: observed.IncEventFailures}, Webhook: w.forgot}
	jobs := &lifecycle.Reconciler[*maintenancev1beta1.UpgradeJob]{Kind: jobKind{w.cluster}, Clock: env.Clock, Holders: holders, Notifier: notifier, Metrics: observed}
	configs := &lifecycle.Reconciler[*upgradev1alpha1.UpgradeConfig]{Kind: rivalKind{w.cluster}, Clock: env.Clock, Holders: holders, Notifier: notifier, Metrics: observed}
	return []manager.Controller{
		jobs.Controller(lifecycle.Declaration{Name: "jobs", Objects: manager.Kind{Object: &maintenancev1beta1.UpgradeJob{}}, LockNamespaces: []string{namespace}}),
		configs.Controller(lifecycle.Declaration{Name: "configs", Objects: manager.Kind{Object: &upgradev1alpha1.UpgradeConfig{}}, LockNamespaces: []string{namespace}}),
	}, nil
}

func job(name string) *maintenancev1beta1.UpgradeJob {
	return &maintenancev1beta1.UpgradeJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: maintenancev1beta1.UpgradeJobSpec{
			StartAfter:     maintenancev1beta1.Timestamp(startAfter.Format(time.RFC3339)),
			StartBefore:    maintenancev1beta1.Timestamp(startAfter.Add(window).Format(time.RFC3339)),
			DesiredVersion: maintenancev1beta1.DesiredVersion{Version: version},
		},
	}
}

func rivalConfig() *upgradev1alpha1.UpgradeConfig {
	return &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: "OSD", UpgradeAt: startAfter.Format(time.RFC3339), PDBForceDrainTimeout: new(int32(120)),
			Desired: upgradev1alpha1.Update{Version: version, Channel: "fast-4.4"},
		},
	}
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: client.ObjectKey{Namespace: namespace, Name: name}}
}

func (w *jobWorld) job(name string) *maintenancev1beta1.UpgradeJob {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: name}, &maintenancev1beta1.UpgradeJob{})
}

func (w *jobWorld) rival() *upgradev1alpha1.UpgradeConfig {
	w.TB.Helper()
	return simulation.Get(w.Harness, client.ObjectKey{Namespace: namespace, Name: "c"}, &upgradev1alpha1.UpgradeConfig{})
}

// record returns the first element of the history of a job.
func (w *jobWorld) record(name string) history.Record {
	w.TB.Helper()
	all := w.job(name).Status.History
	if len(all) == 0 {
		return history.Record{}
	}
	return all[0]
}

// edit changes the status of a job as a client with the right to write it.
func (w *jobWorld) edit(name string, change func(*maintenancev1beta1.UpgradeJob)) {
	w.TB.Helper()
	j := w.job(name)
	change(j)
	w.UpdateStatus(j)
}

// isReleased reports whether a job has neither the finalizer nor the lock.
func (w *jobWorld) isReleased(name string) bool {
	return len(w.job(name).Finalizers) == 0 && w.holder().Name != name
}
