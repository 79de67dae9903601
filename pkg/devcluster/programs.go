// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package devcluster

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// runProgram runs the first container of a pod if its command is one of the cluster's programs. All
// other pods succeed immediately.
func (c *Cluster) runProgram(ctx context.Context, pod *corev1.Pod) error {
	container := &pod.Spec.Containers[0]
	if len(container.Command) == 0 {
		return nil
	}
	name, isAbsolute := strings.CutPrefix(container.Command[0], "/")
	if !isAbsolute || !slices.Contains(c.programs, name) {
		return nil
	}
	kubeconfig := c.Path(string(pod.UID) + ".kubeconfig")
	if err := c.ServiceAccountKubeconfig(ctx, kubeconfig, pod.Namespace, pod.Spec.ServiceAccountName); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, filepath.Join(c.BinDir(), name), slices.Concat(container.Command[1:], container.Args)...) //nolint:gosec // one of our programs
	command.Env = []string{"KUBECONFIG=" + kubeconfig}
	for _, variable := range container.Env {
		command.Env = append(command.Env, variable.Name+"="+variable.Value)
	}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, output[max(0, len(output)-maxOutput):])
	}
	return nil
}

// maxOutput is the maximum output of a program, in bytes, that is kept in the status of its pod.
const maxOutput = 1024
