// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package nodekeeper keeps the drains of an upgrade moving. On nodes that the machine config
// operator drains, and on extra nodes that are being removed, it forces pods off the node once
// their deadline has passed. It publishes an Event for each pod that it forces or cannot force.
//
// It learns about upgrades from its Sources and never cordons, drains, or uncordons a node. It
// reads pods only after a deadline may have passed, and only their metadata if the node is ready.
// Package clusterstate decides what holds a pod and when the pod is forced, also for the messages
// of upgrades.
package nodekeeper
