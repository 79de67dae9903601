// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// budget returns a budget whose status counts the given number of pods.
func budget(namespace, name string, pods int32, selector *metav1.LabelSelector) clusterstate.PDB {
	return clusterstate.PDBOf(&policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: selector},
		Status:     policyv1.PodDisruptionBudgetStatus{ExpectedPods: pods, CurrentHealthy: pods},
	})
}

func selecting(labels map[string]string, expressions ...metav1.LabelSelectorRequirement) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: labels, MatchExpressions: expressions}
}

func TestOverlappingPDBs(t *testing.T) {
	t.Parallel()
	const (
		never     = "never"
		certain   = "certain"
		undecided = "undecided"
	)
	app := func(names ...string) metav1.LabelSelectorRequirement {
		return metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpIn, Values: names}
	}
	etcd := selecting(map[string]string{"app": "etcd"})
	narrower := selecting(map[string]string{"app": "etcd", "tier": "db"})
	for name, tc := range map[string]struct {
		other       clusterstate.PDB
		mine        int32 // counted pods of this budget
		want        string
		otherCounts string // result if the other budget also counts pods; empty if it is the same
	}{
		"the same selector":                      {budget("a", "2", 0, etcd), 1, certain, ""},
		"the same selector and no counted pods":  {budget("a", "2", 0, etcd), 0, undecided, certain},
		"every pod":                              {budget("a", "2", 0, selecting(nil)), 1, certain, ""},
		"every pod, and no counted pods":         {budget("a", "2", 0, selecting(nil)), 0, undecided, undecided},
		"a narrower selector":                    {budget("a", "2", 0, narrower), 1, undecided, certain},
		"a narrower selector, no counted pods":   {budget("a", "2", 0, narrower), 0, undecided, certain},
		"another value":                          {budget("a", "2", 0, selecting(map[string]string{"app": "dns"})), 1, never, ""},
		"other values":                           {budget("a", "2", 0, selecting(nil, app("dns", "api"))), 1, never, ""},
		"several values":                         {budget("a", "2", 0, selecting(nil, app("etcd", "api"))), 1, undecided, ""},
		"another label":                          {budget("a", "2", 0, selecting(map[string]string{"tier": "db"})), 1, undecided, ""},
		"any other value":                        {budget("a", "2", 0, selecting(nil, metav1.LabelSelectorRequirement{Key: "app", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"etcd"}})), 1, undecided, ""},
		"no pod":                                 {budget("a", "2", 0, nil), 1, never, ""},
		"pods of another namespace":              {budget("b", "2", 0, etcd), 1, never, ""},
		"pods of another namespace, all of them": {budget("b", "2", 0, selecting(nil)), 1, never, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := budget("a", "1", tc.mine, etcd)
			counted := tc.other
			counted.GuardsPods = true
			for other, want := range map[*clusterstate.PDB]string{&tc.other: tc.want, &counted: cmp.Or(tc.otherCounts, tc.want)} {
				for _, pdbs := range [][]clusterstate.PDB{{mine, *other}, {*other, mine}} {
					got := never
					switch pairs, groups := clusterstate.OverlappingPDBs(pdbs); {
					case len(pairs) == 1 && len(groups) == 0:
						got = certain
					case len(pairs) == 0 && len(groups) == 1 && len(groups[0]) == 2:
						got = undecided
					}
					if got != want {
						t.Errorf("the other one counts pods: %t: got %s, want %s", other.GuardsPods, got, want)
					}
				}
			}
		})
	}
}

func TestOverlappingPDBs_of_several_namespaces(t *testing.T) {
	t.Parallel()
	app := func(name string) *metav1.LabelSelector { return selecting(map[string]string{"app": name}) }
	var many []clusterstate.PDB
	for i := range 65 {
		many = append(many, budget("many", strconv.Itoa(i), 0, app(strconv.Itoa(i))))
	}
	pdbs := slices.Concat([]clusterstate.PDB{
		budget("a", "1", 1, app("x")), budget("a", "2", 0, app("x")), budget("a", "3", 0, app("y")),
		budget("b", "1", 0, app("x")),
	}, many, []clusterstate.PDB{budget("z", "1", 0, app("x")), budget("z", "2", 0, app("x"))})
	pairs, undecided := clusterstate.OverlappingPDBs(pdbs)
	if len(pairs) != 1 || pairs[0][0].Name != "1" || pairs[0][1].Name != "2" {
		t.Errorf("got the pairs %+v", pairs)
	}
	var got []string
	for _, group := range undecided {
		got = append(got, fmt.Sprintf("%s %d", group[0].Namespace, len(group)))
	}
	if diff := gocmp.Diff([]string{"many 65", "z 2"}, got); diff != "" {
		t.Errorf("undecided (-want +got):\n%s", diff)
	}
}

func TestOverlapsOn(t *testing.T) {
	t.Parallel()
	pod := func(name string, labels map[string]string) clusterstate.Pod {
		return clusterstate.Pod{Namespace: "a", Name: name, Labels: labels}
	}
	pdbs := []clusterstate.PDB{
		budget("a", "1", 0, selecting(map[string]string{"app": "x"})), budget("a", "2", 0, selecting(map[string]string{"tier": "db"})), budget("a", "3", 0, selecting(nil)),
	}
	for name, tc := range map[string]struct {
		pods []clusterstate.Pod
		want []string
	}{
		"no pods":                    {nil, nil},
		"a pod of one budget":        {[]clusterstate.Pod{pod("1", nil)}, nil},
		"pods of one pair":           {[]clusterstate.Pod{pod("1", map[string]string{"app": "x"}), pod("2", map[string]string{"app": "x"})}, []string{"1 3"}},
		"a pod of three budgets":     {[]clusterstate.Pod{pod("1", map[string]string{"app": "x", "tier": "db"})}, []string{"1 2"}},
		"pods of different pairs":    {[]clusterstate.Pod{pod("1", map[string]string{"app": "x"}), pod("2", map[string]string{"tier": "db"})}, []string{"1 3", "2 3"}},
		"a pod of another namespace": {[]clusterstate.Pod{{Namespace: "b", Labels: map[string]string{"app": "x"}}}, nil},
	} {
		var got []string
		for _, pair := range clusterstate.OverlapsOn(tc.pods, pdbs) {
			got = append(got, pair[0].Name+" "+pair[1].Name)
		}
		if diff := gocmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
