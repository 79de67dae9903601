// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package virtual_test

import (
	"strings"
	"testing"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/scenario"
)

// remedyRow is a message of an upgrade that recommends an action, and that action.
type remedyRow struct {
	// story creates the problem.
	story string
	// kind and name identify the object with the message. It contains the reason and the advice.
	kind, reason, advice string
	// do are the recommended actions.
	do string
	// then must hold for the object within 30 seconds.
	then string
}

const (
	oneJob = `
upgradeConfigs: []
maintenance:
  - kind: UpgradeJob
    metadata: {name: tonight}
    spec:
      startAfter: "${nowSTART}"
      startBefore: "${nowEND}"
      desiredVersion:
        version: 4.20.6
        image: quay.io/openshift-release-dev/ocp-release@sha256:f9057290dffdd2b8baf3b456eed8526b09d30c155951523bc728cef7f178fd4b
      config:
        preUpgradeHealthChecks: {checkCriticalAlerts: false}
        postUpgradeHealthChecks: {checkCriticalAlerts: false}
`
	delayed = `        machineConfigPools:
          - matchLabels: {pools.operator.machineconfiguration.openshift.io/night: ""}
            delayUpgrade: {delayMin: 1m, delayMax: 10h}
`
	nightPool  = "cluster: {pools: [{name: night, nodes: 3}]}\n"
	holdRule   = `  - {name: hold, for: {kind: WHEN}, when: 'CONDITION', do: [{patch: {for: {kind: ClusterVersion, name: version, apiVersion: config.openshift.io/v1}, with: {metadata: {annotations: {upgrade.managed.openshift.io/hold: "the shop is busy"}}}}}]}` + "\n"
	unhold     = `[{patch: {for: {kind: ClusterVersion, name: version, apiVersion: config.openshift.io/v1}, with: {metadata: {annotations: {upgrade.managed.openshift.io/hold: null}}}}}]`
	unpause    = `[{patch: {for: {kind: MachineConfigPool, name: night}, with: {spec: {paused: false}}}}]`
	inProgress = `object.status.history[0].phase in ["Pending", "Upgrading"]`
)

func job(start, end string) string {
	return strings.NewReplacer("START", start, "END", end).Replace(oneJob)
}

func hold(kind, when string) string {
	return strings.NewReplacer("WHEN", kind, "CONDITION", when).Replace(holdRule)
}

