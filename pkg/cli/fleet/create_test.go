// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/clitest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
)

// A fleet upgrade is created as a dry run, or printed without making changes.
func TestFleet_create(t *testing.T) {
	t.Parallel()
	cluster := clitest.NewFakeCluster(t)
	for args, want := range map[string]string{
		"stores --placement a":                          "--to",
		"stores --to 4.20.8":                            "--placement or --cluster-set",
		"stores --to 4.20.8 --placement a":              "add -y",
		"stores --to 4.20.8 --placement a -o something": "--output",
	} {
		if got := runOn(t, cluster, "", append([]string{"fleet", "create"}, strings.Fields(args)...)...); got.Code != session.ExitUsage || !strings.Contains(got.ErrOut, want) {
			t.Errorf("%s: %+v", args, got)
		}
	}
	got := runOn(t, cluster, "", strings.Fields("fleet create stores -n ops --to 4.20.8 --placement a --placement b/c --cluster-set retail --canary x,y --max-concurrency 10% --start -o yaml")...)
	var printed fleetv1beta1.ManagedClustersUpgrade
	if err := yaml.UnmarshalStrict([]byte(got.Out), &printed); got.Code != session.ExitDone || err != nil {
		t.Fatalf("%v: %+v", err, got)
	}
	spec := printed.Spec
	if printed.Kind != "ManagedClustersUpgrade" || printed.Namespace != "ops" || spec.DryRun || spec.ClusterVersion.Channel != "stable-4.20" || len(spec.Placement) != 2 ||
		spec.Placement[1] != (fleetv1beta1.PlacementReference{Namespace: "b", Name: "c"}) || spec.ClusterSelector.ClusterSets[0] != "retail" ||
		len(spec.UpgradeStrategy.CanaryClusters.ClusterSelector.MatchExpressions[0].Values) != 2 || spec.UpgradeStrategy.MaxConcurrency.String() != "10%" {
		t.Errorf("printed %s", got.Out)
	}
	got = runOn(t, cluster, "", strings.Fields("fleet create stores -n ops -y --to 4.20.8 --placement a")...)
	stored := &fleetv1beta1.ManagedClustersUpgrade{}
	err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: "ops", Name: "stores"}, stored)
	if got.Code != session.ExitDone || err != nil || !stored.Spec.DryRun || !strings.Contains(got.Out, "created as a dry run") {
		t.Errorf("%v: %+v, %+v", err, got, stored.Spec)
	}
}
