// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm approves upgrades that the Operator Lifecycle Manager (OLM) offers, and waits until they
// are installed. It concerns Subscriptions whose InstallPlans wait for an approval, and leaves alone
// namespaces in which OLM approves all InstallPlans.
//
// It writes spec.approved of InstallPlans, and a report to the Job that runs it. It keeps no record:
// another run continues from what the cluster reports.
package olm
