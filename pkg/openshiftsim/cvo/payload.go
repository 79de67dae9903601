// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package cvo

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	configv1 "github.com/openshift/api/config/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/updategraph"
)

// Condition types that exist only for the ClusterVersion.
const (
	releaseAccepted configv1.ClusterStatusConditionType = "ReleaseAccepted"
	invalidVersion  configv1.ClusterStatusConditionType = "Invalid"
	failing         configv1.ClusterStatusConditionType = "Failing"
)

// payloadLoad is the desired release before it is accepted.
type payloadLoad struct {
	update      configv1.Update
	lastAttempt time.Time // start of the current attempt to load it, or the time of the last rejection
	refused     bool
}

// Desired returns the release that a ClusterVersion requests, including its image, or an error if
// the request is invalid. It returns nil if the request has no effect: without an image, only an
// available update can be requested. Releases are identified by their image, and requests also by
// force.
func Desired(version *configv1.ClusterVersion) (*configv1.Update, error) {
	desired := version.Spec.DesiredUpdate
	if desired == nil {
		return nil, nil
	}
	if err := validate(version, desired); err != nil {
		return nil, err
	}
	if desired.Image != "" {
		return desired.DeepCopy(), nil
	}
	wanted := desired.Version
	if desired.Architecture == configv1.ClusterVersionArchitectureMulti { // only the current version may change its architecture
		wanted = version.Status.Desired.Version
	}
	for _, release := range version.Status.AvailableUpdates {
		if release.Version == wanted && release.Image != "" {
			return &configv1.Update{Version: wanted, Image: release.Image, Force: desired.Force}, nil
		}
	}
	return nil, nil
}

func validate(version *configv1.ClusterVersion, desired *configv1.Update) error {
	path := field.NewPath("spec", "desiredUpdate")
	if desired.Version == "" && desired.Image == "" && desired.Architecture == "" {
		return field.Required(path, "must specify architecture, version, or image")
	}
	if desired.Version == "" {
		return nil
	}
	path = path.Child("version")
	if _, err := semver.Parse(desired.Version); err != nil {
		return field.Invalid(path, desired.Version, "must be a semantic version (1.2.3[-...])")
	}
	if desired.Image != "" {
		return nil
	}
	switch offers := availableImages(version, desired.Version); {
	case offers > 1:
		return field.Invalid(path, desired.Version, "there are multiple possible payloads for this version, specify the exact image")
	case offers == 0 && !inHistory(version, desired.Version):
		return field.Invalid(path, desired.Version, "when image is empty the update must be an available update")
	}
	return nil
}

// availableImages returns the number of available updates to a version, not counting conditional
// updates: to accept a risk, a client must specify the image.
func availableImages(version *configv1.ClusterVersion, desired string) int {
	count := 0
	for _, release := range version.Status.AvailableUpdates {
		if release.Version == desired && release.Image != "" {
			count++
		}
	}
	return count
}

func inHistory(version *configv1.ClusterVersion, desired string) bool {
	return slices.ContainsFunc(version.Status.History, func(entry configv1.UpdateHistory) bool { return entry.Version == desired && entry.Image != "" })
}

// desiredUpdate returns the release to install, an error if the request is invalid, or nil if the
// payload does not change. Without an effective request, it returns the release of the operator's
// running pod: if the request is removed before the pod of the new release runs, the update is
// reverted.
func (s *Simulator) desiredUpdate(version *configv1.ClusterVersion) (*configv1.Update, error) {
	desired, err := Desired(version)
	if desired == nil {
		desired = &configv1.Update{Version: s.running.Version, Image: s.running.Image()}
	}
	if desired.Image == s.payload.Image() {
		return nil, err
	}
	return desired, err
}

