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

// ConfigMaps for acknowledgments. In the first, a release lists what an administrator must acknowledge before
// the next minor version. In the second, the administrator acknowledges it.
var (
	adminGatesKey = client.ObjectKey{Namespace: "openshift-config-managed", Name: "admin-gates"}
	adminAcksKey  = client.ObjectKey{Namespace: "openshift-config", Name: "admin-acks"}
)

// adminGateName matches the name of a gate like the cluster version operator does. The name starts with the
// minor version that the gate applies to.
var adminGateName = regexp.MustCompile(`^ack-([4-9]\.[0-9]{1,5})-[^-]`)

// AdminGate is a gate that an administrator must acknowledge.
type AdminGate struct {
	Name string
	// Minor is the minor version of the clusters that the gate applies to, such as 4.13. It is empty if the
	// name is malformed.
	Minor string
	// Description says what to acknowledge, in one line of limited length.
	Description string
	Acked       bool
}

// Applies reports whether the gate blocks updates from the release to another minor version. A gate with a
// malformed name applies to every release.
func (g AdminGate) Applies(release string) bool {
	v, err := semver.Parse(release)
	return err != nil || g.Minor == "" || g.Minor == fmt.Sprintf("%d.%d", v.Major, v.Minor)
}

// ListAdminGates lists the gates, sorted by name. Without the ConfigMap admin-gates, there are no gates.
// Without admin-acks, nothing is acknowledged.
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
