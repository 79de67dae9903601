// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

func TestDrainState(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	tainted := func(node corev1.Node, added *metav1.Time) corev1.Node {
		node.Spec.Taints = []corev1.Taint{
			{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoExecute, TimeAdded: &metav1.Time{Time: at.Add(-time.Hour)}}, // set by another client
			{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: added},
		}
		return node
	}
	since := &metav1.Time{Time: at}
	schedulable := tainted(annotated("r-1", "r-2", "Working", "drain-r-2", "uncordon-r-1"), since)
	schedulable.Spec.Unschedulable = false
	older := annotated("r-1", "r-2", "Working", "", "")
	delete(older.Annotations, "machineconfiguration.openshift.io/desiredDrain")
	olderDone, olderIdle := annotated("r-1", "r-2", "Done", "", ""), annotated("r-2", "r-2", "Working", "", "")
	delete(olderDone.Annotations, "machineconfiguration.openshift.io/desiredDrain")
	delete(olderIdle.Annotations, "machineconfiguration.openshift.io/desiredDrain")
	stranger := corev1.Node{Spec: corev1.NodeSpec{Unschedulable: true}}
	extra := func(node corev1.Node) corev1.Node {
		node.Labels = map[string]string{clusterstate.LabelExtraNodeOf: "u-1"}
		return node
	}

	cases := map[string]struct {
		node corev1.Node
		want clusterstate.Drain
	}{
		"requested and not carried out":           {tainted(annotated("r-1", "r-2", "Working", "drain-r-2", "uncordon-r-1"), since), clusterstate.Drain{Active: true, Since: at}},
		"timed out and degraded":                  {tainted(annotated("r-1", "r-2", "Degraded", "drain-r-2", "uncordon-r-1"), since), clusterstate.Drain{Active: true, Since: at}},
		"cordon without a time":                   {tainted(annotated("r-1", "r-2", "Working", "drain-r-2", "uncordon-r-1"), nil), clusterstate.Drain{Active: true}},
		"again, for another configuration":        {tainted(annotated("r-1", "r-3", "Working", "drain-r-3", "drain-r-2"), since), clusterstate.Drain{Active: true, Since: at}},
		"by the daemon itself, in an old release": {tainted(older, since), clusterstate.Drain{Active: true, Since: at}},
		"daemon has not started":                  {tainted(olderDone, since), clusterstate.Drain{}},
		"daemon has nothing to change":            {tainted(olderIdle, since), clusterstate.Drain{}},
		"drain carried out":                       {tainted(annotated("r-1", "r-2", "Working", "drain-r-2", "drain-r-2"), since), clusterstate.Drain{}},
		"being uncordoned":                        {tainted(annotated("r-2", "r-2", "Done", "uncordon-r-2", "drain-r-2"), since), clusterstate.Drain{}},
		"not requested":                           {tainted(annotated("r-1", "r-2", "Working", "uncordon-r-1", "uncordon-r-1"), since), clusterstate.Drain{}},
		"cordoned by a person":                    {tainted(annotated("r-1", "r-1", "Done", "uncordon-r-1", "uncordon-r-1"), since), clusterstate.Drain{}},
		"without a machine config operator":       {tainted(stranger, since), clusterstate.Drain{}},
		"uncordoned by a person":                  {schedulable, clusterstate.Drain{}},
		"cordoned without a taint":                {annotated("r-1", "r-2", "Working", "drain-r-2", "uncordon-r-1"), clusterstate.Drain{}},
		"an extra node that is being removed":     {extra(tainted(annotated("r-2", "r-2", "Done", "uncordon-r-2", "uncordon-r-2"), since)), clusterstate.Drain{Active: true, Since: at}},
		"an extra node that was never updated":    {extra(tainted(stranger, since)), clusterstate.Drain{Active: true, Since: at}},
		"extra node drained for a reboot":         {extra(tainted(annotated("r-1", "r-2", "Working", "drain-r-2", "drain-r-2"), since)), clusterstate.Drain{}},
		"extra node that is not cordoned":         {extra(corev1.Node{}), clusterstate.Drain{}},
		"unknown request":                         {tainted(annotated("r-1", "r-2", "Working", "evacuate", ""), since), clusterstate.Drain{}},
		"without annotations":                     {tainted(annotated("r-1", "r-2", "Working", "", ""), since), clusterstate.Drain{}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := clusterstate.DrainState(&tc.node)
			if got.Active != tc.want.Active || !got.Since.Equal(tc.want.Since) {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestDrain_Start(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(d time.Duration) time.Time { return noon.Add(d) }
	const now = time.Hour // after noon
	future := at(now + 10*time.Minute)
	for name, tc := range map[string]struct {
		cordoned, seen, upgrade time.Time
		want                    time.Time
	}{
		"nothing known":                   {},
		"start of the upgrade only":       {upgrade: at(time.Minute)},
		"cordon":                          {cordoned: at(1), upgrade: at(-1), want: at(1)},
		"first sighting":                  {seen: at(1), upgrade: at(-1), want: at(1)},
		"sighting after the cordon":       {cordoned: at(1), seen: at(2), upgrade: at(-1), want: at(2)},
		"cordon after the sighting":       {cordoned: at(3), seen: at(2), upgrade: at(-1), want: at(3)},
		"upgrade after both":              {cordoned: at(1), seen: at(2), upgrade: at(3), want: at(3)},
		"cordon in the future":            {cordoned: future, seen: at(2), upgrade: at(1), want: at(2)},
		"sighting in the future":          {cordoned: at(1), seen: future, upgrade: at(-1), want: at(1)},
		"upgrade in the future":           {cordoned: at(1), seen: at(2), upgrade: future, want: at(2)},
		"cordon only, in the future":      {cordoned: future, upgrade: at(1)},
		"cordon by a clock a little fast": {cordoned: at(now + 30*time.Second), want: at(now + 30*time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drain := clusterstate.Drain{Active: true, Since: tc.cordoned, FirstSeen: tc.seen}
			if got := drain.Start(tc.upgrade, at(now)); !got.Equal(tc.want) {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
