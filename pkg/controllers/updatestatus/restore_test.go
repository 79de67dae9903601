// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updatestatus_test

import (
	"testing"
	"time"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// TestRestore_of_etcd restores the state before the last write. The UpdateStatus then has the
// resource version that this write replaced, although no cache is stale.
func TestRestore_of_etcd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register("shop")
	w.Begin()
	w.update()
	w.RunFor(time.Minute)
	backup, before := w.Backup(), w.object().ResourceVersion
	w.writes = nil
	w.answer(w.reports("shop", updatev1beta1.LevelError, "disk"))
	w.RunFor(7 * time.Second)
	if len(w.writes) != 1 || insights(w.object().Status)["shop disk"].IsZero() {
		t.Fatalf("%d writes, want that of the insight", len(w.writes))
	}
	w.Restore(backup)
	if got := w.object().ResourceVersion; got != before {
		t.Fatalf("resource version %s after the restore, want %s", got, before)
	}
	w.RunFor(2 * time.Minute)
	if insights(w.object().Status)["shop disk"].IsZero() {
		t.Error("the insight is not published again")
	}
}

// TestDefinition_that_is_older uses an API server that drops fields of the status. Writes that only
// change these fields do not change the resource version.
func TestDefinition_that_is_older(t *testing.T) {
	t.Parallel()
	w := newWorld(t, simulation.OlderDefinitions(t, definitionsFolder+"/config.openshift.io_updatestatuses.yaml", "assessment", "controlPlane", "observedTime")...)
	w.Begin()
	w.RunFor(time.Hour)
	w.writes = nil
	w.update()
	w.RunFor(20 * time.Second)
	if len(w.writes) == 0 {
		t.Error("the update is not published")
	}
}
