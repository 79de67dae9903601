// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Target is the release that an upgrade installs.
type Target struct {
	Version string
	// Image is the pull spec by digest that the release must have, or empty for any.
	Image string
	// Channel is the update channel that offers the release, or empty for the current channel.
	Channel string
	// AcceptedRisks names the accepted risks of a conditional update.
	AcceptedRisks []string
}

// Release identifies a release like the ClusterVersion does. Any field may be empty.
type Release struct {
	Version string
	Image   string
	// Architecture is the requested architecture. Only Multi can be requested.
	Architecture string
}

// Matches reports whether the release is the target. It compares the versions and, if both are known, the
// images.
func (r Release) Matches(target Target) bool {
	return r.Version != "" && r.Version == target.Version && !r.HasOtherImage(target.Image)
}

// HasOtherImage reports whether the release is known to have a different image. Images with the same digest
// are equal in any registry.
func (r Release) HasOtherImage(image string) bool {
	return r.Image != "" && image != "" && digest(r.Image) != digest(image)
}

// equal reports whether two releases are the same based on the fields that both have.
func (r Release) equal(other Release) bool {
	if r.Version != "" && other.Version != "" {
		return r.Version == other.Version && !r.HasOtherImage(other.Image)
	}
	return r.Image != "" && other.Image != "" && !r.HasOtherImage(other.Image)
}

// String returns the version or, if it is unknown, the image.
func (r Release) String() string {
	name := cmp.Or(text.Excerpt(r.Version), text.Excerpt(r.Image), "an unnamed release")
	if r.Architecture != "" {
		name += " for architecture " + text.Excerpt(r.Architecture)
	}
	return name
}

// digest returns the digest of a pull spec, or the whole pull spec if it has none.
func digest(image string) string {
	if _, after, found := strings.Cut(image, "@"); found {
		return after
	}
	return image
}
