// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/lock"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// upgradeConfigKind is the kind of upgrades that set the channel.
const upgradeConfigKind = "UpgradeConfig"

// scope is one pass over one ClusterVersion.
type scope struct {
	*Reconciler

	object  *maintenancev1beta1.ClusterVersion
	first   *maintenancev1beta1.ClusterVersion // the one that applies
	current *configv1.ClusterVersion           // OpenShift's object in the cache; nil if there is none
	now     time.Time
	state   *state
	plan    plan
}

// outcome is the result of a pass.
type outcome struct {
	// rejected is the reason why the spec is not accepted; empty if it is accepted or was not
	// checked.
	rejected string
	// accepted reports that the API server has accepted the parameters. If the spec is neither
	// accepted nor rejected, the condition Accepted stays.
	accepted bool
	// synced is the reason of the condition Synced; empty if the condition stays.
	synced string
	// message is the message of the conditions that are not true.
	message string
	// applied holds the parameters in effect; nil leaves them as they are in the status.
	applied parameters
	// next is the time of the next pass; zero waits for a change.
	next time.Time
}

// reconcile returns the time of the next pass; zero waits for a change.
func (s *scope) reconcile(ctx context.Context) (time.Time, error) {
	var err error
	if s.plan, err = newPlan(&s.object.Spec, s.now); err != nil {
		return time.Time{}, s.publish(ctx, outcome{rejected: reasonInvalidTemplate, message: err.Error()})
	}
	o, err := s.sync(ctx)
	return engine.Earliest(o.next, s.plan.next()), errors.Join(err, s.publish(ctx, o))
}

// sync applies the parameters if they are due.
func (s *scope) sync(ctx context.Context) (outcome, error) {
	if s.first.UID != s.object.UID {
		return outcome{rejected: reasonNotTheOldest, message: fmt.Sprintf("the older ClusterVersion %s/%s applies; delete one of the two", s.first.Namespace, s.first.Name)}, nil
	}
	if s.current == nil {
		return outcome{synced: reasonMissing, message: "the cluster has no ClusterVersion (clusterversions.config.openshift.io) named version"}, nil
	}
	if o := s.checkClusterID(string(s.current.Spec.ClusterID)); o.rejected != "" {
		return o, nil
	}
	holder, err := s.holder(ctx, s.Client)
	if err != nil {
		return outcome{}, err
	}
	seen := verified{uid: s.current.UID, generation: s.current.Generation, spec: s.object.Generation, overlay: s.plan.applied}
	released := s.state.holder != "" && holder == ""
	if s.state.verified == seen && !released && !s.state.retryDue(s.now) {
		return s.verifiedOutcome(), nil
	}
	if at := s.state.notBefore(seen); s.now.Before(at) {
		return s.outcomeUntil(at), nil
	}
	return s.compare(ctx, seen, holder)
}

// checkClusterID rejects parameters of another cluster.
func (s *scope) checkClusterID(id string) outcome {
	where, other := s.plan.otherClusterID(id)
	if where == "" {
		return outcome{}
	}
	return outcome{rejected: reasonWrongClusterID, message: fmt.Sprintf("nothing is applied: clusterID %s in %s is not the ID of this cluster, %s", text.Excerpt(other), where, text.Excerpt(id))}
}

// holder returns the upgrade that owns the channel; empty if none does.
func (s *scope) holder(ctx context.Context, from client.Reader) (string, error) {
	var lease coordinationv1.Lease
	err := from.Get(ctx, client.ObjectKey{Namespace: s.Namespace, Name: lock.Name}, &lease)
	switch {
	case apierrors.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("getting the upgrade lock: %w", err)
	}
	holder := lock.HolderOf(&lease)
	if holder.Kind != upgradeConfigKind || holder.Group == maintenancev1beta1.GroupVersion.Group {
		return "", nil
	}
	return holder.String(), nil
}

