// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission_test

import (
	"cmp"
	"maps"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/rollout"
)

// cluster is a reachable cluster with claims, each as name=value.
func cluster(claims ...string) *clusterv1.ManagedCluster {
	c := &clusterv1.ManagedCluster{}
	for _, claim := range claims {
		name, value, _ := strings.Cut(claim, "=")
		c.Status.ClusterClaims = append(c.Status.ClusterClaims, clusterv1.ManagedClusterClaim{Name: name, Value: value})
	}
	c.Status.Conditions = []metav1.Condition{{Type: clusterv1.ManagedClusterConditionAvailable, Status: metav1.ConditionTrue}}
	return c
}

// candidate is a cluster that a dry run checks.
type candidate struct {
	managed    *clusterv1.ManagedCluster // nil if it does not exist
	hold, lock string
	holdReason string // Held if it is empty
	work       *workv1.ManifestWork
}

func (c *candidate) prepare(spec *fleetv1beta1.ManagedClustersUpgradeSpec) (*admission.Fleet, *admission.FleetMember) {
	fleet := &admission.Fleet{
		Upgrade:  &fleetv1beta1.ManagedClustersUpgrade{Spec: *spec},
		Clusters: map[string]*clusterv1.ManagedCluster{"a": c.managed}, Locked: map[string]string{"a": c.lock},
	}
	member := &admission.FleetMember{Member: rollout.Member{Name: "a", Hold: c.hold}}
	if c.hold != "" {
		member.HoldReason = cmp.Or(c.holdReason, fleetv1beta1.ReasonHeld)
	}
	return fleet, member
}

func (c *candidate) check(spec *fleetv1beta1.ManagedClustersUpgradeSpec, expired bool) admission.Preflight {
	fleet, member := c.prepare(spec)
	return fleet.Check(member, c.work, expired)
}

func (c *candidate) checkClaims(spec *fleetv1beta1.ManagedClustersUpgradeSpec) admission.Preflight {
	fleet, member := c.prepare(spec)
	return fleet.CheckClaims(member)
}

// values is the feedback of a cluster at 4.20.5 in channel stable-4.20, in addition to the given values.
// An empty one is absent, and a number is an integer.
func values(more map[string]string) map[string]string {
	all := map[string]string{"version": "4.20.5", "state": "Completed", "channel": "stable-4.20", "installed": "4.20.5"}
	maps.Copy(all, more)
	return all
}

// work is the answer of an agent that has applied the work of a preflight.
func work(t *testing.T, release *fleetv1beta1.ClusterVersionSpec, values map[string]string) *workv1.ManifestWork {
	t.Helper()
	run := &fleetv1alpha1.ClusterUpgradeRun{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}}
	run.Spec.ClusterVersion = release
	w, err := delivery.PreflightWork(run)
	if err != nil {
		t.Fatal(err)
	}
	applied := metav1.Condition{Type: workv1.WorkApplied, Status: metav1.ConditionTrue}
	available := metav1.Condition{Type: workv1.WorkAvailable, Status: metav1.ConditionTrue}
	w.Status.Conditions = []metav1.Condition{applied, available}
	role := workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "managed-upgrade:upgrade-preflight"},
		Conditions:   w.Status.Conditions,
	}
	version := workv1.ManifestCondition{
		ResourceMeta: workv1.ManifestResourceMeta{Group: "config.openshift.io", Kind: "ClusterVersion", Resource: "clusterversions", Name: "version"},
		Conditions:   w.Status.Conditions,
	}
	add := func(name string, value workv1.FieldValue) {
		version.StatusFeedbacks.Values = append(version.StatusFeedbacks.Values, workv1.FeedbackValue{Name: name, Value: value})
	}
	for name, value := range values {
		if value != "" {
			add(name, workv1.FieldValue{Type: workv1.String, String: &value})
		}
	}
	for _, name := range []string{"generation", "observedGeneration"} {
		if _, replaced := values[name]; !replaced {
			add(name, workv1.FieldValue{Type: workv1.Integer, Integer: new(int64(3))})
		}
	}
	w.Status.ResourceStatus.Manifests = []workv1.ManifestCondition{role, version}
	return w
}

