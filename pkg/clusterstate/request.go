// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"encoding/json"
	"fmt"
	"regexp"

	configv1 "github.com/openshift/api/config/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Observed describes the state of the request for a target.
type Observed int

const (
	// ObservedNone stands for an unrequested target. spec.desiredUpdate may contain a request for another
	// release that the cluster version operator ignores or refuses. It may be replaced.
	ObservedNone Observed = iota
	// ObservedIgnored is a requested target on which the cluster version operator does not act although it
	// has observed the request. The update may start once the available updates change.
	ObservedIgnored
	// ObservedPending is a requested target that has neither started nor been refused.
	ObservedPending
	// ObservedRefused is a requested target that the cluster version operator refuses. It retries and may
	// accept the target later.
	ObservedRefused
	// ObservedOther stands for another release being installed, or requested and able to start.
	ObservedOther
	// ObservedBegun stands for a target being installed.
	ObservedBegun
	// ObservedDone stands for a completely installed target.
	ObservedDone
)

// String returns the name of the state, for test messages.
func (o Observed) String() string {
	return [...]string{"None", "Ignored", "Pending", "Refused", "Other", "Begun", "Done"}[o]
}

// HasBegun reports whether the target is being installed or completely installed.
func (o Observed) HasBegun() bool { return o == ObservedBegun || o == ObservedDone }

// Observe returns the state of the request for a target. The release being installed takes precedence over
// the requested one: the cluster version operator compares image and force, but not the version, and
// continues with a release even if its request is removed.
func (v Version) Observe(target Target) Observed {
	_, updating := v.UpdatingTo()
	switch {
	case v.Current.Matches(target) && v.Completed:
		return ObservedDone
	case v.Current.Matches(target):
		return ObservedBegun
	}
	state := v.ObserveRequest()
	switch requested := v.Requested != nil && v.Requested.isFor(target); {
	case requested && updating && state != ObservedRefused:
		return ObservedPending // decided after the other update
	case requested:
		return state
	case updating || state == ObservedPending:
		return ObservedOther
	}
	return ObservedNone
}

// ObserveOwn is like Observe for an upgrade that has requested the target with an image. The image is nil if
// it is unknown. A request by another client counts as Other.
func (v Version) ObserveOwn(target Target, image *string) Observed {
	state := v.Observe(target)
	switch state {
	case ObservedIgnored, ObservedPending, ObservedRefused:
		if v.IsOwnRequest(target.Version, image) == No {
			return ObservedOther
		}
	case ObservedNone, ObservedOther, ObservedBegun, ObservedDone:
	}
	return state
}

// Answer is the answer to a question that cannot always be answered.
type Answer int

// Answers to a question.
const (
	Unknown Answer = iota
	No
	Yes
)

// IsOwnRequest reports whether the operator wrote the request in spec.desiredUpdate, for the given version
// and image. The image is nil if it is unknown. The request's contents alone are not proof, because another
// client may request the same version. The answer is unknown if the contents match but no field managers are
// recorded, as in the cache. A request with a different image than recorded comes from another operator
// process if the operator manages all requested fields.
func (v Version) IsOwnRequest(version string, image *string) Answer {
	r := v.Requested
	switch {
	case r == nil || r.Version != version || r.Force || r.Architecture != "":
		return No
	case image != nil && r.Image != *image && (!r.ownsVersion || !r.ownsImage):
		return No
	case !r.hasManagers:
		return Unknown
	case image == nil && r.Image != "" && !r.ownsImage:
		return No
	case r.ownsVersion || r.ownsImage:
		return Yes
	}
	return No
}

// PendingRequest returns the requested release if it is not the current one and may start.
func (v Version) PendingRequest() (Release, bool) {
	if state := v.ObserveRequest(); state == ObservedPending || state == ObservedRefused {
		return v.Requested.Release, true
	}
	return Release{}, false
}

// UpdateRequest holds the request in spec.desiredUpdate.
type UpdateRequest struct {
	Release

	// Force is set if checks of the release must not stop the update. The operator never sets it.
	Force bool

	// hasManagers is set if the field managers of the version or image are recorded. ownsVersion and
	// ownsImage are set if the operator is one of them.
	hasManagers, ownsVersion, ownsImage bool
}

// String names the requested release and anything that distinguishes it from other requests for the same
// version.
func (r *UpdateRequest) String() string {
	name := r.Release.String()
	if r.Version != "" && r.Image != "" {
		name += " with image " + text.Excerpt(r.Image)
	}
	if r.Force {
		name += " by force"
	}
	return name
}

// requestOf returns the request in spec.desiredUpdate, or nil. A preflight request does not count.
func requestOf(version *configv1.ClusterVersion) *UpdateRequest {
	desired := version.Spec.DesiredUpdate
	if desired == nil || desired.Mode == configv1.UpdateModePreflight {
		return nil
	}
	request := &UpdateRequest{
		Release: Release{Version: desired.Version, Image: desired.Image, Architecture: string(desired.Architecture)},
		Force:   desired.Force,
	}
	if request.Release == (Release{}) {
		return nil
	}
	for i := range version.ManagedFields {
		owned := ownedFields(&version.ManagedFields[i])
		ownsVersion, ownsImage := owned["f:version"] != nil, owned["f:image"] != nil
		request.hasManagers = request.hasManagers || ownsVersion || ownsImage
		if version.ManagedFields[i].Manager == FieldManager {
			request.ownsVersion, request.ownsImage = request.ownsVersion || ownsVersion, request.ownsImage || ownsImage
		}
	}
	return request
}

