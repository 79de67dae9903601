// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alertmanager is a client of the silences in Alertmanager's API v2. It
// has types of its own, since the official client brings some hundred packages
// for what are three requests. What an answer says is checked: one that cannot
// be understood in full is an error.
//
// It does not know what silences are made for.
package alertmanager
