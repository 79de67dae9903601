// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// authority is a CA that signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	pem         string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: start.Add(-48 * time.Hour), NotAfter: start.Add(48 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var der []byte
	der, a.key = sign(t, template, nil, nil)
	var err error
	a.certificate, err = x509.ParseCertificate(der)
	must(t, err)
	a.pem = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

// sign returns a certificate and its key. Without a parent, the certificate is self-signed.
func sign(t *testing.T, template, parent *x509.Certificate, parentKey *ecdsa.PrivateKey) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	if parent == nil {
		parent, parentKey = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), parentKey)
	must(t, err)
	return der, key
}

// issue returns a serving certificate.
func (a *authority) issue(t *testing.T, name string, until time.Time) tls.Certificate {
	t.Helper()
	der, key := sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), NotBefore: start.Add(-24 * time.Hour), NotAfter: until, DNSNames: []string{name},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, KeyUsage: x509.KeyUsageDigitalSignature,
	}, a.certificate, a.key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}
