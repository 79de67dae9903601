// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodekeeper keeps the drains of an upgrade moving: on nodes that the
// machine config operator drains, and on extra nodes that are being removed, it
// forces what is still there after its time, and tells of each pod that it forces
// and of each that it cannot.
//
// It does not know how far the upgrade is beyond its point of no return, and
// never cordons, drains or uncordons a node. Of a pod it knows the metadata
// alone, and it asks for that only once a pod's time may have come.
package nodekeeper
