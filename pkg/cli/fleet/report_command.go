// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/report"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// reportOptions holds the flags and arguments of the command fleet report.
type reportOptions struct {
	*session.Session
	report.ServeFlags

	states []string
	args   []string
}

// reportCommand returns the command that writes the state of a fleet to a file or serves it.
func reportCommand(p *session.Session) *cobra.Command {
	o := &reportOptions{Session: p}
	cmd := withFleetNames(p, &cobra.Command{
		Use:   "report NAME FILE | report NAME --serve",
		Short: "Write the state of a fleet upgrade to an HTML page, or serve it live",
		Long: "Write the state of a fleet upgrade to a self-contained HTML page. Use - as FILE for standard output.\n\n" +
			"The page shows the verdict, the progress of canaries and groups, causes, and a table of clusters with a filter by state\n" +
			"and the steps of each cluster. A file contains the steps of up to " + strconv.Itoa(report.MaxDetails) + " clusters. Failed clusters and clusters in\n" +
			"progress take precedence.\n\n" +
			"With --serve, the pages are served on this machine and updated while they are open in a browser. No file is written.",
		Example: "  oc update fleet report stores stores.html\n  oc update fleet report stores --serve\n  oc update fleet report stores failed.html --state Failed",
		Args: func(cmd *cobra.Command, args []string) error {
			switch {
			case o.Serve:
				return cobra.ExactArgs(1)(cmd, args)
			case len(args) == 1:
				return fmt.Errorf("name the FILE to write after %s, for example %s.html, or add --serve", args[0], args[0])
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		RunE: session.RunE(o),
	})
	cmd.ValidArgsFunction = session.ThenFile(cmd.ValidArgsFunction)
	o.Bind(cmd)
	stateFlag(cmd, &o.states, "include only clusters in this state")
	return cmd
}

// Complete takes the upgrade and the file from the arguments.
func (o *reportOptions) Complete(cmd *cobra.Command, args []string) error {
	o.args = args
	return o.Check(cmd)
}

// Validate checks the flags.
func (o *reportOptions) Validate() error { return checkStates(o.states) }

// Run writes or serves the page.
func (o *reportOptions) Run(ctx context.Context) error {
	of := upgradeOptions{Session: o.Session, upgrade: o.args[0]}
	if o.Serve {
		return o.serveFleet(ctx, of)
	}
	return o.writeFleet(ctx, of, o.args[1])
}

func (o *reportOptions) writeFleet(ctx context.Context, of upgradeOptions, file string) error {
	if err := report.CheckWritable(file, o.Overwrite); err != nil {
		return err
	}
	_, s, err := of.read(ctx)
	if err != nil {
		return err
	}
	states, name := o.states, of.upgrade
	made := fleetPrinter(o.Session, name).Report(s)
	if len(states) > 0 {
		made.Clusters = slices.DeleteFunc(made.Clusters, func(c report.Cluster) bool { return !slices.Contains(states, c.State) })
		made.Missing = append(made.Missing, "clusters in other states than "+strings.Join(states, ", "))
	}
	var page bytes.Buffer
	if err := report.WriteFleetFile(&page, made, Details(s, made.Detailed())); err != nil {
		return err
	}
	about := fmt.Sprintf("managedclustersupgrade/%s, %d clusters, %s", name, len(made.Clusters), made.Verdict)
	return report.WritePage(o.Session, file, page.Bytes(), o.Overwrite, about, made.Missing)
}

// serveFleet serves the pages of a fleet on the loopback address until the context is canceled.
func (o *reportOptions) serveFleet(ctx context.Context, of upgradeOptions) error {
	cluster, key, err := of.connectFleet()
	if err != nil {
		return err
	}
	s := fleetPages(o.Session, cluster, key)
	if _, err := s.Get(ctx); err != nil {
		return err
	}
	return report.Serve(ctx, o.Session, o.Port, s.page)
}

// fleetServer serves the pages of a fleet. It only keeps the upgrade and the rows of the table.
type fleetServer struct {
	report.Cached[servedFleet]

	cluster *session.Cluster
}

type servedFleet struct {
	report.Fleet

	upgrade *fleetv1beta1.ManagedClustersUpgrade
}

func fleetPages(p *session.Session, cluster *session.Cluster, key client.ObjectKey) *fleetServer {
	return &fleetServer{cluster: cluster, Cached: report.Cached[servedFleet]{Clock: cluster.Clock, Read: func(ctx context.Context) (servedFleet, error) {
		s, err := Read(ctx, cluster, key, cluster.Clock.Now())
		if err != nil {
			return servedFleet{}, err
		}
		return servedFleet{fleetPrinter(p, key.Name).Report(s), s.Upgrade}, nil
	}}}
}

// page returns the page of the fleet at / or the page of a cluster at /clusters/NAME.
func (s *fleetServer) page(r *http.Request) ([]byte, error) {
	served, err := s.Get(r.Context())
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	if name, isCluster := strings.CutPrefix(r.URL.Path, "/clusters/"); isCluster {
		i := slices.IndexFunc(served.Clusters, func(c report.Cluster) bool { return c.Name == name })
		if i < 0 {
			return nil, report.ErrNoPage
		}
		made, err := ReadDetail(r.Context(), s.cluster, served.upgrade, served.Clusters[i], s.cluster.Clock.Now())
		if err != nil {
			return nil, err
		}
		made.Refresh, made.Back = report.RefreshInterval, "../"
		err = report.Write(&page, made)
		return page.Bytes(), err
	}
	query := r.URL.Query()
	state := query.Get("state")
	if r.URL.Path != "/" || state != "" && !slices.Contains(served.States, state) {
		return nil, report.ErrNoPage
	}
	number, _ := strconv.Atoi(query.Get("page")) // invalid values select the first page
	err = report.WriteFleet(&page, served.Fleet, report.Selection{State: state, Page: number}, report.RefreshInterval)
	return page.Bytes(), err
}
