// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// auditPolicy records the user, the object, and the outcome of each request once, including
// watches. Requests that change the ClusterVersion are recorded with their content.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived]
rules:
- level: RequestResponse
  omitManagedFields: true
  verbs: [patch, update]
  resources: [{group: config.openshift.io, resources: [clusterversions]}]
- level: Metadata
`

func (c *ControlPlane) startAPIServer(ctx context.Context) error {
	start := time.Now()
	process, err := c.run("kube-apiserver",
		"--etcd-servers=https://"+address(c.etcdPort),
		"--etcd-cafile="+c.authority.caFile,
		"--etcd-certfile="+c.authority.serving.certFile,
		"--etcd-keyfile="+c.authority.serving.keyFile,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--secure-port="+strconv.Itoa(c.apiPort),
		"--endpoint-reconciler-type=none", // endpoints must not be loopback addresses
		"--tls-cert-file="+c.authority.serving.certFile,
		"--tls-private-key-file="+c.authority.serving.keyFile,
		"--client-ca-file="+c.authority.caFile,
		"--requestheader-client-ca-file="+c.authority.caFile, // servers that authenticate like this one wait for it
		"--requestheader-allowed-names=front-proxy",          // there is no such proxy
		"--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group",
		"--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+c.authority.tokens.keyFile,
		"--service-account-signing-key-file="+c.authority.tokens.keyFile,
		"--service-cluster-ip-range="+c.serviceNetwork.String(),
		"--audit-policy-file="+c.Path("audit-policy.yaml"),
		"--audit-log-path="+c.AuditLog(),
		"--audit-log-maxsize=4096", // MiB, instead of 100: a reader needs the whole log in one file
		"--allow-privileged",
		"--profiling=false",
	)
	if err != nil {
		return err
	}
	c.apiServer = process
	if err := c.awaitAPIServer(ctx); err != nil {
		return err
	}
	c.startups = append(c.startups, startup{start, time.Now()})
	return nil
}

func (c *ControlPlane) awaitAPIServer(ctx context.Context) error {
	if err := c.await(ctx, c.apiServer, "https://"+address(c.apiPort)+"/readyz"); err != nil {
		return fmt.Errorf("waiting for the API server: %w", err)
	}
	return nil
}
