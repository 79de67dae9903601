// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	olmapprover "github.com/managed-upgrade/managed-upgrade-operator/pkg/olm"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/steps/controlplane"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
	"github.com/managed-upgrade/managed-upgrade-operator/test/golden"
)

// Consumers of facts. Each answers a question about a cluster in its own terms.
const (
	gate    = "gate"    // findings that close the health gates
	plan    = "plan"    // findings of an UpdatePlan, except sources that cannot be read in this test
	update  = "update"  // findings of the built-in informers about an update
	figures = "figures" // progress of the control plane and the workers
	verdict = "verdict" // state of the assessment
	step    = "step"    // gate of an update to another minor version
	notes   = "notes"   // notes of the health gates; they do not close a gate
	busy    = "busy"    // gate that waits for the updates of other clients
	commit  = "commit"  // what the engine observes of a request for the release, and the result of the step that makes the request
	pending = "pending" // condition UpdatePending of the control plane
	olm     = "olm"     // result of the approver of InstallPlans

	// The sentences of the health gates and of the approver are in the golden file.
	gateText = "gate text"
	olmText  = "olm text"
)

// nextMinor is the release of the plan.
const nextMinor = "4.21.0"

// question is a question about a cluster with an input on which all consumers must agree.
type question struct {
	question, input string
	change          func(*cluster)
	// want holds the answers that differ from those about the unchanged cluster. See changes.
	want map[string]string
}

// operatorCondition sets a condition of the operator dns an hour ago. An empty status removes it.
func operatorCondition(name configv1.ClusterStatusConditionType, status configv1.ConditionStatus) func(*cluster) {
	return func(c *cluster) { c.setOperator("dns", name, status, time.Hour) }
}

// alert makes an alert fire in the namespace shop.
func alert(name, severity string, since time.Duration, labels ...string) func(*cluster) {
	return func(c *cluster) {
		a := clusterstate.Alert{Name: name, Namespace: "shop", Severity: severity, Firing: true, Since: now.Add(-since), Labels: map[string]string{}}
		for i := 0; i < len(labels); i += 2 {
			a.Labels[labels[i]] = labels[i+1]
		}
		c.prometheus = alertSource{a}
	}
}

func pendingAlert(change func(*cluster)) func(*cluster) {
	return func(c *cluster) {
		change(c)
		c.prometheus.(alertSource)[0].Firing = false
	}
}

// during applies a change while the control plane is being updated.
func during(change func(*cluster)) func(*cluster) {
	return func(c *cluster) {
		c.version.Status.History[0].State, c.version.Status.History[0].CompletionTime = configv1.PartialUpdate, nil
		c.setProgressing(configv1.ConditionTrue, time.Hour)
		c.operators["machine-config"].Status.Versions[0].Version = oldRelease
		change(c)
	}
}

func (c *cluster) setProgressing(status configv1.ConditionStatus, since time.Duration) {
	for i := range c.version.Status.Conditions {
		if c.version.Status.Conditions[i].Type == configv1.OperatorProgressing {
			c.version.Status.Conditions[i].Status, c.version.Status.Conditions[i].LastTransitionTime = status, ago(since)
		}
	}
}

func (c *cluster) degradeWorkers(name mcfgv1.MachineConfigPoolConditionType, message string) {
	workers := c.pools["worker"]
	workers.Status.Conditions = append(workers.Status.Conditions, mcfgv1.MachineConfigPoolCondition{
		Type: name, Status: corev1.ConditionTrue, Message: message, LastTransitionTime: ago(time.Hour),
	})
}

// blocking adds one budget for each change, and a pod that it selects on a node with a long drain.
func blocking(changes ...func(*policyv1.PodDisruptionBudget)) func(*cluster) {
	return func(c *cluster) {
		for i, change := range changes {
			c.addPDB("shop", fmt.Sprint("api-", i), "api", 0)
			change(c.others[len(c.others)-1].(*policyv1.PodDisruptionBudget))
		}
		c.addPod("api", "api", "worker-1")
		c.annotate("worker-1", "currentConfig", rendered("worker", oldRelease))
		c.drain("worker", "worker-1", time.Hour)
	}
}

func unchanged(*policyv1.PodDisruptionBudget) {}

