// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"context"
	"errors"
	"strconv"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	record "github.com/managed-upgrade/managed-upgrade-operator/api/history"
	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// upgradeConfigActions returns the actions in histories of UpgradeConfigs. Append new actions at
// the end: seeds that were kept specify how many actions existed at the time.
func upgradeConfigActions() []action[*runner] {
	return []action[*runner]{
		{"edit the schedule", 3, func(h *runner) { h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = h.soon() }) }},
		{"postpone", 1, func(h *runner) {
			at := h.world.Now().Add(time.Hour + h.upTo(time.Hour)).UTC().Format(time.RFC3339)
			h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.UpgradeAt = at })
		}},
		{"edit the version", 2, func(h *runner) {
			version := []string{"4.20.6", "4.20.7", "4.21.0", "4.20.4", "4.20.9"}[h.random.IntN(5)]
			h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Version = version })
		}},
		{"edit the channel", 1, func(h *runner) {
			name := []string{channel, "fast-4.20", "typo-4.20"}[h.random.IntN(3)]
			h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Desired.Channel = name })
		}},
		{"edit the type", 1, func(h *runner) {
			kind := []string{"OSD", "ARO", "Unknown"}[h.random.IntN(3)]
			h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Type = kind })
		}},
		{"edit the drain timeout", 1, func(h *runner) {
			h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.PDBForceDrainTimeout = new(int32(h.random.IntN(30))) })
		}},
		{"pause", 3, func(h *runner) { h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = new(true) }) }},
		{"resume", 5, func(h *runner) { h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = nil }) }},
		{"delete the upgrade", 4, (*runner).deleteUpgrade},
		{"create an upgrade", 8, (*runner).createUpgrade},
		{"start the target elsewhere", 2, func(h *runner) { h.moveClusterVersion("4.20.6") }},
		{"start another target", 1, func(h *runner) { h.moveClusterVersion("4.20.7") }},
		{"withdraw the target", 1, func(h *runner) { h.moveClusterVersion("") }},
		{"change the cluster's channel", 1, func(h *runner) {
			edit(h.driver, &configv1.ClusterVersion{}, client.ObjectKey{Name: cvo.Name}, func(v *configv1.ClusterVersion) { v.Spec.Channel = "fast-4.20" })
		}},
		{"cordon a node", 2, func(h *runner) { h.cordon(true) }},
		{"uncordon the nodes", 3, func(h *runner) { h.cordon(false) }},
		{"pause the worker pool", 1, func(h *runner) { h.pausePool(true) }},
		{"resume the worker pool", 2, func(h *runner) { h.pausePool(false) }},
		{"degrade an operator", 2, func(h *runner) { h.degrade(true) }},
		{"repair the operators", 4, func(h *runner) { h.degrade(false) }},
		{"an alert fires", 2, func(h *runner) { h.cluster.Alerts.FireOnly("etcdMembersDown") }},
		{"no alert fires", 4, func(h *runner) { h.cluster.Alerts.ResolveAll(); h.cluster.Alerts.Err = nil }},
		{"alerts cannot be queried", 1, func(h *runner) { h.cluster.Alerts.Err = errors.New("connection refused") }},
		{"Alertmanager fails", 1, func(h *runner) { h.cluster.Alertmanager.Err = errors.New("connection refused") }},
		{"Alertmanager works", 2, func(h *runner) { h.cluster.Alertmanager.Err = nil }},
		{"wipe the status", 2, func(h *runner) {
			h.writeStatus(func(s *upgradev1alpha1.UpgradeConfigStatus) { *s = upgradev1alpha1.UpgradeConfigStatus{} })
		}},
		{"forge a finished status", 1, (*runner).forgeFinished},
		{"forge a started status", 1, (*runner).forgeStarted},
		{"preset the finalizer", 1, (*runner).presetFinalizer},
		{"delete the lock", 1, (*runner).deleteLock},
		{"kill the operator", 4, func(h *runner) { h.kill() }},
		{"two leaders", 2, func(h *runner) { h.twoLeaders() }},
		{"step the clock", 1, func(h *runner) { h.stepClock() }},
		{"requests fail", 6, func(h *runner) { h.failRequests() }},
		{"a cache lags", 3, func(h *runner) {
			h.lag("UpgradeConfig", "ClusterVersion", "Lease", "Node", "MachineConfigPool", "ClusterOperator")
		}},
		{"delete right before a write", 1, func(h *runner) { h.before((*runner).deleteUpgrade) }},
		{"pause once the target is requested", 3, func(h *runner) {
			h.once.requested = func() {
				h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { s.Paused = new(true) })
			}
		}},
		{"delete once the target is requested", 1, func(h *runner) { h.once.requested = h.deleteUpgrade }},
		{"start another target once the upgrade has commenced", 2, func(h *runner) { h.once.commenced = func() { h.moveClusterVersion("4.20.7") } }},
		{"delete once the upgrade fails", 2, func(h *runner) { h.once.failed = h.deleteUpgrade }},
		{"the upgrade ends before its lock is seen", 2, func(h *runner) {
			h.once.locked = func() {
				if leader := h.leader(); leader != nil {
					leader.Lag("Lease", 4*time.Minute)
					h.disturbedUntil(h.world.Now().Add(4 * time.Minute))
				}
				h.forgeFinished()
			}
		}},
		{"start the target right before a write", 1, func(h *runner) { h.before(func(h *runner) { h.moveClusterVersion("4.20.6") }) }},
		{"hold all upgrades", 2, func(h *runner) { h.hold(true) }},
		{"lift the hold", 3, func(h *runner) { h.hold(false) }},
		{"the receiver of the webhook is down", 2, func(h *runner) { h.receiver.down = true }},
		{"the receiver of the webhook is up", 2, func(h *runner) { h.receiver.down = false }},
		{"back up etcd", 2, (*runner).backUp},
		{"restore etcd", 1, (*runner).restore},
		{"hold all upgrades right after the request", 2, func(h *runner) { h.once.atRequest = func() { h.hold(true) } }},
		{"start the target elsewhere right before the window of a held upgrade closes", 3, (*runner).startBeforeWindowEnd},
		{"pause right after the request", 2, func(h *runner) {
			h.once.atRequest = func() {
				for _, key := range keys() {
					edit(h.driver, &upgradev1alpha1.UpgradeConfig{}, key, func(cfg *upgradev1alpha1.UpgradeConfig) { cfg.Spec.Paused = new(true) })
				}
			}
		}},
		{"another upgrade is due once this one ends, and the receiver of the webhook is down", 3, (*runner).rivalAtEnd},
		{"two leaders whose requests interleave make the request, and it is paused", 8, (*runner).interleaveAtStart},
		{"delete an upgrade in mid-upgrade and create it again", 5, (*runner).recreate},
		{"the operator is down for hours", 2, (*runner).goDown},
		{"the operator goes down for hours at a moment of the upgrade", 6, (*runner).goDownAt},
		{"a retry is requested and taken back", 4, (*runner).takeRetryBack},
		{"retry once the upgrade fails, while the receiver of the webhook is down", 4, (*runner).retryUndelivered},
		{"request a start now", 4, func(h *runner) { h.annotate(upgradev1alpha1.RunNowAnnotation, strconv.Itoa(h.random.IntN(4))) }},
		{"request a retry", 4, func(h *runner) { h.annotate(upgradev1alpha1.RetryAnnotation, strconv.Itoa(h.random.IntN(4))) }},
		{"pause by annotation", 2, func(h *runner) { h.annotate(upgradev1alpha1.PauseAnnotation, "freeze") }},
		{"resume by annotation", 3, func(h *runner) { h.annotate(upgradev1alpha1.PauseAnnotation, "") }},
	}
}

