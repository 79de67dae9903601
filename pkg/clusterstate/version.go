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

// VersionKey is the name of the one ClusterVersion of a cluster.
var VersionKey = client.ObjectKey{Name: "version"}

// Version is what the ClusterVersion says.
type Version struct {
	// Installed is the version that was installed in full last, that is, the
	// newest Completed entry of the history; empty if there is none.
	Installed string
	// Current is the release that the cluster runs or is moving to: the newest
	// entry of the history, in whatever state; zero if the history is empty.
	Current Release
	// Completed says whether Current is installed in full.
	Completed bool
	// Requested is the release that somebody has asked for; nil if nobody has.
	// It stays after it was installed. A request for a mere check counts as none.
	Requested *Release
	// Channel is the update channel.
	Channel string
	// Observed says whether the cluster version operator has seen the spec as
	// it is now. It lags behind for as long as a request is refused.
	Observed bool

	Upgradeable      Condition
	Failing          Condition
	ReleaseAccepted  Condition
	Progressing      Condition
	RetrievedUpdates Condition
	Invalid          Condition

	history          []Release
	availableUpdates map[string]AvailableUpdate
}

// GetClusterVersion reads the ClusterVersion.
func GetClusterVersion(ctx context.Context, r client.Reader) (Version, error) {
	version, err := getClusterVersion(ctx, r)
	if err != nil {
		return Version{}, err
	}
	return VersionOf(version), nil
}

// GetClusterID reads the cluster's own ID, a UUID.
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

// VersionOf are the facts of a ClusterVersion that was read already.
func VersionOf(version *configv1.ClusterVersion) Version {
	status := &version.Status
	facts := Version{
		Channel:  version.Spec.Channel,
		Observed: status.ObservedGeneration >= version.Generation,

		Upgradeable:      condition(status.Conditions, configv1.OperatorUpgradeable),
		Failing:          condition(status.Conditions, "Failing"),
		ReleaseAccepted:  condition(status.Conditions, "ReleaseAccepted"),
		Progressing:      condition(status.Conditions, configv1.OperatorProgressing),
		RetrievedUpdates: condition(status.Conditions, configv1.RetrievedUpdates),
		Invalid:          condition(status.Conditions, "Invalid"),

		availableUpdates: availableUpdates(status),
	}
	if desired := version.Spec.DesiredUpdate; desired != nil && desired.Mode != configv1.UpdateModePreflight {
		if release := (Release{Version: desired.Version, Image: desired.Image}); release != (Release{}) {
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
		facts.history = append(facts.history, Release{Version: entry.Version, Image: entry.Image})
		if entry.State == configv1.CompletedUpdate && facts.Installed == "" {
			facts.Installed = entry.Version
		}
	}
	return facts
}

// InHistory says whether the cluster was ever led to the target, even if it was led elsewhere since.
func (v Version) InHistory(target Target) bool {
	return slices.ContainsFunc(v.history, func(r Release) bool { return r.Matches(target) })
}

// AvailableUpdate is how the version is offered. A release is no longer offered once it
// is being installed.
func (v Version) AvailableUpdate(version string) AvailableUpdate { return v.availableUpdates[version] }

// UpdatingTo is the release that the cluster is moving to; none if the newest one is installed in full.
func (v Version) UpdatingTo() (Release, bool) {
	return v.Current, v.Current != (Release{}) && !v.Completed
}

// PendingRequest is the release that somebody has asked for and that the cluster is
// neither at nor moving to.
func (v Version) PendingRequest() (Release, bool) {
	if v.Requested == nil || v.Requested.equal(v.Current) {
		return Release{}, false
	}
	return *v.Requested, true
}

// IsRequested says whether the target is what was asked for last.
func (v Version) IsRequested(target Target) bool {
	return v.Requested != nil && v.Requested.Matches(target)
}

// versionInMessage finds the release that a message of the cluster version operator is about.
var versionInMessage = regexp.MustCompile(`\bversion="([^"]+)"`)

// RejectionMessage is why the cluster version operator refuses the target, of which the
// caller knows that it was asked for. What the operator still says about
// another release, asked for earlier, is no refusal of this one.
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

// SupersededBy is the release other than the target that the cluster has moved
// to, or that somebody has asked for. An empty history says nothing about either.
func (v Version) SupersededBy(target Target) (Release, bool) {
	if v.Current == (Release{}) {
		return Release{}, false
	}
	if !v.Current.Matches(target) {
		return v.Current, true
	}
	return v.PendingRequest()
}
