// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterstate reads objects of OpenShift and turns them into plain facts: which version is
// installed, which one is being installed, which updates are offered, and the state of operators,
// machine config pools, nodes, and PodDisruptionBudgets.
//
// It writes nothing and decides nothing. It knows no step, no schedule, and no API of this project. Any field may be
// missing, and a missing field is a fact. Objects may be shared with a cache and are never changed.
package clusterstate
