// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradeschedule

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const namespace = "maintenance"

var (
	weekly = client.ObjectKey{Namespace: namespace, Name: "weekly"}
	// monday is the start of most worlds. The slots of weekly are on Tuesdays at 22:00 in Zurich.
	monday  = time.Date(2027, 3, 1, 12, 0, 0, 700_000_000, time.UTC)
	tuesday = time.Date(2027, 3, 2, 21, 0, 0, 0, time.UTC)
)

const week = 7 * 24 * time.Hour

// world is a cluster with the controller. UpgradeJobs end as soon as they start; see endJob.
type world struct {
	*simulation.Harness
	reconciler *Reconciler // of the current process

	configProblem string

	phase   history.Phase // the final phase of UpgradeJobs; empty leaves it to the test
	reason  string        // the final reason of UpgradeJobs
	created map[string]int
	starts  []string // of all UpgradeJobs ever created, with their versions
}

func newWorld(tb testing.TB, objects ...client.Object) *world {
	tb.Helper()
	return newWorldAt(tb, monday, objects...)
}

func newWorldAt(tb testing.TB, start time.Time, objects ...client.Object) *world {
	tb.Helper()
	w := &world{
		Harness: simulation.NewHarness(tb, simulation.WorldOptions{Definitions: simulation.DefinitionsIn(tb, "../../../deploy/crds"), Start: start}),
		phase:   history.PhaseUpgraded, created: map[string]int{},
	}
	w.Must(w.Add(&configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: clusterstate.VersionKey.Name, Generation: 1},
		Spec:       configv1.ClusterVersionSpec{ClusterID: "bc75be34-e92d-4745-bb9d-8ec39e877854"},
	}))
	w.install("4.20.5")
	w.offer("4.20.6")
	w.Create(objects...)
	w.Observe(w.observe)
	w.Describe = simulation.Request.Operation
	w.Run(w.controllers)
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	schedules, err := metrics.NewSchedules(w.Registry, Results()...)
	if err != nil {
		return nil, err
	}
	r := &Reconciler{Clock: env.Clock, Events: &notify.Events{Client: env.Client, Clock: env.Clock}, Metrics: schedules}
	r.ConfigProblem = func(context.Context, *maintenancev1beta1.UpgradeJob, time.Time) (reason, message string, err error) {
		if w.configProblem != "" {
			reason = "InvalidPools"
		}
		return reason, w.configProblem, nil
	}
	w.reconciler = r
	return []manager.Controller{r.Controller()}, nil
}
