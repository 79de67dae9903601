// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"strconv"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "open-cluster-management.io/api/cluster/v1"
	ocmv1beta1 "open-cluster-management.io/api/cluster/v1beta1"
	workv1 "open-cluster-management.io/api/work/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
)

// fleetActions returns the actions in histories of fleets. Append new actions at the end: seeds
// that were kept specify how many actions existed at the time.
func fleetActions() []action[*fleet] {
	return []action[*fleet]{
		{"create an upgrade", 6, (*fleet).createUpgrade},
		{"delete an upgrade", 2, (*fleet).deleteUpgrade},
		{"pause", 3, func(f *fleet) { f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Paused = true }) }},
		{"resume", 5, func(f *fleet) { f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Paused = false }) }},
		{"cancel", 1, func(f *fleet) { f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Cancelled = true }) }},
		{"retry", 4, func(f *fleet) {
			f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Attempt = max(1, s.Attempt) + 1 })
		}},
		{"lower the concurrency", 3, func(f *fleet) { f.setConcurrency(intstr.FromInt32(1)) }},
		{"raise the concurrency", 3, func(f *fleet) { f.setConcurrency(intstr.FromInt32(3)) }},
		{"edit the failures that are tolerated", 2, func(f *fleet) {
			f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.UpgradeStrategy.MaxFailures = f.someFailures() })
		}},
		{"edit the release", 1, func(f *fleet) {
			f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.ClusterVersion.Version = "4.20.8" })
		}},
		{"the upgrade of a cluster fails", 4, func(f *fleet) { f.trouble(func(m *member) { m.fails = true }) }},
		{"a cluster is slow", 3, func(f *fleet) { f.trouble(func(m *member) { m.takes += 2 * time.Hour }) }},
		{"a cluster refuses releases", 2, func(f *fleet) { f.trouble(func(m *member) { m.refuses = true }) }},
		{"Jobs of a cluster fail", 2, func(f *fleet) { f.trouble(func(m *member) { m.jobFail = true }) }},
		{"a cluster is offline", 3, func(f *fleet) { f.trouble(func(m *member) { m.offline = true }) }},
		{"a cluster recovers", 6, func(f *fleet) { f.recoverMember(f.anyMember()) }},
		{"a cluster loses its labels", 3, func(f *fleet) { f.label(f.anyMember(), false) }},
		{"a cluster gets its labels back", 3, func(f *fleet) { f.label(f.anyMember(), true) }},
		{"hold a cluster", 2, func(f *fleet) { f.hold(f.anyMember(), true) }},
		{"lift the hold of a cluster", 3, func(f *fleet) { f.hold(f.anyMember(), false) }},
		{"kill the hub", 4, func(f *fleet) { f.kill() }},
		{"two leaders", 2, func(f *fleet) { f.twoLeaders() }},
		{"step the clock", 1, func(f *fleet) { f.stepClock() }},
		{"requests fail", 6, func(f *fleet) { f.failRequests() }},
		{"a cache lags", 3, func(f *fleet) { f.lag(hubKinds()...) }},
		{"delete right before a write", 1, func(f *fleet) { f.before((*fleet).deleteUpgrade) }},
		{"pause right before a write", 2, func(f *fleet) {
			f.before(func(f *fleet) { f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.Paused = true }) })
		}},
		{"edit a work right before a write", 1, func(f *fleet) { f.before((*fleet).editWork) }},
		{"edit a work", 2, (*fleet).editWork},
		{"delete a work", 2, (*fleet).deleteWork},
		{"dry run", 1, func(f *fleet) { f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.DryRun = true }) }},
		{"end the dry run", 3, func(f *fleet) { f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.DryRun = false }) }},
		{"another client requests a newer release from a cluster", 2, func(f *fleet) {
			m := f.anyMember()
			m.spoke.Request("4.20.9")
			m.acceptRisks = nil
			f.checker.mayRequestAgain(m) // the agent requests it again
			m.operate()
			m.wake()
		}},
		{"detach a cluster", 1, func(f *fleet) { f.trouble(func(m *member) { f.accept(m, false) }) }},
		{"delete a run", 1, (*fleet).deleteRun},
		{"delete a lock", 1, func(f *fleet) {
			lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: lockPrefix + f.anyMember().name}}
			if err := f.people.Delete(context.Background(), lease); err != nil {
				f.world.Logf("rejected: %s", firstLine(err))
			}
		}},
		{"a Placement evicts clusters that cannot be reached", 2, func(f *fleet) {
			edit(f.driver, &ocmv1beta1.Placement{}, client.ObjectKey{Namespace: fleetNamespace, Name: "all"}, func(p *ocmv1beta1.Placement) { p.Spec.Tolerations = nil })
		}},
		{"a Placement selects by release", 2, func(f *fleet) { f.byRelease = true; f.placements.changed() }},
		{"an upgraded cluster is degraded", 3, func(f *fleet) { f.trouble(func(m *member) { m.degraded = true }) }},
		{"the agent of a cluster that soaks falls silent", 3, (*fleet).silenceSoaking},
		{"forget a failure", 1, func(f *fleet) {
			name := f.anyMember().name
			edit(f.driver, &fleetv1beta1.ManagedClustersUpgrade{}, f.anyUpgrade(), func(u *fleetv1beta1.ManagedClustersUpgrade) {
				metav1.SetMetaDataAnnotation(&u.ObjectMeta, fleetv1beta1.ForgetFailureAnnotation, name+"=its disk is broken")
			})
		}},
	}
}

