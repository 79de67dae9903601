// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakealertmanager simulates the silences of Alertmanager with an injected clock. It
// behaves like Alertmanager 0.31: an active silence can be extended; a silence that cannot be
// changed is expired and replaced; and expired silences remain in the list.
//
// It does not support alerts.
package fakealertmanager
