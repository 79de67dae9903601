// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openshiftsim describes simulated clusters. Its subpackages simulate the parts of
// OpenShift and Open Cluster Management that matter to upgrades: the cluster version operator, the
// machine config operator, the machine API, kubelets, the update graph, Operator Lifecycle Manager,
// and the agents of managed clusters.
//
// Package simulation runs them in virtual time with its own object store, and package devcluster
// runs them in real time with a real API server. The simulators import neither of these packages.
package openshiftsim
