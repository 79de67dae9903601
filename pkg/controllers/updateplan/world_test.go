// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	operatorv1 "github.com/openshift/api/operator/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/insight"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const (
	from   = "4.14.8"
	target = "4.14.9"
)

// world is a simulated cluster with the controller. The cluster is at 4.14.8, and 4.14.9 is
// available.
type world struct {
	*simulation.Harness
	notify.ObjectPublisher // for methods that this type does not implement

	// remote simulates the update informers of the current process.
	remote *remote
	events []string
	// changes holds the published changes, with the status before each.
	changes map[string]bool
	alerts  []clusterstate.Alert
	// metricsError is the error of reading the resource requests of pods; nil if they are known.
	metricsError error
	// eventError is the error of publishing an Event once; nil if it succeeds.
	eventError error
}

const definitionsFolder = "../../../deploy/update-status/crds"

// newWorld returns a world whose API server has these definitions, or those of this release if there are none.
func newWorld(t *testing.T, definitions ...*simulation.Definition) *world {
	t.Helper()
	if definitions == nil {
		definitions = simulation.DefinitionsIn(t, definitionsFolder)
	}
	w := &world{Harness: simulation.NewHarness(t, simulation.WorldOptions{MaxBurst: 300, Definitions: definitions}), changes: map[string]bool{}}
	w.User = w.Client("user")
	w.Program.Name, w.Program.OnCrash = "usc", func() { w.After(time.Minute, w.Begin) }
	w.Must(w.Add(cluster()...))
	w.Run(func(env simulation.Env) ([]manager.Controller, error) {
		answers := map[string]*insight.Answer{}
		if w.remote != nil {
			answers = w.remote.answers
		}
		w.remote = &remote{answers: answers, known: map[types.NamespacedName]bool{}, changed: make(chan event.GenericEvent, 1)}
		r := &Reconciler{
			Clock: env.Clock, Prometheus: w, Metrics: metrics{w}, LockNamespace: "home",
			Informers: w.remote, Changed: w.remote.changed, Events: w,
		}
		return []manager.Controller{r.Controller()}, nil
	})
	return w
}

// cluster returns the objects of a ready cluster.
func cluster() []client.Object {
	objects := []client.Object{
		&configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: "version", Generation: 1, UID: "v"},
			Spec:       configv1.ClusterVersionSpec{ClusterID: "bc75be34-e92d-4745-bb9d-8ec39e877854", Channel: "stable-4.14"},
			Status: configv1.ClusterVersionStatus{
				History:          []configv1.UpdateHistory{{Version: from, Image: "a@0", State: configv1.CompletedUpdate}},
				AvailableUpdates: []configv1.Release{{Version: target, Image: "a@1"}},
				Conditions:       []configv1.ClusterOperatorStatusCondition{{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue}},
			},
		},
		operator("dns", configv1.ConditionFalse),
		&mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: "worker"}, Spec: mcfgv1.MachineConfigPoolSpec{
			NodeSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"pool": "worker"}},
		}},
		&operatorv1.Etcd{ObjectMeta: metav1.ObjectMeta{Name: "cluster"}, Status: operatorv1.EtcdStatus{StaticPodOperatorStatus: operatorv1.StaticPodOperatorStatus{
			OperatorStatus: operatorv1.OperatorStatus{Conditions: []operatorv1.OperatorCondition{{Type: clusterstate.EtcdMembersAvailable, Status: "True"}}},
		}}},
	}
	for _, name := range []string{"worker-0", "worker-1"} {
		objects = append(objects, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"pool": "worker"}},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	return objects
}

func operator(name string, degraded configv1.ConditionStatus) *configv1.ClusterOperator {
	return &configv1.ClusterOperator{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: configv1.ClusterOperatorStatus{Conditions: []configv1.ClusterOperatorStatusCondition{
		{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue}, {Type: configv1.OperatorDegraded, Status: degraded},
	}}}
}
