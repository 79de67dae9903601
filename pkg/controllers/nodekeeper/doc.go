// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodekeeper keeps the drains of an upgrade moving. On nodes that the machine config
// operator drains, and on extra nodes that are being removed, it forces the pods whose time is over,
// and publishes an Event about each pod that it forces or cannot force.
//
// It knows upgrades through Sources, and never cordons, drains, or uncordons a node. It reads pods
// only once the time of a pod may be over, and only their metadata if the node is ready. Package
// checks decides what holds a pod and when it is forced, also for the messages of upgrades.
package nodekeeper