// idle returns a cluster at the newest offered release.
func idle() *cluster {
	c := newCluster()
	c.complete()
	c.setProgressing(configv1.ConditionFalse, 20*time.Minute)
	for name := range c.nodes {
		role, _, _ := strings.Cut(name, "-")
		c.update(role, name)
	}
	for name, pool := range c.pools {
		pool.Status.Configuration.Name = pool.Spec.Configuration.Name
		pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 3, 3
		pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
		if name == "master" {
			pool.Labels = map[string]string{"operator.machineconfiguration.openshift.io/required-for-upgrade": ""}
		}
	}
	c.prometheus = alertSource{}
	return c
}

// alertSource is a Prometheus that returns fixed alerts.
type alertSource []clusterstate.Alert

func (s alertSource) ActiveAlerts(context.Context) ([]clusterstate.Alert, error) { return s, nil }

func (s alertSource) CriticalAlerts(context.Context) ([]clusterstate.Alert, error) {
	return slices.DeleteFunc(slices.Clone(s), func(a clusterstate.Alert) bool { return !a.IsCritical() }), nil
}

func (alertSource) HasSamples(context.Context, string) (bool, error) { return false, nil }

// consult asks every consumer about a cluster.
func consult(t *testing.T, c *cluster) map[string]string {
	t.Helper()
	reader := simulation.NewFakeClient(t, c.objects()...)
	clock := clocktesting.NewFakePassiveClock(now)
	answers := map[string]string{}
	sources := &checks.Sources{Clock: clock, Interval: time.Minute, AlertsDisabled: c.alertsDisabled}
	readers := checks.Readers{Reader: reader, Live: reader, Clock: clock}
	if source, is := c.prometheus.(alertSource); is {
		sources.Prometheus, readers.Prometheus = source, source
	}
	report := checks.Runner{
		Reader: reader, Live: reader, Sources: sources, Options: checks.GateOptions{PDBNamespaces: []string{"*"}, RequireAlerts: c.requiresAlerts},
	}.Run(t.Context(), now)
	blocking := slices.DeleteFunc(slices.Clone(report.Findings), func(f checks.Finding) bool { return !f.Level.Blocks() })
	answers[gate], answers[gateText], answers[notes] = describeAll(blocking, ""), report.Message(), report.Notes()
	if report.Err != nil {
		answers[gate] = strings.TrimPrefix(answers[gate]+", unknown", ", ")
		answers[gateText] = strings.TrimPrefix(answers[gateText]+"; "+report.Err.Error(), "; ")
	}
	facts := checks.Gather(t.Context(), checks.Plan, readers).With(checks.GatherPlan(t.Context(), readers))
	answers[plan] = describeAll(checks.Readiness(facts, nextMinor), "not-offered")
	var found []checks.Finding
	for _, informer := range checks.Informers() {
		found = append(found, informer.Find(facts)...)
	}
	answers[update] = describeAll(found, "")
	status := updatestatus.Compute(updatestatus.Input{Facts: facts})
	if p := status.ControlPlane.Progress; p != nil {
		answers[figures] = "operators " + describeProgress(*p)
	}
	for _, pool := range status.WorkerPools {
		if pool.Progress != nil {
			answers[figures] += ", " + pool.Name + " " + describeProgress(*pool.Progress)
		}
	}
	if result, err := controlplane.MinorUpdateAllowed(facts.Version, clusterstate.Target{Version: nextMinor}); err != nil || !result.Passed() {
		answers[step] = result.Reason()
	}
	answers[verdict] = string(status.Assessment.State)
	for _, c := range status.ControlPlane.Conditions {
		if c.Type == updatev1beta1.ConditionUpdatePending {
			answers[pending] = string(c.Status) + " " + c.Reason
		}
	}
	consultUpgrade(t, reader, facts.Version, answers)
	consultApprover(t, reader, clock.Now(), answers)
	return answers
}

// consultUpgrade asks an upgrade to the next minor version that has not requested anything yet.
func consultUpgrade(t *testing.T, reader client.Reader, version clusterstate.Version, answers map[string]string) {
	t.Helper()
	target := clusterstate.Target{Version: nextMinor}
	if result, err := controlplane.NotBusy(version, target); err != nil || !result.Passed() {
		answers[busy] = result.Reason()
	}
	observed, answer, err := controlplane.ObserveRequest(reader, reader, target)(t.Context(), engine.Run{})
	if err != nil {
		t.Fatal(err)
	}
	answers[commit] = strings.TrimSpace(clusterstate.Observed(observed).String() + " " + answer.Reason())
}

