// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"math/rand/v2"
	"reflect"
	"strings"

	workv1 "open-cluster-management.io/api/work/v1"

	works "github.com/managed-upgrade/managed-upgrade-operator/pkg/fleet/run/delivery"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/spoke"
)

// leftovers are values of spec.desiredUpdate that other clients have left on clusters. The agent merges a request into
// them, as server-side apply does.
var leftovers = []map[string]any{
	nil, // it was never updated
	{"version": installed, "image": spoke.Image(installed), "force": false},
	{"version": installed, "image": spoke.Image(installed), "force": true},
	{"version": installed, "image": ""},
	{"image": spoke.Image(installed), "force": true},
	{"version": installed, "architecture": "Multi", "image": "", "force": false},
	{"version": installed, "image": spoke.Image(installed), "acceptRisks": []any{map[string]any{"name": "SlowDisks"}}},
	{"version": installed, "image": spoke.Image(installed), "mode": "Preflight"},
}

// inherit gives a cluster what an earlier update has left. While it checks releases instead of installing them, its
// upgrade may fail.
func (m *member) inherit(random *rand.Rand) {
	left := leftovers[random.IntN(len(leftovers))]
	m.spoke.SetDesiredUpdate(left)
	m.acceptRisks, m.troubled = left["acceptRisks"], left["mode"] != nil
}

// endPreflight makes an administrator end the preflight of a cluster.
func (m *member) endPreflight() {
	if m.spoke.Version() == nil {
		return
	}
	if desired := m.spoke.DesiredUpdate(); desired["mode"] != nil {
		delete(desired, "mode")
		m.spoke.SetDesiredUpdate(desired)
	}
}

// whole checks that the agent never requests a release together with a leftover of an earlier update: an image, force, an
// architecture, or a mode. Risks that an administrator has accepted stay.
func (c *fleetChecker) whole(m *member, work *workv1.ManifestWork) {
	if _, form, _ := strings.Cut(work.Annotations[works.Annotation], "/"); works.Form(form) != works.FormApply || work.Name != works.UpgradeName(m.name) {
		return
	}
	if m.spoke.Version() == nil {
		return // the checker reports it
	}
	got := m.spoke.DesiredUpdate()
	want := map[string]any{"version": got["version"], "image": "", "force": false, "architecture": ""}
	if m.acceptRisks != nil {
		want["acceptRisks"] = m.acceptRisks
	}
	if !reflect.DeepEqual(want, got) {
		c.f.violate("leftover: a release is requested from %s with what an earlier update has left: %v", m.name, got)
	}
}
