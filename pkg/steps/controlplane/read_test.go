// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"testing"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
)

// countingReader counts reads.
type countingReader struct {
	client.Reader
	reads int
}

func (c *countingReader) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	c.reads++
	return c.Reader.Get(ctx, key, object, opts...)
}

func TestSteps_do_not_end_an_upgrade_because_of_a_stale_cache(t *testing.T) {
	t.Parallel()
	requested, begun, elsewhere := at(desired("4.4.6")), at(desired("4.4.6"), updating("4.4.6")), at(updating("4.4.6"), updating("4.4.7"), desired("4.4.7"))
	for name, tc := range map[string]struct {
		cached, live *configv1.ClusterVersion
		ask          func(cached, live client.Reader) (bool, error) // reports whether the upgrade continues
		goesOn       bool
		reads        int // from the API server
	}{
		"cache without the started update": {requested, begun, isCommenced(t), true, 1},
		"it has not begun":                 {requested, requested, isCommenced(t), false, 1},
		"started":                          {begun, begun, isCommenced(t), true, 0},
		"it was not requested":             {at(), at(), isCommenced(t), false, 1},
		"cache without the request":        {at(), begun, isCommenced(t), true, 1},
		"the cache still shows the release before, to one who installs": {requested, begun, continues(t, controlplane.WaitUntilUpgraded), true, 1},
		"cache with the previous release after the upgrade":             {requested, begun, continues(t, controlplane.NotSuperseded), true, 1},
		"superseded":         {elsewhere, elsewhere, continues(t, controlplane.WaitUntilUpgraded), false, 1},
		"superseded later":   {elsewhere, elsewhere, continues(t, controlplane.NotSuperseded), false, 1},
		"update in progress": {begun, begun, continues(t, controlplane.WaitUntilUpgraded), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := &countingReader{Reader: testCluster(t, nil, tc.live)}
			goesOn, err := tc.ask(testCluster(t, nil, tc.cached), live)
			if err != nil || goesOn != tc.goesOn || live.reads != tc.reads {
				t.Errorf("goes on: got %t, %v after %d reads of the API server, want %t after %d", goesOn, err, live.reads, tc.goesOn, tc.reads)
			}
		})
	}
}

func isCommenced(t *testing.T) func(cached, live client.Reader) (bool, error) {
	t.Helper()
	return func(cached, live client.Reader) (bool, error) {
		return controlplane.IsCommenced(cached, live, target)(t.Context())
	}
}

// continues reports whether a step lets the upgrade continue.
func continues(t *testing.T, step func(cached, live client.Reader, target clusterstate.Target) engine.UpgradeStep) func(cached, live client.Reader) (bool, error) {
	t.Helper()
	return func(cached, live client.Reader) (bool, error) {
		result, err := step(cached, live, target)(t.Context(), engine.Run{})
		return !result.Failed(), err
	}
}
