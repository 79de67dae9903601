// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterstate

import "time"

// Alert is an alert of Prometheus that is firing or pending.
type Alert struct {
	Name      string
	Namespace string // empty means that it has none
	Severity  string
	// Firing reports that the alert fires; otherwise, its condition has not held long enough.
	Firing bool
	// Since is when its condition began to hold; zero means that this is unknown.
	Since time.Time
	// Labels and Annotations are all that the alert has.
	Labels, Annotations map[string]string
}
