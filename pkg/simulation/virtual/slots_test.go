// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package virtual_test

import (
	"strings"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

// slotsStory has a schedule whose first start finds no update, whose second start is suspended, and
// whose next starts are missed because the operator is not running. After that, an UpgradeJob
// expires in its window.
const slotsStory = `
name: story
description: Starts of a schedule are skipped, suspended, and missed, and an upgrade is skipped.
cluster:
  releases: [{version: 4.20.5, channels: [stable-4.20]}]
upgradeConfigs: []
maintenance:
  - kind: UpgradeConfig
    metadata: {name: hourly}
    spec:
      schedule: {cron: "0 * * * *", location: UTC}
      maxUpgradeStartDelay: 10m
      jobTemplate: {spec: {config: {}}}
rules:
  - name: the next start is suspended
    for: {kind: UpgradeConfig, name: hourly, apiVersion: managedupgrade.appuio.io/v1beta1}
    when: object.status.lastSlot.result == "NoUpdate"
    do:
      - apply:
          kind: UpgradeSuspensionWindow
          apiVersion: managedupgrade.appuio.io/v1beta1
          metadata: {name: freeze, namespace: managed-upgrade-operator}
          spec: {start: "${now-1m}", end: "${now+90m}", reason: freeze, configSelector: {}}
  - name: the operator stops
    for: {kind: UpgradeConfig, name: hourly, apiVersion: managedupgrade.appuio.io/v1beta1}
    when: object.status.lastSlot.result == "Suspended"
    do:
      - operator: stop
      - wait: 3h
      - operator: start
  - name: an upgrade expires
    for: {kind: UpgradeConfig, name: hourly, apiVersion: managedupgrade.appuio.io/v1beta1}
    when: object.status.lastSlot.result == "Missed"
    do:
      - apply:
          kind: UpgradeJob
          apiVersion: managedupgrade.appuio.io/v1beta1
          metadata: {name: late, namespace: managed-upgrade-operator}
          spec: {startAfter: "${now-2h}", startBefore: "${now-1h}", desiredVersion: {version: 4.20.6}, config: {}}
expect:
  within: 7h
  notifications: [skipped]
  finally:
    - for: {kind: CloudEvent}
      that: object.type.endsWith(".skipped") && object.data.object.kind == "UpgradeJob" && object.data.object.name == "late" && object.data.severity == "Warning"
`

// TestSlots_reach_the_webhook skips and misses starts of a schedule. Users who only follow
// CloudEvents must learn of each.
func TestSlots_reach_the_webhook(t *testing.T) {
	t.Parallel()
	story, err := scenario.Decode("story.yaml", []byte(slotsStory))
	if err != nil {
		t.Fatal(err)
	}
	for reason, severity := range map[string]string{"SlotSkipped": "Normal", "SlotSuspended": "Normal", "SlotsMissed": "Warning"} {
		story.Expect.Finally = append(story.Expect.Finally, scenario.Statement{
			For: scenario.Object{Kind: scenario.KindCloudEvent},
			That: `object.type.endsWith(".notice") && object.data.object.kind == "UpgradeConfig" && object.data.object.name == "hourly" && ` +
				`object.data.reason == "` + reason + `" && object.data.severity == "` + severity + `" && object.data.message != ""`,
		})
	}
	if _, problems := runScenario(t, story); len(problems) > 0 {
		t.Errorf("%s\nNot as expected:\n- %s", story.Description, strings.Join(problems, "\n- "))
	}
}
