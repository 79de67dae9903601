// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spoke simulates managed clusters: the work agent of Open Cluster Management that applies
// ManifestWorks, and the objects that it applies. A script of the test decides what the cluster does
// with its objects: it accepts a release, completes it, or a Job fails.
//
// It is for tests and for the dev cluster only.
package spoke
