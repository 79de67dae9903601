// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informers"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// snapshot is the status of a cluster at one time.
type snapshot struct {
	object *updatev1beta1.UpdateStatus
	origin origin
	now    time.Time
}

// readStatus returns the status that the Update Status Controller has published, or else one that is
// computed from live reads, or from the dump. Previous is what it returned before, which has the times at
// which insights were first observed; nil means that this is the first read.
func (c *Cluster) readStatus(ctx context.Context, namespace string, previous *updatev1beta1.UpdateStatus) (snapshot, error) {
	now := c.Clock.Now()
	if c.dump != nil {
		return c.assess(ctx, c.dumpedStatus(ctx), now), nil
	}
	p, err := published(ctx, c, namespace, now)
	if err != nil {
		return snapshot{}, err
	}
	if p.object != nil && p.stale == nil {
		return snapshot{p.object, origin{published: true, installed: true, controllerSeen: p.seen}, now}, nil
	}
	p.namespace = namespace
	return c.assess(ctx, p.since(previous), now), nil
}

// since returns a publication that is at least as new as a previous status.
func (p publication) since(previous *updatev1beta1.UpdateStatus) publication {
	if previous != nil && (p.object == nil || p.object.Status.ObservedTime.Before(previous.Status.ObservedTime)) {
		p.object = previous
	}
	return p
}

// dumpedStatus returns the UpdateStatus of the dump, which has the times at which its insights were
// first observed.
func (c *Cluster) dumpedStatus(ctx context.Context) publication {
	object := &updatev1beta1.UpdateStatus{}
	if err := c.Get(ctx, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, object); err != nil {
		return publication{} // the status is computed from other objects
	}
	if observed := object.Status.ObservedTime; observed != nil && observed.After(c.Clock.Now()) {
		return publication{} // it knows what happens after --now
	}
	return publication{object: object}
}

// assess computes the status by the same functions as the Update Status Controller.
func (c *Cluster) assess(ctx context.Context, p publication, now time.Time) snapshot {
	readers := informers.Readers{Reader: c, Live: c, Clock: fixedClock(now), Prometheus: c.Prometheus}
	in := updatestatus.Input{Facts: informers.Gather(ctx, readers), ControllerNamespace: p.namespace}
	object := &updatev1beta1.UpdateStatus{ObjectMeta: metav1.ObjectMeta{Name: updatev1beta1.UpdateStatusName}}
	if p.object != nil {
		object.ObjectMeta = *p.object.ObjectMeta.DeepCopy()
		in.Previous = p.object.Status
		in.Acknowledged = strings.Split(p.object.Annotations[updatev1beta1.AcknowledgedAnnotation], ",")
	}
	if p.stale != nil {
		in.Sources = append([]updatev1beta1.Source{*p.stale}, c.informerSources(ctx)...)
	}
	object.Status = updatestatus.Compute(in)
	o := origin{installed: p.installed, controllerSeen: p.seen, lacking: lacking(in.Facts)}
	if c.dump != nil {
		o.dump, o.problems = c.dump.path, c.dump.problems
	}
	return snapshot{object, o, now}
}

// lacking returns the optional sources that are missing, those with the same reason on one line. The
// required ones are sources of the assessment.
func lacking(facts informers.Facts) []string {
	byReason := map[string][]string{}
	for source, missing := range facts.Missing {
		if !slices.Contains(informers.Required(), source) {
			byReason[missing.Message] = append(byReason[missing.Message], string(source))
		}
	}
	var lines []string
	for reason, names := range byReason {
		slices.Sort(names)
		lines = append(lines, strings.Join(names, ", ")+": "+reason)
	}
	slices.Sort(lines)
	return lines
}

// informerSources returns the enabled UpdateInformers as sources of which only the last answer is known:
// nothing queries them now. An informer that did not answer before has its own message.
func (c *Cluster) informerSources(ctx context.Context) []updatev1beta1.Source {
	var list updatev1beta1.UpdateInformerList
	if err := c.List(ctx, &list); err != nil {
		return []updatev1beta1.Source{{Name: "informers", Message: readMessage(err)}}
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

// unreachableReason returns why the Update Status Controller could not reach an informer; empty means
// that it could, or that this is unknown.
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
