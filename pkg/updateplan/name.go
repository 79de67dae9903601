// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateplan

import (
	"fmt"
	"strings"

	"github.com/blang/semver/v4"
	"k8s.io/apimachinery/pkg/util/validation"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/clusterstate"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// hashLength is the number of hexadecimal digits of the hash in a plan's name.
const hashLength = 8

// Name returns the name of a release's UpdatePlan: update-plan- followed by the release. If that is not a
// valid object name, for example because of build metadata, the release is converted to lower case, + is
// replaced with -, and a hash is appended, so two releases never share a plan.
func Name(target string) string {
	name := updatev1beta1.UpdatePlanNamePrefix + target
	if len(validation.IsDNS1123Subdomain(name)) == 0 {
		return name
	}
	suffix := "-" + text.Hash(target, 32)[:hashLength]
	name = strings.ReplaceAll(strings.ToLower(name), "+", "-")
	limit := validation.DNS1123SubdomainMaxLength - len(suffix)
	return name[:min(len(name), limit)] + suffix
}

// Validate returns an error if the plan cannot be analyzed because its release is malformed or its name does
// not match the release.
func Validate(plan *updatev1beta1.UpdatePlan) error {
	target := plan.Spec.TargetRelease
	if _, err := semver.Parse(target); err != nil {
		return fmt.Errorf("spec.targetRelease %q is not a version such as 4.14.4", target)
	}
	if want := Name(target); plan.Name != want {
		return fmt.Errorf("the UpdatePlan of release %s must have the name %s", target, want)
	}
	return nil
}

// NotAnUpdate explains why a cluster cannot be updated to the target. It returns "" if an update may be
// possible or if the cluster's release is unknown. A cluster whose control plane is at the target can still
// be updated if pools of worker nodes are paused.
func NotAnUpdate(version clusterstate.Version, pools []clusterstate.Pool, target string) string {
	current := version.Current.Version
	if current == "" {
		return "" // another reason takes precedence
	}
	change, err := clusterstate.CompareVersions(current, target)
	switch {
	case err != nil:
		return err.Error()
	case change == clusterstate.Same && version.Completed && clusterstate.HoldsBackWorkers(pools):
		return ""
	case change == clusterstate.Same && version.Completed:
		return fmt.Sprintf("the cluster is at %s", current)
	case change == clusterstate.Same:
		return fmt.Sprintf("the cluster is being updated to %s", current)
	case change == clusterstate.Downgrade:
		return fmt.Sprintf("%s is older than %s, to which the cluster is updated", target, current)
	}
	return ""
}
