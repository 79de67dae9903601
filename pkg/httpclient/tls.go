// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"time"
)

const (
	maxHeaderBytes = 64 << 10
	idleTimeout    = 90 * time.Second
)

// currentTransport is the transport that trusts whom the file names now.
func (c *Client) currentTransport() (*http.Transport, error) {
	var ca []byte
	if c.options.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(c.options.CAFile); err != nil {
			return nil, fmt.Errorf("reading the certificates of the authorities: %w", err)
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
			return nil, fmt.Errorf("there is no certificate in PEM in %s", c.options.CAFile)
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
		DisableCompression:     true, // so that the bound is what is sent
	}
	return c.transport, nil
}

// token is the token as it is now: those of ServiceAccounts are replaced every hour. Empty: there is none.
func (c *Client) token() (string, error) {
	if c.options.TokenFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(c.options.TokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", errors.New("what is in the token's file is no token") // and is not shown
	}
	return token, nil
}
