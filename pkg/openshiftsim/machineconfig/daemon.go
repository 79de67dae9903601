// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package machineconfig

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Node annotations for the communication between the controller and the daemon.
const (
	CurrentConfig    = "machineconfiguration.openshift.io/currentConfig"
	DesiredConfig    = "machineconfiguration.openshift.io/desiredConfig"
	State            = "machineconfiguration.openshift.io/state"
	Reason           = "machineconfiguration.openshift.io/reason"
	DesiredDrain     = "machineconfiguration.openshift.io/desiredDrain"
	LastAppliedDrain = "machineconfiguration.openshift.io/lastAppliedDrain"
)

// Values of the annotation State.
const (
	StateDone     = "Done"
	StateWorking  = "Working"
	StateDegraded = "Degraded"
)

// Retry intervals in real time.
const (
	drainRetry = time.Second // to evict
	writeRetry = time.Second // to write files
)

// daemon is the progress of a node's update.
type daemon struct {
	config    string    // the configuration that the node is updating to
	startTime time.Time // of the update, or of its drain
	rebooted  bool
}

// reconcileNode advances the update of a node: prepare, cordon and drain, reboot, uncordon.
func (s *Simulator) reconcileNode(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var node corev1.Node
	if err := s.client.Get(ctx, request.NamespacedName, &node); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	config := node.Annotations[DesiredConfig]
	if config == "" || node.Annotations[State] == StateDone && node.Annotations[CurrentConfig] == config {
		return reconcile.Result{}, nil
	}
	now := s.options.Clock.Now()
	daemon := s.daemon(node.Name, config, now)
	before := node.DeepCopy()
	drained, uncordoned := "drain-"+config, "uncordon-"+config
	var requeueAfter time.Duration
	switch {
	case node.Annotations[CurrentConfig] == config && node.Annotations[LastAppliedDrain] == uncordoned:
		annotate(&node, State, StateDone)
	case node.Annotations[CurrentConfig] == config:
		annotate(&node, DesiredDrain, uncordoned)
		node.Spec.Unschedulable = false
		annotate(&node, LastAppliedDrain, uncordoned)
	case node.Annotations[DesiredDrain] != drained && s.brokenBy(node.Name) != "":
		annotate(&node, State, StateDegraded)
		annotate(&node, Reason, s.brokenBy(node.Name))
		requeueAfter = writeRetry
	case node.Annotations[DesiredDrain] != drained:
		annotate(&node, State, StateWorking)
		annotate(&node, Reason, "")
		if requeueAfter = s.remaining(prepareDuration, daemon.startTime, now); requeueAfter <= 0 {
			annotate(&node, DesiredDrain, drained)
			daemon.startTime = now
		}
	case node.Annotations[LastAppliedDrain] != drained:
		var err error
		if requeueAfter, err = s.drain(ctx, &node, drained, daemon.startTime, now); err != nil {
			return reconcile.Result{}, err
		}
	case !daemon.rebooted:
		s.options.Kubelets.Reboot(node.Name, s.rebootDuration(node.Name), now)
		daemon.rebooted = true
	case s.options.Kubelets.IsReady(&node, now):
		annotate(&node, CurrentConfig, config)
	}
	if equality.Semantic.DeepEqual(before, &node) {
		return reconcile.Result{RequeueAfter: max(requeueAfter, 0)}, nil
	}
	if err := s.client.Patch(ctx, &node, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return reconcile.Result{}, fmt.Errorf("patching node %s: %w", node.Name, err)
	}
	return reconcile.Result{RequeueAfter: max(requeueAfter, 0)}, nil
}

func (s *Simulator) daemon(node, config string, now time.Time) *daemon {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.daemons[node] == nil || s.daemons[node].config != config {
		s.daemons[node] = &daemon{config: config, startTime: now}
	}
	return s.daemons[node]
}

func (s *Simulator) rebootDuration(node string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.options.Speed.Scale(cmp.Or(s.reboots[node], defaultRebootDuration))
}

func (s *Simulator) brokenBy(node string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broken[node]
}

// drain cordons the node and evicts its pods. It is complete when no pods are left. A drain that
// takes too long makes the node degraded but continues.
func (s *Simulator) drain(ctx context.Context, node *corev1.Node, drained string, start, now time.Time) (time.Duration, error) {
	if !node.Spec.Unschedulable {
		node.Spec.Unschedulable = true
		return min(drainRetry, s.options.DrainRetry), nil // evict once the cordon is saved
	}
	left, err := Evict(ctx, s.client, node.Name)
	if err != nil {
		return 0, err
	}
	if left == "" {
		annotate(node, LastAppliedDrain, drained)
		annotate(node, State, StateWorking)
		annotate(node, Reason, "")
		return 0, nil
	}
	if s.remaining(drainTimeout, start, now) <= 0 {
		annotate(node, State, StateDegraded)
		annotate(node, Reason, fmt.Sprintf("failed to drain node: %s after 1 hour. Please see machine-config-controller logs for more information", node.Name))
	}
	return s.options.DrainRetry, nil
}

// Evict requests the eviction of all pods that a drain removes from a node. It returns the names of
// the pods that remain.
func Evict(ctx context.Context, c client.Client, node string) (string, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods); err != nil {
		return "", fmt.Errorf("listing pods: %w", err)
	}
	var left []string
	var errs []error
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Spec.NodeName != node || skippedByDrain(pod) {
			continue
		}
		left = append(left, pod.Name)
		if pod.DeletionTimestamp != nil {
			continue
		}
		eviction := &policyv1.Eviction{DeleteOptions: &metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(pod.UID))}}
		err := c.SubResource("eviction").Create(ctx, pod, eviction)
		if err != nil && !apierrors.IsTooManyRequests(err) && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			errs = append(errs, fmt.Errorf("evicting pod %s: %w", client.ObjectKeyFromObject(pod), err))
		}
	}
	return strings.Join(left, ", "), errors.Join(errs...)
}

// skippedByDrain reports whether a drain ignores a pod. Pods of DaemonSets and static pods would
// return immediately, and finished pods do not block a drain.
func skippedByDrain(pod *corev1.Pod) bool {
	if _, mirror := pod.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
		return true
	}
	controller := metav1.GetControllerOf(pod)
	return controller != nil && controller.Kind == "DaemonSet" ||
		pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func annotate(node *corev1.Node, key, value string) {
	if node.Annotations == nil {
		node.Annotations = map[string]string{}
	}
	node.Annotations[key] = value
}
