// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// VersionKey is the key of the cluster's ClusterVersion.
var VersionKey = client.ObjectKey{Name: "version"}

// Version holds the facts about the ClusterVersion.
type Version struct {
	// Installed is the version of the newest Completed entry in the history, or empty if there is none.
	Installed string
	// Current is the release that the cluster runs or is updating to. It is the newest entry in the history,
	// whatever its state, or zero if the history is empty.
	Current Release
	// Completed is set if Current is completely installed.
	Completed bool
	// Requested is the request in spec.desiredUpdate, or nil. It remains there after the installation. A
	// preflight request does not count.
	Requested *UpdateRequest
	// Channel is the update channel.
	Channel string
	// CurrentChannels lists the channels that contain the current release according to the update service. It
	// is empty if unknown.
	CurrentChannels []string
	// Observed is set if the status is up to date with the spec. This is not the case while the cluster
	// version operator refuses a request.
	Observed bool

	Available        Condition
	Upgradeable      Condition
	Failing          Condition
	ReleaseAccepted  Condition
	Progressing      Condition
	RetrievedUpdates Condition
	Invalid          Condition

	// Updates holds the entries of the history, newest first.
	Updates []Update

	availableUpdates []offer
	// architecture is the reported architecture of the current release. Only Multi is reported.
	architecture string
}

// GetClusterVersion reads the ClusterVersion.
func GetClusterVersion(ctx context.Context, r client.Reader) (Version, error) {
	version, err := getClusterVersion(ctx, r)
	if err != nil {
		return Version{}, err
	}
	return VersionOf(version), nil
}

// GetClusterID reads the ID of the cluster, a UUID.
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

// GetClusterName reads the name that the installer gave the cluster, such as shop-x7k2p. It never changes.
func GetClusterName(ctx context.Context, r client.Reader) (string, error) {
	var infrastructure configv1.Infrastructure
	if err := r.Get(ctx, client.ObjectKey{Name: "cluster"}, &infrastructure); err != nil {
		return "", fmt.Errorf("reading the infrastructure of the cluster: %w", err)
	}
	return infrastructure.Status.InfrastructureName, nil
}

func getClusterVersion(ctx context.Context, r client.Reader) (*configv1.ClusterVersion, error) {
	var version configv1.ClusterVersion
	if err := r.Get(ctx, VersionKey, &version); err != nil {
		return nil, fmt.Errorf("getting the cluster version: %w", err)
	}
	return &version, nil
}

// VersionOf converts a ClusterVersion.
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

		Requested:        requestOf(version),
		availableUpdates: availableUpdates(status),
		architecture:     string(status.Desired.Architecture),
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

// annotationHold is the annotation of the ClusterVersion that holds all upgrades. Its value is the reason.
const annotationHold = "upgrade.managed.openshift.io/hold"

// HeldBy explains why no upgrade may commence on the cluster, or returns "".
func HeldBy(version *configv1.ClusterVersion) string {
	reason, held := version.Annotations[annotationHold]
	if !held {
		return ""
	}
	return "held by annotation " + annotationHold + " of the ClusterVersion: " + text.Reason(reason)
}

// InHistory reports whether the cluster was ever updated to the target, even if another release has replaced
// it since.
func (v Version) InHistory(target Target) bool {
	return slices.ContainsFunc(v.Updates, func(u Update) bool { return u.Matches(target) })
}

// HasBegunSince reports whether the installation of the target began at or after the given time, even if
// another release has replaced it since. It returns false for the zero time.
func (v Version) HasBegunSince(target Target, since time.Time) bool {
	return !since.IsZero() && slices.ContainsFunc(v.Updates, func(u Update) bool { return u.Matches(target) && !u.Start.Before(since) })
}

// maxContradiction is how long the reports of the cluster version operator may contradict each other.
const maxContradiction = time.Minute

// Contradiction explains why it is unknown whether a release is being installed: the condition Progressing
// has contradicted the history for longer than it takes to update both. It returns "" if they agree.
func (v Version) Contradiction(now time.Time) string {
	if len(v.Updates) == 0 || v.Progressing.IsTrue() != v.Completed || !v.Progressing.IsTrue() && !v.Progressing.IsFalse() {
		return ""
	}
	if !IsPlausible(v.Progressing.Since, now) {
		return "" // the duration is unknown
	}
	newest := v.Updates[0]
	for _, at := range []time.Time{v.Progressing.Since, newest.Start, newest.End} {
		if IsPlausible(at, now) && now.Sub(at) <= maxContradiction {
			return ""
		}
	}
	state := "Partial"
	if newest.Completed {
		state = "Completed"
	}
	message := fmt.Sprintf("condition Progressing is %s, but the history shows %s as %s", v.Progressing.Status, newest.Version, state)
	if reported := v.Progressing.MessageOrReason(); v.Progressing.Message != "" {
		message += " (" + reported + ")"
	}
	return message
}

// MayLeaveMinor reports whether the cluster may be updated to another minor version. If it may, the cluster
// version operator removes the condition Upgradeable.
func (v Version) MayLeaveMinor() Answer {
	switch {
	case v.Upgradeable.Status == "" || v.Upgradeable.IsTrue():
		return Yes
	case v.Upgradeable.IsFalse():
		return No
	}
	return Unknown
}

// RefusedElsewhere returns the requested release if the cluster version operator refuses it while installing
// another one.
func (v Version) RefusedElsewhere() (Release, bool) {
	if _, installing := v.UpdatingTo(); !installing {
		return Release{}, false
	}
	if _, refused := v.Refusal(); !refused {
		return Release{}, false
	}
	return v.PendingRequest()
}

// HasRun reports whether the history contains a version.
func (v Version) HasRun(version string) bool {
	return version != "" && slices.ContainsFunc(v.Updates, func(u Update) bool { return u.Version == version })
}

// WaitsFor reports whether the cluster version operator says that it waits for an operator.
func (v Version) WaitsFor(operator string) bool {
	return v.Progressing.Mentions(operator) || v.Failing.IsTrue() && v.Failing.Mentions(operator)
}

// UpdatingTo returns the release that the cluster is updating to, or false if the newest release is
// completely installed.
func (v Version) UpdatingTo() (Release, bool) {
	return v.Current, v.Current != (Release{}) && !v.Completed
}

// SupersededBy returns the current release if it is not the target, and whether the cluster ran it before the
// target. Requests do not count, because the cluster version operator may ignore or refuse them. If the
// history is empty, nothing is known.
func (v Version) SupersededBy(target Target) (other Release, returned, superseded bool) {
	if v.Current == (Release{}) || v.Current.Matches(target) {
		return Release{}, false, false
	}
	replaced := false
	for _, update := range v.Updates {
		replaced = replaced || update.Matches(target)
		returned = returned || replaced && update.Completed && update.equal(v.Current)
	}
	return v.Current, returned, true
}
