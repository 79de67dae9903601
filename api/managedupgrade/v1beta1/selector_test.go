// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/json"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

func TestLabelSelectorConverts(t *testing.T) {
	t.Parallel()
	ours := maintenancev1beta1.LabelSelector{
		MatchLabels:      map[string]string{"a": "b"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"d", "e"}}},
	}
	converted := metav1.LabelSelector(ours)
	selector, err := metav1.LabelSelectorAsSelector(&converted)
	if err != nil || selector.String() != "a=b,c notin (d,e)" {
		t.Errorf("selector %v, %v", selector, err)
	}
}

// A label selector in place of the labels of a pool means the same, and stays as it was written.
func TestPoolSelector(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ spec, want string }{
		"labels":                    {`{"matchLabels":{"a":"b","c":""}}`, "a=b,c="},
		"labels and expressions":    {`{"matchLabels":{"a":"b"},"matchExpressions":[{"key":"c","operator":"Exists"}]}`, "a=b,c"},
		"selector":                  {`{"matchLabels":{"matchExpressions":[{"key":"c","operator":"Exists"}],"matchLabels":{"a":"b"}}}`, "a in (b),c"},
		"selector and expressions":  {`{"matchLabels":{"matchLabels":{"a":"b"}},"matchExpressions":[{"key":"c","operator":"Exists"}]}`, "a in (b),c"},
		"selector beside labels":    {`{"matchLabels":{"a":"b","matchLabels":{"c":"d"}}}`, "a=b,c in (d)"},
		"selector that contradicts": {`{"matchLabels":{"a":"b","matchLabels":{"a":"c"}}}`, "a=b,a in (c)"},
		"expressions alone":         {`{"matchExpressions":[{"key":"c","operator":"Exists"}]}`, "c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var decoded maintenancev1beta1.MachineConfigPoolSelector
			if err := json.Unmarshal([]byte(tc.spec), &decoded); err != nil {
				t.Fatal(err)
			}
			converted := metav1.LabelSelector(*decoded.Selector())
			selector, err := metav1.LabelSelectorAsSelector(&converted)
			if err != nil || selector.String() != tc.want {
				t.Errorf("selector %v, want %s; %v", selector, tc.want, err)
			}
			if encoded, err := json.Marshal(decoded); err != nil || string(encoded) != tc.spec {
				t.Errorf("encoded as %s, %v", encoded, err)
			}
		})
	}
}

// A label that is not text is left out of the object, and named.
func TestPoolSelectorThatDoesNotDecode(t *testing.T) {
	t.Parallel()
	var job maintenancev1beta1.UpgradeJob
	if err := json.Unmarshal([]byte(`{"spec":{"config":{"machineConfigPools":[{"matchLabels":{"a":1},"delayUpgrade":{"delayMin":"1h","delayMax":"2h"}}]}}}`), &job); err != nil {
		t.Fatal(err)
	}
	if got := job.SpecProblem(); got != `spec.config.machineConfigPools[0].matchLabels: {"a":1} is not a valid PoolLabels` {
		t.Errorf("got %q", got)
	}
}
