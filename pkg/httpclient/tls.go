// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package httpclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	maxHeaderBytes = 64 << 10
	idleTimeout    = 90 * time.Second
)

// currentTransport returns a transport that trusts the CAs that the source holds now.
func (c *Client) currentTransport() (*http.Transport, error) {
	ca, source := c.options.CA, "the CA bundle"
	if c.options.CAFile != "" {
		var err error
		if ca, _, err = readFile(c.options.CAFile); err != nil {
			return nil, fmt.Errorf("reading the CA certificates: %w", err)
		}
		source = c.options.CAFile
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transport != nil && bytes.Equal(ca, c.ca) {
		return c.transport, nil
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.options.ServerName}
	if c.options.CAFile != "" || c.options.CA != nil {
		var err error
		if tlsConfig.RootCAs, err = parseCAs(ca, source); err != nil {
			return nil, err
		}
	}
	if c.transport != nil {
		c.transport.CloseIdleConnections()
	}
	c.ca, c.transport = ca, &http.Transport{
		Proxy:                  c.options.Proxy,
		DialContext:            c.dial,
		DialTLSContext:         c.dialTLS(tlsConfig),
		TLSClientConfig:        tlsConfig,
		MaxIdleConns:           1,
		IdleConnTimeout:        idleTimeout,
		MaxResponseHeaderBytes: maxHeaderBytes,
		DisableCompression:     true, // the bound is that of what is sent
	}
	return c.transport, nil
}

// ReadCAs returns the CA certificates of a PEM bundle, a regular file of at most 64 KiB.
func ReadCAs(name string) (*x509.CertPool, error) {
	ca, _, err := readFile(name)
	if err != nil {
		return nil, fmt.Errorf("reading the CA certificates: %w", err)
	}
	return parseCAs(ca, name)
}

func parseCAs(ca []byte, source string) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s does not hold a PEM certificate", source)
	}
	return pool, nil
}

// dial opens a connection to the fixed address, or to the given one if none is fixed.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.options.DialAddress != "" {
		address = c.options.DialAddress
	}
	dialer := net.Dialer{Timeout: c.options.DialTimeout}
	return dialer.DialContext(ctx, network, address)
}

// dialTLS opens a connection and marks the errors of its handshake. Connections through a proxy do
// not come by here.
func (c *Client) dialTLS(config *tls.Config) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := c.dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		config := config.Clone()
		if config.ServerName == "" {
			config.ServerName = c.base.Hostname()
		}
		secure := tls.Client(plain, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			_ = plain.Close() // the error of the handshake is the one to report
			return nil, fmt.Errorf("%w: %w", errTLS, stableTLSError(err))
		}
		return secure, nil
	}
}

// IsTLSError reports whether a request failed because no trusted connection came about: the server
// does not speak TLS, or its certificate is not that of the expected server.
func IsTLSError(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.Is(err, errTLS) || errors.As(err, &verification)
}

var errTLS = errors.New("the TLS handshake failed")

// stableTLSError returns an error of a handshake without the time of the request.
func stableTLSError(err error) error {
	var invalid x509.CertificateInvalidError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain):
		return errors.New("the server does not speak TLS")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the certificate is valid from %s until %s",
			invalid.Cert.NotBefore.UTC().Format(time.RFC3339), invalid.Cert.NotAfter.UTC().Format(time.RFC3339))
	}
	return err
}
