// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prometheus queries Prometheus, or Thanos in front of several instances, for critical
// alerts. Only a complete response that reports success is a result; everything else is an error.
//
// It does not decide which alerts count or how often to query. Each call sends one request.
package prometheus