// laterActions returns actions that were added after strangerActions. Seeds that were kept specify
// how many actions existed at the time.
func laterActions() []action[*fleet] {
	return []action[*fleet]{
		{"two leaders whose requests interleave", 4, func(f *fleet) {
			f.twoLeaders()
			f.interleave(5 * time.Minute)
		}},
		{"continue without a canary", 1, func(f *fleet) { f.answer(fleetv1beta1.ContinueWithoutCanaryAnnotation, "its site is closed") }},
		{"forget the failure of the cluster that failed last", 3, func(f *fleet) { f.answer(fleetv1beta1.ForgetFailureAnnotation, "its disk is broken") }},
		{"the pre-action disconnects clusters", 4, (*fleet).cutOff},
		{"a cluster holds itself for ever once its upgrade begins", 3, func(f *fleet) { f.anyMember().holdsNext = true }},
		{"tolerate all failures, and misspell the cluster whose failure is forgotten", 3, func(f *fleet) {
			f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.UpgradeStrategy.MaxFailures = nil })
			f.answerAbout("c99", fleetv1beta1.ForgetFailureAnnotation, "its disk is broken")
		}},
		{"answer about any cluster", 2, func(f *fleet) {
			annotation := []string{fleetv1beta1.ForgetFailureAnnotation, fleetv1beta1.ContinueWithoutCanaryAnnotation}[f.random.IntN(2)]
			f.answerAbout(f.anyMember().name, annotation, "its disk is broken")
		}},
		{"create an upgrade whose canaries wait for another one", 3, func(f *fleet) {
			first := f.newUpgrade(client.ObjectKey{Namespace: fleetNamespace, Name: upgradeNames[0]})
			next := f.newUpgrade(client.ObjectKey{Namespace: fleetNamespace, Name: upgradeNames[1]})
			next.Spec.DependsOn = []fleetv1beta1.Dependency{{Name: first.Name, PerCluster: true}}
			next.Spec.UpgradeStrategy.CanaryClusters = &fleetv1beta1.CanaryClusters{ClusterSelector: fleetv1beta1.LabelSelector{MatchLabels: map[string]string{canaryLabel: "true"}}}
			f.create(first)
			f.create(next)
		}},
		{"retry with canaries among the clusters that have ended", 5, (*fleet).chooseCanaries},
		{"a cluster leaves the hub and is imported again", 3, (*fleet).importAgain},
	}
}

// answer names a cluster in an annotation of an upgrade, as a user would: a failed cluster if there
// is one.
func (f *fleet) answer(annotation, reason string) {
	name := f.anyMember().name
	for _, key := range sortedKeys(f.checker.runs) {
		if f.checker.runs[key].Status.State == fleetv1alpha1.StateFailed {
			name = key.Namespace
		}
	}
	f.answerAbout(name, annotation, reason)
}

// answerAbout names a cluster in an annotation of an upgrade.
func (f *fleet) answerAbout(name, annotation, reason string) {
	edit(f.driver, &fleetv1beta1.ManagedClustersUpgrade{}, f.anyUpgrade(), func(u *fleetv1beta1.ManagedClustersUpgrade) {
		if u.Spec.Attempt > 1 {
			name += "@" + strconv.Itoa(int(u.Spec.Attempt))
		}
		metav1.SetMetaDataAnnotation(&u.ObjectMeta, annotation, name+"="+reason)
	})
}