func TestCheck_by_what_the_cluster_reports(t *testing.T) {
	t.Parallel()
	upgradeable := map[string]string{"UpgradeableStatus": "False", "UpgradeableReason": "AdminAckRequired", "UpgradeableMessage": "APIs are removed", "offered": "4.20.6"}
	minor := &fleetv1beta1.ClusterVersionSpec{Version: "4.21.0"}
	for name, tc := range map[string]struct {
		release *fleetv1beta1.ClusterVersionSpec // 4.20.6 if nil
		values  map[string]string
		want    string // reason and message of the obstacle, if there is one
	}{
		"offered":                           {values: values(map[string]string{"offered": "4.20.6"})},
		"not offered":                       {values: values(nil), want: "NotOffered: not offered in stable-4.20"},
		"not offered in another channel":    {release: &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6", Channel: "fast-4.20"}, values: values(nil), want: "OfferUnknown: it is in channel stable-4.20; whether fast-4.20 offers"},
		"offered in another channel":        {release: &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6", Channel: "fast-4.20"}, values: values(map[string]string{"offered": "4.20.6"})},
		"not offered, the same channel":     {release: &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6", Channel: "stable-4.20"}, values: values(nil), want: "NotOffered: "},
		"conditional risks":                 {values: values(map[string]string{"conditional": "4.20.6", "RecommendedStatus": "False", "RecommendedReason": "SlowBoot", "RecommendedMessage": "nodes boot slowly"}), want: "ConditionalRisks: not recommended: SlowBoot: nodes boot slowly"},
		"risks that are not evaluated":      {values: values(map[string]string{"conditional": "4.20.6", "RecommendedStatus": "Unknown", "RecommendedReason": "EvaluationFailed"}), want: "ConditionalRisks: not recommended: EvaluationFailed"},
		"risks that are not reported":       {values: values(map[string]string{"conditional": "4.20.6"}), want: "ConditionalRisks: "},
		"risks that do not apply":           {values: values(map[string]string{"conditional": "4.20.6", "RecommendedStatus": "True"})},
		"not upgradeable, patch release":    {values: values(upgradeable)},
		"not upgradeable, minor release":    {release: minor, values: values(upgradeable), want: "AdminAckRequired: Upgradeable=False: AdminAckRequired: APIs are removed"},
		"not upgradeable, without a reason": {release: minor, values: values(map[string]string{"UpgradeableStatus": "False"}), want: "NotUpgradeable: Upgradeable=False: no reason is given"},
		"not upgradeable, a hostile reason": {release: minor, values: values(map[string]string{"UpgradeableStatus": "False", "UpgradeableReason": "a b"}), want: "NotUpgradeable: Upgradeable=False: a b"},
		"at the target already":             {values: values(map[string]string{"version": "4.20.6", "targetState": "Completed", "targetVersion": "4.20.6"})},
		"the same upgrade is in progress":   {values: values(map[string]string{"version": "4.20.6", "state": "Partial"})},
		"held by its administrators":        {values: values(map[string]string{"offered": "4.20.6", "hold": "migration"}), want: "Held: the annotation upgrade.managed.openshift.io/hold of its ClusterVersion holds it: migration"},
		"a check alone is requested": {
			values: values(map[string]string{"offered": "4.20.6", "mode": "Preflight"}),
			want: `PreflightRequested: spec.desiredUpdate.mode of its ClusterVersion is Preflight, so that a release would be checked and not installed: ` +
				`remove it with "oc patch clusterversion version --type merge -p '{"spec":{"desiredUpdate":{"mode":null}}}'"`,
		},
		"a check alone is requested at the target": {values: values(map[string]string{"version": "4.20.6", "mode": "Preflight"})},
		"held at the target":                       {values: values(map[string]string{"version": "4.20.6", "hold": "migration"})},
		"held on its way":                          {values: values(map[string]string{"version": "4.20.6", "state": "Partial", "hold": "migration"})},
		"another upgrade is in progress":           {values: values(map[string]string{"version": "4.20.4", "state": "Partial"}), want: "UpgradeInProgress: it is being upgraded to 4.20.4"},
		"a newer release":                          {values: values(map[string]string{"version": "4.20.10"}), want: "NewerVersionInstalled: it has 4.20.10, which is newer than 4.20.6"},
		"Failing":                                  {values: values(map[string]string{"offered": "4.20.6", "FailingStatus": "True", "FailingReason": "ClusterOperatorDegraded", "FailingMessage": "etcd is degraded"}), want: "ClusterVersionFailing: Failing=True: ClusterOperatorDegraded: etcd is degraded"},
		"Invalid":                                  {values: values(map[string]string{"offered": "4.20.6", "InvalidStatus": "True", "InvalidMessage": "bad"}), want: "InvalidClusterVersion: "},
		"an image need not be offered":             {release: &fleetv1beta1.ClusterVersionSpec{Image: "quay.io/ocp@sha256:1"}, values: values(map[string]string{"image": "quay.io/ocp@sha256:2"})},
		"a release that cannot be read":            {values: values(map[string]string{"version": ""}), want: "NoFeedback: the agent does not report the ClusterVersion"},
		"a generation that is not observed":        {values: values(map[string]string{"offered": "4.20.6", "observedGeneration": ""}), want: "NoFeedback: the cluster version operator has not observed"},
		"a generation that is no number":           {values: values(map[string]string{"offered": "4.20.6", "generation": "three"}), want: "NoFeedback: "},
		"a state that is missing":                  {values: values(map[string]string{"state": ""}), want: "NoFeedback: "},
		"an offer of a value that is too big":      {values: values(map[string]string{"offered": strings.Repeat("4", 600)}), want: "NoFeedback: the agent reports a value"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &fleetv1beta1.ManagedClustersUpgradeSpec{ClusterVersion: tc.release}
			if spec.ClusterVersion == nil {
				spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}
			}
			c := candidate{managed: cluster(), work: work(t, spec.ClusterVersion, tc.values)}
			got := c.check(spec, false)
			if waits := strings.HasPrefix(tc.want, admission.ReasonNoFeedback); got.Checked == waits {
				t.Errorf("before the answer was due: checked is %t", got.Checked)
			}
			expectObstacle(t, c.check(spec, true), tc.want)
		})
	}
}

// expectObstacle compares the obstacle of a final result.
func expectObstacle(t *testing.T, got admission.Preflight, want string) {
	t.Helper()
	obstacle := ""
	if !got.Obstacle.IsZero() {
		obstacle = got.Obstacle.Reason + ": " + got.Obstacle.Message
	}
	if !got.Checked || want == "" && obstacle != "" || !strings.HasPrefix(obstacle, want) {
		t.Errorf("checked is %t with obstacle %q, want %q", got.Checked, obstacle, want)
	}
}

func TestCheck_before_and_without_an_answer(t *testing.T) {
	t.Parallel()
	spec := &fleetv1beta1.ManagedClustersUpgradeSpec{ClusterVersion: &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}}
	unapplied := work(t, spec.ClusterVersion, values(map[string]string{"offered": "4.20.6"}))
	unapplied.Generation = 2 // the conditions belong to generation 0
	for name, c := range map[string]candidate{
		"no work":             {managed: cluster()},
		"a work that waits":   {managed: cluster(), work: &workv1.ManifestWork{}},
		"an outdated answer":  {managed: cluster(), work: unapplied},
		"a claim and no work": {managed: cluster("version.openshift.io=4.20.5")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := c.check(spec, false); got != (admission.Preflight{}) {
				t.Errorf("got %+v, want to wait", got)
			}
			expectObstacle(t, c.check(spec, true), admission.ReasonNoFeedback+": ")
		})
	}
}

