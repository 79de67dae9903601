// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// ControllerNamespace is the default namespace of the Update Status Controller.
	ControllerNamespace = "managed-upgrade-operator"
	// ControllerLease is the leader election Lease of the Update Status Controller.
	ControllerLease = "update-status-controller-leader"
	// leaseGrace is how long after a Lease has expired the controller still counts as alive. It covers the
	// election of another leader.
	leaseGrace = 26 * time.Second
	// defaultLease is the duration of a Lease that does not specify one.
	defaultLease = 34 * time.Second
)

// MaxLeaseAge returns the maximum age of a Lease whose controller counts as alive.
func MaxLeaseAge(lease *coordinationv1.Lease) time.Duration {
	age := defaultLease
	if seconds := lease.Spec.LeaseDurationSeconds; seconds != nil && *seconds > 0 {
		age = time.Duration(*seconds) * time.Second
	}
	return age + leaseGrace
}

// RequireController returns an error if the Update Status Controller is not running. It returns nil if this
// cannot be determined.
func (p *Session) RequireController(ctx context.Context, cluster *Cluster, namespace string) error {
	lease := &coordinationv1.Lease{}
	err := cluster.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ControllerLease}, lease)
	sign := "it has no Lease in namespace " + namespace
	switch {
	case err == nil && lease.Spec.RenewTime != nil:
		age := p.Clock.Now().Sub(lease.Spec.RenewTime.Time)
		if age <= MaxLeaseAge(lease) {
			return nil
		}
		sign = "no sign of life for " + duration.HumanDuration(age)
	case err == nil:
	case IsFatal(err):
		return fmt.Errorf("reading the Lease of the Update Status Controller: %w", err)
	case !apierrors.IsNotFound(err):
		return nil // it may be running
	}
	return &ExitError{code: ExitUnknown, Err: fmt.Errorf("the Update Status Controller does not analyze updates: %s; start with %q", sign, p.Client()+" -n "+namespace+" get pods")}
}

// ReadMessage explains why something cannot be read.
func ReadMessage(err error) string {
	if apierrors.IsForbidden(err) {
		return "you are not allowed to read it"
	}
	return err.Error()
}

// IsFatal reports whether other reads would fail for the same reason: the API server is unreachable or
// rejects the credentials.
func IsFatal(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsUnauthorized(err) || !errors.As(err, &status) && !meta.IsNoMatchError(err)
}
