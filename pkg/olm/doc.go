// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm approves upgrades offered by the Operator Lifecycle Manager (OLM) and waits until
// they are installed. It only handles Subscriptions whose InstallPlans need approval, and ignores
// namespaces where OLM approves all InstallPlans itself.
//
// It writes spec.approved of InstallPlans, and a report to the Job that runs it. It keeps no state:
// each run continues from the state of the cluster.
package olm
