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
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

// killer kills and restarts the operator during the request that saves the start or the end of a
// step.
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
	beforeTheSave moment = iota // the step has acted, and no record shows it
	afterTheSave                // the API server has the record, and the operator got no response
)

// onSave forwards a save, unless it kills the operator.
func (k *killer) onSave(steps []history.StepCondition, pass func() bool) {
	fresh := k.fresh(steps)
	if len(fresh) > 0 && k.moment == beforeTheSave {
		k.kill(fresh)
	}
	if saved := pass(); saved && len(fresh) > 0 {
		k.kill(fresh)
	}
}

// fresh returns the saved changes that have not killed the operator yet.
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

// kill kills and restarts the operator, and ends its pending request.
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

// killAtEachStep kills the operator once at the start and at the end of each step, until the
// upgrade is finished. It fails unless these were all steps of the runbook.
func killAtEachStep(t *testing.T, userClient client.WithWatch, upgrade *upgradev1alpha1.UpgradeConfig, operator *devcluster.Operator, saves *saves, at moment) int {
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

// osd returns the steps of the runbook.
func osd(upgrade *upgradev1alpha1.UpgradeConfig) []engine.Step {
	return upgraders.OSD{Deps: upgraders.Deps{Config: config.Default()}}.Runbook(upgraders.AttemptAt(upgrade)).Steps
}
