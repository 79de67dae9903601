// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package endpoint

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
	maxHeader   = 64 << 10
	idleTimeout = 90 * time.Second
)

// current is the transport that trusts whom the file names now.
func (e *Endpoint) current() (*http.Transport, error) {
	var ca []byte
	if e.options.CAFile != "" {
		var err error
		if ca, err = os.ReadFile(e.options.CAFile); err != nil {
			return nil, fmt.Errorf("reading the certificates of the authorities: %w", err)
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.transport != nil && bytes.Equal(ca, e.ca) {
		return e.transport, nil
	}
	trust := &tls.Config{MinVersion: tls.VersionTLS12}
	if e.options.CAFile != "" {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("there is no certificate in PEM in %s", e.options.CAFile)
		}
	}
	if e.transport != nil {
		e.transport.CloseIdleConnections()
	}
	e.ca, e.transport = ca, &http.Transport{
		Proxy:                  e.options.Proxy,
		TLSClientConfig:        trust,
		MaxIdleConns:           1,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true, // so that the bound is what is sent
	}
	return e.transport, nil
}

// token is the token as it is now: those of ServiceAccounts are replaced every hour. Empty: there is none.
func (e *Endpoint) token() (string, error) {
	if e.options.TokenFile == "" {
		return "", nil
	}
	data, err := os.ReadFile(e.options.TokenFile)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return "", errors.New("what is in the token's file is no token") // and is not shown
	}
	return token, nil
}
