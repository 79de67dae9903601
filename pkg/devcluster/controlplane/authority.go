// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of one control plane. They are issued at every start, so they
// never expire while in use.
type authority struct {
	dir         string
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
	caFile      string
	caKeyFile   string
	serial      int64

	serving           pair // of all servers, and of the API server as an etcd client
	admin             pair
	controllerManager pair
	tokens            pair // signs the tokens of ServiceAccounts; a key without a certificate
}

// pair contains the paths of the PEM files of a certificate and its key.
type pair struct{ certFile, keyFile string }

const validity = 365 * 24 * time.Hour

func newAuthority(dir string) (*authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &authority{dir: dir, caFile: filepath.Join(dir, "ca.crt"), caKeyFile: filepath.Join(dir, "ca.key")}
	for _, do := range []func() error{
		a.makeCA,
		func() (err error) {
			a.serving, err = a.issue("serving", pkix.Name{CommonName: "devcluster"})
			return err
		},
		func() (err error) {
			a.admin, err = a.issue("admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
			return err
		},
		func() (err error) {
			a.controllerManager, err = a.issue("controller-manager", pkix.Name{CommonName: "system:kube-controller-manager"})
			return err
		},
		func() (err error) {
			a.tokens.keyFile = filepath.Join(dir, "tokens.key")
			_, err = writeKey(a.tokens.keyFile)
			return err
		},
	} {
		if err := do(); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *authority) makeCA() error {
	key, err := writeKey(a.caKeyFile)
	if err != nil {
		return err
	}
	a.key = key
	template := a.template(pkix.Name{CommonName: "devcluster-ca"})
	template.IsCA = true
	template.BasicConstraintsValid = true
	template.KeyUsage |= x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	if a.certificate, err = x509.ParseCertificate(der); err != nil {
		return err
	}
	return writePEM(a.caFile, "CERTIFICATE", der)
}

func (a *authority) issue(file string, name pkix.Name) (pair, error) {
	files := pair{certFile: filepath.Join(a.dir, file+".crt"), keyFile: filepath.Join(a.dir, file+".key")}
	key, err := writeKey(files.keyFile)
	if err != nil {
		return pair{}, err
	}
	template := a.template(name)
	// etcd is also its own client, and peers use their certificates in both directions.
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	template.DNSNames = []string{"localhost"}
	template.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1)}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	return files, writePEM(files.certFile, "CERTIFICATE", der)
}

func (a *authority) template(name pkix.Name) *x509.Certificate {
	a.serial++
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: big.NewInt(a.serial),
		Subject:      name,
		NotBefore:    now.Add(-time.Hour), // the clock may be set back later
		NotAfter:     now.Add(validity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
	}
}

func writeKey(path string) (*ecdsa.PrivateKey, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	return key, writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}