// ownedFields returns the fields of spec.desiredUpdate that belong to a field manager.
func ownedFields(manager *metav1.ManagedFieldsEntry) map[string]json.RawMessage {
	if manager.FieldsV1 == nil {
		return nil
	}
	var fields struct {
		Spec struct {
			DesiredUpdate map[string]json.RawMessage `json:"f:desiredUpdate"`
		} `json:"f:spec"`
	}
	if err := json.Unmarshal(manager.FieldsV1.GetRawBytes(), &fields); err != nil {
		return nil
	}
	return fields.Spec.DesiredUpdate
}

// desiredUpdateManagers returns the managers of the version and image in spec.desiredUpdate, for caching.
// IsOwnRequest needs them.
func desiredUpdateManagers(all []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	var some []metav1.ManagedFieldsEntry
	for i := range all {
		owned := ownedFields(&all[i])
		fields := map[string]any{}
		for _, field := range []string{"f:version", "f:image"} {
			if owned[field] != nil {
				fields[field] = map[string]any{}
			}
		}
		if len(fields) == 0 || len(some) == maxKept && all[i].Manager != FieldManager {
			continue
		}
		raw, err := json.Marshal(map[string]any{"f:spec": map[string]any{"f:desiredUpdate": fields}})
		if err == nil {
			some = append(some, metav1.ManagedFieldsEntry{Manager: cachedText(all[i].Manager), FieldsV1: metav1.NewFieldsV1(string(raw))})
		}
	}
	return some
}

// isFor reports whether the request is for the target. A request to change the architecture is not.
func (r *UpdateRequest) isFor(target Target) bool {
	if r.Architecture != "" {
		return false
	}
	return r.Matches(target) || r.Version == "" && r.equal(Release{Image: target.Image})
}

// ObserveRequest returns the state of the request in spec.desiredUpdate for any release: None, Ignored,
// Pending, or Refused. None stands for no request or a request for the current release.
func (v Version) ObserveRequest() Observed {
	if v.Requested == nil {
		return ObservedNone
	}
	if _, refused := v.Refusal(); refused {
		return ObservedRefused
	}
	image, found := v.requestedImage()
	otherImage := found && (Release{Image: image}).HasOtherImage(v.Current.Image)
	switch {
	case v.Requested.equal(v.Current) && !otherImage && !v.changesArchitecture():
		return ObservedNone
	case !v.Observed:
		return ObservedPending
	case !found || image != "" && image == v.Current.Image:
		return ObservedIgnored
	}
	return ObservedPending
}

// requestedImage returns the image that the request resolves to. The image may be unknown. It returns false
// if the request resolves to nothing: without an image, a version must match exactly one available update. A
// change of the architecture may be for the current version.
func (v Version) requestedImage() (string, bool) {
	r := v.Requested
	if r.Image != "" {
		return r.Image, true
	}
	var image string
	offers := 0
	for _, o := range v.availableUpdates {
		if o.Listed && (o.version == r.Version || r.Architecture != "" && o.version == v.Current.Version) {
			image = o.Image
			offers++
		}
	}
	return image, offers == 1 || offers > 0 && r.Architecture != ""
}

// changesArchitecture reports whether a requested change of the architecture is pending. If the architecture
// is not reported, the change counts as started once the request has been accepted.
func (v Version) changesArchitecture() bool {
	requested := v.Requested.Architecture
	return requested != "" && requested != v.architecture && (!v.Observed || v.ReleaseAccepted.IsFalse())
}

// versionInMessage and imageInMessage match the release in a message of the cluster version operator.
var (
	versionInMessage = regexp.MustCompile(`\bversion="([^"]+)"`)
	imageInMessage   = regexp.MustCompile(`\bimage="([^"]+)"`)
)

// IgnoredBecause explains why the cluster version operator does not act on the request in spec.desiredUpdate.
func (v Version) IgnoredBecause() string {
	if v.Invalid.IsTrue() {
		return v.Invalid.MessageOrReason()
	}
	if _, found := v.requestedImage(); !found {
		return fmt.Sprintf("%s is not an available update", v.Requested.Release)
	}
	return fmt.Sprintf("its image is the one of the current release %s", v.Current)
}

// Refusal explains why the cluster version operator refuses the request in spec.desiredUpdate. A message
// about a different, earlier release is not a refusal of the request. A message without a release is one if
// the request was observed.
func (v Version) Refusal() (string, bool) {
	if v.Requested == nil || !v.ReleaseAccepted.IsFalse() {
		return "", false
	}
	var named Release
	if found := versionInMessage.FindStringSubmatch(v.ReleaseAccepted.Message); found != nil {
		named.Version = found[1]
	}
	if found := imageInMessage.FindStringSubmatch(v.ReleaseAccepted.Message); found != nil {
		named.Image = found[1]
	}
	about := v.Observed
	if named != (Release{}) {
		about = named.equal(v.Requested.Release)
	}
	return v.ReleaseAccepted.MessageOrReason(), about
}
