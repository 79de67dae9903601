// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package histories

import (
	"regexp"
	"slices"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
)

// cells locates the defects of failed seeds in the tables of the commit step: the recorded state,
// the observed state, the phase, and the obstacle. The defects not listed were elsewhere.
var cells = map[string]string{
	"the request of another client is requested again without a pause":                                  "NotRequested, Pending: Foreign, unhindered",
	"a failed upgrade that is deleted is said to go on":                                                 "Committed, Begun: Committed, cancelled",
	"a request is not withdrawn after its record was replaced":                                          "Requested, Pending: Ours, cancelled",
	"what another client requests is withdrawn":                                                         "NotRequested, Pending: Foreign, cancelled",
	"an upgrade starts before its window by a forged status":                                            "Early, None: Open, held",
	"the channel is not restored if an earlier attempt had commenced":                                   "NotRequested, None: Open, cancelled",
	"a request is not withdrawn after its record was replaced twice":                                    "Requested, Pending: Ours, cancelled",
	"an upgrade fails at the end of its window although another client has started its target":          "NotRequested, Begun: Committed, expired",
	"two leaders whose clocks differ overwrite each other's answer whether the window is open":          "NotRequested, None: Open, held",
	"two leaders whose clocks differ overwrite each other's end of the window of an upgrade that waits": "NotRequested, None: Open, expired",
	"the channel that another client has set while the upgrade was held is restored":                    "NotRequested, None: Open, held",
	"two leaders whose clocks differ request the version and withdraw it in turn":                       "Requested, None: Unsent, held",
	"an upgrade that goes on is deleted before its record replaces the one before":                      "Committed, Begun: Committed, cancelled",
	"an upgrade that goes on without its object is forgotten once another one acquires its lock":        "Committed, Begun: Committed, cancelled",
	"an UpgradeJob commences while the workers roll out the release before":                             "NotRequested, None: Open, unhindered",
}

// TestCellsOfFailedSeeds checks that each cell has the phase that it names and belongs to a failed
// seed.
func TestCellsOfFailedSeeds(t *testing.T) {
	t.Parallel()
	recorded := []string{"Early", "NotRequested", "Requested", "Committed"}
	observed := []string{"None", "Ignored", "Pending", "Refused", "Other", "Begun", "Done"}
	phases := []string{"Unknown", "Open", "Unsent", "Ours", "Foreign", "Lost", "Committed", "Superseded", "There"}
	form := regexp.MustCompile(`^(\w+), (\w+): (\w+), (unhindered|held|expired|cancelled)$`)
	for defect, cell := range cells {
		if !slices.ContainsFunc(slices.Concat(keptSeeds[UpgradeConfigs], keptSeeds[UpgradeJobs]), func(kept keptSeed) bool { return kept.defect == defect }) &&
			!slices.ContainsFunc(keptTests, func(kept keptTest) bool { return kept.defect == defect }) {
			t.Errorf("no seed has found %q", defect)
		}
		parts := form.FindStringSubmatch(cell)
		if parts == nil {
			t.Errorf("%s: no cell: %q", defect, cell)
			continue
		}
		r, o := slices.Index(recorded, parts[1]), slices.Index(observed, parts[2])
		if r < 0 || o < 0 {
			t.Errorf("%s: no cell: %q", defect, cell)
		} else if phase := engine.PhaseOf(engine.Recorded(r), engine.Observed(o), true, nil); phases[phase] != parts[3] {
			t.Errorf("%s: the phase of %q is %s", defect, cell, phases[phase])
		}
	}
}