// cutOff makes each further pre-action disconnect its cluster, creates the upgrades that do not exist with one, and leaves
// them alone for longer than the hub waits for an agent that has not acted.
func (f *fleet) cutOff() {
	for _, m := range f.members {
		m.cutsOff = true
	}
	for _, name := range upgradeNames {
		u := f.newUpgrade(client.ObjectKey{Namespace: fleetNamespace, Name: name})
		u.Spec.PreUpgradeAction = jobAction("pre")
		f.create(u)
	}
	f.wait(2 * time.Hour)
}

// chooseCanaries makes some of the clusters that have failed or are complete the canaries of the next attempt.
func (f *fleet) chooseCanaries() {
	u := &fleetv1beta1.ManagedClustersUpgrade{}
	if err := f.people.Get(context.Background(), f.anyUpgrade(), u); err != nil {
		return
	}
	attempt := max(1, u.Spec.Attempt) + 1
	// A label for each upgrade: the choice for one must not end the choice for the other.
	label, value, chosen := "first-in-"+u.Name, strconv.Itoa(int(attempt)), map[string]bool{}
	for _, m := range f.members {
		if run := f.checker.runOf(u, m.name); run == nil || !isEnded(run) || f.random.IntN(3) == 0 {
			continue
		}
		f.world.Logf("cluster %s", m.name)
		chosen[m.name] = true
		edit(f.driver, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: m.name}, func(c *clusterv1.ManagedCluster) {
			metav1.SetMetaDataLabel(&c.ObjectMeta, label, value)
		})
	}
	if len(chosen) == 0 || !f.wait(2*time.Minute) { // the hub knows the labels before it knows the selector
		return
	}
	canaries := &fleetv1beta1.CanaryClusters{ClusterSelector: fleetv1beta1.LabelSelector{MatchLabels: map[string]string{label: value}}}
	edit(f.driver, &fleetv1beta1.ManagedClustersUpgrade{}, client.ObjectKeyFromObject(u), func(u *fleetv1beta1.ManagedClustersUpgrade) {
		u.Spec.Attempt = max(u.Spec.Attempt, attempt)
		u.Spec.UpgradeStrategy.CanaryClusters = canaries
	})
	if stored := f.checker.upgrades[string(u.UID)]; stored != nil && equality.Semantic.DeepEqual(stored.Spec.UpgradeStrategy.CanaryClusters, canaries) {
		f.checker.choose(stored, chosen)
	}
}

// silenceSoaking takes the agent of a soaking cluster offline, or the agent of any cluster if none
// is soaking.
func (f *fleet) silenceSoaking() {
	for _, key := range sortedKeys(f.checker.runs) {
		if run := f.checker.runs[key]; run.Status.SoakedUntil != nil && !isEnded(run) {
			m := f.member(key.Namespace)
			m.troubled, m.offline = true, true
			m.wake()
			return
		}
	}
	f.trouble(func(m *member) { m.offline = true })
}

// upgradeNames are the names of the upgrades that may exist. The second one is to a newer release.
var upgradeNames = []string{"stores", "next"}

// anyUpgrade returns the upgrade for an action, usually the first one.
func (f *fleet) anyUpgrade() client.ObjectKey {
	name := upgradeNames[0]
	if f.random.IntN(5) == 0 {
		name = upgradeNames[1]
	}
	return client.ObjectKey{Namespace: fleetNamespace, Name: name}
}

func (f *fleet) anyMember() *member { return f.members[f.random.IntN(len(f.members))] }

func (f *fleet) editSpec(change func(*fleetv1beta1.ManagedClustersUpgradeSpec)) {
	edit(f.driver, &fleetv1beta1.ManagedClustersUpgrade{}, f.anyUpgrade(), func(u *fleetv1beta1.ManagedClustersUpgrade) { change(&u.Spec) })
}

func (f *fleet) setConcurrency(limit intstr.IntOrString) {
	f.editSpec(func(s *fleetv1beta1.ManagedClustersUpgradeSpec) { s.UpgradeStrategy.MaxConcurrency = &limit })
}

// someFailures returns a maximum number of failures, or nil for no limit.
func (f *fleet) someFailures() *intstr.IntOrString {
	switch f.random.IntN(4) {
	case 0:
		return new(intstr.FromInt32(0))
	case 1:
		return new(intstr.FromString("34%"))
	}
	return nil
}

// createUpgrade creates an upgrade that is likely to succeed.
func (f *fleet) createUpgrade() { f.create(f.newUpgrade(f.anyUpgrade())) }

func (f *fleet) create(u *fleetv1beta1.ManagedClustersUpgrade) {
	if err := f.people.Create(context.Background(), u); err != nil {
		f.world.Logf("rejected: %s", firstLine(err))
	}
}

