// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// Annotations of a ManagedCluster that script its simulation. Changes take effect immediately.
const (
	// DurationAnnotation is the duration of an upgrade, for example 20s.
	DurationAnnotation = "devcluster.openshift.io/upgrade-duration"
	// FailsAnnotation is the reason why the upgrade fails halfway, as in "etcd is degraded". The
	// upgrade continues when the annotation is removed.
	FailsAnnotation = "devcluster.openshift.io/upgrade-fails"
	// HangsAnnotation makes the upgrade hang halfway without failing.
	HangsAnnotation = "devcluster.openshift.io/upgrade-hangs"
	// UnreachableAnnotation stops the agent: it neither applies nor reports anything.
	UnreachableAnnotation = "devcluster.openshift.io/unreachable"
)

// defaultDuration is the duration of an upgrade without the annotation.
const defaultDuration = 10 * time.Second

// script describes the behavior of a cluster.
type script struct {
	duration    time.Duration
	fails       string // the reason for a failure; empty if there is none
	hangs       bool
	unreachable bool
}

// newScript returns the script of a cluster.
func newScript(cluster *clusterv1.ManagedCluster) (script, error) {
	s := script{duration: defaultDuration, fails: cluster.Annotations[FailsAnnotation]}
	_, s.hangs = cluster.Annotations[HangsAnnotation]
	_, s.unreachable = cluster.Annotations[UnreachableAnnotation]
	if value, found := cluster.Annotations[DurationAnnotation]; found {
		duration, err := time.ParseDuration(value)
		if err != nil || duration <= 0 {
			return s, fmt.Errorf("annotation %s of cluster %s is %q, must be a duration such as 20s", DurationAnnotation, cluster.Name, value)
		}
		s.duration = duration
	}
	return s, nil
}

// stuck reports whether upgrades stop halfway.
func (s *script) stuck() bool { return s.fails != "" || s.hangs }
