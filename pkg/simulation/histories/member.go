// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

const agentActor = "agent"

// member is a simulated cluster of a fleet with its agent. It acts a few seconds after a change of
// its works, and for as long as something in it is in progress.
type member struct {
	fleet  *fleet
	name   string
	spoke  *spoke.Cluster
	client client.Client

	takes    time.Duration // duration of an installation
	pending  bool          // it is about to act
	offline  bool          // the agent cannot reach the hub
	silent   time.Time     // since when the agent has not renewed its Lease; zero if it does
	fails    bool          // upgrades fail halfway
	refuses  bool          // the cluster version operator rejects requests
	jobFail  bool          // Jobs fail
	degraded bool          // an operator is degraded after upgrades
	cutsOff  bool          // a pre-action disconnects the agent from the hub
	away     bool          // it has left the hub, and will be imported again

	acceptRisks any // accepted by an administrator before the history

	holdsItself bool // it holds itself, and no user ends that
	holdsNext   bool // it does so once its upgrade begins
	forges      bool // the agent has reported false status

	troubled    bool // it has ever done something that an upgrade may not survive
	everOffline bool // the agent was unable to reach the hub at some time
	edited      bool // another client has removed the deleteOption of a work

	actedAt   time.Time            // start of the last Job of a pre-action
	since     map[string]time.Time // start of a release or a Job
	succeeded map[string]time.Time // start of each Job that has succeeded, by name
	answered  map[string]string    // the agent's reports, by work
}

func newMember(f *fleet, name string) *member {
	return &member{
		fleet: f, name: name, spoke: spoke.New(name, installed, f.world.Now()), client: f.world.Client(agentActor),
		takes: 10*time.Minute + f.upTo(40*time.Minute), since: map[string]time.Time{}, succeeded: map[string]time.Time{}, answered: map[string]string{},
	}
}

// observe makes the agent act after a change of a work.
func (m *member) observe(change simulation.Change) {
	work, is := change.Object().(*workv1.ManifestWork)
	switch {
	case !is || change.Actor == agentActor:
	case change.New == nil:
		m.spoke.Delete(work)
	default:
		m.wake()
	}
}

// wake makes the cluster and its agent act within a few seconds.
func (m *member) wake() {
	if m.pending {
		return
	}
	m.pending = true
	m.fleet.world.After(2*time.Second+m.fleet.upTo(18*time.Second), func() {
		m.pending = false
		m.act()
	})
}

// act makes the agent handle the works and the cluster do what they request.
func (m *member) act() {
	m.renew()
	m.holdBegun()
	m.answer()
	m.operate()
	m.answer()
	if err := m.publish(); err != nil {
		m.fleet.violate("the agent of %s: %v", m.name, err)
	}
	if m.isBusy() {
		m.wake()
	}
}

// renew renews the agent's Lease, or makes the hub check again when the Lease has expired.
func (m *member) renew() {
	switch {
	case !m.offline:
		m.silent = time.Time{}
	case m.silent.IsZero():
		m.silent = m.fleet.world.Now()
		m.fleet.world.After(spoke.LeaseGrace(&clusterv1.ManagedCluster{}), m.wake)
	}
}

// answer makes the agent handle each work.
func (m *member) answer() {
	if m.offline {
		m.everOffline = true
		return
	}
	var works workv1.ManifestWorkList
	err := m.client.List(context.Background(), &works, client.InNamespace(m.name))
	for i := range works.Items {
		if err == nil {
			err = m.answerOne(&works.Items[i])
		}
	}
	if err != nil {
		m.fleet.violate("the agent of %s: %v", m.name, err)
	}
}

// answerOne makes the agent handle a work, unless its report would be the same.
func (m *member) answerOne(work *workv1.ManifestWork) error {
	var state strings.Builder
	fmt.Fprint(&state, work.ResourceVersion, m.spoke.Version().Object)
	for _, job := range m.spoke.Objects("Job") {
		fmt.Fprint(&state, job.Object)
	}
	seen := state.String()
	if m.answered[work.Name] == seen {
		return nil
	}
	m.answered[work.Name] = seen
	return m.spoke.Answer(context.Background(), m.client, work, m.fleet.world.Now(), func(release string) {
		m.fleet.checker.whole(m, work)
		m.fleet.checker.requested(m, work, release)
	})
}

