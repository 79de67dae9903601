// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alertmanager is a client of the silences in Alertmanager's API v2. It has its own types,
// since the official client brings some hundred packages for three requests. Responses are
// validated: one that is incomplete or invalid is an error.
//
// It does not know what silences are used for.
package alertmanager
