// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	workv1 "open-cluster-management.io/api/work/v1"

	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/admission"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/feedback"
)

// Platform is what the agent reports about the upgrade of the platform.
type Platform struct {
	// Stage is how far the upgrade is.
	Stage feedback.Stage
	// Message is what the cluster reports about its progress; empty means that it is not known.
	Message string
	// Newer is a release that is newer than the target, and installed instead; empty means none.
	Newer string
	// Failing is the condition that the upgrade is failing.
	Failing feedback.Condition
	// Refused is the condition by which the cluster refuses the target; nil means that it does not.
	Refused *feedback.Condition
}

// ReadPlatform returns what the work reports about the upgrade of the platform. Nil means no work.
func ReadPlatform(run *fleetv1alpha1.ClusterUpgradeRun, work *workv1.ManifestWork) Platform {
	if work == nil || run.Spec.ClusterVersion == nil {
		return Platform{Stage: feedback.StageUnknown}
	}
	f := feedback.Read(work)
	if holdsUpgradeConfig(&f) {
		return readUpgradeConfig(run, &f)
	}
	version, target := f.ClusterVersion(), delivery.Target(run)
	p := Platform{Stage: version.Stage(target), Message: version.Message, Failing: version.Failing}
	if p.Stage != feedback.StageNotAccepted {
		return p
	}
	if admission.IsNewer(version.Version.Text, target.Version) {
		p.Newer = version.Version.Text
	}
	if version.IsObserved() {
		switch {
		case version.ReleaseAccepted.IsFalse():
			p.Refused = &version.ReleaseAccepted
		case version.Invalid.IsTrue():
			p.Refused = &version.Invalid
		}
	}
	return p
}

func holdsUpgradeConfig(f *feedback.Feedback) bool {
	for i := range f.Manifests {
		if f.Manifests[i].Kind == "UpgradeConfig" {
			return true
		}
	}
	return false
}

// readUpgradeConfig returns how far the Managed Upgrade Operator of the cluster is. Its phase is not
// more exact than Upgrading: what it does before the commit counts as accepted unless its steps are
// reported. Once it counts, it stays so while the UpgradeConfig requests the target: nothing else has
// replaced it.
func readUpgradeConfig(run *fleetv1alpha1.ClusterUpgradeRun, f *feedback.Feedback) Platform {
	u := f.UpgradeConfig()
	p := Platform{Stage: feedback.StageUnknown, Message: u.Message}
	if !u.IsObserved() {
		return p
	}
	accepted := run.Status.Accepted && run.Status.Attempt == run.Spec.Attempt
	switch {
	case !u.Version.Is(run.Spec.ClusterVersion.Version):
		p.Stage = feedback.StageNotAccepted
	case u.Phase.Is("Upgraded"), u.Succeeded.IsTrue():
		p.Stage = feedback.StageCompleted
	case u.Phase.Is("Upgrading"), u.Phase.Is("Failed"):
		p.Stage = feedback.StagePartial
		if !accepted && !commenced(&u) {
			p.Stage = feedback.StageNotAccepted
		}
	case u.Phase.IsKnown() && !u.Phase.Is("Unknown") && !accepted: // a step that fails for a moment is Unknown
		p.Stage = feedback.StageNotAccepted
	}
	if u.Phase.Is("Failed") {
		p.Failing = u.Succeeded
		p.Failing.Status = feedback.Value{Text: "True", Quality: feedback.Known}
	}
	if p.Stage == feedback.StageNotAccepted && u.Accepted.IsFalse() {
		p.Refused = &u.Accepted
	}
	return p
}

// commenced reports whether the upgrade of an UpgradeConfig has passed its commit. If no step is reported,
// it may have.
func commenced(u *feedback.UpgradeConfig) bool {
	if u.Commenced.IsKnown() {
		return u.Commenced.Is("True")
	}
	return len(u.Steps) == 0 && !u.FirstStep.IsKnown()
}
