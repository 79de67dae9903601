// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package assessment

import (
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Limits of the API.
const (
	maxName      = 253
	maxRelease   = 128
	maxDetail    = 128
	maxText      = 1024
	maxSources   = 128
	maxSections  = 66
	maxParts     = 256
	maxSamples   = 256
	maxOperators = 128
	maxSeconds   = math.MaxInt32
)

// Kinds of the objects in causal chains.
const (
	kindBudget    = "PodDisruptionBudget"
	kindPod       = "Pod"
	kindNode      = "Node"
	kindPool      = "MachineConfigPool"
	kindOperator  = "ClusterOperator"
	kindVersion   = "ClusterVersion"
	mcpAPIVersion = "machineconfiguration.openshift.io/v1"
)

// maxListed is the maximum number of names in a clause.
const maxListed = 3

// clean sanitizes foreign text and limits it to one line.
func clean(s string) string { return bounded(s, maxText) }

// bounded returns foreign text as one line of at most maxBytes bytes, including the ellipsis.
func bounded(s string, maxBytes int) string {
	return text.Fit(text.Sanitize(s, maxBytes), maxBytes)
}

// minutes formats a duration rounded to minutes.
func minutes(d time.Duration) string { return duration.HumanDuration(d.Round(time.Minute)) }

// joinInOrder joins up to three names without sorting them.
func joinInOrder(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}

// joinClauses joins clauses into one line of limited length.
func joinClauses(clauses []string) string { return clean(strings.Join(clauses, "; ")) }

// upperFirst capitalizes a clause for the beginning of a sentence.
func upperFirst(s string) string {
	if s == "" || s[0] < 'a' || s[0] > 'z' {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// earlier returns the earlier of two times. Zero times are ignored.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
