// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

func TestLabelSelectorConverts(t *testing.T) {
	t.Parallel()
	ours := v1beta1.LabelSelector{
		MatchLabels:      map[string]string{"a": "b"},
		MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "c", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"d", "e"}}},
	}
	converted := metav1.LabelSelector(ours)
	selector, err := metav1.LabelSelectorAsSelector(&converted)
	if err != nil || selector.String() != "a=b,c notin (d,e)" {
		t.Errorf("selector %v, %v", selector, err)
	}
}
