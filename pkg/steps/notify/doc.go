// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify has the steps that send notifications.
//
// It does not know what is sent or how: a Notifier delivers it. A receiver that is down never stalls
// an upgrade.
package notify
