// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

// counted counts what is read.
type counted struct {
	client.Reader
	reads int
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, object, opts...)
}

func TestACacheThatLagsBehindEndsNothing(t *testing.T) {
	t.Parallel()
	requested, begun, elsewhere := at(asked("4.4.6")), at(asked("4.4.6"), moving("4.4.6")), at(moving("4.4.6"), moving("4.4.7"), asked("4.4.7"))
	for name, tc := range map[string]struct {
		cached, live *configv1.ClusterVersion
		ask          func(cached, live client.Reader) (bool, error) // whether the upgrade goes on
		goesOn       bool
		reads        int // of the API server
	}{
		"the cache does not show yet that the upgrade has begun": {requested, begun, commenced(t), true, 1},
		"it has not begun":          {requested, requested, commenced(t), false, 1},
		"it has begun":              {begun, begun, commenced(t), true, 0},
		"it was not even asked for": {at(), at(), commenced(t), false, 0},
		"the cache still shows the release before, to one who installs":       {requested, begun, goesOn(t, controlplane.Upgraded), true, 1},
		"the cache still shows the release before, to one who looks after it": {requested, begun, goesOn(t, controlplane.StillOurs), true, 1},
		"somebody else does lead the cluster elsewhere":                       {elsewhere, elsewhere, goesOn(t, controlplane.Upgraded), false, 1},
		"somebody else does lead the cluster elsewhere, later":                {elsewhere, elsewhere, goesOn(t, controlplane.StillOurs), false, 1},
		"the cluster is on its way":                                           {begun, begun, goesOn(t, controlplane.Upgraded), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &counted{Reader: testCluster(t, nil, tc.live)}
			goesOn, err := tc.ask(testCluster(t, nil, tc.cached), live)
			if err != nil || goesOn != tc.goesOn || live.reads != tc.reads {
				t.Errorf("goes on: got %t, %v after %d reads of the API server, want %t after %d", goesOn, err, live.reads, tc.goesOn, tc.reads)
			}
		})
	}
}

func commenced(t *testing.T) func(cached, live client.Reader) (bool, error) {
	t.Helper()
	return func(cached, live client.Reader) (bool, error) {
		return controlplane.Commenced(cached, live, target)(t.Context())
	}
}

// goesOn says whether a step lets the upgrade go on.
func goesOn(t *testing.T, step func(cached, live client.Reader, target cluster.Target) engine.UpgradeStep) func(cached, live client.Reader) (bool, error) {
	t.Helper()
	return func(cached, live client.Reader) (bool, error) {
		result, err := step(cached, live, target)(t.Context(), engine.Run{})
		return !result.Failed(), err
	}
}
