// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spoke simulates managed clusters: the work agent of Open Cluster Management that applies
// ManifestWorks, and the objects that it applies. What the cluster does with its objects is a script of
// the test: it accepts a release, it completes it, a Job fails.
//
// It is for tests and for the dev cluster only.
package spoke
