// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package screen

import (
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// maxLine limits the length of a text from the cluster, in bytes.
const maxLine = 2048

// Date formats a time for screens.
func Date(at time.Time) string { return at.UTC().Format("2006-01-02 15:04") + " UTC" }

// Elapsed formats the time between two times. If the clocks differ and it is negative, it counts as 0s.
func Elapsed(from, to time.Time) string { return duration.HumanDuration(max(to.Sub(from), 0)) }

// Clean sanitizes a text from the cluster.
func Clean(value string) string { return text.Sanitize(value, maxLine) }

// OrDefault returns the value, or the fallback if it is empty.
func OrDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
