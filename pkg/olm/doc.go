// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package olm approves upgrades that the Operator Lifecycle Manager (OLM) offers, and waits until they
// are installed. It concerns Subscriptions whose InstallPlans are approved manually.
//
// It writes nothing but spec.approved of InstallPlans. It keeps no record: another run continues from
// what the cluster reports.
package olm
