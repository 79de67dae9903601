// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package openshift

import (
	"context"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	mcfgv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/manager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/cvo"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// Script is a scripted cluster with two nodes whose upgrade takes only six writes. It is for tests
// that run hundreds of upgrades, where a Cluster with all its simulators would be too slow. Its
// fields may be changed at any time. Tests may add pools; these are updated after the control plane
// as well. A paused pool is not updated until it is resumed.
type Script struct {
	// Channel is the channel with the versions in Available.
	Channel   string
	Available []string
	// Rejection, if set, is the reason why the cluster version operator rejects every target.
	Rejection string
	// Unresponsive makes the cluster version operator ignore changes of the spec.
	Unresponsive bool
	// PoolsIgnored makes the machine config operator ignore changes of the pools.
	PoolsIgnored bool
	// AcceptDelay is the time from a request until the update starts, ControlPlaneDuration the
	// duration of the control plane update, and WorkersDuration the time after that until the pools
	// are updated.
	AcceptDelay, ControlPlaneDuration, WorkersDuration time.Duration

	world  *simulation.World
	client client.Client
	target string // image of the release that was last requested when the spec was observed; may be empty
	// rendered is the version of each pool's rendered configuration, and updating the version that
	// each pool is updating to.
	rendered, updating map[string]string
}

// NewScript adds the objects of a healthy cluster to the world and starts its operators.
func NewScript(w *simulation.World, installed, channel string, available ...string) (*Script, error) {
	s := &Script{
		Channel: channel, Available: available, AcceptDelay: 20 * time.Second,
		ControlPlaneDuration: 11 * time.Minute, WorkersDuration: 7 * time.Minute,
		world: w, client: w.Client("openshift"), rendered: map[string]string{}, updating: map[string]string{},
	}
	if err := w.Add(scriptedObjects(installed)...); err != nil {
		return nil, err
	}
	_, err := w.Start(&simulation.Program{
		Name: "openshift", Direct: true,
		Controllers: func(simulation.Env) ([]manager.Controller, error) {
			return []manager.Controller{{
				Name: "script", Reads: []manager.Kind{{Object: &configv1.ClusterVersion{}, Requests: manager.Self}},
				Reconciler: reconcile.Func(s.reconcile),
			}, {
				Name: "pools", Reads: []manager.Kind{{Object: &mcfgv1.MachineConfigPool{}, Requests: manager.Self}},
				Reconciler: reconcile.Func(s.reconcilePool),
			}}, nil
		},
	})
	return s, err
}

func scriptedObjects(installed string) []client.Object {
	objects := []client.Object{
		&configv1.ClusterVersion{
			ObjectMeta: metav1.ObjectMeta{Name: clusterstate.VersionKey.Name, Generation: 1},
			Spec:       configv1.ClusterVersionSpec{Channel: "stable-4.4"},
			Status: configv1.ClusterVersionStatus{
				ObservedGeneration: 1,
				Desired:            release(installed),
				History:            []configv1.UpdateHistory{{Version: installed, Image: release(installed).Image, State: configv1.CompletedUpdate}},
				Conditions:         conditions(configv1.ClusterOperatorStatusCondition{}),
			},
		},
		&configv1.ClusterOperator{
			ObjectMeta: metav1.ObjectMeta{Name: clusterstate.MachineConfigOperator},
			Status: configv1.ClusterOperatorStatus{
				Versions: []configv1.OperandVersion{{Name: "operator", Version: installed}},
				Conditions: []configv1.ClusterOperatorStatusCondition{
					{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue},
					{Type: configv1.OperatorDegraded, Status: configv1.ConditionFalse},
				},
			},
		},
	}
	for _, name := range []string{"master", "worker"} {
		pool := &mcfgv1.MachineConfigPool{ObjectMeta: metav1.ObjectMeta{Name: name, Generation: 1}}
		MarkUpdated(pool, installed)
		objects = append(objects, pool, &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name + "-0"},
			Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
		})
	}
	return objects
}

