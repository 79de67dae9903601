// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakealertmanager simulates the silences of Alertmanager with an injected clock. It
// behaves like Alertmanager 0.31: an active silence can be prolonged; one that cannot be changed is
// expired and replaced by another one; expired ones stay in the list.
//
// It has no alerts.
package fakealertmanager
