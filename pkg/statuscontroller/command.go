// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package statuscontroller

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/utils/clock"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
)

// Options are the flags of the Update Status Controller.
type Options struct {
	manager.Options

	// ServiceAccount is the name of the ServiceAccount of the pod.
	ServiceAccount string
	// ServiceCAFile is the path of the CA bundle of OpenShift's service CA.
	ServiceCAFile string
	// AlertsURL is the URL of the source of alerts. AlertsTokenFile holds the bearer token for it.
	AlertsURL, AlertsTokenFile string
}

// Command returns the command line of the Update Status Controller.
func Command(version string) *cobra.Command {
	options := Options{Options: manager.Options{Version: version}}
	cmd := manager.NewCommand(Component, "Aggregates insights about updates of the OpenShift cluster on which it runs.", version, func(ctx context.Context) error {
		return Main(ctx, options, clock.RealClock{})
	})
	flags := cmd.Flags()
	options.BindShared(flags)
	flags.StringVar(&options.ServiceAccount, "service-account", "update-status-controller", "name of the ServiceAccount of the pod, whose tokens authenticate it to update informers")
	flags.StringVar(&options.ServiceCAFile, "service-ca-file", "", "path to the authorities of OpenShift's service CA, which may be added and changed later; empty means that there are none")
	flags.StringVar(&options.AlertsURL, "alerts-url", "", "URL of a Prometheus or Thanos that returns alerts; empty means that alerts are not read")
	flags.StringVar(&options.AlertsTokenFile, "alerts-token-file", "", "path to the token for --alerts-url; empty means no token")
	return cmd
}
