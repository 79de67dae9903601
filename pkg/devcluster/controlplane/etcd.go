// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
)

func (c *ControlPlane) startEtcd(ctx context.Context) error {
	if c.etcdPort == 0 {
		if err := c.allocateEtcdPorts(); err != nil {
			return err
		}
	}
	clientURL, peerURL := "https://"+address(c.etcdPort), "https://"+address(c.peerPort)
	process, err := c.run("etcd",
		"--name=devcluster",
		"--data-dir="+c.Path("etcd"),
		"--listen-client-urls="+clientURL,
		"--advertise-client-urls="+clientURL,
		"--listen-peer-urls="+peerURL,
		"--initial-advertise-peer-urls="+peerURL,
		"--initial-cluster=devcluster="+peerURL,
		"--cert-file="+c.authority.serving.certFile,
		"--key-file="+c.authority.serving.keyFile,
		"--trusted-ca-file="+c.authority.caFile,
		"--client-cert-auth",
		"--peer-cert-file="+c.authority.serving.certFile,
		"--peer-key-file="+c.authority.serving.keyFile,
		"--peer-trusted-ca-file="+c.authority.caFile,
		"--peer-client-cert-auth",
		"--unsafe-no-fsync",                   // the data must survive the process, but not a power failure
		"--watch-progress-notify-interval=5s", // as on OpenShift
		"--log-level=warn",
	)
	if err != nil {
		return err
	}
	c.etcd = process
	if err := c.await(ctx, c.etcd, clientURL+"/readyz"); err != nil {
		return fmt.Errorf("waiting for etcd: %w", err)
	}
	return nil
}

func (c *ControlPlane) allocateEtcdPorts() error {
	var err error
	if c.peerPort, err = FreePort(); err != nil {
		return err
	}
	c.etcdPort, err = FreePort()
	return err
}
