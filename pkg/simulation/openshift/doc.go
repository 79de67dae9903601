// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package openshift puts an OpenShift cluster into a simulation.World: the objects that an
// installer leaves behind, and the simulators of the dev cluster as programs on the virtual clock:
// cluster version operator, machine config operator, machine API, and kubelets. Alerts and
// Alertmanager are simulated in memory.
//
// It does not know the operator and no UpgradeConfig.
package openshift
