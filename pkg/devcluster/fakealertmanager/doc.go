// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fakealertmanager simulates the part of Alertmanager that keeps silences, on an injected
// clock, so that hours pass in milliseconds. It answers as Alertmanager 0.31 does: an active silence
// can be prolonged, a silence that cannot be changed is expired and replaced, and expired silences
// stay in the list.
//
// It has no alerts, so it silences nothing.
package fakealertmanager
