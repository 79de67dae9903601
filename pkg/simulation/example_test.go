// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation_test

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/capacity"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/externaldeps"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/silence"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// freeze is the ConfigMap that declares a change freeze.
var freeze = client.ObjectKey{Namespace: "shop", Name: "change-freeze"}

// shop upgrades like OSD, except during a change freeze.
type shop struct{ upgraders.OSD }

// Runbook returns the runbook of OSD with an additional step.
func (s shop) Runbook(attempt upgraders.Attempt) engine.Runbook {
	return s.OSD.Runbook(attempt).InsertAfter("PreHealthCheck", engine.Step{
		Name: "NoChangeFreeze", Doc: "Waits until no change freeze is declared.",
		Do: func(ctx context.Context, _ engine.Run) (engine.Result, error) {
			err := s.Live.Get(ctx, freeze, &corev1.ConfigMap{})
			if apierrors.IsNotFound(err) {
				return engine.Done("no change freeze is declared"), nil
			}
			return engine.WaitFor(5*time.Minute, "ChangeFreeze", "waiting for the end of the change freeze"), err
		},
	})
}

// operator returns the operator with the shop's upgrader as a simulated program.
func operator() *simulation.Program {
	return &simulation.Program{Name: "operator", Controllers: func(env simulation.Env) ([]manager.Controller, error) {
		upgrades, err := metrics.NewUpgrades(prometheus.NewRegistry())
		if err != nil {
			return nil, err
		}
		external, err := externaldeps.New(externaldeps.Options{Timeout: time.Second})
		if err != nil {
			return nil, err
		}
		events := &notify.Events{Client: env.Client, Clock: env.Clock, OnFailure: upgrades.IncEventFailures}
		osd := upgraders.OSD{Deps: upgraders.Deps{
			Client: env.Client, Live: env.Live, Notifier: events, Config: config.Default(),
			Sources: &checks.Sources{AlertsDisabled: true}, Dependencies: external, Silencer: &silence.Silencer{},
			ExtraNodes: &capacity.ExtraNodes{Client: env.Client, Live: env.Live},
		}}
		reconciler := &upgradeconfig.Reconciler{
			Client: env.Client, Live: env.Live, Clock: env.Clock, Namespace: "managed-upgrade-operator",
			Config: func() upgradeconfig.ConfigSnapshot {
				return upgradeconfig.ConfigSnapshot{Upgraders: map[string]upgraders.ClusterUpgrader{"SHOP": shop{osd}, "APPROVED": approved{osd}}, Config: config.Default()}
			},
			Notifier: notify.MultiPublisher{Events: events}, Metrics: upgrades,
		}
		return []manager.Controller{reconciler.Controller()}, nil
	}}
}

// Example runs an upgrade with a custom runbook on a scripted cluster. A change freeze ends at
// 12:30, and the step checks every five minutes. The operator crashes after its tenth write and
// restarts a minute later.
func Example() {
	world := simulation.New(simulation.WorldOptions{})
	cluster, err := openshift.NewScript(world, "4.4.5", "fast-4.4", "4.4.6")
	if err != nil {
		fmt.Println(err)
		return
	}
	var last string
	world.Observe(func(change simulation.Change) { // prints the step column of oc get
		cfg, ok := change.New.(*upgradev1alpha1.UpgradeConfig)
		if !ok {
			return
		}
		if c := apimeta.FindStatusCondition(cfg.Status.Conditions, upgradev1alpha1.ConditionProgressing); c != nil && c.Reason != last {
			last = c.Reason
			fmt.Println(change.Time.Format("15:04"), c.Reason)
		}
	})

	program := operator()
	program.Plan = func(r simulation.Request) simulation.Fault {
		if r.Write == 10 {
			fmt.Println(r.Time.Format("15:04"), "the operator crashes")
			return simulation.Fault{Outcome: simulation.CrashAfter}
		}
		return simulation.Fault{}
	}
	start := func() {
		if _, err := world.Start(program); err != nil {
			world.Fail(err)
		}
	}
	program.OnCrash = func() { world.After(time.Minute, start) }
	start()

	administrator := world.Client("administrator")
	declared := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: freeze.Namespace, Name: freeze.Name}}
	upgrade := &upgradev1alpha1.UpgradeConfig{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "upgrade"},
		Spec: upgradev1alpha1.UpgradeConfigSpec{
			Type: "SHOP", UpgradeAt: "2026-03-01T12:10:00Z", PDBForceDrainTimeout: new(int32(60)),
			Desired: upgradev1alpha1.Update{Version: "4.4.6", Channel: cluster.Channel},
		},
	}
	for _, object := range []client.Object{declared, upgrade} {
		if err := administrator.Create(context.Background(), object); err != nil {
			fmt.Println(err)
			return
		}
	}
	world.After(30*time.Minute, func() {
		if err := administrator.Delete(context.Background(), declared); err != nil {
			world.Fail(err)
		}
	})
	if err := world.RunFor(3 * time.Hour); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 12:00 Scheduled
	// 12:10 StartedNotificationSent
	// 12:10 VersionPinned
	// 12:10 the operator crashes
	// 12:11 ClusterUpgradeable
	// 12:11 PreChecksAccepted
	// 12:11 PreHealthCheck
	// 12:11 NoChangeFreeze
	// 12:31 ExternalDependenciesAvailable
	// 12:31 ScaleUpExtraNodes
	// 12:31 ControlPlaneMaintWindow
	// 12:31 CommenceUpgrade
	// 12:31 DelayedNotificationSent
	// 12:31 ControlPlaneUpgraded
	// 12:42 RemoveControlPlaneMaintWindow
	// 12:42 WorkersMaintWindow
	// 12:42 AllWorkerNodesUpgraded
	// 12:49 RemoveExtraScaledNodes
	// 12:49 RemoveMaintWindow
	// 12:49 PostClusterHealthCheck
	// 12:49 PostUpgradeProcedures
	// 12:49 CompletedNotificationSent
	// 12:49 Upgraded
}
