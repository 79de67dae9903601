// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package silences plays the part of Alertmanager that keeps silences, with a
// clock that is given: so hours pass in milliseconds. It answers as Alertmanager
// 0.31 does: an active silence can be prolonged, one that cannot be changed is
// ended and replaced by another, and those that have ended stay in the list.
//
// It silences nothing: there are no alerts.
package fakealertmanager
