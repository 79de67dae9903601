// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package upgradeschedule_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/suspensionwindow"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeschedule"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim"
)

// testEnv is a cluster with controllers that have the permissions of the operator.
type testEnv struct {
	t    *testing.T
	user client.Client
}

func start(t *testing.T) *testEnv {
	t.Helper()
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cluster, err := devcluster.Start(ctx, devcluster.Options{Dir: t.TempDir(), Spec: openshiftsim.ClusterSpec{Masters: 1, Workers: 1}})
	must(t, err)
	t.Cleanup(func() { must(t, cluster.Stop()) })
	must(t, cluster.Deploy(ctx, "../../.."))
	scheme, err := devcluster.Scheme()
	must(t, errors.Join(err, maintenancev1beta1.AddToScheme(scheme)))
	e := &testEnv{t: t}
	e.user, err = client.New(cluster.RESTConfig(), client.Options{Scheme: scheme})
	must(t, err)

	access, err := cluster.ServiceAccountConfig(ctx, devcluster.OperatorNamespace, devcluster.OperatorServiceAccount)
	must(t, err)
	registered, err := metrics.NewSchedules(prometheus.NewPedanticRegistry(), upgradeschedule.Results()...)
	must(t, err)
	namespaces := []string{devcluster.OperatorNamespace}
	schedules := &upgradeschedule.Reconciler{Clock: clock.RealClock{}, WatchNamespaces: namespaces, Metrics: registered}
	windows := &suspensionwindow.Reconciler{Clock: clock.RealClock{}, WatchNamespaces: namespaces}
	controllers := []manager.Controller{schedules.Controller(), windows.Controller()}
	kinds, err := manager.Kinds(controllers...)
	must(t, err)
	mgr, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: scheme, Logger: logr.Discard(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: ctrlconfig.Controller{SkipNameValidation: new(true)}, Cache: manager.CacheOptions(kinds),
	})
	must(t, err)
	events := &notify.Events{Client: mgr.GetClient(), Clock: clock.RealClock{}}
	schedules.Events, windows.Events = events, events
	for _, c := range controllers {
		must(t, manager.Add(mgr, c))
	}
	running, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(running) }()
	t.Cleanup(func() {
		stop()
		must(t, <-ended)
	})
	return e
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until waits until the UpgradeConfig and the UpgradeJobs fulfill a condition.
func (e *testEnv) until(what string, holds func(*maintenancev1beta1.UpgradeConfig, []maintenancev1beta1.UpgradeJob) bool) (*maintenancev1beta1.UpgradeConfig, []maintenancev1beta1.UpgradeJob) {
	e.t.Helper()
	cfg := &maintenancev1beta1.UpgradeConfig{}
	var jobs maintenancev1beta1.UpgradeJobList
	err := wait.PollUntilContextTimeout(e.t.Context(), 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		if err := e.user.Get(ctx, client.ObjectKey{Namespace: devcluster.OperatorNamespace, Name: "updates"}, cfg); err != nil {
			return false, err
		}
		if err := e.user.List(ctx, &jobs); err != nil {
			return false, err
		}
		return holds(cfg, jobs.Items), nil
	})
	if err != nil {
		e.t.Fatalf("%s: %v; %+v, %d UpgradeJobs", what, err, cfg.Status, len(jobs.Items))
	}
	return cfg, jobs.Items
}

// With the permissions and the admission policies of the operator, an UpgradeJob is created for an
// available update of the dev cluster, a request is answered, and ended UpgradeJobs are deleted.
func TestSlotOnARealAPIServer(t *testing.T) {
	t.Parallel()
	e := start(t)
	ctx := t.Context()
	must(t, e.user.Create(ctx, &maintenancev1beta1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: "updates"},
		Spec: maintenancev1beta1.UpgradeConfigSpec{
			Schedule:                   maintenancev1beta1.UpgradeConfigSchedule{Rhythm: maintenancev1beta1.RhythmUpdateAvailable},
			SuccessfulJobsHistoryLimit: new(int32(1)),
		},
	}))
	cfg, jobs := e.until("an UpgradeJob", func(cfg *maintenancev1beta1.UpgradeConfig, jobs []maintenancev1beta1.UpgradeJob) bool {
		return len(jobs) == 1 && cfg.Status.LastSlot != nil
	})
	first := jobs[0]
	if cfg.Status.LastSlot.Job != first.Name || first.Spec.DesiredVersion.Version != cfg.Status.LastScheduledVersion || first.Spec.DesiredVersion.Image == "" || cfg.Status.LastSlot.Result != upgradeschedule.ResultJobCreated {
		t.Errorf("the slot is %+v, the UpgradeJob %+v", cfg.Status.LastSlot, first.Spec)
	}

	before := cfg.DeepCopy()
	cfg.Annotations = map[string]string{maintenancev1beta1.RunNowAnnotation: "today"}
	must(t, e.user.Patch(ctx, cfg, client.MergeFrom(before)))
	_, jobs = e.until("an answer", func(cfg *maintenancev1beta1.UpgradeConfig, jobs []maintenancev1beta1.UpgradeJob) bool {
		return len(jobs) == 2 && cfg.Status.RunNow != nil && cfg.Status.RunNow.Token == "today"
	})

	window := &maintenancev1beta1.UpgradeSuspensionWindow{
		ObjectMeta: metav1.ObjectMeta{Namespace: devcluster.OperatorNamespace, Name: "freeze"},
		Spec: maintenancev1beta1.UpgradeSuspensionWindowSpec{
			Start: "2020-01-01T00:00:00Z", End: "2100-01-01T00:00:00Z", ConfigSelector: &maintenancev1beta1.LabelSelector{}, JobSelector: &maintenancev1beta1.LabelSelector{},
		},
	}
	must(t, e.user.Create(ctx, window))
	matches := func(jobs ...string) bool {
		err := e.user.Get(ctx, client.ObjectKeyFromObject(window), window)
		slices.Sort(jobs)
		return err == nil && slices.Equal(window.Status.MatchingConfigs, []string{"updates"}) && slices.Equal(window.Status.MatchingJobs, jobs)
	}
	e.until("the matches of a window", func(*maintenancev1beta1.UpgradeConfig, []maintenancev1beta1.UpgradeJob) bool {
		return matches(jobs[0].Name, jobs[1].Name)
	})

	now := metav1.Now()
	for i := range jobs {
		jobs[i].Status.History = []history.Record{{Attempt: 1, Phase: history.PhaseUpgraded, UpgradeAt: &now, StartTime: &now, CompleteTime: &now}}
		must(t, e.user.Status().Update(ctx, &jobs[i]))
	}
	e.until("the history limit, and no match of an UpgradeJob that has ended", func(_ *maintenancev1beta1.UpgradeConfig, jobs []maintenancev1beta1.UpgradeJob) bool {
		return len(jobs) == 1 && matches()
	})
	var events corev1.EventList
	must(t, e.user.List(ctx, &events, client.InNamespace(devcluster.OperatorNamespace)))
	created := 0
	for i := range events.Items {
		if events.Items[i].Reason == "JobCreated" && events.Items[i].InvolvedObject.Name == "updates" {
			created++
		}
	}
	if created != 2 {
		t.Errorf("%d Events about UpgradeJobs", created)
	}
}
