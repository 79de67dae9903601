// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import "strings"

// Target is the release that an upgrade leads to.
type Target struct {
	Version string
	// Image is the pull spec by digest that the release must have; empty: any.
	Image string
	// Channel is the update channel that offers the release; empty: the one that is set.
	Channel string
	// AcceptedRisks names the risks with which a conditional update is taken.
	AcceptedRisks []string
}

// Release is a release as the cluster version names it. Either field may be empty.
type Release struct {
	Version string
	Image   string
}

// Matches says whether the release is the target: by its version, and by its image
// where both are known.
func (r Release) Matches(target Target) bool {
	return r.Version != "" && r.Version == target.Version && !r.HasOtherImage(target.Image)
}

// HasOtherImage says whether the release is known to have another image. The same
// digest is the same image, whichever registry it is pulled from.
func (r Release) HasOtherImage(image string) bool {
	return r.Image != "" && image != "" && digest(r.Image) != digest(image)
}

// equal says whether two releases, however they are named, are one.
func (r Release) equal(other Release) bool {
	if r.Version != "" && other.Version != "" {
		return r.Version == other.Version && !r.HasOtherImage(other.Image)
	}
	return r.Image != "" && other.Image != "" && !r.HasOtherImage(other.Image)
}

// String names the release for people.
func (r Release) String() string {
	switch {
	case r.Version != "":
		return r.Version
	case r.Image != "":
		return r.Image
	default:
		return "an unnamed release"
	}
}

// digest is the part of a pull spec that identifies the image; without one it is all of it.
func digest(image string) string {
	if _, after, found := strings.Cut(image, "@"); found {
		return after
	}
	return image
}
