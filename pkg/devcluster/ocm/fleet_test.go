// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package ocm

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	clusterv1beta2 "open-cluster-management.io/api/cluster/v1beta2"
)

func TestSpec_clusters(t *testing.T) {
	t.Parallel()
	spec := Spec{}.WithDefaults()
	groups := map[string]int{}
	for number := 1; number <= spec.Clusters; number++ {
		cluster := spec.cluster(number)
		if cluster.Labels[clusterv1beta2.ClusterSetLabel] != ClusterSet || cluster.Labels["name"] != ClusterName(number) {
			t.Errorf("labels %v", cluster.Labels)
		}
		groups[cluster.Labels[CanaryLabel]+cluster.Labels[GroupLabel]]++
	}
	if diff := cmp.Diff(map[string]int{"true": 1, "1": 6, "2": 5}, groups); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
}

func TestSpec_invalid(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]Spec{
		"negative":             {Clusters: -1},
		"too many":             {Clusters: 10000},
		"too many real":        {Clusters: 5, Real: true},
		"more canaries":        {Clusters: 2, Canaries: 3},
		"more groups":          {Clusters: 2, Groups: 33},
		"negative duration":    {Duration: -1},
		"negative poll period": {Interval: -1},
	} {
		if spec.Validate() == nil {
			t.Errorf("%s: it was accepted", name)
		}
	}
	if err := (&Spec{Clusters: 3, Canaries: 3}).Validate(); err != nil {
		t.Error(err)
	}
}

func TestSpec_real(t *testing.T) {
	t.Parallel()
	if got := (Spec{Real: true}).WithDefaults(); got.Clusters != 2 || got.Canaries != 1 || got.Groups != 1 || got.Validate() != nil {
		t.Errorf("defaults %+v: %v", got, got.Validate())
	}
	spec := Spec{Real: true}.WithDefaults()
	if cluster := spec.cluster(2); len(cluster.Annotations) > 0 {
		t.Errorf("a real cluster is scripted: %v", cluster.Annotations)
	}
}
