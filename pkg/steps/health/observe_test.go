// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package health_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/health"
)

func TestObserve_is_called_for_each_check(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	for name, tc := range map[string]struct {
		objects []client.Object
		names   []string
		err     error
		want    []string
	}{
		"all is well":                {[]client.Object{version(), healthyOperator("dns"), node("a")}, nil, nil, nil},
		"an operator is degraded":    {[]client.Object{operator("dns")}, nil, nil, []string{"operators"}},
		"a pool is paused":           {[]client.Object{version(), pool("worker", true)}, nil, nil, []string{"pools"}},
		"a node and an alert":        {[]client.Object{version(), node("a", notReady)}, []string{"A"}, nil, []string{"nodes", "alerts"}},
		"a PodDisruptionBudget":      {[]client.Object{version(), budget("openshift-etcd", "guard", 0)}, nil, nil, []string{"pdbs"}},
		"alerts cannot be found out": {[]client.Object{version()}, nil, down, []string{"alerts"}},
		"a pool is updating":         {[]client.Object{updatingPool("worker")}, nil, nil, []string{"rollout"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, alerts := newTestAlerts()
			s.names, s.err = tc.names, tc.err
			now := noon.Add(time.Hour)
			var observed, failed []string
			alerts.Observe = func(check string, ok bool, at time.Time) {
				observed = append(observed, check)
				if !ok {
					failed = append(failed, check)
				}
				if !at.Equal(now) {
					t.Errorf("%s was observed at %s", check, at)
				}
			}
			r := newCluster(t, tc.objects...)
			_, _ = health.WaitUntilHealthy(runner(r, alerts), "ClusterUnhealthy")(t.Context(), engine.Run{Now: now})
			if diff := cmp.Diff(tc.want, failed); diff != "" {
				t.Errorf("observed to fail (-want +got):\n%s", diff)
			}
			once := slices.Clone(observed)
			for _, check := range []string{"version", "operators", "pools", "rollout", "nodes", "pdbs", "queries", "alerts"} {
				if !slices.Contains(once, check) {
					t.Errorf("%s was not observed", check)
				}
			}
			_, _ = health.IsHealthy(runner(r, alerts))(t.Context()) // upgrades do not wait for either of these
			_, _ = health.PreCheckHealth(runner(r, alerts), "ClusterUnhealthy")(t.Context(), engine.Run{Now: now})
			if diff := cmp.Diff(once, observed); diff != "" {
				t.Errorf("observed (-by the step +beside it):\n%s", diff)
			}
		})
	}
}