// consultApprover makes the approver look at the operators of OLM once.
func consultApprover(t *testing.T, cluster client.WithWatch, at time.Time, answers map[string]string) {
	t.Helper()
	var out strings.Builder
	approver := olmapprover.Approver{Client: cluster, Clock: clocktesting.NewFakeClock(at), Out: &out}
	if err := approver.Run(t.Context()); err != nil {
		answers[olm], answers[olmText] = "not upgraded", err.Error()
	}
}

func describeProgress(p updatev1beta1.Progress) string {
	return fmt.Sprintf("%d=%d+%d+%d %d/%d", p.Total, p.Updated, p.Updating, p.Pending, p.Unavailable, p.Degraded)
}

func describeAll(found []checks.Finding, except string) string {
	var all []string
	for _, f := range found {
		if f.UID() != except {
			all = append(all, levels[f.Level]+" "+f.UID())
		}
	}
	return strings.Join(all, ", ")
}

// changes returns the difference between two sets of answers: the added list entries, and the removed ones
// after a minus sign.
func changes(before, after map[string]string) map[string]string {
	changed := map[string]string{}
	for consumer, separator := range map[string]string{gate: ", ", gateText: "; ", plan: ", ", update: ", ", figures: "\n", verdict: "\n", step: "\n", notes: "; ", busy: "\n", commit: "\n", pending: "\n", olm: "\n", olmText: "\n"} {
		old, now := strings.Split(before[consumer], separator), strings.Split(after[consumer], separator)
		var parts []string
		for _, part := range now {
			if part != "" && !slices.Contains(old, part) {
				parts = append(parts, part)
			}
		}
		for _, part := range old {
			if part != "" && separator != "\n" && !slices.Contains(now, part) {
				parts = append(parts, "-"+part)
			}
		}
		if len(parts) > 0 {
			changed[consumer] = strings.Join(parts, separator)
		}
	}
	return changed
}

