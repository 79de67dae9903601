// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package alertmanager is a client for silences in Alertmanager's API v2. It defines its own types,
// because the official client would add about a hundred packages for three requests. Responses are
// validated: an incomplete or invalid response is an error.
//
// It does not know what silences are used for.
package alertmanager
