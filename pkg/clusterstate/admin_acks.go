// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/blang/semver/v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The ConfigMaps in which a release states what an administrator must acknowledge before the next
// minor version, and in which the administrator does.
var (
	adminGatesKey = client.ObjectKey{Namespace: "openshift-config-managed", Name: "admin-gates"}
	adminAcksKey  = client.ObjectKey{Namespace: "openshift-config", Name: "admin-acks"}
)

// adminGateName matches the name of a gate, which begins with the minor version to which it applies,
// as the cluster version operator reads it.
var adminGateName = regexp.MustCompile(`^ack-([4-9]\.[0-9]{1,5})-[^-]`)

// AdminGate is something that an administrator must acknowledge.
type AdminGate struct {
	Name string
	// Minor is the minor version that a cluster with the gate has, for example 4.13; empty if the
	// name is malformed.
	Minor string
	// Description describes what to acknowledge, in one bounded line.
	Description string
	Acked       bool
}

// Applies reports whether the gate closes the way out of the minor version of a release. A gate whose
// name is malformed applies to every release.
func (g AdminGate) Applies(release string) bool {
	v, err := semver.Parse(release)
	return err != nil || g.Minor == "" || g.Minor == fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// ListAdminGates lists the gates, sorted by name. A cluster without the ConfigMap admin-gates has
// none; without the ConfigMap admin-acks nothing is acknowledged.
func ListAdminGates(ctx context.Context, live client.Reader) ([]AdminGate, error) {
	var gates, acks corev1.ConfigMap
	if err := live.Get(ctx, adminGatesKey, &gates); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the ConfigMap %s: %w", adminGatesKey, err)
	} else if apierrors.IsNotFound(err) || len(gates.Data) == 0 {
		return nil, nil
	}
	if err := live.Get(ctx, adminAcksKey, &acks); client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("getting the ConfigMap %s: %w", adminAcksKey, err)
	}
	found := make([]AdminGate, 0, len(gates.Data))
	for name, description := range gates.Data {
		gate := AdminGate{Name: name, Description: sanitize(description), Acked: acks.Data[name] == "true"}
		if match := adminGateName.FindStringSubmatch(name); match != nil {
			gate.Minor = match[1]
		}
		found = append(found, gate)
	}
	slices.SortFunc(found, func(a, b AdminGate) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}
