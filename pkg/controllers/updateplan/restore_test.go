// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// TestPlanAfterARestoreOfEtcd restores the state before the last write of a plan. The object then
// has the resource version that this write replaced, although no cache is stale.
func TestPlanAfterARestoreOfEtcd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(target)
	w.RunFor(time.Minute)
	w.expect(complete, startable, current)
	backup := w.Backup()
	before := w.get(target).ResourceVersion
	w.setOperator(configv1.ConditionTrue)
	w.RunFor(10 * time.Second)
	w.expect(complete, rest, current)
	w.Restore(backup)
	w.setOperator(configv1.ConditionTrue)
	if got := w.get(target).ResourceVersion; got != before {
		t.Fatalf("resource version %s after the restore, want %s", got, before)
	}
	w.RunFor(2 * time.Minute)
	w.expect(complete, rest, current)
}

// TestPlanWithAnOlderDefinition uses an API server that drops a field of the status. Writes that
// only change this field do not change the resource version.
func TestPlanWithAnOlderDefinition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simulation.OlderDefinitions(t, definitionsFolder+"/config.openshift.io_updateplans.yaml", "counts")...)
	w.create(target)
	w.RunFor(time.Minute)
	w.expect(complete, startable, current)
	w.setOperator(configv1.ConditionTrue)
	w.RunFor(10 * time.Second)
	w.expect(complete, rest, current)
	w.RunFor(time.Minute)
	w.setOperator(configv1.ConditionFalse)
	w.RunFor(10 * time.Second)
	w.expect(complete, startable, current)
}