// remedyRows returns the remedies for UpgradeConfigs and UpgradeJobs, by the state in which they
// are recommended.
func remedyRows() map[string]remedyRow {
	const config, upgradeJob = "UpgradeConfig", "UpgradeJob"
	const missed, again = `upgradeConfigs: [{upgradeAt: "-3h"}]`, "to try again, set spec.upgradeAt to another time, or the annotation upgrade.managed.openshift.io/retry to another value"
	const held = "rules:\n"
	return map[string]remedyRow{
		"idle: the window was missed, retry by annotation": {
			missed, config, "WindowMissed", again, `[{patch: {with: {metadata: {annotations: {upgrade.managed.openshift.io/retry: again}}}}}]`, inProgress,
		},
		"idle: the window was missed, another time": {
			missed, config, "WindowMissed", again, `[{patch: {with: {spec: {upgradeAt: "${now+2s}"}}}}]`, inProgress,
		},
		"idle: the window was missed, retry by the command": {
			missed, config, "WindowMissed", again, `[{command: {run: oc update retry upgrade/example-upgrade-config -n managed-upgrade-operator -y}}]`, inProgress,
		},
		"idle: the upgrade is on hold before its time": {
			"upgradeConfigs: [{upgradeAt: +1m}]\n" + held + hold(config, "true"), config, "Held", "upgrade.managed.openshift.io/hold", unhold, inProgress,
		},
		"active: the upgrade is on hold at a step": {
			held + hold(config, "object.status.history[0].conditions.size() > 0"), config, "Paused", "upgrade.managed.openshift.io/hold", unhold,
			`object.status.conditions.exists(c, c.type == "Progressing" && c.reason != "Paused")`,
		},
		"idle: the job has expired": {
			job("-2h", "-1h"), upgradeJob, "Expired", "to try again, set the annotation managedupgrade.appuio.io/retry to another value",
			`[{patch: {with: {metadata: {annotations: {managedupgrade.appuio.io/retry: again}}}}}]`, inProgress,
		},
		"idle: the job has expired, retry by the command": {
			job("-2h", "-1h"), upgradeJob, "Expired", "to try again", `[{command: {run: oc update retry upgradejob/tonight -n managed-upgrade-operator -y}}]`, inProgress,
		},
		"active: the job is on hold at a step": {
			job("+1s", "+5h") + held + hold(upgradeJob, "object.status.history[0].conditions.size() > 0"), upgradeJob, "Held", "upgrade.managed.openshift.io/hold", unhold,
			`object.status.conditions.exists(c, c.type == "Progressing" && c.reason != "Held")`,
		},
		"idle: a pool that is to be delayed is paused": {
			nightPool + job("+1m", "+5h") + delayed + "rules:\n  - {name: pause, for: {kind: MachineConfigPool, name: night}, do: [{patch: {with: {spec: {paused: true}}}}]}\n",
			upgradeJob, "ClusterUnhealthy", "machine config pools paused: night", unpause, `object.status.history[0].conditions.all(c, c.reason != "ClusterUnhealthy")`,
		},
		"active: a pool that was delayed is paused again": {
			nightPool + job("+1s", "+5h") + delayed + `rules:
  - name: pause
    for: {kind: MachineConfigPool, name: night}
    when: object.spec.paused && object.metadata.annotations["managedupgrade.appuio.io/paused-by"] != ""
    do: [{until: {for: {kind: MachineConfigPool, name: night}, that: "!object.spec.paused"}}, {patch: {with: {spec: {paused: true}}}}]
`,
			upgradeJob, "PausedByUser", "set spec.paused of the MachineConfigPool to false", unpause, `object.status.history[0].conditions.all(c, c.reason != "PausedByUser")`,
		},
		"idle: another client has requested the release, which is refused": {
			"cluster: {releases: [{version: 4.20.6, channels: [stable-4.20], refused: no signature}]}\n" + job("+1m", "+5h") +
				"rules: [{name: request, for: {kind: ClusterVersion, name: version, apiVersion: config.openshift.io/v1}, do: [{patch: {with: {spec: {desiredUpdate: {version: 4.20.6}}}}}]}]",
			upgradeJob, "AnotherUpdateInProgress", `oc adm upgrade --clear`,
			`[{release: {version: 4.20.6, channels: [stable-4.20]}}, {patch: {for: {kind: ClusterVersion, name: version, apiVersion: config.openshift.io/v1}, with: {spec: {desiredUpdate: null}}}}]`,
			`object.status.conditions.exists(c, c.type == "Progressing" && c.reason != "AnotherUpdateInProgress")`,
		},
		"idle: a retry is requested before the end": {
			`upgradeConfigs: [{upgradeAt: +2h}]
rules: [{name: retry, for: {kind: UpgradeConfig}, do: [{patch: {with: {metadata: {annotations: {upgrade.managed.openshift.io/retry: again}}}}}]}]`,
			config, "", "to start it now, set the annotation upgrade.managed.openshift.io/run-now", `[{patch: {with: {metadata: {annotations: {upgrade.managed.openshift.io/run-now: now}}}}}]`, inProgress,
		},
	}
}

// TestRemedies_of_upgrades follows the advice in messages of UpgradeConfigs and UpgradeJobs before,
// during, and after an upgrade. Each action must take effect within 30 seconds, and the upgrade
// must succeed. No message may recommend something that would be rejected.
func TestRemedies_of_upgrades(t *testing.T) {
	t.Parallel()
	for name, row := range remedyRows() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			versions := map[string]string{"UpgradeConfig": "upgrade.managed.openshift.io/v1alpha1", "UpgradeJob": "managedupgrade.appuio.io/v1beta1"}
			target := `{apiVersion: ` + versions[row.kind] + `, kind: ` + row.kind + `}`
			advice := `[object.status.?conditions.orValue([]), object.status.?history[0].?conditions.orValue([])].exists(all, all.exists(c, c.reason == "` + row.reason + `" && c.message.contains("` + row.advice + `")))`
			if row.reason == "" {
				advice = `object.status.retry.message.contains("` + row.advice + `")`
			}
			expect := ""
			if row.kind == "UpgradeJob" {
				expect = ", upgradeJobs: [{name: tonight}]"
			}
			text := "name: story\ndescription: " + name[strings.Index(name, ": ")+2:] + "\n" + strings.TrimSpace(row.story) + "\nexpect: {within: 12h, clusterVersion: {version: 4.20.6}" + expect + "}\n"
			story, err := scenario.Decode("story.yaml", []byte(text))
			if err == nil {
				var remedy *scenario.Scenario
				remedy, err = scenario.Decode("story.yaml", []byte(`{name: story, description: remedy, rules: [{name: remedy, for: `+target+`, when: '`+advice+`', do: `+row.do+`}]}`))
				if err == nil {
					rule := remedy.Rules[0]
					check := scenario.Statement{For: *rule.For, That: row.then}
					rule.Do = append(rule.Do, scenario.Action{Wait: 30e9}, scenario.Action{Check: &check})
					story.Rules = append(story.Rules, rule)
				}
			}
			if err != nil {
				t.Fatal(err)
			}
			log, problems := runScenario(t, story)
			if !strings.Contains(log, "remedy") {
				problems = append(problems, "nothing was advised")
			}
			if len(problems) > 0 {
				t.Errorf("not as expected:\n- %s\n%s", strings.Join(problems, "\n- "), log)
			}
		})
	}
}
