// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package clusterstate reads OpenShift objects and converts them to plain facts: installed, current, and offered
// versions, and the state of operators, machine config pools, nodes, and PodDisruptionBudgets.
//
// It writes nothing and makes no decisions. It does not know steps, schedules, or the APIs of this project. Any field may
// be missing, and a missing field is a fact. Objects may be shared with a cache and are never modified.
package clusterstate
