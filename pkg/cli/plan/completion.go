// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"github.com/spf13/cobra"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updateplan"
)

// OfferedVersions returns the offered versions.
func OfferedVersions(cmd *cobra.Command, cluster *session.Cluster) []string {
	version, err := clusterstate.GetClusterVersion(cmd.Context(), cluster)
	if err != nil {
		return nil
	}
	return version.OfferedVersions()
}

// Pools returns the names of the worker node pools.
func Pools(cmd *cobra.Command, cluster *session.Cluster) []string {
	list, err := workerPools(cmd.Context(), cluster)
	if err != nil {
		return nil
	}
	names := make([]string, len(list))
	for i := range list {
		names[i] = list[i].Name
	}
	return names
}

// OpenRisks returns the unaccepted risks of the release in --version.
func OpenRisks(cmd *cobra.Command, cluster *session.Cluster) []string {
	plan := &updatev1beta1.UpdatePlan{}
	if err := cluster.Get(cmd.Context(), client.ObjectKey{Name: updateplan.Name(cmd.Flag("version").Value.String())}, plan); err != nil {
		return nil
	}
	var uids []string
	for _, judged := range updateplan.Unaccepted(updateplan.JudgePlan(plan, cluster.Clock.Now())) {
		uids = append(uids, judged.Insight.UID)
	}
	return uids
}
