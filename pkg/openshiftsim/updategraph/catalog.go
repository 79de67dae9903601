// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updategraph simulates the update service of OpenShift (Cincinnati): the releases, their
// channels, and the updates between them with their known risks.
//
// It does not know clusters: the simulated cluster version operator asks the catalog whether a risk
// applies.
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
	// Channels offer the release, such as stable-4.20. The installed release is implicitly in the
	// channel of the cluster.
	Channels []string `json:"channels,omitempty"`
	// From are the versions that can be updated to this one. Empty means each lower version of the
	// same minor version and of the one before it.
	From []string `json:"from,omitempty"`
	// Risks make updates to this release conditional.
	Risks []Risk `json:"risks,omitempty"`
	// Refused is the reason why the release cannot be loaded, such as a missing manifest. Empty if
	// it can.
	Refused string `json:"refused,omitempty"`
	// Unsigned releases are refused because they have no signature.
	Unsigned bool `json:"unsigned,omitempty"`
}

// Risk is a known problem of an update.
type Risk struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	URL     string `json:"url"`
	// Applies is whether the cluster is exposed to the risk: "yes", "no", or "unknown". Empty means
	// "yes".
	Applies string `json:"applies,omitempty"`
	// PromQL is the query of the real cluster version operator to Prometheus: 1 means that the
	// cluster is exposed, 0 means that it is not. It defaults to a query that returns Applies. The
	// simulated one uses Applies only.
	PromQL string `json:"promQL,omitempty"`
}

// Values of Risk.Applies.
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

// Image returns the pull spec of the release, by digest. It depends on the version alone.
func (r Release) Image() string { return repository + "@" + r.Digest() }

// Digest returns the digest that the signature of the release signs.
func (r Release) Digest() string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.Version))) }

const repository = "quay.io/openshift-release-dev/ocp-release"

// URL returns the address of the release's errata.
func (r Release) URL() string { return "https://access.redhat.com/errata/RHBA-" + r.Version }

// Catalog is the set of releases that exist. It may be changed while it is being served.
type Catalog struct {
	mu       sync.RWMutex
	releases map[string]Release
}

// NewCatalog returns a catalog of the releases.
func NewCatalog(releases ...Release) *Catalog {
	c := &Catalog{releases: map[string]Release{}}
	for _, release := range releases {
		c.Set(release)
	}
	return c
}

// Set adds a release, or replaces the one of that version.
func (c *Catalog) Set(release Release) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releases[release.Version] = release
}

// Version returns the release of a version.
func (c *Catalog) Version(version string) (Release, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	release, found := c.releases[version]
	return release, found
}

// Image returns the release of a pull spec.
func (c *Catalog) Image(image string) (Release, bool) {
	for _, release := range c.sorted() {
		if release.Image() == image {
			return release, true
		}
	}
	return Release{}, false
}

// Exposed reports whether a risk of a release applies: Yes, No, or Unknown.
func (c *Catalog) Exposed(version, risk string) string {
	release, _ := c.Version(version)
	for _, known := range release.Risks {
		if known.Name == risk {
			return cmp.Or(known.Applies, Yes)
		}
	}
	return Unknown
}

// sorted returns the releases from the lowest version to the highest.
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

// canUpdate reports whether there is an update from one release to the other.
func canUpdate(from, to Release) bool {
	if len(to.From) > 0 {
		return slices.Contains(to.From, from.Version)
	}
	a, b := semver.MustParse(from.Version), semver.MustParse(to.Version)
	return a.LT(b) && a.Major == b.Major && b.Minor-a.Minor <= 1
}
