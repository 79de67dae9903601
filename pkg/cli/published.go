// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

const (
	// controllerNamespace is the default namespace of the Update Status Controller.
	controllerNamespace = "managed-upgrade-operator"
	// controllerLease is the Lease of the leader election of the Update Status Controller.
	controllerLease = "update-status-controller-leader"
	// staleLease is the age from which on a Lease shows no life.
	staleLease = time.Minute
	// staleStatus is the age from which on a status of an active update does not count: the controller
	// confirms it once a minute.
	staleStatus = 3 * time.Minute
)

// publication is what the Update Status Controller has published.
type publication struct {
	// object is the UpdateStatus; nil means that there is none, or that it cannot be read.
	object *updatev1beta1.UpdateStatus
	// installed reports that the API server has the kind.
	installed bool
	// seen is when the Lease was last renewed; zero means never, or that this is unknown.
	seen time.Time
	// stale is why the object is not the current state of the cluster; nil means that it is.
	stale *updatev1beta1.Source
	// namespace is that of the Update Status Controller; empty means the default.
	namespace string
}

// published reads the UpdateStatus, and finds out whether it is current. It makes three requests at
// most. It fails only if the API server cannot be reached or does not accept the user: in all other
// cases, the cluster itself can still be read.
func published(ctx context.Context, reader client.Reader, namespace string, now time.Time) (publication, error) {
	object := &updatev1beta1.UpdateStatus{}
	err := reader.Get(ctx, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, object)
	switch {
	case meta.IsNoMatchError(err), runtime.IsNotRegisteredError(err):
		return publication{}, nil
	case err != nil && isFatal(err):
		return publication{}, fmt.Errorf("reading the UpdateStatus: %w", err)
	case apierrors.IsNotFound(err):
		return publication{installed: true, stale: missingController("it has not published a status yet", nil)}, nil
	case err != nil:
		return publication{installed: true, stale: missingController(readMessage(err), nil)}, nil
	}
	p := publication{object: object, installed: true}
	lease := &coordinationv1.Lease{}
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: controllerLease}, lease); {
	case err != nil && isFatal(err):
		return publication{}, fmt.Errorf("reading the Lease of the Update Status Controller: %w", err)
	case err == nil && lease.Spec.RenewTime != nil:
		p.seen = lease.Spec.RenewTime.Time
	case err != nil && !apierrors.IsNotFound(err):
		p.stale = missingController("its Lease cannot be read: "+readMessage(err), nil)
		return p, nil
	}
	if p.stale = p.findStale(now); p.stale != nil {
		return p, nil
	}
	var version configv1.ClusterVersion
	if err := reader.Get(ctx, clusterstate.VersionKey, &version); err != nil {
		if isFatal(err) {
			return publication{}, fmt.Errorf("reading the ClusterVersion: %w", err)
		}
		p.stale = missingController("its status cannot be compared with the ClusterVersion: "+readMessage(err), nil)
		return p, nil
	}
	if desired := version.Status.Desired.Version; !isAboutRelease(object.Status.Assessment, desired) {
		p.stale = missingController(fmt.Sprintf("its status is about release %s, but the ClusterVersion is about %s", object.Status.Assessment.Release, desired), nil)
	}
	return p, nil
}

// isAboutRelease reports whether an assessment is about the release that the Cluster Version Operator
// works on. A requested update that it has neither accepted nor refused yet is assessed already.
func isAboutRelease(assessment *updatev1beta1.Assessment, desired string) bool {
	return assessment.Release == desired || assessment.FromRelease == desired && assessment.StartedTime == nil
}

// findStale returns why a status is not current, as far as the object and the Lease show it.
func (p publication) findStale(now time.Time) *updatev1beta1.Source {
	status := p.object.Status
	switch observed := status.ObservedTime; {
	case now.Sub(p.seen) > staleLease:
		return missingController("no sign of life", p.lastSign())
	case status.Assessment == nil:
		return missingController("its status has no assessment", nil)
	case updatestatus.IsActive(status) && (observed == nil || now.Sub(observed.Time) > staleStatus):
		return missingController("it has not confirmed its status", observed)
	default:
		return nil
	}
}

// lastSign returns when the controller last showed life; nil means that this is unknown.
func (p publication) lastSign() *metav1.Time {
	last := p.seen
	if observed := p.object.Status.ObservedTime; observed != nil && observed.After(last) {
		last = observed.Time
	}
	if last.IsZero() {
		return nil
	}
	return &metav1.Time{Time: last}
}

func missingController(message string, since *metav1.Time) *updatev1beta1.Source {
	return &updatev1beta1.Source{Name: updatev1beta1.SourceStatusController, Message: text.Sanitize(message, text.MaxReason), Since: since}
}

// readMessage returns why something cannot be read.
func readMessage(err error) string {
	if apierrors.IsForbidden(err) {
		return "you are not allowed to read it"
	}
	return err.Error()
}

// isFatal reports whether other reads would fail for the same reason: the API server cannot be reached,
// or does not know the user.
func isFatal(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsUnauthorized(err) || !errors.As(err, &status) && !meta.IsNoMatchError(err)
}
