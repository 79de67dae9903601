// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

func (c *ControlPlane) startControllerManager(ctx context.Context) error {
	kubeconfig := c.Path("controller-manager.kubeconfig")
	if err := WriteKubeconfig(kubeconfig, c.configFor(c.authority.controllerManager)); err != nil {
		return err
	}
	port, err := FreePort()
	if err != nil {
		return err
	}
	c.controllerManager, err = c.run("kube-controller-manager",
		"--kubeconfig="+kubeconfig,
		"--controllers="+strings.Join(c.options.Controllers, ","),
		"--bind-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(port),
		"--tls-cert-file="+c.authority.serving.certFile,
		"--tls-private-key-file="+c.authority.serving.keyFile,
		"--authentication-skip-lookup",
		"--leader-elect=false", // a single instance
		"--use-service-account-credentials",
		"--service-account-private-key-file="+c.authority.tokens.keyFile,
		"--root-ca-file="+c.authority.caFile,
		"--cluster-signing-cert-file="+c.authority.caFile, // for the controllers of CertificateSigningRequests
		"--cluster-signing-key-file="+c.authority.caKeyFile,
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	if err := c.await(ctx, c.controllerManager, "https://"+address(port)+"/healthz"); err != nil {
		return fmt.Errorf("waiting for the controller manager: %w", err)
	}
	return nil
}
