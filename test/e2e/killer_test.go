// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package e2e

import (
	"net/http"
	"slices"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/runbooks"
)

// killer kills and restarts the operator at the very request by which it saves that a step has begun or is over.
type killer struct {
	t        *testing.T
	operator *devcluster.Operator
	moment   moment
	kills    int
	hit      map[string]bool // "STEP begun" and "STEP over"
}

// moment is when the operator is killed.
type moment int

const (
	beforeTheSave moment = iota // it has done what the step is for, and nobody knows
	afterTheSave                // the API server knows, and the operator does not know that
)

// onSave passes a save on, unless it kills who makes it.
func (k *killer) onSave(steps []history.StepCondition, pass func() bool) {
	fresh := k.fresh(steps)
	if len(fresh) > 0 && k.moment == beforeTheSave {
		k.kill(fresh)
	}
	if saved := pass(); saved && len(fresh) > 0 {
		k.kill(fresh)
	}
}

// fresh names what is saved and the operator was not killed at yet.
func (k *killer) fresh(steps []history.StepCondition) []string {
	var fresh []string
	for _, c := range steps {
		boundaries := []string{c.Type + " begun"}
		if c.CompleteTime != nil {
			boundaries = append(boundaries, c.Type+" over")
		}
		fresh = append(fresh, slices.DeleteFunc(boundaries, func(b string) bool { return k.hit[b] })...)
	}
	return fresh
}

// kill kills and restarts the operator, and ends the request that it had made.
func (k *killer) kill(at []string) {
	for _, boundary := range at {
		k.hit[boundary] = true
	}
	k.kills++
	if err := k.operator.Restart(); err != nil {
		k.t.Error(err)
	}
	panic(http.ErrAbortHandler)
}

// killAtEachStep kills the operator, until the upgrade is over, each time that it saves that a step has begun or is over
// which it was not killed at before. It fails unless that were all steps of the runbook.
func killAtEachStep(t *testing.T, userClient client.WithWatch, upgrade *v1alpha1.UpgradeConfig, operator *devcluster.Operator, saves *saves, at moment) int {
	t.Helper()
	k := &killer{t: t, operator: operator, moment: at, hit: map[string]bool{}}
	saves.setOnSave(k.onSave)
	follow(t, userClient, upgrade, func(*history.Record) {})
	saves.setOnSave(nil)
	for _, step := range osd(upgrade) {
		for _, boundary := range []string{step.Name + " begun", step.Name + " over"} {
			if !k.hit[boundary] {
				t.Errorf("the operator was not killed when it saved: %s", boundary)
			}
		}
	}
	return k.kills
}

// osd are the steps of the runbook.
func osd(upgrade *v1alpha1.UpgradeConfig) []engine.Step {
	return runbooks.OSD{Deps: runbooks.Deps{Config: config.Default()}}.Runbook(upgrade).Steps
}
