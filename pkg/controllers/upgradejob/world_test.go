// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package upgradejob_test

import (
	"testing"
	"time"

	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/controllers/upgradejob"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/operator"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/openshift"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/upgraders"
)

const (
	namespace = "managed-upgrade-operator"
	installed = "4.4.5"
	desired   = "4.4.6"
	channel   = "stable-4.4"
)

var (
	noon = simulation.Start
	// startAfter is when the window of the UpgradeJobs opens; it is an hour long.
	startAfter = noon.Truncate(time.Minute).Add(2 * time.Hour)
)

// world is a scripted cluster with the operator.
type world struct {
	*simulation.Harness
	cluster *openshift.Script
	config  config.Config

	definitions []*simulation.Definition // that validate what is written; nil if nothing is
	maxBurst    int                      // of reconciles at one time

	plan    simulation.FaultPlan // of the writes, from the first one on
	alerts  checks.Prometheus    // the source of alerts; nil means they are disabled
	holders *lock.Holders        // of the newest life
	commits int                  // how often a version was requested

	requested aftermath.Requests // by the operator
}

func newWorld(tb testing.TB, options ...func(*world)) *world {
	tb.Helper()
	definitions := simulation.DefinitionsIn(tb, "../../../deploy/crds") // the scripted cluster does not comply with OpenShift's
	w := &world{config: config.Default(), definitions: definitions, maxBurst: 200}
	for _, option := range options {
		option(w)
	}
	w.config.Alertmanager.URL = ""
	if w.alerts == nil {
		w.config.Alerts.URL = ""
	}
	w.Harness = simulation.NewHarness(tb, simulation.WorldOptions{MaxBurst: w.maxBurst, Definitions: w.definitions})
	w.Writes = w.plan
	for _, name := range []string{namespace, "default"} {
		w.Create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	var err error
	w.cluster, err = openshift.NewScript(w.World, installed, channel)
	w.Must(err)
	w.cluster.ReportHealthy()
	w.cluster.Offer(desired, "4.4.7")
	w.cluster.ChangePools(func(pool *mcfgv1.MachineConfigPool) { pool.Labels = map[string]string{"pool": pool.Name} })
	w.Must(openshift.StartPods(w.World, nil))
	w.Observe(w.observe)
	w.Describe = func(r simulation.Request) string { return r.Verb + " " + r.Kind }
	w.Run(w.controllers)
	tb.Cleanup(func() {
		w.settle()
		w.expectReleased()
	})
	return w
}

func (w *world) controllers(env simulation.Env) ([]manager.Controller, error) {
	register := func(deps upgraders.Deps) (map[string]upgraders.ClusterUpgrader, error) {
		return map[string]upgraders.ClusterUpgrader{"OSD": upgraders.OSD{Deps: deps}}, nil
	}
	controllers, err := operator.NewControllers(
		manager.Options{Namespace: namespace}, w.config, manager.Clients{Client: env.Client, Live: env.Live}, env.Clock, register,
		operator.Externals{Prometheus: w.alerts, Registry: w.Registry},
	)
	for i := range controllers {
		if jobs, ok := controllers[i].Reconciler.(*upgradejob.Reconciler); ok {
			w.holders = jobs.Holders
		}
	}
	return controllers, err
}