// syncPayload loads the desired release and starts the update once it is accepted. It returns the
// time until the next reconcile.
func (s *Simulator) syncPayload(version *configv1.ClusterVersion, desired *configv1.Update, now time.Time) time.Duration {
	if desired == nil {
		s.reset = s.reset || s.load != nil
		s.load = nil
		s.setReleaseAccepted(version, now)
		return 0
	}
	if desired.Image == s.running.Image() { // the operator's own release needs no checks
		s.install(version, s.running, now)
		return s.options.ProgressInterval
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
	s.install(version, release, now)
	return s.options.ProgressInterval
}

// install starts the installation of a release.
func (s *Simulator) install(version *configv1.ClusterVersion, release updategraph.Release, now time.Time) {
	s.load, s.reset = nil, false
	s.payload = release
	s.work = &syncWork{startTime: now}
	s.setReleaseAccepted(version, now)
}

// setReleaseAccepted reports the payload. If loading another release has failed before, the message
// does not contain the architecture.
func (s *Simulator) setReleaseAccepted(version *configv1.ClusterVersion, now time.Time) {
	message := fmt.Sprintf("Payload loaded version=%q image=%q", s.payload.Version, s.payload.Image())
	if !s.reset {
		message += " architecture=\"amd64\""
	}
	set(version, releaseAccepted, configv1.ConditionTrue, "PayloadLoaded", message, now)
}

// retrieve returns the release, or the reason and message of its rejection.
func (s *Simulator) retrieve(version *configv1.ClusterVersion, desired *configv1.Update) (updategraph.Release, string, error) {
	release, found := s.options.Catalog.Image(desired.Image)
	failure := release.Refused
	switch {
	case (!found || release.Unsigned) && !desired.Force: // a release is verified before it is downloaded
		_, digest, _ := strings.Cut(desired.Image, "@")
		failure = fmt.Sprintf("The update cannot be verified: unable to verify %s against keyrings: verifier-public-key-redhat", digest)
	case !found:
		failure = "Unable to download and prepare the update: manifest unknown"
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

// rollbackProblem returns the reason why it is impossible to roll back to a release, or an empty
// string. Only the previous release can be rolled back to, and only within the same minor version.
func rollbackProblem(version *configv1.ClusterVersion, from, to semver.Version) string {
	for _, entry := range version.Status.History {
		if entry.Version == version.Status.Desired.Version && entry.Image == version.Status.Desired.Image {
			continue
		}
		former, err := semver.Parse(entry.Version)
		switch {
		case err != nil:
			return fmt.Sprintf("%s is less than the current target %s, and the cluster has no previous Semantic Version", to, from)
		case !to.EQ(former):
			return fmt.Sprintf("%s is less than the current target %s, and the only supported rollback is to the cluster's previous version %s (%s)", to, from, former, entry.Image)
		case former.Major != from.Major || former.Minor != from.Minor:
			return fmt.Sprintf("%s is less than the current target %s and matches the cluster's previous version, but rollbacks that change major or minor versions are not recommended", to, from)
		}
		return ""
	}
	return fmt.Sprintf("%s is less than the current target %s, and the cluster has no previous Semantic Version", to, from)
}

// checkPreconditions returns an error if a release must not be installed. That a release is not
// recommended is reported along with the reasons, but does not prevent the installation.
func (s *Simulator) checkPreconditions(version *configv1.ClusterVersion, release updategraph.Release) error {
	from, to := semver.MustParse(s.payload.Version), semver.MustParse(release.Version)
	var failed []string
	fail := func(name, reason, message string) {
		failed = append(failed, fmt.Sprintf("Precondition %q failed because of %q: %s", name, reason, message))
	}
	if to.LT(from) {
		if problem := rollbackProblem(version, from, to); problem != "" {
			fail("ClusterVersionRollback", "LowDesiredVersion", problem)
		}
	}
	if to.Minor > from.Minor+1 {
		fail("ClusterVersionGiantHop", "MultipleMinorVersionsUpdate", fmt.Sprintf("%s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), and only updates within the current minor version or to the next minor version are supported.",
			to, from, to.Major, to.Minor, from.Major, from.Minor))
	}
	upgradeable := findCondition(version.Status.Conditions, configv1.OperatorUpgradeable)
	if to.Minor > from.Minor && upgradeable != nil && upgradeable.Status == configv1.ConditionFalse {
		fail("ClusterVersionUpgradeable", upgradeable.Reason, upgradeable.Message)
	}
	if len(failed) == 0 {
		return nil
	}
	if reason, message := notRecommended(version, from, to); reason != "" {
		fail("ClusterVersionRecommendedUpdate", reason, message)
	}
	if len(failed) == 1 {
		return errors.New(failed[0])
	}
	return errors.New("Multiple precondition checks failed:\n* " + strings.Join(failed, "\n* "))
}

// notRecommended returns the reason and message if an update is not recommended, and empty strings
// otherwise.
func notRecommended(version *configv1.ClusterVersion, from, to semver.Version) (reason, message string) {
	wanted := to.String()
	if slices.ContainsFunc(version.Status.AvailableUpdates, func(r configv1.Release) bool { return r.Version == wanted }) {
		return "", ""
	}
	for i := range version.Status.ConditionalUpdates {
		update := &version.Status.ConditionalUpdates[i]
		recommended := meta.FindStatusCondition(update.Conditions, "Recommended")
		switch {
		case update.Release.Version != wanted || recommended == nil:
		case recommended.Status == metav1.ConditionTrue:
			return "", ""
		case recommended.Status == metav1.ConditionFalse:
			return recommended.Reason, fmt.Sprintf("Update from %s to %s is not recommended:\n\n%s", from, to, recommended.Message)
		default:
			return recommended.Reason, fmt.Sprintf("Update from %s to %s is %s=%s: %s: %s", from, to, recommended.Type, recommended.Status, recommended.Reason, recommended.Message)
		}
	}
	if version.Spec.Channel == "" {
		return "NoChannel", fmt.Sprintf("Configured channel is unset, so the recommended status of updating from %s to %s is unknown.", from, to)
	}
	retrieved := findCondition(version.Status.Conditions, configv1.RetrievedUpdates)
	if retrieved == nil || retrieved.Status != configv1.ConditionTrue {
		var known configv1.ClusterOperatorStatusCondition
		if retrieved != nil {
			known = *retrieved
		}
		return "UnknownUpdate", fmt.Sprintf("RetrievedUpdates=%s (%s), so the recommended status of updating from %s to %s is unknown.", known.Status, known.Reason, from, to)
	}
	return "UnknownUpdate", fmt.Sprintf("RetrievedUpdates=True (%s), so the update from %s to %s is probably neither recommended nor supported.", retrieved.Reason, from, to)
}
