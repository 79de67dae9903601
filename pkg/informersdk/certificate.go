// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informersdk

import (
	"crypto/tls"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/utils/clock"
)

// checkCertificateAfter is the maximum age of a check of the certificate files.
const checkCertificateAfter = 10 * time.Second

// Certificate is a serving certificate in files that are replaced before it expires.
type Certificate struct {
	// CertFile and KeyFile are the paths of the PEM-encoded certificate chain and its key.
	CertFile, KeyFile string
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
	// Log receives the reasons why a new certificate cannot be served. By default, they are discarded.
	Log logr.Logger

	mu          sync.Mutex
	certificate *tls.Certificate
	checked     time.Time
}

// Get returns the certificate in the files, reading them at most every ten seconds. If the files
// contain no valid certificate, it returns the last valid one.
func (c *Certificate) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var now time.Time
	if c.Clock == nil {
		now = clock.RealClock{}.Now()
	} else {
		now = c.Clock.Now()
	}
	if age := now.Sub(c.checked); c.certificate != nil && age >= 0 && age < checkCertificateAfter {
		return c.certificate, nil
	}
	c.checked = now
	if err := c.load(); err != nil {
		if c.certificate == nil {
			return nil, err
		}
		if c.Log.GetSink() != nil {
			c.Log.Error(err, "The new certificate is not served.")
		}
	}
	return c.certificate, nil
}

func (c *Certificate) load() error {
	chain, err := os.ReadFile(c.CertFile)
	if err != nil {
		return fmt.Errorf("reading the certificate: %w", err)
	}
	key, err := os.ReadFile(c.KeyFile)
	if err != nil {
		return fmt.Errorf("reading the key: %w", err)
	}
	certificate, err := tls.X509KeyPair(chain, key)
	if err != nil {
		return fmt.Errorf("loading %s and %s: %w", c.CertFile, c.KeyFile, err)
	}
	c.certificate = &certificate
	return nil
}