// AssignNodes makes each pool select the nodes with its role and makes each node report the
// configuration of a release. Without it, the pools select no nodes.
func (s *Script) AssignNodes(release string) {
	role := func(pool string) map[string]string { return map[string]string{"node-role.kubernetes.io/" + pool: ""} }
	s.ChangePools(func(pool *mcfgv1.MachineConfigPool) {
		pool.Spec.NodeSelector = &metav1.LabelSelector{MatchLabels: role(pool.Name)}
	})
	for _, pool := range []string{"master", "worker"} {
		s.ChangeNode(pool+"-0", func(node *corev1.Node) {
			config := fmt.Sprintf("rendered-%s-%s", pool, release)
			node.Labels, node.Annotations = role(pool), map[string]string{
				"machineconfiguration.openshift.io/currentConfig": config, "machineconfiguration.openshift.io/desiredConfig": config,
				"machineconfiguration.openshift.io/state": "Done",
			}
		})
	}
}

// ReportHealthy replaces the conditions of the ClusterVersion with two: the cluster is available, and
// updates were retrieved.
func (s *Script) ReportHealthy() {
	s.ChangeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Conditions = []configv1.ClusterOperatorStatusCondition{
			{Type: configv1.OperatorAvailable, Status: configv1.ConditionTrue},
			{Type: configv1.RetrievedUpdates, Status: configv1.ConditionTrue},
		}
	})
}

// Backdate makes the installation start and complete at the given time.
func (s *Script) Backdate(installed time.Time) {
	at := metav1.NewTime(installed)
	s.ChangeVersion(func(version *configv1.ClusterVersion) {
		version.Status.History[0].StartedTime, version.Status.History[0].CompletionTime = at, &at
	})
}

// MarkUpdated sets the state of a pool with one machine that has been updated to a version.
func MarkUpdated(pool *mcfgv1.MachineConfigPool, version string) {
	pool.Spec.Configuration.Name = fmt.Sprintf("rendered-%s-%s", pool.Name, version)
	pool.Status.Configuration.Name = pool.Spec.Configuration.Name
	pool.Status.ObservedGeneration = max(1, pool.Generation)
	pool.Status.MachineCount, pool.Status.UpdatedMachineCount = 1, 1
	pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionTrue}}
}

// ClusterVersion returns the ClusterVersion.
func (s *Script) ClusterVersion() *configv1.ClusterVersion {
	version := &configv1.ClusterVersion{}
	change(s, version, clusterstate.VersionKey.Name, nil)
	return version
}

// ChangeVersion changes the ClusterVersion, including its status.
func (s *Script) ChangeVersion(do func(*configv1.ClusterVersion)) {
	change(s, &configv1.ClusterVersion{}, clusterstate.VersionKey.Name, do)
}

// ChangeOperator changes the machine config operator's ClusterOperator.
func (s *Script) ChangeOperator(do func(*configv1.ClusterOperator)) {
	change(s, &configv1.ClusterOperator{}, clusterstate.MachineConfigOperator, do)
}

// ChangeNode changes the node master-0 or worker-0.
func (s *Script) ChangeNode(name string, do func(*corev1.Node)) { change(s, &corev1.Node{}, name, do) }

// ChangePools changes all pools. The machine config operator observes the changes immediately.
func (s *Script) ChangePools(do func(*mcfgv1.MachineConfigPool)) {
	var pools mcfgv1.MachineConfigPoolList
	if err := s.client.List(context.Background(), &pools); err != nil {
		s.world.Fail(fmt.Errorf("listing the pools: %w", err))
	}
	for i := range pools.Items {
		change(s, &mcfgv1.MachineConfigPool{}, pools.Items[i].Name, func(pool *mcfgv1.MachineConfigPool) {
			spec := pool.Spec.DeepCopy()
			if do(pool); !equality.Semantic.DeepEqual(*spec, pool.Spec) {
				pool.Status.ObservedGeneration = pool.Generation + 1
			}
		})
	}
}

// change reads an object, calls do unless it is nil, and stores the result.
func change[T client.Object](s *Script, object T, name string, do func(T)) {
	err := s.client.Get(context.Background(), client.ObjectKey{Name: name}, object)
	if err == nil && do != nil {
		do(object)
		err = s.world.Set(object)
	}
	if err != nil {
		s.world.Fail(fmt.Errorf("changing the scripted cluster: %w", err))
	}
}

