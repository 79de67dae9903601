// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package realcvo runs the real cluster version operator and simulates its environment: releases
// and their signatures, the pods that unpack releases, its own Deployment, and the
// ClusterOperators, whose versions follow the release in their ConfigMap.
//
// The cluster version operator itself reports its state in the ClusterVersion.
package realcvo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/timescale"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// Namespace, Deployment, and ServiceAccount of the cluster version operator.
const (
	Namespace      = "openshift-cluster-version"
	ServiceAccount = "default"
)

// program is the name of the executable, both in BinDir and in the root folder of its process.
const program = "cluster-version-operator"

// Options configure an Operator.
type Options struct {
	// BinDir is the folder with the program.
	BinDir string
	// Dir is the root folder of the process, in place of the root of the container image.
	Dir string
	// Log is the path of the log file of the process.
	Log string
	// Client is the configuration of the process for the API server.
	Client *rest.Config
	// Prometheus is the URL for queries about risks. If it is empty, all queries fail.
	Prometheus string
	// Signatures is the URL of the signatures made with Key.
	Signatures string
	Key        *Key

	Speed     timescale.Speed
	Catalog   *updategraph.Catalog
	Installed string             // the installed version; the catalog must contain it
	Operators []cvo.OperatorSpec // in the order of their update

	// OnExit is called if the process ends right after it was started. In all other cases the process
	// is restarted.
	OnExit func(error)
}

// Operator is the real cluster version operator.
type Operator struct {
	options Options
	process *process
}

// Require returns an error if the cluster version operator cannot run on this machine.
func Require() error {
	if err := supported(); err != nil {
		return fmt.Errorf("needs Linux and root; %w", err)
	}
	return nil
}

// New prepares the root folder of the process. The process runs from the start of the manager until
// Stop.
func New(options Options) (*Operator, error) {
	if err := controlplane.RequireBuilt(options.BinDir, "make bin/"+program, program); err != nil {
		return nil, err
	}
	o := &Operator{options: options}
	installed, found := options.Catalog.Version(options.Installed)
	if !found {
		return nil, fmt.Errorf("preparing the cluster version operator: the catalog does not have the installed release %q", options.Installed)
	}
	if err := o.prepareRoot(); err != nil {
		return nil, fmt.Errorf("furnishing the root folder of the cluster version operator: %w", err)
	}
	if err := o.unpack(installed, "/"); err != nil {
		return nil, err
	}
	o.process = &process{root: options.Dir, log: options.Log, onExit: options.OnExit}
	return o, nil
}

// AddToManager adds the simulators around the process to the manager, and the manager starts the
// process.
func (o *Operator) AddToManager(mgr manager.Manager) error {
	if err := o.addDeployment(mgr); err != nil {
		return err
	}
	if err := addClusterOperators(mgr, o.options); err != nil {
		return err
	}
	installed, _ := o.options.Catalog.Version(o.options.Installed)
	return mgr.Add(manager.RunnableFunc(func(context.Context) error { return o.process.run(o.container(installed)) }))
}

// Stop kills the process. It may be called more than once.
func (o *Operator) Stop() error { return o.process.end() }

// Paths in the root folder of the process.
const (
	kubeconfigPath = "/kubeconfig"
	payloadsPath   = "/etc/cvo/updatepayloads" // where the cluster version operator finds unpacked releases
)

// prepareRoot writes the files that do not depend on the release to the root folder.
func (o *Operator) prepareRoot() error {
	if err := os.RemoveAll(o.options.Dir); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(o.options.Dir, payloadsPath), 0o750); err != nil {
		return err
	}
	if err := copyFile(filepath.Join(o.options.BinDir, program), filepath.Join(o.options.Dir, program), 0o700); err != nil {
		return err
	}
	client := rest.CopyConfig(o.options.Client)
	if err := rest.LoadTLSFiles(client); err != nil {
		return err
	}
	client.CAFile, client.CertFile, client.KeyFile = "", "", "" // these paths are outside the root folder
	return controlplane.WriteKubeconfig(filepath.Join(o.options.Dir, kubeconfigPath), client)
}

func copyFile(from, to string, mode os.FileMode) (err error) {
	source, err := os.Open(from) //nolint:gosec // a program of ours
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, mode) //nolint:gosec // in our state folder
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	_, err = target.ReadFrom(source)
	return err
}