func (f *fleet) newUpgrade(key client.ObjectKey) *fleetv1beta1.ManagedClustersUpgrade {
	u := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	u.Spec.ClusterVersion = &fleetv1beta1.ClusterVersionSpec{Version: "4.20.6", Channel: channel}
	if key.Name == upgradeNames[1] {
		u.Spec.ClusterVersion.Version = "4.20.7"
	}
	if f.random.IntN(2) == 0 {
		u.Spec.Placement = []fleetv1beta1.PlacementReference{{Name: "all"}}
	} else {
		u.Spec.ClusterSelector = &fleetv1beta1.ClusterSelector{LabelSelector: fleetv1beta1.LabelSelector{MatchLabels: map[string]string{fleetLabel: "stores"}}}
	}
	strategy := &u.Spec.UpgradeStrategy
	strategy.MaxConcurrency = []*intstr.IntOrString{nil, new(intstr.FromInt32(2)), new(intstr.FromInt32(3)), new(intstr.FromString("50%"))}[f.random.IntN(4)]
	strategy.MaxFailures = f.someFailures()
	if f.random.IntN(3) == 0 {
		strategy.CanaryClusters = &fleetv1beta1.CanaryClusters{ClusterSelector: fleetv1beta1.LabelSelector{MatchLabels: map[string]string{canaryLabel: "true"}}}
	}
	if f.random.IntN(3) == 0 {
		strategy.MinSuccessTime = "10m"
	}
	if f.random.IntN(3) == 0 {
		u.Spec.PreUpgradeAction = jobAction("pre")
	}
	if f.random.IntN(3) == 0 {
		u.Spec.PostUpgradeAction = jobAction("post")
	}
	if f.random.IntN(5) == 0 {
		u.Spec.OCPOperators = &fleetv1beta1.OCPOperators{ApproveAllUpgrades: true}
	}
	return u
}

// jobAction returns an action with a Job.
func jobAction(name string) *fleetv1beta1.UpgradeAction {
	manifest := `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"` + name + `","namespace":"default"}}`
	return &fleetv1beta1.UpgradeAction{ManifestWork: workv1.ManifestWorkSpec{Workload: workv1.ManifestsTemplate{
		Manifests: []workv1.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(manifest)}}},
	}}}
}

func (f *fleet) deleteUpgrade() {
	key := f.anyUpgrade()
	u := &fleetv1beta1.ManagedClustersUpgrade{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := f.people.Delete(context.Background(), u); err != nil {
		f.world.Logf("rejected: %s", firstLine(err))
	}
}

// trouble makes a cluster do something that an upgrade may not survive.
func (f *fleet) trouble(do func(*member)) {
	m := f.anyMember()
	m.troubled = true
	f.world.Logf("cluster %s", m.name)
	do(m)
	m.wake()
}

// recoverMember ends all trouble of a cluster.
func (f *fleet) recoverMember(m *member) {
	m.fails, m.refuses, m.jobFail, m.offline, m.degraded, m.cutsOff = false, false, false, false, false, false
	m.takes = min(m.takes, time.Hour)
	m.endPreflight()
	f.accept(m, true)
	m.wake()
}

// accept makes the hub accept or reject a cluster. The agent of a rejected cluster cannot reach the
// hub.
func (f *fleet) accept(m *member, accepted bool) {
	m.offline = !accepted
	edit(f.driver, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: m.name}, func(c *clusterv1.ManagedCluster) { c.Spec.HubAcceptsClient = accepted })
}

// deleteRun deletes the run of a cluster.
func (f *fleet) deleteRun() {
	var runs fleetv1alpha1.ClusterUpgradeRunList
	if err := f.people.List(context.Background(), &runs); err != nil || len(runs.Items) == 0 {
		return
	}
	run := &runs.Items[f.random.IntN(len(runs.Items))]
	f.world.Logf("run of %s", run.Namespace)
	if err := f.people.Delete(context.Background(), run); err != nil {
		f.world.Logf("rejected: %s", firstLine(err))
		return
	}
	f.checker.mayBeginAgain(run)
	delete(f.checker.chosen[run.Spec.ManagedClustersUpgrade.UID].clusters, run.Namespace)
}

