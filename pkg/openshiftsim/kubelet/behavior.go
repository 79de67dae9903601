// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Pod annotations that determine the behavior of the simulated containers. A pod with an invalid
// value fails with a message. Without annotations, a pod runs forever if its restart policy is
// Always; otherwise it succeeds after two seconds.
const (
	// ExitCode is the exit code of the containers, such as "1".
	ExitCode = "devcluster.openshift.io/exit-code"
	// Duration is how long the containers run before they exit, such as "90s".
	Duration = "devcluster.openshift.io/duration"
	// NeverEnds, if "true", keeps the containers running until the pod is deleted.
	NeverEnds = "devcluster.openshift.io/never-ends"
	// ImagePull, if "fail", keeps the pod pending because its images cannot be pulled.
	ImagePull = "devcluster.openshift.io/image-pull"
	// RunMode, if "local", runs the commands of the containers as local processes with the permissions
	// of the dev cluster itself. In virtual time, the other annotations determine the behavior of such
	// a pod.
	RunMode = "devcluster.openshift.io/run"
)

// behavior is the behavior of a pod's containers.
type behavior struct {
	exitCode      *int32        // nil for the result of the pod's program
	duration      time.Duration // 0 for the shortest possible time
	neverEnds     bool
	imagePullFail bool
	local         bool
}

// behaviorOf decodes the annotations of a pod.
func behaviorOf(pod *corev1.Pod) (behavior, error) {
	var b behavior
	if value, ok := pod.Annotations[ExitCode]; ok {
		code, err := strconv.ParseInt(value, 10, 32)
		if err != nil || code < 0 || code > 255 {
			return b, fmt.Errorf("annotation %s: %q is not an exit code from 0 to 255", ExitCode, value)
		}
		b.exitCode = new(int32(code))
	}
	if value, ok := pod.Annotations[Duration]; ok {
		d, err := time.ParseDuration(value)
		if err != nil || d < 0 {
			return b, fmt.Errorf("annotation %s: %q is not a duration such as 90s", Duration, value)
		}
		b.duration = d
	}
	for name, flag := range map[string]struct {
		value string
		set   *bool
	}{NeverEnds: {"true", &b.neverEnds}, ImagePull: {"fail", &b.imagePullFail}, RunMode: {"local", &b.local}} {
		value, ok := pod.Annotations[name]
		if ok && value != flag.value {
			return b, fmt.Errorf("annotation %s: %q is not %q", name, value, flag.value)
		}
		*flag.set = ok
	}
	return b, nil
}
