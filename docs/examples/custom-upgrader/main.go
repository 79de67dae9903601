// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The custom upgrader upgrades UpgradeConfigs of type SHOP like OSD, except during a change freeze.
// NIGHTLY is in nightly.go.
package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// A change of the ConfigMap wakes waiting upgrades. role.yaml grants the permissions.
var watch = manager.Kind{Object: &corev1.ConfigMap{}, Namespaces: []string{"shop"}, Name: "change-freeze"}

func main() { // SIGTERM ends the context: reconciles are completed, and the Lease is released
	cobra.CheckErr(operator.Command(manager.Version(), register, watch).ExecuteContext(ctrl.SetupSignalHandler()))
}

type shop struct {
	upgraders.OSD `json:"-"`
	Quiet         metav1.Duration `json:"quiet"` // custom.quiet: how long to wait after a freeze
}

func register(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
	s := shop{OSD: upgraders.OSD{Deps: deps}}
	err := deps.Config.Custom.Decode(&s)
	return map[string]upgraders.ClusterUpgrader{"OSD": s.OSD, "SHOP": s, "NIGHTLY": nightly{deps}}, err
}

func (s shop) Runbook(attempt upgraders.Attempt) engine.Runbook {
	step := engine.Step{Name: "NoChangeFreeze", Doc: "Waits until no change freeze is declared.", Do: s.thawed(s.Client), PreCheck: s.thawed(s.Client)}
	return s.OSD.Runbook(attempt).InsertAfter("PreHealthCheck", step).WithCommitGates(engine.Gate{Name: "ChangeFreeze", Check: s.thawed(s.Live)})
}

func (s shop) thawed(reader client.Reader) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		var freeze corev1.ConfigMap
		if err := reader.Get(ctx, client.ObjectKey{Namespace: "shop", Name: watch.Name}, &freeze); err != nil {
			return engine.Done("no change freeze is declared"), client.IgnoreNotFound(err)
		}
		until, err := time.Parse(time.RFC3339, freeze.Data["until"])
		if left := until.Add(s.Quiet.Duration).Sub(run.Now); err == nil && left > 0 {
			return engine.WaitFor(left, "ChangeFreeze", "changes are frozen until %s", run.Now.Add(left).Format(time.RFC3339)), nil
		}
		return engine.Done("the change freeze is over"), err
	}
}
