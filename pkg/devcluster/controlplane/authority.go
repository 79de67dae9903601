// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/pki"
)

// authority signs the certificates of one control plane. They are issued at every start, so they
// never expire while in use.
type authority struct {
	dir       string
	signer    *pki.Authority
	caFile    string
	caKeyFile string

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
	a := &authority{
		dir: dir, signer: pki.New("devcluster-ca"), caFile: filepath.Join(dir, "ca.crt"), caKeyFile: filepath.Join(dir, "ca.key"),
		tokens: pair{keyFile: filepath.Join(dir, "tokens.key")},
	}
	if err := a.signer.Write(a.caFile, a.caKeyFile); err != nil {
		return nil, err
	}
	if err := pki.WriteKey(pki.NewKey(), a.tokens.keyFile); err != nil {
		return nil, err
	}
	var err error
	if a.serving, err = a.issue("serving", pkix.Name{CommonName: "devcluster"}); err != nil {
		return nil, err
	}
	if a.admin, err = a.issue("admin", pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}}); err != nil {
		return nil, err
	}
	a.controllerManager, err = a.issue("controller-manager", pkix.Name{CommonName: "system:kube-controller-manager"})
	return a, err
}

func (a *authority) issue(file string, name pkix.Name) (pair, error) {
	files := pair{certFile: filepath.Join(a.dir, file+".crt"), keyFile: filepath.Join(a.dir, file+".key")}
	now := time.Now()
	return files, pki.Write(a.signer.Sign(&x509.Certificate{
		Subject: name, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity), // the clock may be set back later
		// etcd is also its own client, and peers use their certificates in both directions.
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}), files.certFile, files.keyFile)
}
