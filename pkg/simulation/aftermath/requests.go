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

// Requests counts how often the operator requested each version without withdrawing the request. It
// is not safe for concurrent use. The zero value is ready to use.
type Requests struct {
	made map[string]int // by version
	gone map[string]int // attempts of deleted upgrades, by version
}

// Request counts a request of a version.
func (r *Requests) Request(version string) {
	if r.made == nil {
		r.made = map[string]int{}
	}
	r.made[version]++
}

// Withdraw undoes one request of a version. The version may then be requested again.
func (r *Requests) Withdraw(version string) {
	if r.made[version] > 0 {
		r.made[version]--
	}
}

// Delete records the deletion of an upgrade in its last state.
func (r *Requests) Delete(upgrade *Upgrade) {
	if r.gone == nil {
		r.gone = map[string]int{}
	}
	for version, n := range upgrade.attempts() {
		r.gone[version] += n
	}
}

// Observe counts the requests in a stored change. before is nil for a creation, and after is nil
// for a deletion. byOperator states whether the operator made the change.
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

// check returns an error that lists versions that were requested more often than there were
// attempts.
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
