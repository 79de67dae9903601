// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package pki issues the certificates of dev clusters and tests.
package pki

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"time"
)

// Authority signs certificates.
type Authority struct {
	// PEM is the CA bundle of this authority.
	PEM         []byte
	certificate tls.Certificate
	serial      int64
}

// New returns an authority whose certificate is valid from 2020 to 2100.
func New(name string) *Authority {
	key, template := NewKey(), &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	a := &Authority{certificate: tls.Certificate{PrivateKey: key, Leaf: template}} // it signs its own certificate
	a.certificate = a.sign(template, key)
	a.PEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Certificate[0]})
	return a
}

// Certificate returns the certificate of the authority.
func (a *Authority) Certificate() *x509.Certificate { return a.certificate.Leaf }

// Issue returns a certificate for a server with the given DNS name or IP address.
func (a *Authority) Issue(name string, from, until time.Time) tls.Certificate {
	template := &x509.Certificate{Subject: pkix.Name{CommonName: name}, NotBefore: from, NotAfter: until}
	if ip := net.ParseIP(name); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{name}
	}
	return a.Sign(template)
}

// Sign returns a certificate with a new key. It sets the serial number and key usage of the
// template.
func (a *Authority) Sign(template *x509.Certificate) tls.Certificate {
	template.KeyUsage = x509.KeyUsageDigitalSignature
	return a.sign(template, NewKey())
}

func (a *Authority) sign(template *x509.Certificate, key *ecdsa.PrivateKey) tls.Certificate {
	a.serial++
	template.SerialNumber = big.NewInt(a.serial)
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate.Leaf, key.Public(), a.certificate.PrivateKey)
	if err != nil {
		panic(fmt.Sprintf("signing %s: %v", template.Subject, err)) // the template is wrong
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		panic(fmt.Sprintf("parsing %s: %v", template.Subject, err))
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// Write writes the certificate and key of the authority to files.
func (a *Authority) Write(certFile, keyFile string) error {
	return Write(a.certificate, certFile, keyFile)
}

// Write writes a certificate and its key to files.
func Write(c tls.Certificate, certFile, keyFile string) error {
	if err := WriteKey(c.PrivateKey.(*ecdsa.PrivateKey), keyFile); err != nil { //nolint:forcetypeassert // It is one of NewKey.
		return err
	}
	return os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}), 0o600)
}

// NewKey returns a new key.
func NewKey() *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err) // there is no randomness
	}
	return key
}

// WriteKey writes a key to a file in the form that kube-apiserver accepts for the keys of tokens.
func WriteKey(key *ecdsa.PrivateKey, file string) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600)
}
