// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package migrate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each spelling of the other controller, one per manifest, is either valid as it is or converted.
func TestSpellings(t *testing.T) {
	t.Parallel()
	const pools = "upgradeTimeout: 10h\nmachineConfigPools:\n- "
	const window = "spec: {start: '2027-12-20T00:00:00Z', end: '2028-01-03T00:00:00Z', configSelector: {}}\n"
	const job = "spec:\n  startAfter: '2027-03-02T21:00:00Z'\n  startBefore: '2027-03-02T22:00:00Z'\n"
	const (
		applies   = true
		converted = false
	)
	for name, tc := range map[string]struct {
		in     string
		as     bool
		output string // substring of the conversion's output; empty if nothing is left
	}{
		"matchLabels as labels":             {configManifest(pools + "matchLabels: {name: night}\n  delayUpgrade: {delayMin: 1h, delayMax: 2h}"), applies, "name: night"},
		"matchLabels as a label selector":   {configManifest(pools + "matchLabels: {matchLabels: {name: night}}\n  delayUpgrade: {delayMin: 1h, delayMax: 2h}"), applies, "name: night"},
		"matchLabels as expressions":        {configManifest(pools + "matchLabels: {matchExpressions: [{key: a, operator: Exists}]}\n  delayUpgrade: {delayMin: 1h, delayMax: 2h}"), applies, "operator: Exists"},
		"matchLabels of a job":              {manifest("UpgradeJob", job+"  config:\n    machineConfigPools:\n    - {matchLabels: {matchLabels: {name: night}}, delayUpgrade: {delayMin: 1h, delayMax: 2h}}\n"), applies, "name: night"},
		"pools paused on failure":           {configManifest("pauseMachineConfigPoolsOnFailure: {matchLabels: {matchLabels: {name: night}}}"), applies, "name: night"},
		"delayMin and delayMax":             {configManifest(pools + "matchLabels: {name: night}\n  delayUpgrade: {delayMin: 1h, delayMax: 2h}"), applies, "delayMax"},
		"startAfter and startBefore":        {configManifest(pools + "matchLabels: {name: night}\n  delayUpgrade: {startAfter: 1h, startBefore: 2h}"), applies, "startBefore: 2h"},
		"delayMin alone":                    {configManifest(pools + "matchLabels: {name: night}\n  delayUpgrade: {delayMin: 1h}"), converted, "delayMax: 10h"},
		"maxSchedulingDelay":                {manifest("UpgradeConfig", "spec:\n  schedule: {cron: '0 22 * * 2'}\n  maxSchedulingDelay: 2h\n  jobTemplate: {spec: {config: {}}}\n"), converted, "cron"},
		"duration with zeros":               {manifest("UpgradeConfig", "spec:\n  schedule: {cron: '0 22 * * 2'}\n  pinVersionWindow: 4h0m0s\n  jobTemplate: {spec: {config: {}}}\n"), applies, "pinVersionWindow: 4h"},
		"duration in fractions":             {manifest("UpgradeConfig", "spec:\n  schedule: {cron: '0 22 * * 2'}\n  pinVersionWindow: 1.5h\n  jobTemplate: {spec: {config: {}}}\n"), converted, "pinVersionWindow: 1h30m"},
		"location Local":                    {manifest("UpgradeConfig", "spec:\n  schedule: {cron: '0 22 * * 2', location: Local}\n  jobTemplate: {spec: {config: {}}}\n"), converted, "location: UTC"},
		"skipDegradedOperatorsCheck":        {configManifest("preUpgradeHealthChecks: {skipDegradedOperatorsCheck: true}"), converted, "checkDegradedOperators: false"},
		"pauseMachineConfigPoolsOnFailure":  {configManifest("pauseMachineConfigPoolsOnFailure: {enabled: true, selector: {matchLabels: {name: night}}}"), converted, "name: night"},
		"force and an empty image":          {manifest("UpgradeJob", job+"  desiredVersion: {version: 4.20.6, image: '', force: false}\n"), converted, "version: 4.20.6"},
		"hook with creationTimestamp: null": {manifest("UpgradeJobHook", "spec:\n  events: [Create]\n  selector: {}\n  template:\n    metadata: {creationTimestamp: null}\n    spec: {template: {spec: {containers: [{name: a, image: b}]}}}\n"), converted, "events"},
		"window with an empty reason":       {manifest("UpgradeSuspensionWindow", strings.Replace(window, "configSelector", "reason: '', configSelector", 1)), converted, "configSelector: {}"},
		"window with its matches":           {manifest("UpgradeSuspensionWindow", window+"status: {matchingConfigs: [{name: c}]}\n"), converted, "configSelector: {}"},
		"overlays":                          {manifest("ClusterVersion", "spec: {template: {spec: {channel: stable-4.20}}, overlays: [{from: '2027-03-02T21:00:00Z', overlay: {spec: {channel: stable-4.21}}}]}\n"), applies, "stable-4.21"},
		"NodeForceDrain":                    {manifest("NodeForceDrain", "spec: {nodeDrainGracePeriod: 90m}\n"), converted, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := tryAdmission(t, tc.in); (err == nil) != tc.as {
				t.Errorf("accepted as it is: %t, want %t; %v", err == nil, tc.as, err)
			}
			folder := t.TempDir()
			if err := os.WriteFile(filepath.Join(folder, "object.yaml"), []byte(tc.in), 0o600); err != nil {
				t.Fatal(err)
			}
			got := run(t, "migrate-maintenance", "-f", folder)
			if got.Code != 0 || !strings.Contains(got.Out, tc.output) || (tc.output == "") != (strings.TrimSpace(got.Out) == "") {
				t.Fatalf("exit code %d, without %q:\n%s\n%s", got.Code, tc.output, got.Out, got.ErrOut)
			}
			for document := range strings.SplitSeq(got.Out, "---\n") {
				if strings.TrimSpace(document) != "" {
					admit(t, document)
				}
			}
		})
	}
}