// importAgain removes a cluster from the hub, with its runs and works, and imports it again.
func (f *fleet) importAgain() {
	m, ctx, cluster := f.anyMember(), context.Background(), &clusterv1.ManagedCluster{}
	if m.edited || f.people.Get(ctx, client.ObjectKey{Name: m.name}, cluster) != nil {
		return
	}
	f.world.Logf("cluster %s", m.name)
	m.troubled, m.away = true, true
	var runs fleetv1alpha1.ClusterUpgradeRunList
	var works workv1.ManifestWorkList
	err := errors.Join(f.people.Delete(ctx, cluster), f.people.List(ctx, &runs, client.InNamespace(m.name)), f.people.List(ctx, &works, client.InNamespace(m.name)))
	for i := range works.Items {
		err = errors.Join(err, client.IgnoreNotFound(f.people.Delete(ctx, &works.Items[i])))
	}
	for i := range runs.Items {
		err = errors.Join(err, client.IgnoreNotFound(f.people.Delete(ctx, &runs.Items[i])))
		f.checker.mayBeginAgain(&runs.Items[i])
		delete(f.checker.chosen[runs.Items[i].Spec.ManagedClustersUpgrade.UID].clusters, m.name)
	}
	if err != nil {
		f.violate("detaching %s: %v", m.name, err)
	}
	f.world.After(f.upTo(20*time.Minute), func() {
		m.away = false
		again := &clusterv1.ManagedCluster{ObjectMeta: metav1.ObjectMeta{Name: m.name, Labels: cluster.Labels}, Spec: clusterv1.ManagedClusterSpec{HubAcceptsClient: true}}
		if err := errors.Join(f.people.Create(ctx, again), m.publish()); err != nil {
			f.violate("importing %s: %v", m.name, err)
		}
		m.wake()
	})
}

func (f *fleet) label(m *member, selected bool) {
	edit(f.driver, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: m.name}, func(c *clusterv1.ManagedCluster) {
		delete(c.Labels, fleetLabel)
		if selected {
			c.Labels[fleetLabel] = "stores"
		}
	})
}

func (f *fleet) hold(m *member, held bool) {
	m.holdsItself = false
	edit(f.driver, &clusterv1.ManagedCluster{}, client.ObjectKey{Name: m.name}, func(c *clusterv1.ManagedCluster) {
		delete(c.Annotations, upgradev1alpha1.HoldAnnotation)
		if held {
			metav1.SetMetaDataAnnotation(&c.ObjectMeta, upgradev1alpha1.HoldAnnotation, "maintenance")
		}
	})
}

// anyWork returns a work of a cluster, or nil.
func (f *fleet) anyWork() *workv1.ManifestWork {
	var works workv1.ManifestWorkList
	if err := f.people.List(context.Background(), &works); err != nil || len(works.Items) == 0 {
		return nil
	}
	return &works.Items[f.random.IntN(len(works.Items))]
}

// editWork removes the deleteOption that protects the ClusterVersion when a work is deleted.
func (f *fleet) editWork() {
	work := f.anyWork()
	if work == nil {
		return
	}
	f.world.Logf("work %s", work.Name)
	edit(f.driver, &workv1.ManifestWork{}, client.ObjectKeyFromObject(work), func(w *workv1.ManifestWork) {
		w.Spec.DeleteOption = nil
		f.member(w.Namespace).edited = true
	})
}

// deleteWork deletes a work unless that might delete the ClusterVersion.
func (f *fleet) deleteWork() {
	work := f.anyWork()
	if work == nil || f.member(work.Namespace).edited {
		return
	}
	f.world.Logf("work %s", work.Name)
	if err := f.people.Delete(context.Background(), work); err != nil {
		f.world.Logf("rejected: %s", firstLine(err))
		return
	}
	f.checker.mayRequestAgain(f.member(work.Namespace))
}

// before makes an action happen between a read by the hub and one of its next writes.
func (f *fleet) before(do func(*fleet)) {
	f.trigger = &trigger{write: 1 + f.random.IntN(6), do: func() { do(f) }}
}

// calmDown ends all failures and obstacles, as users eventually do.
func (f *fleet) calmDown() {
	f.calm, f.trigger = true, nil
	for _, m := range f.members {
		f.recoverMember(m)
		if !m.holdsItself {
			f.hold(m, false)
		}
	}
	for _, name := range upgradeNames {
		edit(f.driver, &fleetv1beta1.ManagedClustersUpgrade{}, client.ObjectKey{Namespace: fleetNamespace, Name: name},
			func(u *fleetv1beta1.ManagedClustersUpgrade) { u.Spec.Paused, u.Spec.DryRun = false, false })
	}
	if f.leader() == nil || len(f.alive()) > 1 || f.random.IntN(2) == 0 {
		f.kill()
	}
}