// conditions returns the conditions of an idle ClusterVersion, with one condition added or
// replaced.
func conditions(reported configv1.ClusterOperatorStatusCondition) []configv1.ClusterOperatorStatusCondition {
	all := []configv1.ClusterOperatorStatusCondition{
		{Type: "Failing", Status: configv1.ConditionFalse}, {Type: configv1.OperatorProgressing, Status: configv1.ConditionFalse},
	}
	if reported.Type == "" {
		return all
	}
	all = slices.DeleteFunc(all, func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == reported.Type })
	return append(all, reported)
}

// Report sets a single unusual condition of the ClusterVersion.
func (s *Script) Report(name configv1.ClusterStatusConditionType, status configv1.ConditionStatus, message string) {
	s.ChangeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Conditions = conditions(configv1.ClusterOperatorStatusCondition{Type: name, Status: status, Reason: "Reported", Message: message})
	})
}

// Offer changes the available versions.
func (s *Script) Offer(versions ...string) {
	s.Available = versions
	s.ChangeVersion(s.offer)
}

// reconcile reacts to a change of the ClusterVersion like the cluster version operator.
func (s *Script) reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	version := &configv1.ClusterVersion{}
	if err := s.client.Get(ctx, req.NamespacedName, version); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err) // without a ClusterVersion, nothing happens
	}
	if s.Unresponsive {
		return reconcile.Result{}, nil
	}
	if version.Status.ObservedGeneration != version.Generation {
		s.ChangeVersion(s.offer)
	}
	version = s.ClusterVersion()
	desired, invalid := cvo.Desired(version)
	s.reportInvalid(invalid)
	if invalid != nil || desired == nil || desired.Image == currentImage(version) {
		s.target = ""                  // the request has no effect
		return reconcile.Result{}, nil //nolint:nilerr // The condition Invalid reports it.
	}
	if desired.Image == s.target {
		return reconcile.Result{}, nil
	}
	s.target = desired.Image
	target := releaseOf(version, desired)
	if s.Rejection != "" {
		s.Report("ReleaseAccepted", configv1.ConditionFalse, fmt.Sprintf("version=%q %s", target.Version, s.Rejection))
		return reconcile.Result{}, nil
	}
	s.world.After(s.AcceptDelay, func() { s.commence(target) })
	return reconcile.Result{}, nil
}

// release returns the release with a version.
func release(version string) configv1.Release {
	return configv1.Release{Version: version, Image: "example.com/release:" + version}
}

// currentImage returns the image of the newest history entry, or an empty string.
func currentImage(version *configv1.ClusterVersion) string {
	if len(version.Status.History) == 0 {
		return ""
	}
	return version.Status.History[0].Image
}

// releaseOf returns the requested release. It is identified by the image.
func releaseOf(version *configv1.ClusterVersion, desired *configv1.Update) configv1.Release {
	for _, offered := range version.Status.AvailableUpdates {
		if offered.Image == desired.Image {
			return offered
		}
	}
	return configv1.Release{Version: desired.Version, Image: desired.Image}
}

// reportInvalid sets the Invalid condition, or removes it if the request is valid.
func (s *Script) reportInvalid(invalid error) {
	isInvalid := func(c configv1.ClusterOperatorStatusCondition) bool { return c.Type == "Invalid" }
	if slices.ContainsFunc(s.ClusterVersion().Status.Conditions, isInvalid) == (invalid != nil) {
		return
	}
	s.ChangeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Conditions = slices.DeleteFunc(version.Status.Conditions, isInvalid)
		if invalid != nil {
			version.Status.Conditions = append(version.Status.Conditions, configv1.ClusterOperatorStatusCondition{
				Type: "Invalid", Status: configv1.ConditionTrue, Reason: "InvalidClusterVersion", Message: invalid.Error(),
			})
		}
	})
}

