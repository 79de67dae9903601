// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"context"
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
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/cli/session"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/updatestatus"
)

// staleStatus is the age at which the status of an active update no longer counts. The controller confirms it
// once a minute.
const staleStatus = 3 * time.Minute

// publication holds what the Update Status Controller has published.
type publication struct {
	// object is the UpdateStatus, or nil if it does not exist or cannot be read.
	object *updatev1beta1.UpdateStatus
	// installed is set if the API server serves the kind.
	installed bool
	// seen is when the Lease was last renewed, or zero if never or unknown.
	seen time.Time
	// alive is the maximum age of the Lease.
	alive time.Duration
	// stale explains why the object does not show the current state of the cluster. It is nil if it does.
	stale *updatev1beta1.Source
	// forbidden is set if the user lacks permission to read the object, the Lease, or the ClusterVersion.
	forbidden bool
	// namespace is the namespace of the Update Status Controller. If it is empty, the default is used.
	namespace string
}

// published reads the UpdateStatus and checks that it is current. It sends at most three requests. It returns
// an error only if the API server is unreachable or rejects the credentials. In all other cases, the cluster
// itself can still be read.
func published(ctx context.Context, reader client.Reader, namespace string, now time.Time) (publication, error) {
	object := &updatev1beta1.UpdateStatus{}
	err := reader.Get(ctx, client.ObjectKey{Name: updatev1beta1.UpdateStatusName}, object)
	switch {
	case meta.IsNoMatchError(err), runtime.IsNotRegisteredError(err):
		return publication{}, nil
	case err != nil && session.IsFatal(err):
		return publication{}, fmt.Errorf("reading the UpdateStatus: %w", err)
	case apierrors.IsNotFound(err):
		return publication{installed: true, stale: missingController("it has not published a status yet", nil)}, nil
	case err != nil:
		return publication{installed: true, stale: missingController(session.ReadMessage(err), nil), forbidden: apierrors.IsForbidden(err)}, nil
	}
	p := publication{object: object, installed: true}
	lease := &coordinationv1.Lease{}
	switch err := reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: session.ControllerLease}, lease); {
	case err != nil && session.IsFatal(err):
		return publication{}, fmt.Errorf("reading the Lease of the Update Status Controller: %w", err)
	case err == nil && lease.Spec.RenewTime != nil:
		p.seen, p.alive = lease.Spec.RenewTime.Time, session.MaxLeaseAge(lease)
	case err != nil && !apierrors.IsNotFound(err):
		p.stale, p.forbidden = missingController("its Lease cannot be read: "+session.ReadMessage(err), nil), apierrors.IsForbidden(err)
		return p, nil
	}
	if p.stale = p.findStale(now); p.stale != nil {
		return p, nil
	}
	var version configv1.ClusterVersion
	if err := reader.Get(ctx, clusterstate.VersionKey, &version); err != nil {
		if session.IsFatal(err) {
			return publication{}, fmt.Errorf("reading the ClusterVersion: %w", err)
		}
		p.stale, p.forbidden = missingController("its status cannot be compared with the ClusterVersion: "+session.ReadMessage(err), nil), apierrors.IsForbidden(err)
		return p, nil
	}
	p.stale = compareRelease(object.Status.Assessment, clusterstate.VersionOf(&version).Current.Version)
	return p, nil
}

// compareRelease explains why an assessment does not apply to the release that the Cluster Version Operator
// is working on, or returns nil if it does apply. A requested update is assessed even before it has been
// accepted or refused. A ClusterVersion without a history names no release.
func compareRelease(assessment *updatev1beta1.Assessment, current string) *updatev1beta1.Source {
	switch {
	case assessment.Release == current:
		return nil
	case current == "":
		return missingController("its status cannot be compared with the ClusterVersion: its history names no release", nil)
	case assessment.FromRelease == current && assessment.StartedTime == nil:
		return nil
	}
	about := "no release"
	if assessment.Release != "" {
		about = "release " + assessment.Release
	}
	return missingController(fmt.Sprintf("its status is about %s, but the ClusterVersion is about %s", about, current), nil)
}

// findStale explains why a status is not current according to the object and the Lease, or returns nil. The age
// of a time in the future is unknown.
func (p publication) findStale(now time.Time) *updatev1beta1.Source {
	status, soon := p.object.Status, now.Add(text.MaxClockSkew)
	switch observed := status.ObservedTime; {
	case p.seen.After(soon):
		return missingController("its Lease was renewed in the future, at "+text.FormatTime(p.seen)+": the clocks differ", nil)
	case now.Sub(p.seen) > p.alive:
		return missingController("no sign of life", p.lastSign())
	case status.Assessment == nil:
		return missingController("its status has no assessment", nil)
	case updatestatus.IsActive(status) && observed != nil && observed.After(soon):
		return missingController("its status is from the future, from "+text.FormatTime(observed.Time)+": the clocks differ", nil)
	case updatestatus.IsActive(status) && (observed == nil || now.Sub(observed.Time) > staleStatus):
		return missingController("it has not confirmed its status", observed)
	default:
		return nil
	}
}

// lastSign returns the time of the controller's last sign of life, or nil if it is unknown.
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
