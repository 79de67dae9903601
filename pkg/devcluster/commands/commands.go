// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commands implements the command line of the dev cluster.
//
// It translates flags to descriptions of clusters and scenarios, and events to text.
package commands

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// ErrUnexpected is returned if a scenario did not end as expected. The differences have already
// been printed.
var ErrUnexpected = errors.New("the scenario did not end as expected")

// ErrInterrupted is returned if a scenario was interrupted.
var ErrInterrupted = errors.New("interrupted")

// globalOptions are the options of all commands.
type globalOptions struct {
	dir        string
	bin        string
	repository string
}

// New returns the root command.
func New() *cobra.Command {
	opts := &globalOptions{}
	root := &cobra.Command{
		Use:           "devcluster",
		Short:         "An OpenShift-like cluster on a laptop, and scenarios that run on it.",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			// Libraries must not write to the terminal; the simulators have a log file.
			klog.SetLogger(logr.Discard())
			ctrl.SetLogger(logr.Discard())
		},
	}
	root.SetOut(os.Stdout)
	root.SetFlagErrorFunc(manager.FlagError)
	flags := root.PersistentFlags()
	flags.StringVar(&opts.dir, "dir", ".devcluster", "state folder of the cluster")
	flags.StringVar(&opts.bin, "bin-dir", "", "folder with etcd, kube-apiserver, kube-controller-manager, kubectl and operator (default: bin in the module of the working directory)")
	flags.StringVar(&opts.repository, "repository", "", "checkout whose deploy folder is applied (default: the module of the working directory)")
	root.AddCommand(up(opts), down(opts), status(opts), logs(opts), scenarioCommand(opts), scenarioNames(), demo(opts), simulate(), record(opts), fleetCommand(opts))
	return root
}

// complete sets the options that depend on the working directory.
func (o *globalOptions) complete() error {
	if o.repository == "" {
		root, err := moduleRoot()
		if err != nil {
			return err
		}
		o.repository = root
	}
	if o.bin == "" {
		o.bin = filepath.Join(o.repository, "bin")
	}
	if _, err := os.Stat(filepath.Join(o.repository, "deploy")); err != nil {
		return fmt.Errorf("--repository: must be a checkout of the operator, with a folder deploy: %w", err)
	}
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return fmt.Errorf("finding the state folder: %w", err)
	}
	o.dir = dir
	return nil
}

func moduleRoot() (string, error) {
	working, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the working directory: %w", err)
	}
	for dir := working; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod in %s or above it: name the checkout by --repository", working)
		}
	}
}

func (o *globalOptions) kubeconfig() string { return filepath.Join(o.dir, "kubeconfig") }
