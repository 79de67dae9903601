// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package checks

import (
	"context"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Check is one rule.
type Check struct {
	// Name identifies the check in options and metrics.
	Name string
	// Doc is one sentence about what the check finds.
	Doc string
	// Reads lists the kinds that the check reads through Input.Reader. They are cached and watched.
	Reads []client.Object
	// ReadsLive lists the kinds that the check reads through Input.Live. They are not cached.
	ReadsLive []client.Object
	// Find returns what is wrong. It may return findings together with an error, which means that not
	// everything could be checked.
	Find func(context.Context, Input) ([]Finding, error)
}

// Input is what a check works with.
type Input struct {
	// Reader reads the kinds that the check declares, from the cache unless a result is to be
	// confirmed.
	Reader client.Reader
	// Live reads from the API server. A check limits how often it does so, through Sources.
	Live client.Reader
	// Sources are shared by all upgrade objects.
	Sources *Sources
	Options Options
	// urgent reports that a gate waits for nothing that an earlier check has found.
	urgent bool
	// retry collects when alerts can be queried again.
	retry *retryTimer
}

// All returns the checks, in the order of the messages. Alerts are last: whether they are queried
// beyond their interval depends on what the others find.
func All() []Check {
	return []Check{
		versionCheck, operatorsCheck, poolsCheck, rolloutCheck, nodesCheck, pdbsCheck, queriesCheck, alertsCheck,
	}
}

// Reads returns the kinds that the checks read from the cache, each once.
func Reads() []client.Object {
	var kinds []client.Object
	for _, check := range All() {
		for _, kind := range check.Reads {
			if !slices.ContainsFunc(kinds, func(k client.Object) bool { return sameKind(k, kind) }) {
				kinds = append(kinds, kind)
			}
		}
	}
	return kinds
}

// The names of the checks that an upgrade object may select.
const (
	NameOperators = "operators"
	NamePools     = "pools"
	NameQueries   = "queries"
	NameAlerts    = "alerts"
)

// Names returns the names of the checks.
func Names() []string {
	var names []string
	for _, check := range All() {
		names = append(names, check.Name)
	}
	return names
}

// enabled returns the checks that the options select.
func enabled(o Options) []Check {
	return slices.DeleteFunc(All(), func(c Check) bool {
		return len(o.Checks) > 0 && !slices.Contains(o.Checks, c.Name) || slices.Contains(o.SkipChecks, c.Name)
	})
}

// newFinding returns an error-level finding about one object of the control plane.
func newFinding(reason, summary string, resources ...Resource) Finding {
	return Finding{
		Scope: ScopeControlPlane, Resources: resources, Level: LevelError, Type: TypeUpdateStalled, Reason: reason, Summary: summary,
	}
}
