// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/metrics"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	home      = "managed-upgrade-operator"
	clusterID = "bc75be34-e92d-4745-bb9d-8ec39e877854"
)

// world is a simulated API server with OpenShift's ClusterVersion and the controller.
type world struct {
	*simulation.Harness
	registry *prometheus.Registry
}

// newWorld returns a world with a running controller.
func newWorld(t *testing.T, namespaces ...string) *world {
	t.Helper()
	w := &world{Harness: simulation.NewHarness(t, simulation.WorldOptions{}), registry: prometheus.NewPedanticRegistry()}
	counted, err := metrics.NewClusterVersions(w.registry)
	w.Must(err)
	if len(namespaces) == 0 {
		namespaces = []string{home}
	}
	w.Program.OnCrash = func() { w.After(time.Minute, w.Begin) }
	w.Must(w.Add(&configv1.ClusterVersion{
		ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 1, UID: "openshift"},
		Spec:       configv1.ClusterVersionSpec{ClusterID: clusterID, Channel: "stable-4.10", DesiredUpdate: &configv1.Update{Version: "4.10.3"}},
		Status:     configv1.ClusterVersionStatus{History: []configv1.UpdateHistory{{Version: "4.10.3", State: configv1.CompletedUpdate}}},
	}))
	w.Run(func(env simulation.Env) ([]manager.Controller, error) {
		r := &Reconciler{
			Clock: env.Clock, Namespace: home, WatchNamespaces: namespaces,
			Events: &notify.Events{Client: env.Client, Clock: env.Clock}, Metrics: counted,
		}
		return []manager.Controller{r.Controller()}, nil
	})
	return w
}