// annotate sets an annotation of an upgrade, or removes it if the value is empty.
func (h *runner) annotate(name, value string) {
	edit(h.driver, &upgradev1alpha1.UpgradeConfig{}, h.anyUpgrade(), func(cfg *upgradev1alpha1.UpgradeConfig) {
		if metav1.SetMetaDataAnnotation(&cfg.ObjectMeta, name, value); value == "" {
			delete(cfg.Annotations, name)
		}
	})
}

// keys returns the names of all UpgradeConfigs that a history may create.
func keys() []client.ObjectKey {
	return []client.ObjectKey{{Namespace: Namespace, Name: "upgrade"}, {Namespace: Namespace, Name: "other"}}
}

// anyUpgrade returns the upgrade for an action, usually the first one.
func (h *runner) anyUpgrade() client.ObjectKey {
	if h.random.IntN(6) == 0 {
		return keys()[1]
	}
	return keys()[0]
}

func (h *runner) createUpgrade() {
	cfg := h.upgradeConfig(h.anyUpgrade())
	if h.random.IntN(5) == 0 {
		cfg.Spec.Desired.Version = "4.20.7"
	}
	if err := h.cluster.Client.Create(context.Background(), cfg); err != nil {
		h.editSpec(func(s *upgradev1alpha1.UpgradeConfigSpec) { *s = cfg.Spec }) // like GitOps
	}
}

