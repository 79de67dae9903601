// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify provides the steps that send notifications.
//
// It does not know their content or how they are sent: a Notifier delivers them. A receiver that is
// down never stalls an upgrade.
package notify
