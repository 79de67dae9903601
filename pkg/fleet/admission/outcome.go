// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "open-cluster-management.io/api/cluster/v1"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/selection"
)

// ClaimVersion is the claim of the installed release of an OpenShift cluster.
const ClaimVersion = "version.openshift.io"

// The claim of the topology of the control plane, and its value for a hosted one.
const (
	claimTopology = "controlplanetopology.openshift.io"
	external      = "External"
)

// Claims returns the claims of a cluster that decide about its selection and admission.
func Claims(cluster *clusterv1.ManagedCluster) map[string]string {
	claims := map[string]string{}
	for _, claim := range cluster.Status.ClusterClaims {
		if claim.Name == ClaimVersion || claim.Name == claimTopology || claim.Name == selection.HubClaim {
			claims[claim.Name] = claim.Value
		}
	}
	return claims
}

// Outcome returns how the attempt ends without anything being delivered to the cluster, by what the
// cluster claims; nil means that it does not.
func Outcome(spec *fleetv1beta1.ManagedClustersUpgradeSpec, cluster *clusterv1.ManagedCluster) *fleetv1alpha1.Outcome {
	if cluster == nil || spec.ClusterVersion == nil {
		return nil
	}
	if refusal := Refusal(spec.ClusterVersion, cluster); refusal != nil {
		return refusal
	}
	installed := Claims(cluster)[ClaimVersion]
	onlyPlatform := spec.OCPOperators == nil && spec.PreUpgradeAction == nil && spec.PostUpgradeAction == nil
	if onlyPlatform && spec.ClusterVersion.Image == "" && isSame(installed, spec.ClusterVersion.Version) {
		return &fleetv1alpha1.Outcome{
			State: fleetv1alpha1.StateComplete, Reason: fleetv1alpha1.ReasonAlreadyAtTarget,
			Message: fmt.Sprintf("it had %s before it was admitted", installed),
		}
	}
	return nil
}

// Refusal returns how the attempt fails because of what the cluster claims: a hosted control plane, or a
// newer release. nil means that it does not.
func Refusal(release *fleetv1beta1.ClusterVersionSpec, cluster *clusterv1.ManagedCluster) *fleetv1alpha1.Outcome {
	claims := Claims(cluster)
	if claims[claimTopology] == external {
		return &fleetv1alpha1.Outcome{
			State: fleetv1alpha1.StateFailed, Reason: fleetv1alpha1.ReasonHostedControlPlane,
			Message: "its control plane is hosted, and is not upgraded by its ClusterVersion",
		}
	}
	if installed := claims[ClaimVersion]; IsNewer(installed, release.Version) {
		return &fleetv1alpha1.Outcome{
			State: fleetv1alpha1.StateFailed, Reason: fleetv1alpha1.ReasonNewerVersionInstalled,
			Message: fmt.Sprintf("it has %s, which is newer than %s", installed, release.Version),
		}
	}
	return nil
}

// IsNewer reports whether a release is newer than the target. It is false if one of them is not the
// version of a release.
func IsNewer(release, target string) bool {
	has, err := semver.Parse(release)
	if err != nil {
		return false
	}
	wanted, err := semver.Parse(target)
	return err == nil && has.GT(wanted)
}

// isSame reports whether two texts are the versions of the same release.
func isSame(a, b string) bool {
	first, err := semver.Parse(a)
	if err != nil {
		return false
	}
	second, err := semver.Parse(b)
	return err == nil && first.EQ(second)
}

// TrimCluster drops from a ManagedCluster what the hub does not read. It is the transform of the
// cache for all controllers of the hub.
func TrimCluster(object any) (any, error) {
	cluster, is := object.(*clusterv1.ManagedCluster)
	if !is {
		return object, nil // the last known state of a deleted object
	}
	trimmed := &clusterv1.ManagedCluster{TypeMeta: cluster.TypeMeta, ObjectMeta: metav1.ObjectMeta{
		Name: cluster.Name, UID: cluster.UID, ResourceVersion: cluster.ResourceVersion, Generation: cluster.Generation,
		CreationTimestamp: cluster.CreationTimestamp, DeletionTimestamp: cluster.DeletionTimestamp,
		Labels: cluster.Labels,
	}}
	if reason, held := cluster.Annotations[v1alpha1.HoldAnnotation]; held {
		trimmed.Annotations = map[string]string{v1alpha1.HoldAnnotation: reason}
	}
	trimmed.Spec.HubAcceptsClient = cluster.Spec.HubAcceptsClient
	trimmed.Status.Conditions = cluster.Status.Conditions
	trimmed.Status.ClusterClaims = slices.DeleteFunc(slices.Clone(cluster.Status.ClusterClaims), func(c clusterv1.ManagedClusterClaim) bool {
		return c.Name != ClaimVersion && c.Name != claimTopology && c.Name != selection.HubClaim
	})
	return trimmed, nil
}