func (h *runner) deleteUpgrade() { h.delete(h.anyUpgrade()) }

func (h *runner) delete(key client.ObjectKey) {
	cfg := h.upgradeConfig(key)
	if err := h.cluster.Client.Delete(context.Background(), cfg); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) editSpec(change func(*upgradev1alpha1.UpgradeConfigSpec)) {
	edit(h.driver, &upgradev1alpha1.UpgradeConfig{}, h.anyUpgrade(), func(cfg *upgradev1alpha1.UpgradeConfig) { change(&cfg.Spec) })
}

func (h *runner) writeStatus(change func(*upgradev1alpha1.UpgradeConfigStatus)) {
	var cfg upgradev1alpha1.UpgradeConfig
	if err := h.cluster.Client.Get(context.Background(), h.anyUpgrade(), &cfg); err != nil {
		return
	}
	change(&cfg.Status)
	if err := h.cluster.Client.Status().Update(context.Background(), &cfg); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

// forgeFinished writes a status, as another client, that claims that the upgrade has finished.
func (h *runner) forgeFinished() {
	now := metav1.NewTime(h.world.Now().Truncate(time.Second))
	h.writeStatus(func(s *upgradev1alpha1.UpgradeConfigStatus) {
		s.History = []record.Record{{Version: "4.20.6", Phase: record.PhaseUpgraded, Attempt: 1, StartTime: &now, CompleteTime: &now}}
	})
}

func (h *runner) forgeStarted() {
	now := metav1.NewTime(h.world.Now().Truncate(time.Second))
	h.writeStatus(func(s *upgradev1alpha1.UpgradeConfigStatus) {
		s.History = []record.Record{{Version: "4.20.6", Phase: record.PhaseUpgrading, Attempt: 1, StartTime: &now}}
	})
}

func (h *runner) presetFinalizer() {
	cfg := h.upgradeConfig(h.anyUpgrade())
	cfg.Finalizers = []string{upgradev1alpha1.Finalizer}
	if err := h.cluster.Client.Create(context.Background(), cfg); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

func (h *runner) moveClusterVersion(version string) {
	edit(h.driver, &configv1.ClusterVersion{}, client.ObjectKey{Name: cvo.Name}, func(v *configv1.ClusterVersion) {
		v.Spec.DesiredUpdate = nil
		if version != "" {
			release, _ := h.cluster.Catalog.Version(version)
			v.Spec.DesiredUpdate = &configv1.Update{Version: version, Image: release.Image()}
		}
	})
}

// interleaveAtStart makes two leaders run an upgrade that starts soon, with interleaved requests.
// One of them dies around the time of the request, and the upgrade is paused.
func (h *runner) interleaveAtStart() {
	h.createUpgrade()
	h.hold(false)
	first := h.leader()
	if len(h.alive()) != 1 {
		return
	}
	if err := h.startLeader(); err != nil {
		h.violate("second leader: %v", err)
		return
	}
	second := h.leader()
	end := func() {
		dies := []*simulation.Process{first, second}[h.random.IntN(2)]
		dies.Kill()
		h.restartAfter(0)
	}
	pause := func() {
		for _, key := range keys() {
			edit(h.driver, &upgradev1alpha1.UpgradeConfig{}, key, func(cfg *upgradev1alpha1.UpgradeConfig) { cfg.Spec.Paused = new(true) })
		}
	}
	h.world.After(20*time.Minute, end)
	if h.random.IntN(2) == 0 { // both make the request at the same time and are paused later
		h.race = &race{}
		h.disturbedUntil(h.world.Now().Add(20 * time.Minute))
		h.once.sent = func() { h.world.After(time.Minute, pause) }
		return
	}
	h.interleave(20 * time.Minute)
	h.once.sent, h.once.requested = end, pause
}

// startBeforeWindowEnd puts the next upgrade that starts on hold, and makes another client start
// its target a few minutes before the window closes.
func (h *runner) startBeforeWindowEnd() {
	h.once.started = func(cfg *upgradev1alpha1.UpgradeConfig) {
		h.world.Logf("action: the one that waits for the end of the window")
		h.hold(true)
		at, err := time.Parse(time.RFC3339, cfg.Spec.UpgradeAt)
		if err != nil {
			return
		}
		h.world.After(max(0, at.Add(window-4*time.Minute).Sub(h.world.Now())), func() {
			if !h.calm {
				h.world.Logf("action: the one that comes right before the end of the window")
				h.hold(true)
				h.moveClusterVersion(cfg.Spec.Desired.Version)
			}
		})
	}
}

// rivalAtEnd makes another upgrade due when the next upgrade ends, while the lock waits for the
// webhook's receiver.
func (h *runner) rivalAtEnd() {
	h.receiver.down = true
	h.once.ended = func(ended client.ObjectKey) {
		for _, key := range keys() {
			if key == ended {
				continue
			}
			h.world.Logf("action: the one that waits for the end of another upgrade")
			h.hold(false)
			rival := h.upgradeConfig(key)
			rival.Spec.Desired.Version = "4.20.7" // also after an upgrade to 4.20.6
			rival.Spec.UpgradeAt = h.world.Now().UTC().Format(time.RFC3339)
			if err := h.cluster.Client.Create(context.Background(), rival); err != nil {
				edit(h.driver, &upgradev1alpha1.UpgradeConfig{}, key, func(cfg *upgradev1alpha1.UpgradeConfig) { cfg.Spec = rival.Spec })
			}
		}
	}
}

func (h *runner) hold(held bool) {
	edit(h.driver, &configv1.ClusterVersion{}, client.ObjectKey{Name: cvo.Name}, func(v *configv1.ClusterVersion) {
		delete(v.Annotations, upgradev1alpha1.HoldAnnotation)
		if held {
			metav1.SetMetaDataAnnotation(&v.ObjectMeta, upgradev1alpha1.HoldAnnotation, "maintenance")
		}
	})
}

// backUp saves the state of the API server, unless the cluster is updating: the OpenShift
// simulators cannot handle going back.
func (h *runner) backUp() {
	if version := h.checker.wholeVersion(); version != "" {
		h.backup, h.backupVersion, h.backupRequester = h.world.Backup(), version, h.checker.requester
	}
}

// restore restores the API server from the last backup, unless the cluster has changed its version
// since. After that, the operator has not written the current status of the upgrades.
func (h *runner) restore() {
	if h.backup == nil || h.checker.wholeVersion() != h.backupVersion {
		return
	}
	h.checker.restored, h.checker.events = true, map[string]bool{} // the Events are lost as well
	h.world.Restore(h.backup)
	h.checker.requester = h.backupRequester
}

func (h *runner) cordon(cordon bool) {
	var nodes corev1.NodeList
	if err := h.cluster.Client.List(context.Background(), &nodes); err != nil {
		return
	}
	for i := range nodes.Items {
		node := &nodes.Items[i]
		if node.Spec.Unschedulable == cordon || cordon && h.random.IntN(len(nodes.Items)) > 0 {
			continue
		}
		edit(h.driver, &corev1.Node{}, client.ObjectKeyFromObject(node), func(n *corev1.Node) { n.Spec.Unschedulable = cordon })
	}
}

func (h *runner) pausePool(paused bool) {
	edit(h.driver, &mcfgv1.MachineConfigPool{}, client.ObjectKey{Name: "worker"}, func(p *mcfgv1.MachineConfigPool) { p.Spec.Paused = paused })
}

func (h *runner) degrade(degraded bool) {
	var operators configv1.ClusterOperatorList
	if err := h.cluster.Client.List(context.Background(), &operators); err != nil {
		return
	}
	status := configv1.ConditionFalse
	if degraded {
		status = configv1.ConditionTrue
	}
	for i := range operators.Items {
		if degraded && i > 0 {
			return
		}
		cvo.SetCondition(&operators.Items[i], configv1.OperatorDegraded, status, "Simulated", "", h.world.Now())
		if err := h.cluster.Client.Status().Update(context.Background(), &operators.Items[i]); err != nil {
			h.world.Logf("rejected: %s", firstLine(err))
		}
	}
}

func (h *runner) deleteLock() {
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: Namespace, Name: "cluster-upgrade"}}
	if err := h.cluster.Client.Delete(context.Background(), lease); err != nil {
		h.world.Logf("rejected: %s", firstLine(err))
	}
}

