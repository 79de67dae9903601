// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster reads the objects in which OpenShift describes itself and
// turns them into plain facts: which version is installed and which is on its
// way, what is offered, which operators, pools and nodes are in trouble.
//
// It writes nothing and decides nothing. It knows no step, no schedule and no
// object of ours, and trusts no field to be there: what is missing is a fact
// too. What it reads may be shared with a cache, so it never changes it.
package clusterstate