// offer observes the spec and sets the available updates.
func (s *Script) offer(version *configv1.ClusterVersion) {
	version.Status.ObservedGeneration = version.Generation
	version.Status.AvailableUpdates = nil
	if version.Spec.Channel == s.Channel {
		for _, v := range s.Available {
			version.Status.AvailableUpdates = append(version.Status.AvailableUpdates, release(v))
		}
	}
}

// commence starts the update to a release if it is still requested.
func (s *Script) commence(target configv1.Release) {
	if desired, err := cvo.Desired(s.ClusterVersion()); err != nil || desired == nil || desired.Image != target.Image {
		return
	}
	s.ChangeVersion(func(version *configv1.ClusterVersion) {
		version.Status.Desired = target
		version.Status.History = slices.Insert(version.Status.History, 0, configv1.UpdateHistory{
			Version: target.Version, Image: target.Image, State: configv1.PartialUpdate, StartedTime: metav1.NewTime(s.world.Now()),
		})
		s.setProgressing(version, configv1.ConditionTrue)
	})
	s.world.After(s.ControlPlaneDuration, func() { s.complete(target) })
}

// setProgressing sets the condition that reports an installation in progress.
func (s *Script) setProgressing(version *configv1.ClusterVersion, status configv1.ConditionStatus) {
	for i := range version.Status.Conditions {
		if c := &version.Status.Conditions[i]; c.Type == configv1.OperatorProgressing && c.Status != status {
			c.Status, c.LastTransitionTime = status, metav1.NewTime(s.world.Now())
		}
	}
}

// complete completes the update of the control plane. The pools follow.
func (s *Script) complete(release configv1.Release) {
	target := release.Version
	if s.ClusterVersion().Status.History[0].Version != target {
		return
	}
	s.ChangePools(func(pool *mcfgv1.MachineConfigPool) {
		pool.Spec.Configuration.Name = fmt.Sprintf("rendered-%s-%s", pool.Name, target)
		pool.Status.UpdatedMachineCount = 0
		if pool.Spec.Paused {
			pool.Status.Conditions = []mcfgv1.MachineConfigPoolCondition{
				{Type: mcfgv1.MachineConfigPoolUpdated, Status: corev1.ConditionFalse},
				{Type: mcfgv1.MachineConfigPoolUpdating, Status: corev1.ConditionFalse, Message: "Pool is paused; will not update to " + pool.Spec.Configuration.Name},
			}
		}
		s.rendered[pool.Name] = target
	})
	s.ChangeOperator(func(operator *configv1.ClusterOperator) { operator.Status.Versions[0].Version = target })
	s.ChangeVersion(func(version *configv1.ClusterVersion) {
		version.Status.History[0].State = configv1.CompletedUpdate
		s.setProgressing(version, configv1.ConditionFalse)
	})
}

// reconcilePool reacts to a change of a pool like the machine config operator: it observes the
// spec, and updates the nodes if the pool is not paused and its configuration has changed.
func (s *Script) reconcilePool(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	pool := &mcfgv1.MachineConfigPool{}
	if err := s.client.Get(ctx, request.NamespacedName, pool); err != nil || s.PoolsIgnored {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	name, target := pool.Name, s.rendered[pool.Name]
	if target != "" && !pool.Spec.Paused && s.updating[name] != target {
		s.updating[name] = target
		s.world.After(s.WorkersDuration, func() { s.finishPool(name, target) })
	}
	if pool.Status.ObservedGeneration >= pool.Generation {
		return reconcile.Result{}, nil
	}
	pool.Status.ObservedGeneration = pool.Generation
	return reconcile.Result{}, s.client.Status().Update(ctx, pool)
}

// finishPool completes the update of a pool, unless the pool was deleted or has received another
// configuration.
func (s *Script) finishPool(name, target string) {
	err := s.client.Get(context.Background(), client.ObjectKey{Name: name}, &mcfgv1.MachineConfigPool{})
	if client.IgnoreNotFound(err) != nil {
		s.world.Fail(fmt.Errorf("reading pool %s: %w", name, err))
	}
	if err != nil || s.rendered[name] != target {
		return
	}
	change(s, &mcfgv1.MachineConfigPool{}, name, func(pool *mcfgv1.MachineConfigPool) { MarkUpdated(pool, target) })
}