// before makes an action happen between a read by the operator and one of its next writes.
func (h *runner) before(do func(*runner)) {
	h.trigger = &trigger{write: 1 + h.random.IntN(6), do: func() { do(h) }}
}

// calmDown ends all failures and obstacles, as users eventually do.
func (h *runner) calmDown() {
	h.calm, h.trigger, h.downUntil = true, nil, time.Time{}
	h.cluster.Alerts.ResolveAll()
	h.cluster.Alerts.Err, h.cluster.Alertmanager.Err = nil, nil
	h.receiver.down = false
	h.hold(false)
	h.pausePool(false)
	h.cordon(false)
	h.degrade(false)
	if h.kind == UpgradeJobs {
		h.endSuspension()
		h.deleteSchedule()
		h.releaseDrains()
	}
	for _, key := range keys() {
		edit(h.driver, &upgradev1alpha1.UpgradeConfig{}, key, func(cfg *upgradev1alpha1.UpgradeConfig) {
			cfg.Spec.Paused = nil
			delete(cfg.Annotations, upgradev1alpha1.PauseAnnotation)
		})
		if cfg := h.checker.configs[key]; cfg != nil && cfg.Spec.Type == "Unknown" && inProgress(cfg) { // its status was forged
			h.delete(key)
		}
	}
	if h.leader() == nil || len(h.alive()) > 1 || h.random.IntN(2) == 0 {
		h.kill()
	}
}

// addWorkloads adds pods, some of them protected by PodDisruptionBudgets.
func (h *runner) addWorkloads() error {
	ctx := context.Background()
	for _, name := range []string{"shop", "cart"} {
		labels := map[string]string{"app": name}
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, Labels: labels}, Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyAlways}}
		if err := h.cluster.Client.Create(ctx, pod); err != nil {
			return err
		}
		if h.random.IntN(3) > 0 {
			continue
		}
		budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}}
		budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
		if err := h.cluster.Client.Create(ctx, budget); err != nil {
			return err
		}
	}
	return nil
}
