// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// pod checks that pods are force-deleted only during upgrades.
func (c *checker) pod(change simulation.Change, pod *corev1.Pod) {
	if change.Actor != operatorActor || change.Old == nil || change.Old.GetDeletionTimestamp() != nil {
		return
	}
	for _, cfg := range c.configs {
		if inProgress(cfg) {
			return
		}
	}
	for _, job := range c.jobs.jobs {
		if jobInProgress(job) {
			return
		}
	}
	if c.calm(change.Time) {
		c.h.violate("drain: pod %s is forced, but no upgrade is in progress", pod.Name)
	}
}