// operate makes the cluster version operator and the Jobs do their work.
func (m *member) operate() {
	now := m.fleet.world.Now()
	if m.spoke.Version() == nil {
		return // the checker reports it
	}
	for _, job := range m.spoke.Objects("Job") {
		name := "job " + job.GetName()
		switch {
		case isFinished(job):
		case m.since[name].IsZero():
			m.since[name] = now
			m.spoke.BeginJob(job)
			m.fleet.checker.jobBegan(m, job.GetName())
			if strings.HasPrefix(job.GetName(), "pre") {
				m.actedAt = now
				m.offline, m.troubled = m.offline || m.cutsOff, m.troubled || m.cutsOff
			}
		case now.Sub(m.since[name]) > time.Minute:
			end := "Failed"
			if !m.jobFail {
				end, m.succeeded[job.GetName()] = "Complete", m.since[name]
			}
			delete(m.since, name)
			m.spoke.EndJob(job, end, now)
		}
	}
	newest, state, _ := strings.Cut(m.spoke.History()[0], " ")
	if desired := m.spoke.Desired(); desired != "" && desired != newest {
		m.begin(desired)
		return
	}
	m.spoke.Observe()
	if state == "Completed" {
		m.setFailing(m.degraded)
		return
	}
	elapsed := now.Sub(m.since[newest])
	m.setFailing(m.fails && elapsed > m.takes/2)
	if !m.fails && elapsed > m.takes {
		m.spoke.Complete(now)
	}
}

// begin makes the cluster version operator accept or reject a release.
func (m *member) begin(release string) {
	now, status := m.fleet.world.Now(), "True"
	if m.refuses {
		status = "False"
	}
	m.spoke.SetCondition(m.spoke.Version(), "ReleaseAccepted", status, "Payload", "the payload of "+release, now)
	if m.refuses {
		m.spoke.Observe()
		return
	}
	m.since[release] = now
	m.spoke.Accept(release, now)
}

func (m *member) setFailing(failing bool) {
	status := "False"
	if failing {
		status = "True"
	}
	m.spoke.SetCondition(m.spoke.Version(), "Failing", status, "ClusterOperatorDegraded", "etcd is degraded", m.fleet.world.Now())
}

// isFinished reports whether a Job has ended.
func isFinished(job *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(job.Object, "status", "conditions")
	return len(conditions) > 0
}

// isBusy reports whether something in the cluster is still in progress.
func (m *member) isBusy() bool {
	if m.spoke.Version() == nil {
		return false
	}
	newest, state, _ := strings.Cut(m.spoke.History()[0], " ")
	desired := m.spoke.Desired()
	return state == "Partial" || desired != "" && desired != newest || slices.ContainsFunc(m.spoke.Objects("Job"), func(job *unstructured.Unstructured) bool {
		return !isFinished(job)
	})
}

// has reports whether the cluster has completed a release.
func (m *member) has(release string) bool {
	return m.spoke.Version() != nil && slices.Contains(m.spoke.History(), release+" Completed")
}

// publish publishes the cluster's claim and availability.
func (m *member) publish() error {
	ctx, cluster := context.Background(), &clusterv1.ManagedCluster{}
	if err := m.client.Get(ctx, client.ObjectKey{Name: m.name}, cluster); err != nil {
		return client.IgnoreNotFound(err)
	}
	before, now := cluster.DeepCopy(), m.fleet.world.Now()
	renewed := now
	if !m.silent.IsZero() {
		renewed = m.silent
	}
	spoke.SetAvailability(cluster, true, renewed, now)
	if status := cluster.Status; !equality.Semantic.DeepEqual(before.Spec, cluster.Spec) {
		if err := m.client.Update(ctx, cluster); err != nil {
			return err
		}
		cluster.Status = status // the answer has the stored one
	}
	if !m.offline {
		for _, line := range m.spoke.History() {
			if release, completed := strings.CutSuffix(line, " Completed"); completed {
				cluster.Status.ClusterClaims = []clusterv1.ManagedClusterClaim{{Name: "version.openshift.io", Value: release}}
				break
			}
		}
	}
	if equality.Semantic.DeepEqual(before.Status, cluster.Status) {
		return nil
	}
	return m.client.Status().Update(ctx, cluster)
}
