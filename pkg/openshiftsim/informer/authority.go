// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"time"
)

// authority signs the certificates of one informer.
type authority struct {
	bundle         []byte // PEM-encoded
	serving, other *tls.Certificate
}

const validity = 24 * time.Hour

// newAuthority creates a certificate for the given name and one for another name.
func newAuthority(name string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	root := template("informer-ca", 1)
	root.IsCA, root.BasicConstraintsValid = true, true
	root.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, root, root, key.Public(), key)
	if err != nil {
		return nil, err
	}
	a := &authority{bundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})}
	issue := func(name string, serial int64) (*tls.Certificate, error) {
		leaf := template(name, serial)
		leaf.DNSNames = []string{name}
		der, err := x509.CreateCertificate(rand.Reader, leaf, root, key.Public(), key)
		return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
	}
	if a.serving, err = issue(name, 2); err != nil {
		return nil, err
	}
	a.other, err = issue("another."+name, 3)
	return a, err
}

func template(name string, serial int64) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity), KeyUsage: x509.KeyUsageDigitalSignature,
	}
}

// encodedBundle returns the CA bundle in the encoding of an object.
func (a *authority) encodedBundle() string { return base64.StdEncoding.EncodeToString(a.bundle) }
