// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openshiftsim describes simulated clusters. Its subpackages simulate the parts of OpenShift and of Open Cluster
// Management that an upgrade meets: the cluster version operator, the machine config operator, the machine API, kubelets,
// the update graph, Operator Lifecycle Manager, and the agents of managed clusters.
//
// Package simulation runs them in virtual time, on a store of its own, and package devcluster in real time, on a real API
// server. They import neither of the two.
package openshiftsim
