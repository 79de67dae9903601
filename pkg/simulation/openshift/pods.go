// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/kubelet"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// StartPods runs Deployments, Jobs, and their pods in a world without a Cluster, for example with a
// Script. It uses the world's ready nodes and does not change their status. The annotations of
// package kubelet control the behavior of a pod; without them, it succeeds after two seconds. Jobs
// are deleted after their TTL, and dependents with their owners. The plan applies to the requests
// of the kube-controller-manager, such as creating pods; nil serves all of them.
func StartPods(w *simulation.World, plan simulation.FaultPlan) error {
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
