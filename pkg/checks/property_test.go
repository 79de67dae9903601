// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
)

// Unexpected values for the fields of objects.
var (
	oddTexts    = []string{"", "x", "4.20.6", "not a version", "a\x1b[31m\nb\u202ec", strings.Repeat("long ", 10000)}
	oddStatuses = []string{"True", "False", "Unknown", "", "Perhaps"}
	oddTimes    = []time.Time{{}, now, now.Add(-time.Hour), now.Add(-30 * time.Minute), now.Add(1000 * time.Hour), time.Unix(0, 0)}
	oddStates   = []string{"Done", "Working", "Degraded", "Unreconcilable", "Rebooting", "", "Odd"}
)

// garble randomly changes a cluster.
func garble(t *rapid.T, c *cluster) {
	pick := func(from []string) string { return rapid.SampledFrom(from).Draw(t, "text") }
	at := func() metav1.Time { return metav1.NewTime(rapid.SampledFrom(oddTimes).Draw(t, "time")) }
	odd := func() bool { return rapid.Bool().Draw(t, "odd") }
	for i := range c.version.Status.History {
		entry := &c.version.Status.History[i]
		if odd() {
			entry.State, entry.Version, entry.StartedTime = configv1.UpdateState(pick([]string{"Partial", "Completed", ""})), pick([]string{newRelease, oldRelease, "", "odd"}), at()
		}
	}
	c.version.Status.History = c.version.Status.History[:rapid.IntRange(0, 2).Draw(t, "entries")]
	for _, name := range []configv1.ClusterStatusConditionType{"Failing", "Invalid", "ReleaseAccepted", "Progressing"} {
		setVersion(c, name, configv1.ConditionStatus(pick(oddStatuses)), pick(oddTexts))
	}
	for _, operator := range c.operators {
		for i := range operator.Status.Conditions {
			condition := &operator.Status.Conditions[i]
			condition.Status, condition.Reason, condition.Message, condition.LastTransitionTime = configv1.ConditionStatus(pick(oddStatuses)), pick(oddTexts), pick(oddTexts), at()
		}
	}
	for _, pool := range c.pools {
		pool.Spec.Paused, pool.Spec.Configuration.Name = odd(), pick([]string{rendered(pool.Name, newRelease), rendered(pool.Name, oldRelease), "", "gone"})
		pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolDegraded, Status: corev1.ConditionStatus(pick(oddStatuses)), Message: pick(oddTexts)}}
		if odd() {
			pool.Spec.NodeSelector = &metav1.LabelSelector{} // selects every node
		}
	}
	for name, node := range c.nodes {
		role, _, _ := strings.Cut(name, "-")
		c.annotate(name,
			"currentConfig", pick([]string{rendered(role, newRelease), rendered(role, oldRelease), "", "gone"}), "desiredConfig", pick([]string{rendered(role, newRelease), rendered(role, oldRelease), ""}),
			"state", pick(oddStates), "reason", pick(oddTexts), "desiredDrain", pick([]string{"drain-a", "uncordon-a", ""}), "lastAppliedDrain", pick([]string{"drain-a", "uncordon-a", ""}))
		if odd() {
			c.cordon(name, time.Hour)
		}
		node.Status.Conditions = []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionStatus(pick(oddStatuses)), LastTransitionTime: at()},
			{Type: corev1.NodeDiskPressure, Status: corev1.ConditionStatus(pick(oddStatuses)), Reason: pick(oddTexts), LastTransitionTime: at()},
		}
		c.addPod("pod-"+name, pick([]string{"api", "db", "none"}), name)
	}
	for _, budget := range []string{"api", "db"} {
		c.addPDB("shop", budget, budget, int32(rapid.IntRange(-1, 1).Draw(t, "allowed")))
	}
	config := newConfig()
	config.Spec.UpgradeAt, config.Spec.Desired.Version = pick([]string{"", "noon", now.Format(time.RFC3339)}), pick([]string{newRelease, later, ""})
	config.Status.History = []history.Record{newRecord(stepDone(), stepRunning()), newRecord(stepFailed())}[:rapid.IntRange(0, 2).Draw(t, "records")]
	c.others = append(c.others, config)
	alerts := &fakePrometheus{}
	for range rapid.IntRange(0, 4).Draw(t, "alerts") {
		alert := fire(pick(oddTexts), pick([]string{"warning", "critical", ""}), "poddisruptionbudget", pick(oddTexts))
		alert.Since, alert.Annotations = at().Time, map[string]string{"summary": pick(oddTexts), "runbook_url": pick(oddTexts)}
		alerts.alerts = append(alerts.alerts, alert)
	}
	c.prometheus = alerts
}

// Whatever the objects contain, each finding has a unique identity, a level, and single-line texts of limited
// length. The same facts always produce the same findings.
func TestInformers_of_odd_clusters(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster()
		garble(rt, c)
		facts := c.facts(t)
		for _, informer := range checks.Informers() {
			all := informer.Find(facts)
			if diff := cmp.Diff(all, informer.Find(facts)); diff != "" {
				rt.Fatalf("%s finds something else in the same facts:\n%s", informer.Name, diff)
			}
			seen := map[string]bool{}
			for _, f := range all {
				if err := validate(f, seen); err != nil {
					rt.Fatalf("%s: %v in %+v", informer.Name, err, f)
				}
			}
		}
	})
}

func validate(f checks.Finding, seen map[string]bool) error {
	switch uid := f.UID(); {
	case seen[uid]:
		return fmt.Errorf("a second finding has the UID %s", uid)
	case f.Reason == "" || f.Summary == "" || f.Scope == "" || f.Type == "":
		return errors.New("a finding lacks its reason, summary, scope, or type")
	case strings.ContainsAny(f.Summary+f.Description, "\n\x1b\u202e"):
		return errors.New("a text is not clean")
	case len(f.Summary) > 256 || len(f.Description) > 4096:
		return errors.New("a text is too long")
	case f.Reference != "" && !strings.HasPrefix(f.Reference, "https://"):
		return errors.New("the reference may not be shown")
	default:
		seen[uid] = true
		return nil
	}
}

// A missing source never makes a node count as updated.
func TestRollouts_never_trust_missing_configurations(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := newCluster()
		garble(rt, c)
		facts := c.facts(t)
		if len(facts.Version.Updates) == 0 || !facts.UpdatingControlPlane() {
			return
		}
		facts = checks.Facts{Now: facts.Now, Version: facts.Version, Nodes: facts.Nodes, Pools: facts.Pools, Configs: map[string]clusterstate.Rendered{}}
		for _, pool := range facts.Rollouts() {
			if pool.Updated > 0 {
				rt.Fatalf("%d nodes of pool %s are updated", pool.Updated, pool.Pool.Name)
			}
		}
	})
}