// compare compares OpenShift's object on the API server with the parameters. It applies them unless
// they were applied before and are unchanged.
func (s *scope) compare(ctx context.Context, seen verified, holder string) (outcome, error) {
	live := newOpenShift()
	if err := s.Live.Get(ctx, clusterstate.VersionKey, live); err != nil {
		return outcome{}, fmt.Errorf("getting the ClusterVersion of OpenShift: %w", err)
	}
	spec, _, err := unstructured.NestedMap(live.Object, "spec")
	if err != nil {
		return outcome{}, fmt.Errorf("reading the ClusterVersion of OpenShift: %w", err)
	}
	id, _ := spec[fieldClusterID].(string)
	if o := s.checkClusterID(id); o.rejected != "" {
		return o, nil
	}
	wanted, holder, err := s.withoutChannel(ctx, spec, holder)
	if err != nil {
		return outcome{}, err
	}
	differing := wanted.differing(spec)
	wasApplied := s.isApplied(wanted)
	drifted := wasApplied && len(differing) > 0
	drift := describeDrift(differing, spec, live.GetManagedFields())
	if drifted { // publish the Event first, so a crash cannot lose it
		if err := s.publishDrift(ctx, live, drift); err != nil {
			return outcome{}, err
		}
	}
	seen.uid, seen.generation = live.GetUID(), live.GetGeneration()
	managed := live.GetManagedFields()
	if drifted || !wasApplied {
		if live, err = s.apply(ctx, live, wanted); err != nil {
			return s.applyFailed(ctx, seen, err)
		}
	}
	if drifted {
		s.state.corrections.record(s.now, drift)
		s.Metrics.AddDrift(differing)
	}
	seen.generation = live.GetGeneration()
	if err := s.observeLeftovers(live, managed, wanted); err != nil {
		return outcome{}, err
	}
	s.state.verified, s.state.holder, s.state.failures = seen, holder, failures{}
	s.state.applied, s.state.overlay = wanted, s.plan.applied
	return s.verifiedOutcome(), nil
}

// maxLeftovers limits how many fields are reported as not removed.
const maxLeftovers = 32

// observeLeftovers records the fields that are no longer wanted but are still there: server-side
// apply removes a field only if no other manager owns it.
func (s *scope) observeLeftovers(live *unstructured.Unstructured, managed []metav1.ManagedFieldsEntry, wanted parameters) error {
	spec, _, err := unstructured.NestedMap(live.Object, "spec")
	if err != nil {
		return fmt.Errorf("reading the ClusterVersion of OpenShift: %w", err)
	}
	applied := slices.Sorted(maps.Keys(s.inEffect()))
	var left, described []string
	for _, field := range slices.Compact(slices.Sorted(slices.Values(append(applied, s.object.Status.NotRemoved...)))) {
		_, isWanted := wanted[field]
		if _, isSet := spec[field]; isWanted || !isSet || field == fieldDesiredUpdate || field == fieldClusterID || len(left) == maxLeftovers {
			continue
		}
		left = append(left, field)
		described = append(described, text.WithReason("spec."+field, "owned by "+cmp.Or(managerOf(managed, field), "an unknown client")))
	}
	s.state.notRemoved, s.state.leftovers = left, text.JoinNames(described)
	return nil
}

// withoutChannel returns the parameters to apply. While an UpgradeConfig of the other group holds
// the lock, the channel stays as it is. Upgrades acquire the lock before they set the channel, so
// the holder is read from the API server before a differing channel is corrected.
func (s *scope) withoutChannel(ctx context.Context, spec map[string]any, holder string) (parameters, string, error) {
	wanted := merge(nil, s.plan.current)
	channel, set := spec[fieldChannel]
	_, owned := s.inEffect()[fieldChannel]
	_, requested := wanted[fieldChannel]
	if channel == wanted[fieldChannel] || !requested && !owned {
		return wanted, "", nil
	}
	if holder == "" {
		var err error
		if holder, err = s.holder(ctx, s.Live); err != nil || holder == "" {
			return wanted, "", err
		}
	}
	delete(wanted, fieldChannel)
	if set {
		wanted[fieldChannel] = channel
	}
	return wanted, holder, nil
}

