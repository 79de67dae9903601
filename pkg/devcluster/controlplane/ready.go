// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/childprocess"
)

const (
	pollInterval   = 50 * time.Millisecond
	requestTimeout = 2 * time.Second
)

// await polls a URL of the control plane as Await does.
func (c *ControlPlane) await(ctx context.Context, process *childprocess.Process, url string) error {
	transport, err := c.transport()
	if err != nil {
		return err
	}
	return Await(ctx, process, transport, url)
}

// Await polls a URL until it returns status 200. If the process exits first, it returns an error
// with the end of the log. It leaves no connections open.
func Await(ctx context.Context, process *childprocess.Process, transport *http.Transport, url string) error {
	defer transport.CloseIdleConnections()
	probe := &http.Client{Transport: transport, Timeout: requestTimeout}
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	last := fmt.Errorf("%s was not requested yet", url)
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last response: %w", context.Cause(ctx), last)
		case <-process.Exited():
			return process.Err()
		case <-ticker.C:
			if last = get(ctx, probe, url); last == nil {
				return nil
			}
		}
	}
}

func (c *ControlPlane) transport() (*http.Transport, error) {
	authorities := x509.NewCertPool()
	authorities.AddCert(c.authority.signer.Certificate())
	client, err := tls.LoadX509KeyPair(c.authority.admin.certFile, c.authority.admin.keyFile)
	if err != nil {
		return nil, fmt.Errorf("loading the administrator's certificate: %w", err)
	}
	return &http.Transport{TLSClientConfig: &tls.Config{
		RootCAs: authorities, Certificates: []tls.Certificate{client}, MinVersion: tls.VersionTLS12,
	}}, nil
}

func get(ctx context.Context, probe *http.Client, url string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	response, err := probe.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s returned %s", url, response.Status)
	}
	return nil
}
