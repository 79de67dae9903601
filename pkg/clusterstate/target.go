// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import (
	"cmp"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Target is the release that an upgrade is to install.
type Target struct {
	Version string
	// Image is the pull spec by digest that the release must have; empty means any.
	Image string
	// Channel is the update channel that offers the release; empty means the current one.
	Channel string
	// AcceptedRisks are the names of the risks of a conditional update that are accepted.
	AcceptedRisks []string
}

// Release identifies a release, as the ClusterVersion does. Any field may be empty.
type Release struct {
	Version string
	Image   string
	// Architecture is the requested architecture; only Multi is ever requested.
	Architecture string
}

// Matches reports whether the release is the target: by its version, and by its image if both
// images are known.
func (r Release) Matches(target Target) bool {
	return r.Version != "" && r.Version == target.Version && !r.HasOtherImage(target.Image)
}

// HasOtherImage reports whether the release is known to have another image. The same digest is the
// same image, in any registry.
func (r Release) HasOtherImage(image string) bool {
	return r.Image != "" && image != "" && digest(r.Image) != digest(image)
}

// equal reports whether two releases are the same, as far as both are identified alike.
func (r Release) equal(other Release) bool {
	if r.Version != "" && other.Version != "" {
		return r.Version == other.Version && !r.HasOtherImage(other.Image)
	}
	return r.Image != "" && other.Image != "" && !r.HasOtherImage(other.Image)
}

// String returns the version, or else the image, for messages.
func (r Release) String() string {
	name := cmp.Or(text.Excerpt(r.Version), text.Excerpt(r.Image), "an unnamed release")
	if r.Architecture != "" {
		name += " for architecture " + text.Excerpt(r.Architecture)
	}
	return name
}

// digest returns the digest of a pull spec; all of it if it has none.
func digest(image string) string {
	if _, after, found := strings.Cut(image, "@"); found {
		return after
	}
	return image
}
