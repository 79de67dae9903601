// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

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

// The files of a certificate in its folder, as a Secret for TLS has them.
const (
	certificateFile = "tls.crt"
	keyFile         = "tls.key"
)

// validateCertDir says what is wrong with a folder that has what the metrics are
// served with. That nothing is in it yet is not: OpenShift's service CA makes
// the Secret after the Service, and a kubelet then brings it into running pods.
func validateCertDir(folder string) error {
	if folder == "" {
		return nil
	}
	_, dirErr := os.ReadDir(folder)
	_, certErr := os.Stat(filepath.Join(folder, certificateFile))
	_, keyErr := os.Stat(filepath.Join(folder, keyFile))
	err := dirErr
	if err == nil && (certErr == nil) != (keyErr == nil) {
		err = errors.Join(certErr, keyErr)
	}
	if err != nil {
		return fmt.Errorf("must name a folder with tls.crt and tls.key, or be left out: %w", err)
	}
	return nil
}

// tlsOptions returns how the metrics are served: with the certificate that is in
// the folder at the time, and while there is none, with one signed by itself.
func tlsOptions(folder string) func(*tls.Config) {
	selfSignedOnce := sync.OnceValues(selfSigned)
	getCertificate := func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if folder == "" {
			return selfSignedOnce()
		}
		pair, err := tls.LoadX509KeyPair(filepath.Join(folder, certificateFile), filepath.Join(folder, keyFile))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return selfSignedOnce()
		case err != nil:
			return nil, fmt.Errorf("reading the certificate of the metrics: %w", err)
		}
		return &pair, nil
	}
	return func(c *tls.Config) { c.GetCertificate = getCertificate }
}

func selfSigned() (*tls.Certificate, error) {
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	if err != nil {
		return nil, fmt.Errorf("making a certificate for the metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	return &pair, err
}
