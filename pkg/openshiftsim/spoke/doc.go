// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package spoke simulates managed clusters: the work agent of Open Cluster Management, which
// applies ManifestWorks, and the applied objects. The test's script determines what happens to the
// objects: for example, the cluster accepts or completes a release, or a Job fails.
//
// It is only for tests and the dev cluster.
package spoke
