// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// VersionKey is the key of the only ClusterVersion of a cluster.
var VersionKey = client.ObjectKey{Name: "version"}

// Version holds the facts of the ClusterVersion.
type Version struct {
	// Installed is the version of the newest Completed entry of the history; empty means that there
	// is none.
	Installed string
	// Current is the release that the cluster runs or is updating to: the newest entry of the
	// history, in any state; zero means that the history is empty.
	Current Release
	// Completed reports whether Current is completely installed.
	Completed bool
	// Requested is the release in spec.desiredUpdate; nil means none. It stays there after it was
	// installed. A request for a mere preflight counts as none.
	Requested *Release
	// Channel is the update channel.
	Channel string
	// CurrentChannels are the channels that have the current release, as far as the update service
	// reports them; empty means that they are unknown.
	CurrentChannels []string
	// Observed reports whether the status is that of the current spec. It is not for as long as the
	// cluster version operator refuses a request.
	Observed bool

	Available        Condition
	Upgradeable      Condition
	Failing          Condition
	ReleaseAccepted  Condition
	Progressing      Condition
	RetrievedUpdates Condition
	Invalid          Condition

	// Updates are the entries of the history, the newest first.
	Updates []Update

	availableUpdates []offer
	// architecture is that of the current release, as far as it is reported; only Multi is.
	architecture string
}

// GetClusterVersion gets the ClusterVersion.
func GetClusterVersion(ctx context.Context, r client.Reader) (Version, error) {
	version, err := getClusterVersion(ctx, r)
	if err != nil {
		return Version{}, err
	}
	return VersionOf(version), nil
}

// GetClusterID gets the ID of the cluster, a UUID.
func GetClusterID(ctx context.Context, r client.Reader) (string, error) {
	version, err := getClusterVersion(ctx, r)
	if err != nil {
		return "", err
	}
	if version.Spec.ClusterID == "" {
		return "", errors.New("the cluster version has no spec.clusterID")
	}
	return string(version.Spec.ClusterID), nil
}

func getClusterVersion(ctx context.Context, r client.Reader) (*configv1.ClusterVersion, error) {
	var version configv1.ClusterVersion
	if err := r.Get(ctx, VersionKey, &version); err != nil {
		return nil, fmt.Errorf("getting the cluster version: %w", err)
	}
	return &version, nil
}

// VersionOf returns the facts of a ClusterVersion.
func VersionOf(version *configv1.ClusterVersion) Version {
	status := &version.Status
	facts := Version{
		Channel:         version.Spec.Channel,
		CurrentChannels: status.Desired.Channels,
		Observed:        status.ObservedGeneration >= version.Generation,

		Available:        condition(status.Conditions, configv1.OperatorAvailable),
		Upgradeable:      condition(status.Conditions, configv1.OperatorUpgradeable),
		Failing:          condition(status.Conditions, "Failing"),
		ReleaseAccepted:  condition(status.Conditions, "ReleaseAccepted"),
		Progressing:      condition(status.Conditions, configv1.OperatorProgressing),
		RetrievedUpdates: condition(status.Conditions, configv1.RetrievedUpdates),
		Invalid:          condition(status.Conditions, "Invalid"),

		availableUpdates: availableUpdates(status),
		architecture:     string(status.Desired.Architecture),
	}
	if desired := version.Spec.DesiredUpdate; desired != nil && desired.Mode != configv1.UpdateModePreflight {
		release := Release{Version: desired.Version, Image: desired.Image, Architecture: string(desired.Architecture)}
		if release != (Release{}) {
			facts.Requested = &release
		}
	}
	if len(status.History) > 0 {
		newest := &status.History[0]
		facts.Current = Release{Version: newest.Version, Image: newest.Image}
		facts.Completed = newest.State == configv1.CompletedUpdate
	}
	for i := range status.History {
		entry := &status.History[i]
		facts.Updates = append(facts.Updates, updateOf(entry))
		if entry.State == configv1.CompletedUpdate && facts.Installed == "" {
			facts.Installed = entry.Version
		}
	}
	return facts
}

// InHistory reports whether the cluster was ever updated to the target, even if it was updated to
// another release since.
func (v Version) InHistory(target Target) bool {
	return slices.ContainsFunc(v.Updates, func(u Update) bool { return u.Matches(target) })
}

// UpdatingTo returns the release that the cluster is updating to; false means that the newest one
// is completely installed.
func (v Version) UpdatingTo() (Release, bool) {
	return v.Current, v.Current != (Release{}) && !v.Completed
}

// PendingRequest returns the requested release if the cluster is neither at it nor updating to it.
func (v Version) PendingRequest() (Release, bool) {
	if v.Requested == nil || v.Requested.equal(v.Current) && !v.changesArchitecture() {
		return Release{}, false
	}
	return *v.Requested, true
}

// changesArchitecture reports whether a requested change of the architecture is pending. An
// operator that does not report the architecture has started the change once it has accepted the
// request.
func (v Version) changesArchitecture() bool {
	requested := v.Requested.Architecture
	return requested != "" && requested != v.architecture && (!v.Observed || v.ReleaseAccepted.IsFalse())
}

// IsRequested reports whether the target is in spec.desiredUpdate. A request for another
// architecture is not a request for the target.
func (v Version) IsRequested(target Target) bool {
	return v.Requested != nil && v.Requested.Matches(target) && !v.changesArchitecture()
}

// versionInMessage matches the release that a message of the cluster version operator names.
var versionInMessage = regexp.MustCompile(`\bversion="([^"]+)"`)

// RejectionMessage returns why the cluster version operator refuses the target, which must have
// been requested. A message about another release, requested earlier, is not a refusal of the
// target.
func (v Version) RejectionMessage(target Target) (string, bool) {
	if v.Invalid.IsTrue() {
		return v.Invalid.MessageOrReason(), true
	}
	if !v.ReleaseAccepted.IsFalse() {
		return "", false
	}
	aboutTarget := v.Observed
	if found := versionInMessage.FindStringSubmatch(v.ReleaseAccepted.Message); found != nil {
		aboutTarget = found[1] == target.Version
	}
	return v.ReleaseAccepted.MessageOrReason(), aboutTarget
}

// SupersededBy returns the release other than the target that the cluster is at, is updating to, or
// is requested to update to. An empty history reveals nothing about that.
func (v Version) SupersededBy(target Target) (Release, bool) {
	if v.Current == (Release{}) {
		return Release{}, false
	}
	if !v.Current.Matches(target) {
		return v.Current, true
	}
	return v.PendingRequest()
}
