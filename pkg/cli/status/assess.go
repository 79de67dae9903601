// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/checks"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// snapshot is the status of a cluster at one point in time.
type snapshot struct {
	object *updatev1beta1.UpdateStatus
	origin origin
	now    time.Time
	// facts are the facts that the status was computed from. They are nil for a published status.
	facts *checks.Facts
}

// readStatus returns the status published by the Update Status Controller. If there is none, it computes the
// status from live reads or from the dump. previous is the result of the last call, or nil for the first
// call. It keeps the times when insights were first observed.
func readStatus(ctx context.Context, c *session.Cluster, namespace string, previous *updatev1beta1.UpdateStatus) (snapshot, error) {
	now := c.Clock.Now()
	if c.Dump != nil {
		return assess(ctx, c, dumpedStatus(ctx, c), now), nil
	}
	p, err := published(ctx, c, namespace, now)
	if err != nil {
		return snapshot{}, err
	}
	if p.object != nil && p.stale == nil {
		return snapshot{object: p.object, origin: origin{published: true, installed: true, controllerSeen: p.seen}, now: now}, nil
	}
	p.namespace = namespace
	return assess(ctx, c, p.since(previous), now), nil
}

// since returns a publication at least as recent as a previous status.
func (p publication) since(previous *updatev1beta1.UpdateStatus) publication {
	if previous != nil && (p.object == nil || p.object.Status.ObservedTime.Before(previous.Status.ObservedTime)) {
		p.object = previous
	}
	return p
}

// dumpedStatus returns the UpdateStatus in the dump, for the times when its insights were first observed.
func dumpedStatus(ctx context.Context, c *session.Cluster) publication {
	object := &updatev1beta1.UpdateStatus{}
	if err := c.Get(ctx, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, object); err != nil {
		return publication{} // the status is computed from other objects
	}
	if observed := object.Status.ObservedTime; observed != nil && observed.After(c.Clock.Now()) {
		return publication{} // it contains events after --now
	}
	return publication{object: object}
}

// assess computes the status with the same functions as the Update Status Controller.
func assess(ctx context.Context, c *session.Cluster, p publication, now time.Time) snapshot {
	in := updatestatus.Input{Facts: checks.Gather(ctx, checks.Update, readers(c, now)), ControllerNamespace: p.namespace, ControllerForbidden: p.forbidden}
	object := &updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}
	if p.object != nil {
		object.ObjectMeta = *p.object.ObjectMeta.DeepCopy()
		in.Previous = p.object.Status
		in.Acknowledged = p.object.Annotations[updatev1beta1.AcknowledgedAnnotation]
	}
	if p.stale != nil {
		in.Sources = append([]updatev1beta1.Source{*p.stale}, informerSources(ctx, c)...)
	}
	object.Status = updatestatus.Compute(in)
	o := origin{installed: p.installed, controllerSeen: p.seen}
	if c.Dump != nil {
		o.dump, o.problems = c.Dump.Path, c.Dump.Problems
	}
	return snapshot{object, o, now, &in.Facts}
}

// factsOf returns the facts of a status. For a published status, it reads them.
func factsOf(ctx context.Context, c *session.Cluster, s snapshot) checks.Facts {
	if s.facts != nil {
		return *s.facts
	}
	return checks.Gather(ctx, checks.Update, readers(c, s.now))
}

// readers returns the readers for facts.
func readers(c *session.Cluster, now time.Time) checks.Readers {
	return checks.Readers{Reader: c, Live: c, Clock: session.FixedClock(now), Prometheus: c.Prometheus}
}

// lacking describes the missing optional sources, grouped by reason.
func lacking(sources []updatev1beta1.Source) []string {
	byReason := map[string][]string{}
	for _, source := range sources {
		if isOptional(source) {
			byReason[source.Message] = append(byReason[source.Message], source.Name)
		}
	}
	var lines []string
	for reason, names := range byReason {
		lines = append(lines, strings.Join(names, ", ")+": "+reason)
	}
	slices.Sort(lines)
	return lines
}

// isOptional reports whether a source is listed only if it is missing.
func isOptional(source updatev1beta1.Source) bool { return checks.FactSource(source.Name).IsOptional() }

// informerSources returns the enabled UpdateInformers as sources. Only their last answers are known, because
// nothing queries them now. If an informer did not answer before, its message says so.
func informerSources(ctx context.Context, c *session.Cluster) []updatev1beta1.Source {
	var list updatev1beta1.UpdateInformerList
	if err := c.List(ctx, &list); err != nil {
		return []updatev1beta1.Source{{Name: "informers", Message: session.ReadMessage(err)}}
	}
	var sources []updatev1beta1.Source
	for i := range list.Items {
		informer := &list.Items[i]
		if !informer.IsEnabled() {
			continue
		}
		source := updatev1beta1.Source{Name: updatev1beta1.SourceInformerPrefix + informer.Name, ObservedTime: informer.Status.LastContactTime}
		if reason := unreachableReason(informer); reason != "" {
			source.Message, source.Since, source.Detail = "no answer", informer.Status.LastContactTime, strings.ToLower(reason)
		}
		sources = append(sources, source)
	}
	slices.SortFunc(sources, func(a, b updatev1beta1.Source) int { return strings.Compare(a.Name, b.Name) })
	return sources
}

// unreachableReason returns why the Update Status Controller could not reach an informer. It returns "" if
// the informer was reachable or this is unknown.
func unreachableReason(informer *updatev1beta1.UpdateInformer) string {
	for _, name := range []string{updatev1beta1.ConditionCABundleResolved, updatev1beta1.ConditionReachable, updatev1beta1.ConditionDiscovered} {
		for _, condition := range informer.Status.Conditions {
			if condition.Type == name && condition.Status == metav1.ConditionFalse {
				return condition.Reason
			}
		}
	}
	return ""
}
