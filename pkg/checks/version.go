// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

// keyClusterVersion identifies findings about the ClusterVersion.
const keyClusterVersion = "ClusterVersion/version"

// reasonControlPlaneUnknown is the reason of the finding that it is unknown whether a release is being
// installed.
const reasonControlPlaneUnknown = "ControlPlaneUnknown"

// findVersion reads the condition Failing, because a ClusterVersion has no condition Degraded.
func findVersion(in Facts, phase RulePhase) []Finding {
	switch {
	case phase == Update:
		return in.findVersion(in.findOperators())
	case !in.Version.Failing.IsTrue():
		return nil
	}
	f := newFinding("ClusterVersionFailing", "the cluster version operator is failing")
	f.Key, f.Description = keyClusterVersion, in.Version.Failing.MessageOrReason()
	return []Finding{f}
}
