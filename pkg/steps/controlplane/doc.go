// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane provides the steps that let the cluster version operator install a release
// on the control plane: set the channel, request the release, wait until it is accepted and
// installed, or withdraw the request.
//
// It knows the ClusterVersion. It does not know what a healthy cluster is, when an upgrade may
// start, or how long it may take, and it never forces an update.
//
// Stability: upgraders of other projects may use the steps. Their signatures may change in minor
// versions; the release notes announce that.
package controlplane
