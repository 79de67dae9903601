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
	"io/fs"
	"net"
	"net/http"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	maxHeaderBytes = 64 << 10
	idleTimeout    = 90 * time.Second
)

// currentTransport returns a transport that trusts the current content of the CA source.
func (c *Client) currentTransport() (*http.Transport, error) {
	ca, source := c.options.CA, "the CA bundle"
	if ca == nil {
		var err error
		if ca, source, err = readCAs(c.options.CAFile, c.options.ExtraCAFile); err != nil {
			return nil, err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.transport != nil && bytes.Equal(ca, c.ca) {
		return c.transport, nil
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: c.options.ServerName}
	var err error
	if tlsConfig.RootCAs, err = parseCAs(ca, source, c.options.CA == nil && c.options.CAFile == ""); err != nil {
		return nil, err
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
		DisableCompression:     true, // the limit applies to the transferred bytes
	}
	return c.transport, nil
}

// RootCAs returns the CAs in file. If file is empty, it returns the system CAs and the CAs in the
// file extra, which may be missing. It returns nil for the system CAs alone.
func RootCAs(file, extra string) (*x509.CertPool, error) {
	ca, source, err := readCAs(file, extra)
	if err != nil {
		return nil, err
	}
	return parseCAs(ca, source, file == "")
}

// readCAs returns the PEM bundle for RootCAs and the path of its file, or nil if there is none.
func readCAs(file, extra string) (ca []byte, source string, err error) {
	source, limit := file, int64(maxFileBytes)
	if file == "" {
		source, limit = extra, maxBundleBytes
	}
	if source == "" {
		return nil, "", nil
	}
	ca, _, err = readFile(source, limit)
	switch {
	case file == "" && (errors.Is(err, fs.ErrNotExist) || err == nil && len(bytes.TrimSpace(ca)) == 0):
		return nil, source, nil
	case err != nil:
		return nil, "", fmt.Errorf("reading the CA certificates: %w", err)
	}
	return ca, source, nil
}

// parseCAs returns the CAs in a PEM bundle and, if withSystem is true, the system CAs.
func parseCAs(ca []byte, source string, withSystem bool) (*x509.CertPool, error) {
	if ca == nil {
		return nil, nil //nolint:nilnil // as in tls.Config
	}
	pool := x509.NewCertPool()
	if withSystem {
		var err error
		if pool, err = x509.SystemCertPool(); err != nil {
			return nil, fmt.Errorf("reading the CA certificates of the system: %w", err)
		}
	}
	if !pool.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s does not hold a PEM certificate", source)
	}
	return pool, nil
}

// dial connects to the configured dial address, or to address if there is none.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if c.options.DialAddress != "" {
		address = c.options.DialAddress
	}
	dialer := net.Dialer{Timeout: c.options.DialTimeout}
	return dialer.DialContext(ctx, network, address)
}

// dialTLS opens a connection and marks handshake errors. It is not used for connections through a
// proxy.
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
			_ = plain.Close() // report the handshake error instead
			return nil, fmt.Errorf("%w: %w", errTLS, stableTLSError(err))
		}
		return secure, nil
	}
}

// IsTLSError reports whether a request failed because no trusted connection could be established:
// the server does not use TLS, or its certificate does not match the expected server.
func IsTLSError(err error) bool {
	var verification *tls.CertificateVerificationError
	return errors.Is(err, errTLS) || errors.As(err, &verification)
}

var errTLS = errors.New("the TLS handshake failed")

// stableTLSError removes the time of the request from a handshake error.
func stableTLSError(err error) error {
	var invalid x509.CertificateInvalidError
	var plain tls.RecordHeaderError
	switch {
	case errors.As(err, &plain):
		return errors.New("the server does not speak TLS")
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return fmt.Errorf("the certificate is valid from %s until %s",
			text.FormatTime(invalid.Cert.NotBefore), text.FormatTime(invalid.Cert.NotAfter))
	}
	return err
}