func TestCheckClaims(t *testing.T) {
	t.Parallel()
	unreachable := cluster("version.openshift.io=4.20.5")
	unreachable.Status.Conditions[0].Status = metav1.ConditionUnknown
	unregistered := cluster("version.openshift.io=4.20.5")
	unregistered.Status.Conditions = nil
	for name, tc := range map[string]struct {
		cluster   candidate
		operators bool   // without a release
		want      string // of the obstacle, if there is one
		needsWork bool   // unless only claims are read
	}{
		"an older release":           {cluster: candidate{managed: cluster("version.openshift.io=4.20.5")}, needsWork: true},
		"the release":                {cluster: candidate{managed: cluster("version.openshift.io=4.20.6")}},
		"a newer release":            {cluster: candidate{managed: cluster("version.openshift.io=4.20.7")}, want: "NewerVersionInstalled: "},
		"a hosted control plane":     {cluster: candidate{managed: cluster("controlplanetopology.openshift.io=External")}, want: "HostedControlPlane: "},
		"unreachable":                {cluster: candidate{managed: unreachable}, want: "Unreachable: unreachable"},
		"never reachable":            {cluster: candidate{managed: unregistered}, want: "Unreachable: "},
		"held":                       {cluster: candidate{managed: cluster(), hold: "migration"}, want: "Held: migration"},
		"dependency":                 {cluster: candidate{managed: cluster(), hold: "first", holdReason: fleetv1beta1.ReasonDependencyIncomplete}, want: "DependencyIncomplete: first"},
		"locked":                     {cluster: candidate{managed: cluster(), lock: "fleet/other"}, want: "LockedBy: ManagedClustersUpgrade fleet/other"},
		"no such cluster":            {want: "Held: there is no such ManagedCluster"},
		"operators only":             {operators: true, cluster: candidate{managed: cluster()}},
		"operators, but unreachable": {operators: true, cluster: candidate{managed: unreachable}, want: "Unreachable: "},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			spec := &fleetv1beta1.ManagedClustersUpgradeSpec{ClusterVersion: &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}}
			if tc.operators {
				spec.ClusterVersion = nil
			}
			if got := tc.cluster.checkClaims(spec); tc.needsWork != !got.Checked {
				t.Errorf("got %+v, want a work: %t", got, tc.needsWork)
			}
			spec.ClaimsOnly = true
			expectObstacle(t, tc.cluster.checkClaims(spec), tc.want)
		})
	}
	spec := &fleetv1beta1.ManagedClustersUpgradeSpec{ClusterVersion: &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6"}, ClaimsOnly: true}
	expectObstacle(t, (&candidate{managed: cluster()}).checkClaims(spec), admission.ReasonVersionUnknown+": ")
}
