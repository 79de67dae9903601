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

// load is the release that the cluster was told to update to and that was not accepted yet.
type load struct {
	update  configv1.Update
	tried   time.Time // when the loading that is under way began, or the last one ended in a refusal
	refused bool
}

// wanted returns what the cluster was told to update to, with its image, or why that is nonsense. Nil means to stay with
// the payload: then an update that has not begun never will, and one that has begun goes on.
func (p *player) wanted(version *configv1.ClusterVersion) (*configv1.Update, error) {
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
		case hadBefore(version, update.Version): // which is allowed, and never done
			return nil, nil
		default:
			return nil, field.Invalid(path, update.Version, "when image is empty the update must be an available update")
		}
	}
	if update.Image == p.payload.Image() {
		return nil, nil
	}
	return update, nil
}

// availableImage finds a version that comes without an image. Conditional updates do not count: who takes a risk says so
// by naming the image.
func availableImage(version *configv1.ClusterVersion, wanted string) (string, bool) {
	for _, release := range version.Status.AvailableUpdates {
		if release.Version == wanted {
			return release.Image, true
		}
	}
	return "", false
}

func hadBefore(version *configv1.ClusterVersion, wanted string) bool {
	return slices.ContainsFunc(version.Status.History, func(entry configv1.UpdateHistory) bool { return entry.Version == wanted })
}

// syncPayload loads the release that is wanted, and begins the update once it is accepted. It returns when to look again.
func (p *player) syncPayload(version *configv1.ClusterVersion, wanted *configv1.Update, now time.Time) time.Duration {
	if wanted == nil {
		p.load = nil
		p.accepted(version, now)
		return 0
	}
	if p.load == nil || !equality.Semantic.DeepEqual(p.load.update, *wanted) {
		p.load = &load{update: *wanted, tried: now}
	}
	takes, state := p.options.Speed.Of(loading), configv1.ConditionUnknown
	if p.load.refused {
		takes, state = p.options.Speed.Of(loadingRetry), configv1.ConditionFalse
	}
	if rest := takes - now.Sub(p.load.tried); rest > 0 {
		if state == configv1.ConditionUnknown {
			set(version, releaseAccepted, state, "RetrievePayload",
				fmt.Sprintf("Retrieving and verifying payload version=%q image=%q", wanted.Version, wanted.Image), now)
		}
		return rest
	}
	release, reason, err := p.retrieve(version, wanted)
	if err != nil {
		p.load.tried, p.load.refused = now, true
		set(version, releaseAccepted, configv1.ConditionFalse, reason, err.Error(), now)
		return p.options.Speed.Of(loadingRetry)
	}
	p.load = nil
	p.payload = release
	p.work = &work{began: now}
	p.updates = nil // those of the old release
	p.accepted(version, now)
	return lookAgain
}

func (p *player) accepted(version *configv1.ClusterVersion, now time.Time) {
	set(version, releaseAccepted, configv1.ConditionTrue, "PayloadLoaded",
		fmt.Sprintf("Payload loaded version=%q image=%q architecture=\"amd64\"", p.payload.Version, p.payload.Image()), now)
}

// retrieve returns the release, or the reason and the message of a refusal.
func (p *player) retrieve(version *configv1.ClusterVersion, wanted *configv1.Update) (updategraph.Release, string, error) {
	release, found := p.options.Catalogue.Image(wanted.Image)
	failure := release.Refused
	switch {
	case !found:
		failure = "Unable to download and prepare the update: manifest unknown"
	case release.Unsigned:
		failure = fmt.Sprintf("The update cannot be verified: unable to verify %s against keyrings: verifier-public-key-redhat", release.Digest())
	}
	if failure != "" {
		return release, "RetrievePayload", fmt.Errorf("Retrieving payload failed version=%q image=%q failure=%s", //nolint:staticcheck // the real one's sentence
			wanted.Version, wanted.Image, failure)
	}
	if wanted.Version != "" && release.Version != wanted.Version {
		return release, "VerifyPayloadVersion", fmt.Errorf("Verifying payload failed version=%q image=%q failure=release image version %s does not match the expected upstream version %s", //nolint:staticcheck // the real one's sentence
			wanted.Version, wanted.Image, release.Version, wanted.Version)
	}
	if err := p.preconditions(version, release); err != nil && !wanted.Force {
		return release, "PreconditionChecks", fmt.Errorf("Preconditions failed for payload loaded version=%q image=%q: %w", //nolint:staticcheck // the real one's sentence
			release.Version, wanted.Image, err)
	}
	return release, "", nil
}

func (p *player) preconditions(version *configv1.ClusterVersion, release updategraph.Release) error {
	from, to := semver.MustParse(p.payload.Version), semver.MustParse(release.Version)
	if to.LT(from) {
		return fmt.Errorf(`Precondition "ClusterVersionRollback" failed because of "LowDesiredVersion": %s is less than the current target %s, and rollbacks are not recommended`, to, from) //nolint:staticcheck // the real one's sentence
	}
	if to.Minor > from.Minor+1 {
		return fmt.Errorf(`Precondition "ClusterVersionGiantHop" failed because of "MultipleMinorVersionsUpdate": %s is more than one minor version beyond the current target %s (%d.%d > %d.(%d+1)), and only updates within the current minor version or to the next minor version are supported.`, //nolint:revive,staticcheck // the real one's sentence
			to, from, to.Major, to.Minor, from.Major, from.Minor)
	}
	upgradeable := find(version.Status.Conditions, configv1.OperatorUpgradeable)
	if to.Minor > from.Minor && upgradeable != nil && upgradeable.Status == configv1.ConditionFalse {
		return fmt.Errorf(`Precondition "ClusterVersionUpgradeable" failed because of %q: %s`, upgradeable.Reason, upgradeable.Message) //nolint:staticcheck // the real one's sentence
	}
	return nil
}
