// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package updategraph plays the update service of OpenShift (Cincinnati): which releases exist, in which channels they
// are, and which updates lead from one to another, with the risks that are known of them.
//
// It knows nothing of clusters: whether a risk applies to one is asked of the catalogue by the player who has one.
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
	// Channels are those that offer the release, such as stable-4.20. The release that a cluster starts from is in the
	// cluster's channel without saying so.
	Channels []string `json:"channels,omitempty"`
	// From are the versions that can be updated to this one. Empty means each lower version of the same minor version
	// and of the one before it.
	From []string `json:"from,omitempty"`
	// Risks make the update to this release a conditional one.
	Risks []Risk `json:"risks,omitempty"`
	// Refused is why the release cannot be loaded, such as a manifest that nobody has. Empty means that it can.
	Refused string `json:"refused,omitempty"`
	// Unsigned releases are refused because nobody signed them.
	Unsigned bool `json:"unsigned,omitempty"`
}

// Risk is something known to go wrong in an update.
type Risk struct {
	Name    string `json:"name"`
	Message string `json:"message"`
	URL     string `json:"url"`
	// Applies says whether the cluster is exposed to the risk: "yes", "no" or "unknown". Empty means "yes".
	Applies string `json:"applies,omitempty"`
	// PromQL is what the real cluster version operator asks Prometheus, which answers 1 if the cluster is exposed and 0 if
	// it is not. By default it asks for what Applies says. The played one goes by Applies alone.
	PromQL string `json:"promQL,omitempty"`
}

// Answers to whether a risk applies.
const (
	Yes     = "yes"
	No      = "no"
	Unknown = "unknown"
)

// Image returns the pull spec of the release, by digest. It depends on the version alone.
func (r Release) Image() string { return repository + "@" + r.Digest() }

// Digest returns what the release is signed by.
func (r Release) Digest() string { return fmt.Sprintf("sha256:%x", sha256.Sum256([]byte(r.Version))) }

const repository = "quay.io/openshift-release-dev/ocp-release"

// URL returns the address of the release's errata.
func (r Release) URL() string { return "https://access.redhat.com/errata/RHBA-" + r.Version }

// Catalog is the set of releases that exist. It may be changed while it is being served.
type Catalog struct {
	mu       sync.RWMutex
	releases map[string]Release
}

// NewCatalog returns a catalogue of the releases.
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

// Exposed answers whether a risk of a release applies: Yes, No or Unknown.
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

// canUpdate says whether there is an update from one release to the other.
func canUpdate(from, to Release) bool {
	if len(to.From) > 0 {
		return slices.Contains(to.From, from.Version)
	}
	a, b := semver.MustParse(from.Version), semver.MustParse(to.Version)
	return a.LT(b) && a.Major == b.Major && b.Minor-a.Minor <= 1
}
