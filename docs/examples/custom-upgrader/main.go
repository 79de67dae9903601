// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// The custom upgrader is an operator with a runbook of its own: UpgradeConfigs whose spec.type is SHOP
// are upgraded like those of type OSD, but never while the shop has frozen all changes.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

var version = "dev" // set with -ldflags "-X main.version=..."

func main() {
	// The kubelet terminates the operator with SIGTERM: the context ends, reconciles in progress are
	// completed, and the leader election Lease is released. A second signal ends the process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := operator.Command(version, upgraders, freezeWatch).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "operator:", strings.ReplaceAll(err.Error(), "\n", "; "))
		os.Exit(1)
	}
}

// freezeKey names the ConfigMap that declares a change freeze.
var freezeKey = client.ObjectKey{Namespace: "shop", Name: "change-freeze"}

// freezeWatch declares that the ConfigMap is cached and watched. When it changes, upgrades that wait
// for the end of the freeze are reconciled at once. role.yaml grants the permissions.
var freezeWatch = manager.Kind{Object: &corev1.ConfigMap{}, Namespaces: []string{freezeKey.Namespace}, Name: freezeKey.Name}

// upgraders returns the upgraders by spec.type.
func upgraders(deps runbooks.Deps) map[string]upgradeconfig.ClusterUpgrader {
	return map[string]upgradeconfig.ClusterUpgrader{
		"OSD":  runbooks.OSD{Deps: deps},
		"SHOP": shop{runbooks.OSD{Deps: deps}},
	}
}

// shop upgrades the clusters of a shop.
type shop struct{ runbooks.OSD }

// Runbook returns the runbook of OSD with one more step, and with one more gate of the step that
// commits. The step makes the upgrade wait before it adds capacity. The gate is evaluated in the pass
// that requests the update and reads from the API server, so that a freeze that was declared a moment
// ago still counts.
func (s shop) Runbook(upgrade *v1alpha1.UpgradeConfig) engine.Runbook {
	unfrozen := waitUntilUnfrozen(s.Client)
	return s.OSD.Runbook(upgrade).
		InsertAfter("PreHealthCheck", engine.Step{
			Name:     "NoChangeFreeze",
			Doc:      "Waits until no change freeze is declared.",
			Do:       unfrozen,
			PreCheck: unfrozen, // read-only, so that people learn of a freeze before the upgrade
		}).
		WithCommitGates(engine.Gate{Name: "ChangeFreeze", Check: waitUntilUnfrozen(s.Live)})
}

// waitUntilUnfrozen waits until the time in the ConfigMap change-freeze has passed. A ConfigMap that
// cannot be read or parsed is an error: the upgrade waits, and the condition reports why.
func waitUntilUnfrozen(reader client.Reader) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		var freeze corev1.ConfigMap
		err := reader.Get(ctx, freezeKey, &freeze)
		if apierrors.IsNotFound(err) {
			return engine.Done("no change freeze is declared"), nil
		}
		if err != nil {
			return engine.Result{}, fmt.Errorf("reading the change freeze: %w", err)
		}
		until, err := time.Parse(time.RFC3339, freeze.Data["until"])
		if err != nil {
			return engine.Result{}, fmt.Errorf("parsing the change freeze: %w", err)
		}
		if run.Now.Before(until) {
			return engine.WaitFor(until.Sub(run.Now), "ChangeFreeze", "changes are frozen until %s", freeze.Data["until"]), nil
		}
		return engine.Done("the change freeze is over"), nil
	}
}
