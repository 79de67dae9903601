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

// Observed describes what became of the request for a target.
type Observed int

const (
	// ObservedNone means that the target is not requested. A request for another release may stand in
	// spec.desiredUpdate if the cluster version operator ignores or refuses it: it may be replaced.
	ObservedNone Observed = iota
	// ObservedIgnored means that the target is requested, and that the cluster version operator has
	// seen the request and does nothing about it. It may begin once the available updates change.
	ObservedIgnored
	// ObservedPending means that the target is requested, and that it has neither begun nor been
	// refused.
	ObservedPending
	// ObservedRefused means that the cluster version operator refuses the target. It tries again, and
	// may accept it later.
	ObservedRefused
	// ObservedOther means that another release is being installed, or is requested and may begin.
	ObservedOther
	// ObservedBegun means that the target is being installed.
	ObservedBegun
	// ObservedDone means that the target is completely installed.
	ObservedDone
)

// String returns the name of the state, for messages of tests.
func (o Observed) String() string {
	return [...]string{"None", "Ignored", "Pending", "Refused", "Other", "Begun", "Done"}[o]
}

// HasBegun reports whether the target is being or completely installed.
func (o Observed) HasBegun() bool { return o == ObservedBegun || o == ObservedDone }

// Observe returns what became of the request for a target. The release that is being installed
// decides, not the one that the spec requests: the cluster version operator compares the image and
// force, not the version, and continues with a release whose request was removed.
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
		return ObservedPending // whether it begins is decided after the other update
	case requested:
		return state
	case updating || state == ObservedPending:
		return ObservedOther
	}
	return ObservedNone
}

// ObserveOwn is Observe for an upgrade that has requested the target with an image; nil if it is not
// known with which. A request that another client wrote counts as Other.
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

// Answer is the answer to a question that cannot always be answered. Unknown means that this cannot
// be determined.
type Answer int

// The answers.
const (
	Unknown Answer = iota
	No
	Yes
)

// IsOwnRequest reports whether the operator wrote the request in spec.desiredUpdate, for a version and with an image;
// nil if it is not known with which. The text alone does not tell: another client may request the same version. It is
// unknown if no field managers are recorded, as in the cache, and the text is the operator's. An image other than the
// noted one comes from another process of the operator if the operator is the field manager of everything that is
// requested.
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

// PendingRequest returns the requested release if it is not the current one, and may begin.
func (v Version) PendingRequest() (Release, bool) {
	if state := v.ObserveRequest(); state == ObservedPending || state == ObservedRefused {
		return v.Requested.Release, true
	}
	return Release{}, false
}

// Request holds what spec.desiredUpdate requests.
type Request struct {
	Release

	// Force reports that checks of the release must not stop the update. The operator never sets it.
	Force bool

	// hasManagers reports whether the field managers of the version or the image are recorded;
	// ownsVersion and ownsImage report whether the operator is one of them.
	hasManagers, ownsVersion, ownsImage bool
}

// String returns the requested release for messages, with what sets it apart from another request for
// the same version.
func (r *Request) String() string {
	name := r.Release.String()
	if r.Version != "" && r.Image != "" {
		name += " with image " + text.Excerpt(r.Image)
	}
	if r.Force {
		name += " by force"
	}
	return name
}

// requestOf returns the request in spec.desiredUpdate; nil means none. A request for a mere preflight
// counts as none.
func requestOf(version *configv1.ClusterVersion) *Request {
	desired := version.Spec.DesiredUpdate
	if desired == nil || desired.Mode == configv1.UpdateModePreflight {
		return nil
	}
	request := &Request{
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

// ownedFields returns the fields of spec.desiredUpdate that a field manager owns.
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

// desiredUpdateManagers returns what is cached of field managers: who owns the version and the image in
// spec.desiredUpdate. Without it, IsOwnRequest does not know from the cache who wrote the request.
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

// isFor reports whether the request is one for the target. A change of the architecture is not.
func (r *Request) isFor(target Target) bool {
	if r.Architecture != "" {
		return false
	}
	return r.Matches(target) || r.Version == "" && r.equal(Release{Image: target.Image})
}

// ObserveRequest returns what became of the request in spec.desiredUpdate, whichever release it is for:
// None, Ignored, Pending, or Refused. None means that there is no request, or that its release is the
// current one.
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

// requestedImage returns the image that the cluster version operator resolves the request to, which may
// be unknown. It returns false if there is none: without an image, a version requests the only available
// update of that version. A change of the architecture may be one of the current version.
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

// changesArchitecture reports whether a requested change of the architecture is pending. An
// operator that does not report the architecture has started the change once it has accepted the
// request.
func (v Version) changesArchitecture() bool {
	requested := v.Requested.Architecture
	return requested != "" && requested != v.architecture && (!v.Observed || v.ReleaseAccepted.IsFalse())
}

// versionInMessage and imageInMessage match the release that a message of the cluster version operator
// names.
var (
	versionInMessage = regexp.MustCompile(`\bversion="([^"]+)"`)
	imageInMessage   = regexp.MustCompile(`\bimage="([^"]+)"`)
)

// IgnoredBecause returns why the cluster version operator does nothing about the request in
// spec.desiredUpdate.
func (v Version) IgnoredBecause() string {
	if v.Invalid.IsTrue() {
		return v.Invalid.MessageOrReason()
	}
	if _, found := v.requestedImage(); !found {
		return fmt.Sprintf("%s is not an available update", v.Requested.Release)
	}
	return fmt.Sprintf("its image is the one of the current release %s", v.Current)
}

// Refusal returns why the cluster version operator refuses the request in spec.desiredUpdate. A message
// about another release, requested earlier, is not a refusal of it; one that names no release is if the
// request was observed.
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