// inEffect returns the parameters that the status shows as applied.
func (s *scope) inEffect() parameters {
	applied, err := decode(s.object.Status.Current.Spec)
	if err != nil {
		return nil
	}
	return applied
}

// isApplied reports whether the status shows the parameters as applied.
func (s *scope) isApplied(wanted parameters) bool {
	current := s.object.Status.Current.Spec.Raw
	return len(current) > 0 && wanted.equal(s.inEffect())
}

// apply applies the parameters, unless the object has changed since it was read.
func (s *scope) apply(ctx context.Context, live *unstructured.Unstructured, wanted parameters) (*unstructured.Unstructured, error) {
	config := newOpenShift()
	config.SetName(live.GetName())
	config.SetUID(live.GetUID())
	config.SetResourceVersion(live.GetResourceVersion())
	config.Object["spec"] = map[string]any(merge(nil, wanted))
	if err := s.Client.Apply(ctx, client.ApplyConfigurationFromUnstructured(config), fieldOwner, client.ForceOwnership); err != nil {
		return nil, fmt.Errorf("applying the parameters to the ClusterVersion of OpenShift: %w", err)
	}
	return config, nil
}

// unknownField is part of the API server's error for fields that OpenShift's object lacks or that
// have another type there. The error has code 500 and no specific reason.
const unknownField = "failed to create typed patch object"

// applyFailed returns the outcome of a failed apply. Rejected parameters are also retried, in case
// the cause of the rejection has changed.
func (s *scope) applyFailed(ctx context.Context, seen verified, err error) (outcome, error) {
	if apierrors.IsConflict(err) {
		return outcome{}, err
	}
	ctrl.LoggerFrom(ctx).Error(err, "syncing the ClusterVersion of OpenShift")
	f := &s.state.failures
	f.count, f.message = min(f.count+1, maxCorrections), text.Reason(err.Error())
	f.rejected = apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || strings.Contains(err.Error(), unknownField)
	f.retryAt = s.now.Add(backoffAfter(f.count))
	s.state.verified = seen
	return s.verifiedOutcome(), nil
}

// verifiedOutcome returns the outcome of the last pass that compared or applied the parameters.
func (s *scope) verifiedOutcome() outcome {
	o := outcome{accepted: true, synced: reasonSynced, applied: s.state.applied}
	c, f := s.state.corrections, s.state.failures
	switch {
	case f.rejected:
		o.accepted, o.rejected, o.message = false, reasonInvalidTemplate, f.message
	case f.count > 0:
		o.accepted, o.synced, o.message = false, reasonApplyFailed, f.message
	case c.contested() && c.drift == "": // an earlier process described it
		o.synced = ""
	case c.contested():
		o.synced, o.message = reasonContested, c.message()
	case len(s.state.notRemoved) > 0:
		o.synced = reasonNotRemoved
		o.message = "removed from the parameters, and still set: " + s.state.leftovers + "; remove these fields with the client that owns them"
	case s.state.holder != "":
		o.synced = reasonChannelInUse
		o.message = "spec.channel is left alone until the upgrade of " + s.state.holder + " has ended"
	}
	if c.count > 0 {
		o.next = c.last.Add(calm)
	}
	o.next = engine.Earliest(o.next, f.retryAt)
	return o
}

// outcomeUntil returns the outcome for a changed object that must not be compared yet. A rejection
// of the parameters stays.
func (s *scope) outcomeUntil(at time.Time) outcome {
	o := outcome{next: at}
	if f := s.state.failures; f.rejected {
		o.rejected, o.message = reasonInvalidTemplate, f.message
	}
	return o
}

func newOpenShift() *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(configv1.GroupVersion.WithKind("ClusterVersion"))
	return object
}
