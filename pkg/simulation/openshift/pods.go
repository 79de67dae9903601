// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// StartPods runs Deployments, Jobs, and their pods in a world without a Cluster, such as the world of a Script: on the
// nodes of the world that are ready, whose status stays as it is. The annotations of package kubelet choose what
// becomes of a pod; without them, it succeeds after two seconds. Jobs are deleted after their time to live, and
// dependents with their owners. The plan decides what becomes of the requests of the kube-controller-manager, such as
// the creation of pods; nil means all are served.
func StartPods(w *simulation.World, plan simulation.Plan) error {
	kubelets := kubelet.New(kubelet.Options{Clock: w.Clock(), PodRetry: time.Duration(retryInterval)})
	controllerManager := simulation.KubeControllerManager()
	controllerManager.Plan = plan
	pods := &simulation.Program{
		Name: "kubelets", Direct: true,
		Controllers: func(simulation.Env) ([]manager.Controller, error) {
			return []manager.Controller{kubelets.PodController()}, nil
		},
	}
	for _, program := range []*simulation.Program{controllerManager, pods} {
		if _, err := w.Start(program); err != nil {
			return err
		}
	}
	w.EnableGarbageCollection()
	return nil
}
