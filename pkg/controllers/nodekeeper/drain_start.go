// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package nodekeeper

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// AnnotationDrainFirstSeen is the annotation of a node that records the first sighting of its
// drain.
const AnnotationDrainFirstSeen = clusterstate.AnnotationDrainFirstSeen

const (
	// sightingDelay is the usual maximum time between the cordon and the first sighting of a drain.
	// If a drain is seen later, the node was cordoned before the request, or the drain started
	// while the operator was down.
	sightingDelay = time.Minute
	// recordSightingAfter is how long a drain runs before its first sighting is recorded on the
	// node. Most drains end sooner and cost no write.
	recordSightingAfter = 10 * time.Minute
)

// drainStart returns the start of a drain for computing its deadlines; see clusterstate.Drain. A
// node that was cordoned long before its drain is drained no faster than others.
func (r *Reconciler) drainStart(ctx context.Context, node *corev1.Node, drain clusterstate.Drain, a *Attempt) (time.Time, error) {
	seen, err := r.firstSeen(ctx, node, drain, a)
	drain.FirstSeen = seen
	return drain.Start(a.StartTime, r.Clock.Now()), err
}

// firstSeen returns when this process or an earlier one first saw the drain. It records the
// sighting on the node once a restart could otherwise shift it noticeably.
func (r *Reconciler) firstSeen(ctx context.Context, node *corev1.Node, drain clusterstate.Drain, a *Attempt) (time.Time, error) {
	now := r.Clock.Now()
	if clusterstate.IsPlausible(drain.FirstSeen, now) {
		return drain.FirstSeen, nil
	}
	seen := r.drains.firstSeen(node.Name, string(node.UID)+" "+drain.Request, now)
	cordonKnown := clusterstate.IsPlausible(drain.Since, now)
	if cordonKnown && seen.Sub(drain.Since) <= sightingDelay && now.Sub(seen) < recordSightingAfter {
		return seen, nil
	}
	counted := seen.UTC().Format(time.RFC3339Nano)
	value := counted + " " + drain.Request
	if err := r.setFirstSeen(ctx, node, &value); err != nil || cordonKnown {
		return seen, err
	}
	message := "the taint of the node does not say when it was cordoned"
	if !drain.Since.IsZero() {
		message = "the taint of the node says that it was cordoned in the future, at " + text.FormatTime(drain.Since)
	}
	return seen, r.publish(ctx, node, nodeRef(node), a.notificationID(node.UID, reasonDrainTimeUnknown), reasonDrainTimeUnknown,
		message+"; the deadlines of its drain count from "+counted)
}

// setFirstSeen sets the annotation; nil removes it. It does nothing if the node has changed since
// it was read, so the first sighting stays.
func (r *Reconciler) setFirstSeen(ctx context.Context, node *corev1.Node, value *string) error {
	after := node.DeepCopy()
	if value == nil {
		delete(after.Annotations, AnnotationDrainFirstSeen)
	} else {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, AnnotationDrainFirstSeen, *value)
	}
	patch := client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, after, patch)); err != nil {
		return fmt.Errorf("recording the start of the drain on node %s: %w", node.Name, err)
	}
	return nil
}
