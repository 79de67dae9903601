// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package pools_test

import (
	"fmt"
	"strings"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

func (w *world) observe(change simulation.Change) {
	if change.Kind.Kind != "MachineConfigPool" {
		return
	}
	before, after := describePool(change.Old), describePool(change.New)
	if change.Actor == "operator" {
		w.writes++
	}
	if before != after {
		w.log = append(w.log, fmt.Sprintf("%s %s: %s is %s", w.Now().Sub(w.start).Truncate(time.Minute), change.Actor, change.Object().GetName(), after))
	}
}

// describePool describes the fields of a pool that this package changes.
func describePool(object client.Object) string {
	pool, ok := object.(*mcfgv1.MachineConfigPool)
	if !ok {
		return "gone"
	}
	state := "unpaused"
	if pool.Spec.Paused {
		state = "paused"
	}
	mark, marked := pool.Annotations[clusterstate.AnnotationPausedBy]
	parsed, _ := clusterstate.ParsePoolMark(mark)
	switch {
	case !marked:
		return state
	case parsed.Kept():
		return state + ", kept"
	default:
		return fmt.Sprintf("%s, marked %s/%d", state, parsed.OwnerUID, parsed.Attempt)
	}
}

func (w *world) job() *maintenancev1beta1.UpgradeJob {
	job := &maintenancev1beta1.UpgradeJob{}
	simulation.Find(w.Harness, jobKey, job)
	return job
}

// record returns the steps of the attempt, one per line.
func (w *world) record() string {
	var lines []string
	for _, record := range w.job().Status.History[:min(1, len(w.job().Status.History))] {
		for _, c := range record.Conditions {
			lines = append(lines, fmt.Sprintf("%s %s %s: %s %v", c.Type, c.Status, c.Reason, c.Message, c.Items))
		}
	}
	return strings.Join(lines, "\n")
}

func (w *world) pool(name string) *mcfgv1.MachineConfigPool {
	return simulation.Get(w.Harness, client.ObjectKey{Name: name}, &mcfgv1.MachineConfigPool{})
}
