// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradeconfig"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

// shop upgrades the clusters of a shop: as OSD does, but never while the shop
// has frozen all changes.
type shop struct{ runbooks.OSD }

// Runbook is OSD's with one more gate.
func (s shop) Runbook(cfg *v1alpha1.UpgradeConfig) engine.Runbook {
	book := s.OSD.Runbook(cfg)
	after := slices.IndexFunc(book.Steps, func(step engine.Step) bool { return step.Name == "PreHealthCheck" })
	book.Steps = slices.Insert(book.Steps, after+1, engine.Step{
		Name:     "NoChangeFreeze",
		Doc:      "Waits until no change freeze is declared.",
		Do:       waitUntilUnfrozen(s.Live),
		PreCheck: waitUntilUnfrozen(s.Live), // it changes nothing, so it can be asked ahead of time as well
	})
	return book
}

// waitUntilUnfrozen reads until when changes are frozen. What cannot be read or
// understood is an error: the upgrade waits, and the condition says why.
func waitUntilUnfrozen(r client.Reader) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		var freeze corev1.ConfigMap
		err := r.Get(ctx, client.ObjectKey{Namespace: "shop", Name: "change-freeze"}, &freeze)
		if apierrors.IsNotFound(err) {
			return engine.Done("no change freeze is declared"), nil
		}
		if err != nil {
			return engine.Result{}, fmt.Errorf("reading the change freeze: %w", err)
		}
		until, err := time.Parse(time.RFC3339, freeze.Data["until"])
		if err != nil {
			return engine.Result{}, fmt.Errorf("understanding the change freeze: %w", err)
		}
		if run.Now.Before(until) {
			return engine.WaitFor(until.Sub(run.Now), "ChangeFreeze", "changes are frozen until %s", freeze.Data["until"]), nil
		}
		return engine.Done("the change freeze is over"), nil
	}
}

// An operator with an upgrader of one's own is a main of a few lines: an
// UpgradeConfig whose spec.type is SHOP is upgraded by the runbook above.
func ExampleCommand() {
	upgraders := func(t runbooks.Deps) map[string]upgradeconfig.ClusterUpgrader {
		return map[string]upgradeconfig.ClusterUpgrader{"SHOP": shop{runbooks.OSD{Deps: t}}}
	}
	cmd := operator.Command("v1.2.3", upgraders)
	cmd.SetArgs([]string{"--version"}) // the arguments of the process if it is left out
	cmd.SetOut(os.Stdout)
	if err := cmd.Execute(); err != nil {
		fmt.Println(err)
	}

	book := upgraders(runbooks.Deps{})["SHOP"].Runbook(&v1alpha1.UpgradeConfig{})
	for _, step := range book.Steps[:6] {
		fmt.Println(step.Name)
	}
	fmt.Println(book.Validate())
	// Output:
	// operator version v1.2.3
	// StartedNotificationSent
	// VersionPinned
	// ClusterUpgradeable
	// PreHealthCheck
	// NoChangeFreeze
	// ExternalDependenciesAvailable
	// <nil>
}