func TestFacts_are_the_same_for_every_consumer(t *testing.T) {
	t.Parallel()
	for _, q := range slices.Concat(questions, requestQuestions, sourceQuestions) {
		t.Run(q.question+"/"+q.input, func(t *testing.T) {
			t.Parallel()
			without := idle()
			if strings.HasSuffix(q.input, "during an update") {
				during(func(*cluster) {})(without)
			}
			changed := idle()
			q.change(changed)
			got := changes(consult(t, without), consult(t, changed))
			golden.Texts(t, "", got[gateText], got[olmText])
			delete(got, gateText)
			delete(got, olmText)
			if diff := cmp.Diff(q.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// questions are the rows of the facts table. If an input ends with "during an update", the reference is a
// cluster in the middle of an update.
var questions = []question{
	{"is an update being installed?", "Progressing=True with Completed history", func(c *cluster) { c.setProgressing(configv1.ConditionTrue, 10*time.Minute) }, map[string]string{
		gate:    "error ControlPlaneUnknown/ClusterVersion/version",
		plan:    "error version/ControlPlaneUnknown",
		pending: "Unknown CannotObserve",
		verdict: "Unknown",
	}},
	{"is an update being installed?", "Progressing=False with Partial history", during(func(c *cluster) { c.setProgressing(configv1.ConditionFalse, 10*time.Minute) }), map[string]string{
		gate:    "error ControlPlaneUnknown/ClusterVersion/version",
		plan:    "error version/ControlPlaneUnknown",
		update:  "status ControlPlaneUpdating/ClusterVersion/version",
		figures: "operators 2=1+0+1 0/0, worker 3=3+0+0 0/0",
		busy:    "AnotherUpdateInProgress",
		commit:  "Other",
		pending: "Unknown CannotObserve",
		verdict: "Unknown",
	}},
	{"is the cluster version operator failing?", "Failing=Unknown", func(c *cluster) { setVersion(c, "Failing", configv1.ConditionUnknown, "m") }, map[string]string{
		update: "warning ClusterVersionFailingUnknown/ClusterVersion/version",
	}},
	{"is the cluster version operator failing?", "Failing=True", func(c *cluster) { setVersion(c, "Failing", configv1.ConditionTrue, "m") }, map[string]string{
		gate:   "error ClusterVersionFailing/ClusterVersion/version",
		plan:   "error version/ClusterVersionFailing",
		update: "warning ClusterVersionFailing/ClusterVersion/version",
	}},
	{"may the cluster leave its minor version?", "Upgradeable=False", func(c *cluster) { setVersion(c, configv1.OperatorUpgradeable, configv1.ConditionFalse, "m") }, map[string]string{
		plan: "error upgradeable/Unknown",
		step: "NotUpgradeable",
	}},
	{"may the cluster leave its minor version?", "Upgradeable=Unknown", func(c *cluster) { setVersion(c, configv1.OperatorUpgradeable, configv1.ConditionUnknown, "m") }, map[string]string{
		plan: "error upgradeable/Unknown",
		step: "NotUpgradeable",
	}},
	{"may the cluster leave its minor version?", "Upgradeable=True", func(c *cluster) { setVersion(c, configv1.OperatorUpgradeable, configv1.ConditionTrue, "m") }, map[string]string{}},
	{"how is an operator?", "no condition Degraded", operatorCondition(configv1.OperatorDegraded, ""), map[string]string{
		gate:   "unknown",
		plan:   "warning unreadable/operator",
		update: "warning OperatorStateUnknown/ClusterOperator/dns",
	}},
	{"how is an operator?", "no condition Available", operatorCondition(configv1.OperatorAvailable, ""), map[string]string{
		gate:   "unknown",
		plan:   "warning unreadable/operator",
		update: "warning OperatorStateUnknown/ClusterOperator/dns",
	}},
	{"how is an operator?", "Degraded=Unknown", operatorCondition(configv1.OperatorDegraded, configv1.ConditionUnknown), map[string]string{
		gate:    "error OperatorDegraded/ClusterOperator/dns",
		plan:    "error operator/dns/OperatorDegraded",
		update:  "error OperatorDegraded/ClusterOperator/dns",
		figures: "operators 2=2+0+0 0/1, worker 3=3+0+0 0/0",
	}},
	{"how is an operator?", "Available=Unknown", operatorCondition(configv1.OperatorAvailable, configv1.ConditionUnknown), map[string]string{
		gate:    "error OperatorUnavailable/ClusterOperator/dns",
		plan:    "error operator/dns/OperatorUnavailable",
		update:  "error OperatorUnavailable/ClusterOperator/dns",
		figures: "operators 2=2+0+0 1/0, worker 3=3+0+0 0/0",
	}},
	{"how is an operator?", "Degraded=True", operatorCondition(configv1.OperatorDegraded, configv1.ConditionTrue), map[string]string{
		gate:    "error OperatorDegraded/ClusterOperator/dns",
		plan:    "error operator/dns/OperatorDegraded",
		update:  "error OperatorDegraded/ClusterOperator/dns",
		figures: "operators 2=2+0+0 0/1, worker 3=3+0+0 0/0",
	}},
	{"how is an operator?", "Available=False", operatorCondition(configv1.OperatorAvailable, configv1.ConditionFalse), map[string]string{
		gate:    "error OperatorUnavailable/ClusterOperator/dns",
		plan:    "error operator/dns/OperatorUnavailable",
		update:  "error OperatorUnavailable/ClusterOperator/dns",
		figures: "operators 2=2+0+0 1/0, worker 3=3+0+0 0/0",
	}},
	{"how is an operator?", "no condition Degraded during an update", during(operatorCondition(configv1.OperatorDegraded, "")), map[string]string{
		gate:   "unknown",
		plan:   "warning unreadable/operator",
		update: "warning OperatorStateUnknown/ClusterOperator/dns",
	}},
	{"has an operator the release?", "no version", func(c *cluster) { c.operators["machine-config"].Status.Versions = nil }, map[string]string{
		gate:    "error MachineConfigOperatorBehind/ClusterOperator/machine-config",
		figures: "operators 2=1+0+1 0/0, worker 3=3+0+0 0/0",
	}},
	{"has an operator the release?", "another version", func(c *cluster) { c.operators["machine-config"].Status.Versions[0].Version = oldRelease }, map[string]string{
		gate:    "error MachineConfigOperatorBehind/ClusterOperator/machine-config",
		figures: "operators 2=1+0+1 0/0, worker 3=3+0+0 0/0",
	}},
	{"what role has a pool?", "the pool of the control plane is paused", func(c *cluster) { c.pools["master"].Spec.Paused = true }, map[string]string{
		gate: "error PoolPaused/MachineConfigPool/master",
		plan: "error pool/master/PoolPaused",
	}},
	{"where is a pool?", "paused", func(c *cluster) { c.pools["worker"].Spec.Paused = true }, map[string]string{
		gate: "error PoolPaused/MachineConfigPool/worker",
		plan: "error pool/worker/PoolPaused",
	}},
	{"where is a pool?", "degraded by its configuration", func(c *cluster) {
		c.degradeWorkers(mcfgv1.MachineConfigPoolDegraded, "")
		c.degradeWorkers(mcfgv1.MachineConfigPoolRenderDegraded, "no such file")
	}, map[string]string{
		gate:   "error PoolDegraded/MachineConfigPool/worker",
		plan:   "error pool/worker/PoolDegraded",
		update: "error PoolDegraded/MachineConfigPool/worker",
	}},
	{"where is a pool?", "degraded by the build of its image", func(c *cluster) {
		c.degradeWorkers(mcfgv1.MachineConfigPoolDegraded, "")
		c.degradeWorkers("ImageBuildDegraded", "no registry")
	}, map[string]string{
		gate:   "error PoolDegraded/MachineConfigPool/worker",
		plan:   "error pool/worker/PoolDegraded",
		update: "error PoolDegraded/MachineConfigPool/worker",
	}},
	{"where is a node?", "not ready", func(c *cluster) { c.condition("worker-1", corev1.NodeReady, corev1.ConditionFalse, time.Hour) }, map[string]string{
		gate:    "error NodeNotReady/Node/worker-1",
		plan:    "error node/worker-1/NodeNotReady",
		update:  "warning NodeNotReady/MachineConfigPool/worker/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=3+0+0 1/0",
	}},
	{"where is a node?", "cordoned by hand", func(c *cluster) { c.cordon("worker-1", time.Hour) }, map[string]string{
		gate:    "error NodeCordoned/Node/worker-1",
		plan:    "error node/worker-1/NodeCordoned",
		figures: "operators 2=2+0+0 0/0, worker 3=3+0+0 1/0",
	}},
	{"where is a node?", "degraded", func(c *cluster) { c.annotate("worker-1", "state", "Degraded", "reason", "no disk") }, map[string]string{
		update:  "warning NodeDegraded/MachineConfigPool/worker/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=3+0+0 0/1",
	}},
	{"where is a node?", "drained", blocking(), map[string]string{
		gate:    "error PoolUpdating/MachineConfigPool/worker",
		update:  "status NodeDraining/MachineConfigPool/worker/Node/worker-1, warning PodNotEvicted/MachineConfigPool/worker/Pod/shop/api/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=2+1+0 1/0",
		verdict: "Stuck",
	}},
	{"where is a node?", "drained and uncordoned", func(c *cluster) {
		blocking()(c)
		c.nodes["worker-1"].Spec.Unschedulable, c.nodes["worker-1"].Spec.Taints = false, nil
	}, map[string]string{
		gate:    "error PoolUpdating/MachineConfigPool/worker",
		update:  "status NodeDraining/MachineConfigPool/worker/Node/worker-1, warning DrainNotCordoned/MachineConfigPool/worker/Node/worker-1, warning PodNotEvicted/MachineConfigPool/worker/Pod/shop/api/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=2+1+0 0/0",
		verdict: "Unknown",
	}},
	{"where is a node?", "in two custom pools", func(c *cluster) {
		for _, name := range []string{"infra", "zone"} {
			c.addPool(name)
			c.pools[name].Spec.Configuration.Name = rendered(name, newRelease)
			c.pools[name].Status = *c.pools["worker"].Status.DeepCopy()
			c.pools[name].Status.Configuration.Name, c.pools[name].Status.MachineCount = rendered(name, newRelease), 0
			c.nodes["worker-1"].Labels["node-role.kubernetes.io/"+name] = ""
		}
	}, map[string]string{
		gate:    "error NodeInSeveralPools/Node/worker-1",
		plan:    "error node/worker-1/NodeInSeveralPools",
		update:  "warning NodeInSeveralPools/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, infra 0=0+0+0 0/0, worker 2=2+0+0 0/0, zone 0=0+0+0 0/0",
	}},
	{"what holds an eviction?", "a budget", blocking(unchanged), map[string]string{
		gate:    "error PoolUpdating/MachineConfigPool/worker, error PDBBlocksEviction/PodDisruptionBudget/shop/api-0",
		plan:    "warning pdb/shop/api-0",
		update:  "status NodeDraining/MachineConfigPool/worker/Node/worker-1, warning PodHeldByBudget/MachineConfigPool/worker/PodDisruptionBudget/shop/api-0/Pod/shop/api/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=2+1+0 1/0",
		verdict: "Stuck",
	}},
	{"what holds an eviction?", "two budgets", blocking(unchanged, unchanged), map[string]string{
		gate:    "error PoolUpdating/MachineConfigPool/worker, error PDBBlocksEviction/PodDisruptionBudget/shop/api-0, error PDBBlocksEviction/PodDisruptionBudget/shop/api-1, error PDBsOverlap/PodDisruptionBudget/shop/api-0/PodDisruptionBudget/shop/api-1",
		plan:    "warning pdb/shop/api-0, warning pdb/shop/api-1, warning pdb/shop/api-0/api-1/PDBsOverlap",
		update:  "status NodeDraining/MachineConfigPool/worker/Node/worker-1, warning PodSelectedByBudgets/MachineConfigPool/worker/PodDisruptionBudget/shop/api-0/PodDisruptionBudget/shop/api-1/Pod/shop/api/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=2+1+0 1/0",
		verdict: "Stuck",
	}},
	{"what holds an eviction?", "two budgets, one of which counts no pods", blocking(unchanged, func(b *policyv1.PodDisruptionBudget) {
		b.Status = policyv1.PodDisruptionBudgetStatus{}
	}), map[string]string{
		gate:    "error PoolUpdating/MachineConfigPool/worker, error PDBBlocksEviction/PodDisruptionBudget/shop/api-0, error PDBsOverlap/PodDisruptionBudget/shop/api-0/PodDisruptionBudget/shop/api-1",
		plan:    "warning pdb/shop/api-0, warning pdb/shop/api-0/api-1/PDBsOverlap",
		update:  "status NodeDraining/MachineConfigPool/worker/Node/worker-1, warning PodSelectedByBudgets/MachineConfigPool/worker/PodDisruptionBudget/shop/api-0/PodDisruptionBudget/shop/api-1/Pod/shop/api/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=2+1+0 1/0",
		verdict: "Stuck",
	}},
	{"what holds an eviction?", "a budget that is not observed", blocking(func(b *policyv1.PodDisruptionBudget) {
		b.Generation, b.Status.DisruptionsAllowed = 2, 1
	}), map[string]string{
		gate:    "error PoolUpdating/MachineConfigPool/worker, error PDBNotObserved/PodDisruptionBudget/shop/api-0",
		plan:    "warning pdb/shop/api-0/PDBNotObserved",
		update:  "status NodeDraining/MachineConfigPool/worker/Node/worker-1, warning PodHeldByBudget/MachineConfigPool/worker/PodDisruptionBudget/shop/api-0/Pod/shop/api/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=2+1+0 1/0",
		verdict: "Stuck",
	}},
	{"what holds an eviction?", "a budget that cannot be computed", blocking(func(b *policyv1.PodDisruptionBudget) {
		b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason, Message: "no scale"}}
		b.Status.DisruptionsAllowed = 1
	}), map[string]string{
		gate:    "error PoolUpdating/MachineConfigPool/worker, error PDBSyncFailed/PodDisruptionBudget/shop/api-0",
		plan:    "warning pdb/shop/api-0/PDBSyncFailed",
		update:  "status NodeDraining/MachineConfigPool/worker/Node/worker-1, warning PodHeldByBudget/MachineConfigPool/worker/PodDisruptionBudget/shop/api-0/Pod/shop/api/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=2+1+0 1/0",
		verdict: "Stuck",
	}},
	{"what holds an eviction?", "a budget of unhealthy pods that may be evicted", blocking(func(b *policyv1.PodDisruptionBudget) {
		b.Spec.UnhealthyPodEvictionPolicy, b.Status.CurrentHealthy = new(policyv1.AlwaysAllow), 0
	}), map[string]string{
		gate:    "error PoolUpdating/MachineConfigPool/worker",
		update:  "status NodeDraining/MachineConfigPool/worker/Node/worker-1, warning PodNotEvicted/MachineConfigPool/worker/Pod/shop/api/Node/worker-1",
		figures: "operators 2=2+0+0 0/0, worker 3=2+1+0 1/0",
		verdict: "Stuck",
	}},
	{"does an alert count?", "critical", alert("A", "critical", 3*time.Hour), map[string]string{
		gate: "error AlertFiring/Alert/shop/A",
		plan: "error alert/shop/A",
	}},
	{"does an alert count?", "critical and pending", pendingAlert(alert("A", "critical", 3*time.Hour)), map[string]string{}},
	{"does an alert count?", "warning", alert("A", "warning", 3*time.Hour), map[string]string{
		plan: "info alert/shop/A",
	}},
	{"does an alert count?", "info of a pre-check", alert("A", "info", 3*time.Hour, "openShiftUpdatePrecheck", "true"), map[string]string{
		plan: "warning alert/shop/A",
	}},
	{"does an alert count?", "waiting containers", alert("KubeContainerWaiting", "warning", 3*time.Hour), map[string]string{
		plan: "warning alert/shop/KubeContainerWaiting",
	}},
	{"does an alert count?", "health of nodes", alert("KubeNodeNotReady", "warning", 3*time.Hour), map[string]string{
		plan: "warning alert/shop/KubeNodeNotReady",
	}},
	{"does an alert count?", "health of kubelets", alert("KubeletDown", "critical", 3*time.Hour), map[string]string{
		gate: "error AlertFiring/Alert/shop/KubeletDown",
		plan: "error alert/shop/KubeletDown",
	}},
	{"does an alert count?", "a VM that cannot be evicted", alert("VMCannotBeEvicted", "warning", 3*time.Hour), map[string]string{
		plan: "warning alert/shop/VMCannotBeEvicted",
	}},
	{"does an alert count?", "a budget", alert("PodDisruptionBudgetAtLimit", "warning", 3*time.Hour, "poddisruptionbudget", "api"), map[string]string{
		plan: "warning alert/shop/PodDisruptionBudgetAtLimit",
	}},
	{"does an alert count?", "critical from before the update during an update", during(alert("A", "critical", 3*time.Hour)), map[string]string{
		gate: "error AlertFiring/Alert/shop/A",
		plan: "error alert/shop/A",
	}},
	{"does an alert count?", "critical since the update during an update", during(alert("A", "critical", time.Minute)), map[string]string{
		gate:   "error AlertFiring/Alert/shop/A",
		plan:   "error alert/shop/A",
		update: "warning CriticalAlertFiring/Alert/shop/A",
	}},
	{"does an alert count?", "a budget from before the update during an update", during(alert("PodDisruptionBudgetLimit", "critical", 3*time.Hour)), map[string]string{
		gate:   "error AlertFiring/Alert/shop/PodDisruptionBudgetLimit",
		plan:   "error alert/shop/PodDisruptionBudgetLimit",
		update: "warning CriticalAlertFiring/Alert/shop/PodDisruptionBudgetLimit",
	}},
	{"does an alert count?", "an alert of the operator", alert("ManagedUpgradeStalled", "critical", 3*time.Hour), map[string]string{}},
	{"what time is it there?", "degraded since a time in the future", func(c *cluster) { c.setOperator("dns", configv1.OperatorDegraded, configv1.ConditionTrue, -time.Hour) }, map[string]string{
		gate:    "error OperatorDegraded/ClusterOperator/dns",
		plan:    "error operator/dns/OperatorDegraded",
		update:  "warning OperatorDegraded/ClusterOperator/dns",
		figures: "operators 2=2+0+0 0/1, worker 3=3+0+0 0/0",
	}},
	{"what time is it there?", "degraded since a minute from now", func(c *cluster) {
		c.setOperator("dns", configv1.OperatorDegraded, configv1.ConditionTrue, -50*time.Second)
	}, map[string]string{
		gate:    "error OperatorDegraded/ClusterOperator/dns",
		plan:    "error operator/dns/OperatorDegraded",
		figures: "operators 2=2+0+0 0/1, worker 3=3+0+0 0/0",
	}},
}
