// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openshift adds an OpenShift cluster to a simulation.World: the objects that an installer
// creates, and the simulators of the dev cluster as programs in virtual time (cluster version
// operator, machine config operator, machine API, and kubelets). Alerts and Alertmanager are
// simulated in memory.
//
// It knows nothing about the operator or UpgradeConfigs.
package openshift
