// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package commands is the command line of the dev cluster.
//
// It knows nothing of how a cluster is played: it turns flags into descriptions of clusters and stories, and what happens
// into lines of text.
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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/commandline"
)

// ErrUnexpected is returned when a story did not end as expected. What was not has been printed.
var ErrUnexpected = errors.New("the scenario did not end as expected")

// ErrInterrupted is returned when a story was ended before it was over.
var ErrInterrupted = errors.New("interrupted")

// place is where a cluster and the programs are.
type place struct {
	dir        string
	bin        string
	repository string
}

// New returns the command with all its subcommands.
func New() *cobra.Command {
	where := &place{}
	root := &cobra.Command{
		Use:           "devcluster",
		Short:         "An OpenShift-like cluster on a laptop, and stories that are played on it.",
		SilenceUsage:  true,
		SilenceErrors: true,
		PersistentPreRun: func(*cobra.Command, []string) {
			// Libraries have nothing to tell on a terminal; the players' log is a file.
			klog.SetLogger(logr.Discard())
			ctrl.SetLogger(logr.Discard())
		},
	}
	root.SetOut(os.Stdout)
	root.SetFlagErrorFunc(commandline.FlagError)
	flags := root.PersistentFlags()
	flags.StringVar(&where.dir, "dir", ".devcluster", "state folder of the cluster")
	flags.StringVar(&where.bin, "bin-dir", "", "folder with etcd, kube-apiserver, kube-controller-manager, kubectl and operator (default: bin in the module of the working directory)")
	flags.StringVar(&where.repository, "repository", "", "checkout whose deploy folder is applied (default: the module of the working directory)")
	root.AddCommand(up(where), down(where), status(where), logs(where), play(where), scenarioNames(), demo(where))
	return root
}

// complete fills in what depends on the working directory.
func (p *place) complete() error {
	if p.repository == "" {
		root, err := moduleRoot()
		if err != nil {
			return err
		}
		p.repository = root
	}
	if p.bin == "" {
		p.bin = filepath.Join(p.repository, "bin")
	}
	if _, err := os.Stat(filepath.Join(p.repository, "deploy")); err != nil {
		return fmt.Errorf("--repository: must be a checkout of the operator, with a folder deploy: %w", err)
	}
	dir, err := filepath.Abs(p.dir)
	if err != nil {
		return fmt.Errorf("finding the state folder: %w", err)
	}
	p.dir = dir
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

func (p *place) kubeconfig() string { return filepath.Join(p.dir, "kubeconfig") }
