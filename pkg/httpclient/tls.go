// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"time"
)

const (
	maxHeaderBytes = 64 << 10
	idleTimeout    = 90 * time.Second
)

// currentTransport returns a transport that trusts the CAs that the file holds now.
func (c *Client) currentTransport() (*http.Transport, error) {
	var ca []byte
	if c.options.CAFile != "" {
		var err error
		if ca, _, err = readFile(c.options.CAFile); err != nil {
			return nil, fmt.Errorf("reading the CA certificates: %w", err)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transport != nil && bytes.Equal(ca, c.ca) {
		return c.transport, nil
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.options.CAFile != "" {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("%s does not hold a PEM certificate", c.options.CAFile)
		}
	}
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
	c.ca, c.transport = ca, &http.Transport{
		Proxy:                  c.options.Proxy,
		TLSClientConfig:        tlsConfig,
		MaxIdleConns:           1,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // the bound is that of what is sent
	}
	return c.transport, nil
}
