// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
)

// requestTimeout limits the duration of a single request by approve-operators.
const requestTimeout = 30 * time.Second

// Exit codes of the program.
const (
	exitFailed = 1
	// exitInterrupted is the exit code after SIGTERM. The Job of approve-operators then replaces its
	// pod, whereas exit code 1 makes the Job fail.
	exitInterrupted = 143
)

// ApproveCommand returns the subcommand approve-operators, which approves the upgrades of operators
// and waits for them. getenv returns the environment variables that select the operators.
func ApproveCommand(getenv func(string) string, clk clock.Clock) *cobra.Command {
	var access manager.Options
	cmd := &cobra.Command{
		Use:   "approve-operators",
		Short: "Approves the upgrades of OLM operators, and waits until they are installed.",
		Long: `Approves the InstallPlans that wait for an approval, and waits until the
operators are installed and no other release follows for a minute. OLM lets all
InstallPlans of a namespace wait if one of its Subscriptions has
installPlanApproval: Manual. Other namespaces are left alone.

Environment variables:
  WAITTIME     number of seconds in which the upgrades must be installed
  INCLUDELIST  Subscriptions to upgrade, each as name,namespace, separated by
               spaces; empty means all
  EXCLUDELIST  Subscriptions that must not be upgraded, in the same form. An
               InstallPlan that also upgrades one of them is not approved.
  REPORT       Job, as name,namespace, to which the program reports which
               InstallPlans decide; empty means none

Exit codes: 0 all operators are upgraded, 1 at least one is not,
143 interrupted before the result was known.`,
		Args: manager.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options, err := olm.ParseOptions(getenv)
			if err != nil {
				return err
			}
			manager.SetLoggers(access.Logger()) // for the libraries
			approver := olm.Approver{Clock: clk, Options: options, Out: cmd.OutOrStdout()}
			if approver.Client, err = olmClient(&access); err != nil {
				return err
			}
			return approver.Run(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&access.Kubeconfig, "kubeconfig", "", "path to a kubeconfig; empty means the ServiceAccount of the pod, $KUBECONFIG, or ~/.kube/config")
	return cmd
}

// olmClient returns an uncached client for the kinds of OLM.
func olmClient(access *manager.Options) (client.Client, error) {
	restConfig, err := access.RESTConfig(userAgent)
	if err != nil {
		return nil, err
	}
	restConfig.Timeout = requestTimeout
	c, err := client.New(restConfig, client.Options{Scheme: olm.NewScheme(), Mapper: olm.Mapper()})
	if err != nil {
		return nil, fmt.Errorf("creating the client: %w", err)
	}
	return c, nil
}

// ExitCode returns the exit code for the error of a command.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, olm.ErrInterrupted):
		return exitInterrupted
	}
	return exitFailed
}
