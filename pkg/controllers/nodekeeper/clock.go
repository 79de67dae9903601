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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// FirstSeen is the annotation of a node that is being drained, if nothing else
// says since when: then it is the time at which that was first seen.
const FirstSeen = "upgrade.managed.openshift.io/drain-first-seen"

// skew is how far the clocks of a cluster may be apart. What is later than that
// is no time at which something has happened.
const skew = time.Minute

// since is when the drain began: when the node was cordoned for it, or else when
// that was first seen, but not before the upgrade has begun.
func (r *Reconciler) since(ctx context.Context, node *corev1.Node, drain cluster.Drain, u *upgrade) (time.Time, error) {
	since := drain.Since
	if !happened(since, r.Clock.Now()) {
		var err error
		if since, err = r.firstSeen(ctx, node, drain, u); err != nil {
			return time.Time{}, err
		}
	}
	if since.Before(u.began) {
		return u.began, nil
	}
	return since, nil
}

// firstSeen is when the drain was first seen. If that was not noted yet, or what
// was noted is no time, it is now.
func (r *Reconciler) firstSeen(ctx context.Context, node *corev1.Node, drain cluster.Drain, u *upgrade) (time.Time, error) {
	now := r.Clock.Now()
	noted, is := node.Annotations[FirstSeen]
	seen, err := time.Parse(time.RFC3339, noted)
	if err == nil && happened(seen, now) {
		return seen, nil
	}
	why := "the taint of the node does not say since when it is cordoned"
	if !drain.Since.IsZero() {
		why = fmt.Sprintf("the taint of the node says that it is cordoned since %s", drain.Since.UTC().Format(time.RFC3339))
	}
	if is {
		why += fmt.Sprintf(", and its annotation %s says %q", FirstSeen, engine.Clip(noted, 64))
	}
	value := now.UTC().Format(time.RFC3339Nano)
	if err := r.note(ctx, node, &value); err != nil {
		return time.Time{}, err
	}
	return now, r.tell(ctx, node, aboutNode(node), u.id(node.UID, reasonTimeUnknown), reasonTimeUnknown, why+"; its drain is counted from "+value)
}

func happened(at, now time.Time) bool { return !at.IsZero() && !at.After(now.Add(skew)) }

// note sets the annotation, or removes it. It does so only if the node is as it
// was read, so that what was seen first stays.
func (r *Reconciler) note(ctx context.Context, node *corev1.Node, value *string) error {
	after := node.DeepCopy()
	if value == nil {
		delete(after.Annotations, FirstSeen)
	} else {
		metav1.SetMetaDataAnnotation(&after.ObjectMeta, FirstSeen, *value)
	}
	patch := client.MergeFromWithOptions(node, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, after, patch)); err != nil {
		return fmt.Errorf("noting on node %s since when it is drained: %w", node.Name, err)
	}
	return nil
}
