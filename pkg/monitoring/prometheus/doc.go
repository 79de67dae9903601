// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus queries a Prometheus, or a Thanos in front of several, for critical alerts.
// Only a whole response that reports success is a result: everything else is an error.
//
// It does not decide which alerts count or how often to query: each call is one request.
package prometheus
