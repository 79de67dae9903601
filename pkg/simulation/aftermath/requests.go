// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package aftermath

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Requests counts how often the operator has requested each version and has not withdrawn the request.
// It is not safe for concurrent use. The zero value has counted none.
type Requests struct {
	made map[string]int // by version
	gone map[string]int // attempts of upgrades that were deleted, by version
}

// Request counts one request of a version.
func (r *Requests) Request(version string) {
	if r.made == nil {
		r.made = map[string]int{}
	}
	r.made[version]++
}

// Withdraw takes back one request of a version, which may be made again then.
func (r *Requests) Withdraw(version string) {
	if r.made[version] > 0 {
		r.made[version]--
	}
}

// Delete notes that an upgrade was deleted, as it was last.
func (r *Requests) Delete(upgrade *Upgrade) {
	if r.gone == nil {
		r.gone = map[string]int{}
	}
	for version, n := range upgrade.attempts() {
		r.gone[version] += n
	}
}

// Observe counts what a stored change shows: before is nil for an object that did not exist, after for an object that
// no longer does; byOperator says whether the operator has stored it.
func (r *Requests) Observe(before, after client.Object, byOperator bool) {
	if after == nil {
		if upgrade := Of(before); upgrade != nil {
			r.Delete(upgrade)
		}
		return
	}
	version, isVersion := after.(*configv1.ClusterVersion)
	former, existed := before.(*configv1.ClusterVersion)
	if !byOperator || !isVersion || !existed {
		return
	}
	switch now, was := version.Spec.DesiredUpdate, former.Spec.DesiredUpdate; {
	case now == nil && was != nil:
		r.Withdraw(was.Version)
	case now != nil && (was == nil || was.Version != now.Version || was.Image != now.Image):
		r.Request(now.Version)
	}
}

// attempts returns the number of attempts by version.
func (u *Upgrade) attempts() map[string]int {
	last := map[string]int{}
	for _, record := range u.History {
		last[record.Version] = max(last[record.Version], int(record.Attempt))
	}
	return last
}

// check returns an error that names the versions that were requested more often than there were
// attempts to upgrade to them.
func (r *Requests) check(upgrades []Upgrade) error {
	attempts := maps.Clone(r.gone)
	if attempts == nil {
		attempts = map[string]int{}
	}
	for i := range upgrades {
		for version, n := range upgrades[i].attempts() {
			attempts[version] += n
		}
	}
	var errs []error
	for _, version := range slices.Sorted(maps.Keys(r.made)) {
		if n := r.made[version]; n > attempts[version] {
			errs = append(errs, fmt.Errorf("desiredUpdate was set to %s %d times in %d attempts", version, n, attempts[version]))
		}
	}
	return errors.Join(errs...)
}
