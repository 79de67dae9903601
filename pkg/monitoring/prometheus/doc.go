// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package monitoring asks a Prometheus, or a Thanos in front of several, which
// critical alerts are firing. It takes nothing for an answer but one that is
// whole and says so: all else is an error.
//
// It does not know what an alert means for an upgrade, nor how often it is good
// to ask: each call is one request.
package prometheus
