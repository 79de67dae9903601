// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updategraph simulates OpenShift's update service (Cincinnati): the releases, their
// channels, and the updates between them with their known risks.
//
// It knows nothing about clusters. The simulated cluster version operator asks the catalog whether
// a risk applies.
package updategraph

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"

	"github.com/blang/semver/v4"
)

// Release is a version of OpenShift that can be installed.
type Release struct {
	// Version is a semantic version, such as 4.20.6.
	Version string `json:"version"`
	// Channels are the channels that contain the release, such as stable-4.20. The installed release
	// is implicitly in the channel of the cluster.
	Channels []string `json:"channels,omitempty"`
	// From lists the versions that can be updated to this one. It defaults to all lower versions of
	// the same minor version and of the previous one.
	From []string `json:"from,omitempty"`
	// Risks make updates to this release conditional.
	Risks []Risk `json:"risks,omitempty"`
	// Refused, if set, is the reason why the release cannot be loaded, such as a missing manifest.
	Refused string `json:"refused,omitempty"`
	// Unsigned releases have no signature and are therefore rejected.
	Unsigned bool `json:"unsigned,omitempty"`
}

// Risk is a known problem of an update.
type Risk struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	URL     string `json:"url"`
	// Applies states whether the cluster is exposed to the risk: "yes" (the default), "no", or
	// "unknown".
	Applies string `json:"applies,omitempty"`
	// PromQL is the Prometheus query of the real cluster version operator: it returns 1 if the cluster
	// is exposed and 0 if not. It defaults to a query with the result given by Applies. The simulated
	// operator only uses Applies.
	PromQL string `json:"promQL,omitempty"`
}

// Values of Risk.Applies.
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

// Image returns the pull spec of the release by digest. It depends only on the version.
func (r Release) Image() string { return repository + "@" + r.Digest() }

// Digest returns the signed digest of the release.
func (r Release) Digest() string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.Version))) }

const repository = "quay.io/openshift-release-dev/ocp-release"

// URL returns the URL of the release's errata.
func (r Release) URL() string { return "https://access.redhat.com/errata/RHBA-" + r.Version }

// Catalog is the set of existing releases. It may be changed while it is served.
type Catalog struct {
	mu       sync.RWMutex
	releases map[string]Release
}

// NewCatalog returns a catalog with the given releases.
func NewCatalog(releases ...Release) *Catalog {
	c := &Catalog{releases: map[string]Release{}}
	for _, release := range releases {
		c.Set(release)
	}
	return c
}

// Set adds a release or replaces the release with the same version.
func (c *Catalog) Set(release Release) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releases[release.Version] = release
}

// Version returns the release with a version.
func (c *Catalog) Version(version string) (Release, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	release, found := c.releases[version]
	return release, found
}

// Image returns the release with a pull spec.
func (c *Catalog) Image(image string) (Release, bool) {
	for _, release := range c.sorted() {
		if release.Image() == image {
			return release, true
		}
	}
	return Release{}, false
}

// Exposed returns whether a risk of a release applies: Yes, No, or Unknown.
func (c *Catalog) Exposed(version, risk string) string {
	release, _ := c.Version(version)
	for _, known := range release.Risks {
		if known.Name == risk {
			return cmp.Or(known.Applies, Yes)
		}
	}
	return Unknown
}

// sorted returns the releases in ascending order of their versions.
func (c *Catalog) sorted() []Release {
	c.mu.RLock()
	defer c.mu.RUnlock()
	all := make([]Release, 0, len(c.releases))
	for _, release := range c.releases {
		all = append(all, release)
	}
	slices.SortFunc(all, func(a, b Release) int { return semver.MustParse(a.Version).Compare(semver.MustParse(b.Version)) })
	return all
}

// canUpdate reports whether the graph has an update between two releases.
func canUpdate(from, to Release) bool {
	if len(to.From) > 0 {
		return slices.Contains(to.From, from.Version)
	}
	a, b := semver.MustParse(from.Version), semver.MustParse(to.Version)
	return a.LT(b) && a.Major == b.Major && b.Minor-a.Minor <= 1
}
