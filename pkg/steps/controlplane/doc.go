// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package controlplane has the steps that lead the cluster version operator,
// and with it the control plane, to a release: pin it, ask for it, see it
// accepted and installed, or withdraw it.
//
// It knows the ClusterVersion, and of the nodes only whether they are still at
// it. It does not know what a healthy cluster is, when an upgrade may begin or
// how long it may take, and it never forces an update.
package controlplane
