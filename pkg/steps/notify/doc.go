// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package notify has the step that tells people something and goes on.
//
// It knows neither what is told nor how: whoever delivers it is given as a
// Notifier. It promises one thing: a receiver that is down never stalls an
// upgrade.
package notify
