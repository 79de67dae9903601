// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"

	certutil "k8s.io/client-go/util/cert"
)

// Names of the files in a certificate directory, as in a Secret of type TLS.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// validateCertDir validates the directory of the metrics certificate. The directory may be empty:
// OpenShift's service CA creates the Secret after the Service, and the kubelet then mounts it into
// running pods.
func validateCertDir(dir string) error {
	if dir == "" {
		return nil
	}
	_, dirErr := os.ReadDir(dir)
	_, certErr := os.Stat(filepath.Join(dir, certificateFile))
	_, keyErr := os.Stat(filepath.Join(dir, keyFile))
	err := dirErr
	if err == nil && (certErr == nil) != (keyErr == nil) {
		err = errors.Join(certErr, keyErr)
	}
	if err != nil {
		return fmt.Errorf("must be a directory with tls.crt and tls.key, or empty: %w", err)
	}
	return nil
}

// tlsOptions makes the server use the certificate that is in the directory when a connection is
// opened, or a self-signed one if there is none. It disables HTTP/2, because with its streams a few
// clients can cause a lot of work.
func tlsOptions(dir string) func(*tls.Config) {
	selfSignedOnce := sync.OnceValues(selfSigned)
	getCertificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if dir == "" {
			return selfSignedOnce()
		}
		pair, err := tls.LoadX509KeyPair(filepath.Join(dir, certificateFile), filepath.Join(dir, keyFile))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return selfSignedOnce()
		case err != nil:
			return nil, fmt.Errorf("reading the metrics certificate: %w", err)
		}
		return &pair, nil
	}
	return func(c *tls.Config) { c.GetCertificate, c.NextProtos = getCertificate, []string{"http/1.1"} }
}

func selfSigned() (*tls.Certificate, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("generating a certificate for the metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	return &pair, err
}
