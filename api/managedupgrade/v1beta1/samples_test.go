// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// The design prints these manifests in part; the samples contain them. Manifests that it prints
// whole are samples themselves.
func TestSamplesContainTheFragmentsOfTheDesign(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ file, fragment, path string }{
		"pinVersionWindow": {"upgradeconfig.yaml", `pinVersionWindow: "4h"`, "spec"},
		"schedule": {"upgradeconfig.yaml", `
schedule:
  cron: "0 22 * * 2" # 22:00 on Tuesdays
  isoWeek: "@odd"
  location: "Europe/Zurich"
  suspend: false
`, "spec"},
		"health checks": {"upgradeconfig.yaml", `
preUpgradeHealthChecks:
  timeout: "30m"
  checkCriticalAlerts: true
  checkDegradedOperators: true
  excludeAlerts:
  - alertname: "KubePodCrashLooping"
  excludeNamespaces:
  - openshift-console
  excludeOperators:
  - openshift-monitoring
  customQueries:
  - query: 'up{job=~"^argocd-.+$",namespace="syn"} != 1'
`, "spec.jobTemplate.spec.config"},
		"delayed pools": {"upgradeconfig-start-after.yaml", `
machineConfigPools:
- matchLabels:
    name: x-app-night-maintenance
  delayUpgrade:
    startAfter: "1h"
    startBefore: "2h"
`, "spec.jobTemplate.spec.config"},
		"schedule of the draft": {"upgradeconfig-start-after.yaml", `
schedule:
  cron: "0 22 * * 2" # 22:00 on Tuesdays
  isoWeek: "@odd" # every odd week of the year
  location: "Europe/Zurich" # time at this location
  suspend: false # whether to suspend timing new upgrades
`, "spec"},
		"health checks of the draft": {"upgradeconfig-start-after.yaml", `
preUpgradeHealthChecks:
  checkCriticalAlerts: true
  checkDegradedOperators: true
  excludeAlerts:
  - alertname: "KubePodCrashLooping"
  excludeNamespaces:
  - openshift-console
  excludeOperators:
  - openshift-monitoring
`, "spec.jobTemplate.spec.config"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, err := yaml.YAMLToJSON([]byte(tc.fragment))
			if err != nil {
				t.Fatal(err)
			}
			var fragment map[string]any
			if err := json.Unmarshal(data, &fragment); err != nil { // whole numbers are int64, as in the sample
				t.Fatal(err)
			}
			whole := map[string]any{}
			edit{tc.path, fragment}.apply(t, whole)
			contains(t, tc.file, sample(t, tc.file).Object, whole["spec"], "spec")
		})
	}
}

// contains reports each value of a part that the whole lacks.
func contains(t *testing.T, file string, whole map[string]any, part any, path string) {
	t.Helper()
	var compareParts func(path string, whole, part any)
	compareParts = func(path string, whole, part any) {
		switch part := part.(type) {
		case map[string]any:
			object, ok := whole.(map[string]any)
			if !ok {
				t.Errorf("%s: %s is %v, want %v", file, path, whole, part)
				return
			}
			for name, value := range part {
				compareParts(path+"."+name, object[name], value)
			}
		default:
			if fmt.Sprint(whole) != fmt.Sprint(part) {
				t.Errorf("%s: %s is %v, want %v", file, path, whole, part)
			}
		}
	}
	compareParts(path, whole[path], part)
}
