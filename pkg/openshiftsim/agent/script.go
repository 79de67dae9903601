// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"time"

	clusterv1 "open-cluster-management.io/api/cluster/v1"
)

// The annotations of a ManagedCluster that script its simulation. A change has an effect at once.
const (
	// DurationAnnotation is how long an upgrade takes, for example 20s.
	DurationAnnotation = "devcluster.openshift.io/upgrade-duration"
	// FailsAnnotation is why the upgrade fails halfway, as in "etcd is degraded". The upgrade goes on when
	// the annotation is removed.
	FailsAnnotation = "devcluster.openshift.io/upgrade-fails"
	// HangsAnnotation makes the upgrade stop halfway without a failure.
	HangsAnnotation = "devcluster.openshift.io/upgrade-hangs"
	// UnreachableAnnotation stops the agent: it applies and reports nothing.
	UnreachableAnnotation = "devcluster.openshift.io/unreachable"
)

// defaultDuration is how long an upgrade takes without an annotation.
const defaultDuration = 10 * time.Second

// script describes what a cluster does.
type script struct {
	duration    time.Duration
	fails       string // empty means nothing fails
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

// stuck reports whether an upgrade does not go on once it is halfway.
func (s *script) stuck() bool { return s.fails != "" || s.hangs }
