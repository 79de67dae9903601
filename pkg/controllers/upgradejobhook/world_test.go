// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !e2e

package upgradejobhook_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejobhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/hooks"
)

const namespace = "upgrades"

// world is a simulated API server with the CRDs of this project, nodes, the controllers of Jobs,
// and the operator: the controllers under test, and one that runs UpgradeJobs by a runbook of
// hooks.
type world struct {
	*simulation.Harness

	config  config.Hooks
	pools   []string             // delayed by the upgrade
	hold    time.Duration        // the time until the upgrade commences
	jobPlan simulation.FaultPlan // of the kube-controller-manager
	created map[string]int       // created Jobs, by item
	names   []string             // of all Jobs
	events  []string             // written by the operator
	changed chan event.GenericEvent
}

var genericEvent = event.GenericEvent{Object: &maintenancev1beta1.UpgradeJobHook{}}

func newWorld(t *testing.T, objects ...client.Object) *world {
	t.Helper()
	definitions, err := openshift.Definitions()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		Harness: simulation.NewHarness(t, simulation.WorldOptions{Definitions: definitions}), created: map[string]int{},
		config: config.Default().Hooks, changed: make(chan event.GenericEvent, 1),
	}
	t.Cleanup(w.checkReleased)
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-0"}}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	w.Must(w.Add(node))
	w.Must(openshift.StartPods(w.World, func(r simulation.Request) simulation.Fault {
		if w.jobPlan == nil {
			return simulation.Fault{}
		}
		return w.jobPlan(r)
	}))
	w.Observe(w.observe)
	w.Create(objects...)
	w.Program.Controllers, w.Program.OnCrash = w.controllers, nil
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	w.Registry = prometheus.NewPedanticRegistry() // a test may run two operators
	counted, err := metrics.NewHooks(w.Registry)
	if err != nil {
		return nil, err
	}
	events := &notify.Events{Client: env.Client, Clock: env.Clock}
	runner := &hooks.Runner{
		Client: env.Client, Live: env.Live, Config: func() config.Hooks { return w.config }, Publisher: events, Metrics: counted,
	}
	reconciler := &upgradejobhook.Reconciler{
		Client: env.Client, Live: env.Live, Clock: env.Clock, WatchNamespaces: []string{namespace}, Runner: runner,
		ConfigChanged: w.changed, Publisher: events, Metrics: counted,
	}
	return append(reconciler.Controllers(), w.upgrades(env, runner), w.configs(env, runner)), nil
}
