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

// AnnotationDrainFirstSeen is the annotation of a node that is being drained, if nothing else
// says since when: then it is the time at which that was first seen.
const AnnotationDrainFirstSeen = "upgrade.managed.openshift.io/drain-first-seen"

// maxClockSkew is how far the clocks of a cluster may be apart. What is later than that
// is no time at which something has happened.
const maxClockSkew = time.Minute

// drainStart is when the drain began: when the node was cordoned for it, or else when
// that was first seen, but not before the upgrade has begun.
func (r *Reconciler) drainStart(ctx context.Context, node *corev1.Node, drain clusterstate.Drain, u *upgrade) (time.Time, error) {
	start := drain.Since
	if !isPlausible(start, r.Clock.Now()) {
		var err error
		if start, err = r.firstObserved(ctx, node, drain, u); err != nil {
			return time.Time{}, err
		}
	}
	if start.Before(u.startTime) {
		return u.startTime, nil
	}
	return start, nil
}

// firstObserved is when the drain was first seen. If that was not noted yet, or what
// was noted is no time, it is now.
func (r *Reconciler) firstObserved(ctx context.Context, node *corev1.Node, drain clusterstate.Drain, u *upgrade) (time.Time, error) {
	now := r.Clock.Now()
	recorded, exists := node.Annotations[AnnotationDrainFirstSeen]
	observed, err := time.Parse(time.RFC3339, recorded)
	if err == nil && isPlausible(observed, now) {
		return observed, nil
	}
	message := "the taint of the node does not say since when it is cordoned"
	if !drain.Since.IsZero() {
		message = fmt.Sprintf("the taint of the node says that it is cordoned since %s", drain.Since.UTC().Format(time.RFC3339))
	}
	if exists {
		message += fmt.Sprintf(", and its annotation %s says %q", AnnotationDrainFirstSeen, text.Truncate(recorded, 64))
	}
	value := now.UTC().Format(time.RFC3339Nano)
	if err := r.setFirstSeen(ctx, node, &value); err != nil {
		return time.Time{}, err
	}
	return now, r.publish(ctx, node, nodeRef(node), u.notificationID(node.UID, reasonDrainTimeUnknown), reasonDrainTimeUnknown, message+"; its drain is counted from "+value)
}

func isPlausible(at, now time.Time) bool { return !at.IsZero() && !at.After(now.Add(maxClockSkew)) }

// setFirstSeen sets the annotation, or removes it. It does so only if the node is as it
// was read, so that what was seen first stays.
func (r *Reconciler) setFirstSeen(ctx context.Context, node *corev1.Node, value *string) error {
	after := node.DeepCopy()
	if value == nil {
		delete(after.Annotations, AnnotationDrainFirstSeen)
	} else {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, AnnotationDrainFirstSeen, *value)
	}
	patch := client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, after, patch)); err != nil {
		return fmt.Errorf("noting on node %s since when it is drained: %w", node.Name, err)
	}
	return nil
}
