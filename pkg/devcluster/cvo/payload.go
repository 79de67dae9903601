// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cvo

import (
	"fmt"
	"slices"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster/updategraph"
)

// Condition types that only ClusterVersions have.
const (
	releaseAccepted configv1.ClusterStatusConditionType = "ReleaseAccepted"
	invalidVersion  configv1.ClusterStatusConditionType = "Invalid"
	failing         configv1.ClusterStatusConditionType = "Failing"
)

// payloadLoad is the desired release until it is accepted.
type payloadLoad struct {
	update      configv1.Update
	lastAttempt time.Time // when the current attempt to load it started, or the last one was rejected
	refused     bool
}

// desiredUpdate returns the desired update with its image, or why it is invalid. Nil means that the
// payload stays: an update that has not started is dropped, and one that has started continues.
func (s *Simulator) desiredUpdate(version *configv1.ClusterVersion) (*configv1.Update, error) {
	desired := version.Spec.DesiredUpdate
	if desired == nil {
		return nil, nil
	}
	path := field.NewPath("spec", "desiredUpdate", "version")
	update := desired.DeepCopy()
	if update.Version == "" && update.Image == "" {
		return nil, field.Required(path, "must specify version or image")
	}
	if update.Version != "" {
		if _, err := semver.Parse(update.Version); err != nil {
			return nil, field.Invalid(path, update.Version, "must be a semantic version (1.2.3[-...])")
		}
	}
	if update.Image == "" {
		image, found := availableImage(version, update.Version)
		switch {
		case found:
			update.Image = image
		case inHistory(version, update.Version): // allowed, and never carried out
			return nil, nil
		default:
			return nil, field.Invalid(path, update.Version, "when image is empty the update must be an available update")
		}
	}
	if update.Image == s.payload.Image() {
		return nil, nil
	}
	return update, nil
}

// availableImage returns the image of a version that was requested without one. It ignores
// conditional updates: to accept a risk, a client must name the image.
func availableImage(version *configv1.ClusterVersion, desired string) (string, bool) {
	for _, release := range version.Status.AvailableUpdates {
		if release.Version == desired {
			return release.Image, true
		}
	}
	return "", false
}

func inHistory(version *configv1.ClusterVersion, desired string) bool {
	return slices.ContainsFunc(version.Status.History, func(entry configv1.UpdateHistory) bool { return entry.Version == desired })
}

// syncPayload loads the desired release, and starts the update once it is accepted. It returns when
// to reconcile again.
func (s *Simulator) syncPayload(version *configv1.ClusterVersion, desired *configv1.Update, now time.Time) time.Duration {
	if desired == nil {
		s.load = nil
		s.setReleaseAccepted(version, now)
		return 0
	}
	if s.load == nil || !equality.Semantic.DeepEqual(s.load.update, *desired) {
		s.load = &payloadLoad{update: *desired, lastAttempt: now}
	}
	duration, state := s.options.Speed.Scale(loadDuration), configv1.ConditionUnknown
	if s.load.refused {
		duration, state = s.options.Speed.Scale(loadRetryInterval), configv1.ConditionFalse
	}
	if remaining := duration - now.Sub(s.load.lastAttempt); remaining > 0 {
		if state == configv1.ConditionUnknown {
			set(version, releaseAccepted, state, "RetrievePayload",
				fmt.Sprintf("Retrieving and verifying payload version=%q image=%q", desired.Version, desired.Image), now)
		}
		return remaining
	}
	release, reason, err := s.retrieve(version, desired)
	if err != nil {
		s.load.lastAttempt, s.load.refused = now, true
		set(version, releaseAccepted, configv1.ConditionFalse, reason, err.Error(), now)
		return s.options.Speed.Scale(loadRetryInterval)
	}
	s.load = nil
	s.payload = release
	s.work = &syncWork{startTime: now}
	s.updates = nil // they belong to the old release
	s.setReleaseAccepted(version, now)
	return s.options.ProgressInterval
}

func (s *Simulator) setReleaseAccepted(version *configv1.ClusterVersion, now time.Time) {
	set(version, releaseAccepted, configv1.ConditionTrue, "PayloadLoaded",
		fmt.Sprintf("Payload loaded version=%q image=%q architecture=\"amd64\"", s.payload.Version, s.payload.Image()), now)
}

// retrieve returns the release, or the reason and the message of a rejection.
func (s *Simulator) retrieve(version *configv1.ClusterVersion, desired *configv1.Update) (updategraph.Release, string, error) {
	release, found := s.options.Catalog.Image(desired.Image)
	failure := release.Refused
	switch {
	case !found:
		failure = "Unable to download and prepare the update: manifest unknown"
	case release.Unsigned:
		failure = fmt.Sprintf("The update cannot be verified: unable to verify %s against keyrings: verifier-public-key-redhat", release.Digest())
	}
	if failure != "" {
		return release, "RetrievePayload", fmt.Errorf("Retrieving payload failed version=%q image=%q failure=%s", //nolint:staticcheck // the real one's sentence
			desired.Version, desired.Image, failure)
	}
	if desired.Version != "" && release.Version != desired.Version {
		return release, "VerifyPayloadVersion", fmt.Errorf("Verifying payload failed version=%q image=%q failure=release image version %s does not match the expected upstream version %s", //nolint:staticcheck // the real one's sentence
			desired.Version, desired.Image, release.Version, desired.Version)
	}
	if err := s.checkPreconditions(version, release); err != nil && !desired.Force {
		return release, "PreconditionChecks", fmt.Errorf("Preconditions failed for payload loaded version=%q image=%q: %w", //nolint:staticcheck // the real one's sentence
			release.Version, desired.Image, err)
	}
	return release, "", nil
}

func (s *Simulator) checkPreconditions(version *configv1.ClusterVersion, release updategraph.Release) error {
	from, to := semver.MustParse(s.payload.Version), semver.MustParse(release.Version)
	if to.LT(from) {
		return fmt.Errorf(`Precondition "ClusterVersionRollback" failed because of "LowDesiredVersion": %s is less than the current target %s, and rollbacks are not recommended`, to, from) //nolint:staticcheck // the real one's sentence
	}
	if to.Minor > from.Minor+1 {
		return fmt.Errorf(`Precondition "ClusterVersionGiantHop" failed because of "MultipleMinorVersionsUpdate": %s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), and only updates within the current minor version or to the next minor version are supported.`, //nolint:revive,staticcheck // the real one's sentence
			to, from, to.Major, to.Minor, from.Major, from.Minor)
	}
	upgradeable := findCondition(version.Status.Conditions, configv1.OperatorUpgradeable)
	if to.Minor > from.Minor && upgradeable != nil && upgradeable.Status == configv1.ConditionFalse {
		return fmt.Errorf(`Precondition "ClusterVersionUpgradeable" failed because of %q: %s`, upgradeable.Reason, upgradeable.Message) //nolint:staticcheck // the real one's sentence
	}
	return nil
}
