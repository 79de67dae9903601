// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"maps"
	"strings"
)

// cases returns the cases of each kind by their names.
func cases() map[string]map[string]testCase {
	upgrades := selectionCases()
	for _, table := range []map[string]testCase{releaseCases(), operatorCases(), strategyCases(), actionCases(), additionCases()} {
		maps.Copy(upgrades, table)
	}
	return map[string]map[string]testCase{"ManagedClustersUpgrade": upgrades, "ClusterUpgradeRun": runCases()}
}

func selectionCases() map[string]testCase {
	const selector = "spec.clusterSelector"
	expression := func(operator string, values ...any) []any {
		e := map[string]any{"key": "region", "operator": operator}
		if values != nil {
			e["values"] = values
		}
		return []any{e}
	}
	return map[string]testCase{
		"sample":                          {},
		"placement only":                  {edits: []edit{{selector, nil}}},
		"selector only":                   {edits: []edit{{"spec.placement", nil}}},
		"selector only, no placements":    {edits: []edit{{"spec.placement", []any{}}}},
		"neither":                         {edits: []edit{{selector, nil}, {"spec.placement", nil}}, want: []string{"spec: " + noSelection}},
		"neither, empty list":             {edits: []edit{{selector, nil}, {"spec.placement", []any{}}}, want: []string{"spec: " + noSelection}},
		"all bound clusters":              {edits: []edit{{selector, map[string]any{}}, {"spec.placement", nil}}},
		"16 placements":                   {edits: []edit{{"spec.placement", many(16, func(i int) any { return map[string]any{"name": fmt.Sprint("p", i)} })}}},
		"17 placements":                   {edits: []edit{{"spec.placement", many(17, func(i int) any { return map[string]any{"name": fmt.Sprint("p", i)} })}}, want: []string{"spec.placement: must have at most 16 items"}},
		"placement of the same namespace": {edits: []edit{{"spec.placement", named("dev")}}},
		"placement, empty namespace":      {edits: []edit{{"spec.placement.0.namespace", ""}}},
		"placement without a name":        {edits: []edit{{"spec.placement.0.name", nil}}, want: []string{"spec.placement[0].name: Required value"}},
		"placement, empty name":           {edits: []edit{{"spec.placement.0.name", ""}}, want: []string{"spec.placement[0].name: should be at least 1 chars long"}},
		"placement, long name":            {edits: []edit{{"spec.placement.0.name", strings.Repeat("a", 253)}, {"spec.placement.0.namespace", strings.Repeat("b", 63)}}},
		"placement, too long names": {
			edits: []edit{{"spec.placement.0.name", strings.Repeat("a", 254)}, {"spec.placement.0.namespace", strings.Repeat("b", 64)}},
			want:  []string{"spec.placement[0].name: may not be more than 253 bytes", "spec.placement[0].namespace: may not be more than 63 bytes"},
		},
		"labels":               {edits: []edit{{selector + ".matchLabels", map[string]any{"region": "eu"}}}},
		"empty cluster set":    {edits: []edit{{selector + ".clusterSets", []any{""}}}, want: []string{"spec.clusterSelector.clusterSets[0]: should be at least 1 chars long"}},
		"cluster set twice":    {edits: []edit{{selector + ".clusterSets", []any{"a", "a"}}}, want: []string{`spec.clusterSelector.clusterSets[1]: Duplicate value: "a"`}},
		"values":               {edits: []edit{{selector + ".matchExpressions", expression("NotIn", "eu")}}},
		"no values":            {edits: []edit{{selector + ".matchExpressions", expression("In")}}, want: []string{"spec.clusterSelector: " + invalidSelector}},
		"empty values":         {edits: []edit{{selector + ".matchExpressions", []any{map[string]any{"key": "region", "operator": "In", "values": []any{}}}}}, want: []string{"spec.clusterSelector: " + invalidSelector}},
		"exists":               {edits: []edit{{selector + ".matchExpressions", expression("Exists")}}},
		"exists with values":   {edits: []edit{{selector + ".matchExpressions", expression("DoesNotExist", "eu")}}, want: []string{"spec.clusterSelector: " + invalidSelector}},
		"unknown operator":     {edits: []edit{{selector + ".matchExpressions", expression("Gt", "1")}}, want: []string{"spec.clusterSelector: " + invalidSelector}},
		"17 expressions":       {edits: []edit{{selector + ".matchExpressions", many(17, func(int) any { return expression("Exists")[0] })}}, want: []string{"spec.clusterSelector.matchExpressions: must have at most 16 items"}},
		"unknown field":        {edits: []edit{{"spec.clusterSelecter", map[string]any{}}}, want: []string{`strict decoding error: unknown field "spec.clusterSelecter"`}},
		"unknown nested field": {edits: []edit{{"spec.upgradeStrategy.maxConcurency", int64(1)}}, want: []string{`strict decoding error: unknown field "spec.upgradeStrategy.maxConcurency"`}},
		"placement is a name":  {edits: []edit{{"spec.placement", "dev"}}, want: []string{"spec.placement: must be of type array"}},
		"long object name":     {edits: []edit{{"metadata.name", strings.Repeat("m", 63)}}},
	}
}

func releaseCases() map[string]testCase {
	const release = "spec.clusterVersion"
	digest := "quay.io/openshift-release-dev/ocp-release@sha256:" + strings.Repeat("0a", 32)
	return map[string]testCase{
		"no release":               {edits: []edit{{release, nil}}},
		"operators only":           {edits: []edit{{release, nil}, {"spec.preUpgradeAction", nil}, {"spec.postUpgradeAction", nil}}},
		"pre-upgrade action only":  {edits: []edit{{release, nil}, {"spec.ocpOperators", nil}, {"spec.postUpgradeAction", nil}}},
		"post-upgrade action only": {edits: []edit{{release, nil}, {"spec.ocpOperators", nil}, {"spec.preUpgradeAction", nil}}},
		"release only":             {edits: []edit{{"spec.ocpOperators", nil}, {"spec.preUpgradeAction", nil}, {"spec.postUpgradeAction", nil}}},
		"nothing to upgrade":       {edits: []edit{{release, nil}, {"spec.ocpOperators", nil}, {"spec.preUpgradeAction", nil}, {"spec.postUpgradeAction", nil}}, want: []string{"spec: " + nothingToDo}},
		"version only":             {edits: []edit{{release, map[string]any{"version": "4.20.6"}}}},
		"image only":               {edits: []edit{{release, map[string]any{"image": digest}}}},
		"image, empty version":     {edits: []edit{{release, map[string]any{"image": digest, "version": ""}}}},
		"channel only":             {edits: []edit{{release, map[string]any{"channel": "stable-4.20"}}}, want: []string{"spec.clusterVersion: " + versionOrImage}},
		"empty strings":            {edits: []edit{{release + ".version", ""}}, want: []string{"spec.clusterVersion: " + versionOrImage}},
		"prerelease":               {edits: []edit{{release + ".version", "4.20.0-rc.1+build.5"}}},
		"version with v":           {edits: []edit{{release + ".version", "v4.20.6"}}, want: []string{"spec.clusterVersion.version: " + invalidVersion}},
		"minor version":            {edits: []edit{{release + ".version", "4.20"}}, want: []string{"spec.clusterVersion.version: " + invalidVersion}},
		"leading zero":             {edits: []edit{{release + ".version", "4.020.6"}}, want: []string{"spec.clusterVersion.version: " + invalidVersion}},
		"version as a number":      {edits: []edit{{release + ".version", 4.2}}, want: []string{"spec.clusterVersion.version: must be of type string"}},
		"long version":             {edits: []edit{{release + ".version", "4.20.6-" + strings.Repeat("a", 122)}}, want: []string{"spec.clusterVersion.version: may not be more than 128 bytes"}},
		"channel with a space":     {edits: []edit{{release + ".channel", "stable 4.20"}}, want: []string{"spec.clusterVersion.channel: " + invalidChannel}},
		"no channel":               {edits: []edit{{release + ".channel", ""}}},
		"upstream":                 {edits: []edit{{release + ".upstream", "https://graph.example.com/api"}}},
		"upstream without scheme":  {edits: []edit{{release + ".upstream", "graph.example.com"}}, want: []string{"spec.clusterVersion.upstream: " + invalidUpstream}},
		"image by digest":          {edits: []edit{{release + ".image", digest}}},
		"image by tag":             {edits: []edit{{release + ".image", "quay.io/openshift-release-dev/ocp-release:4.12.0-x86_64"}}, want: []string{"spec.clusterVersion.image: " + invalidImage}},
		"image, short digest":      {edits: []edit{{release + ".image", digest[:len(digest)-1]}}, want: []string{"spec.clusterVersion.image: " + invalidImage}},
	}
}

func operatorCases() map[string]testCase {
	const operators = "spec.ocpOperators"
	operator := func(name, home string) any { return map[string]any{"name": name, "namespace": home} }
	return map[string]testCase{
		"all operators":                       {edits: []edit{{operators + ".approveAllUpgrades", true}}},
		"no operators":                        {edits: []edit{{operators, map[string]any{}}}},
		"only excluded operators":             {edits: []edit{{operators, map[string]any{"approveAllUpgrades": true, "exclude": []any{operator("a", "b")}}}}},
		"operator in both":                    {edits: []edit{{operators + ".exclude", []any{operator("x", "openshift-operators"), operator("openshift-gitops-operator", "openshift-operators")}}}, want: []string{"spec.ocpOperators: " + inBoth}},
		"same name, other namespace":          {edits: []edit{{operators + ".exclude", []any{operator("openshift-gitops-operator", "gitops")}}}},
		"same namespace, other name":          {edits: []edit{{operators + ".exclude", []any{operator("other", "openshift-operators")}}}},
		"operator twice":                      {edits: []edit{{operators + ".include", []any{operator("a", "b"), operator("a", "b")}}}, want: []string{`spec.ocpOperators.include[1]: Duplicate value: {"name":"a","namespace":"b"}`}},
		"operator without a namespace":        {edits: []edit{{operators + ".include", named("a")}}, want: []string{"spec.ocpOperators.include[0].namespace: Required value"}},
		"operator, empty name":                {edits: []edit{{operators + ".include", []any{operator("", "b")}}}, want: []string{"spec.ocpOperators.include[0].name: should be at least 1 chars long", "spec.ocpOperators.include[0].name: " + invalidOperator}},
		"operator, empty namespace":           {edits: []edit{{operators + ".exclude", []any{operator("a", "")}}}, want: []string{"spec.ocpOperators.exclude[0].namespace: should be at least 1 chars long", "spec.ocpOperators.exclude[0].namespace: " + invalidOperators}},
		"operator, list in the name":          {edits: []edit{{operators + ".include", []any{operator("a,b c", "b")}}}, want: []string{"spec.ocpOperators.include[0].name: " + invalidOperator}},
		"operator, list in namespace":         {edits: []edit{{operators + ".include", []any{operator("a", "b c,d")}}}, want: []string{"spec.ocpOperators.include[0].namespace: " + invalidOperators}},
		"excluded operator, list in the name": {edits: []edit{{operators + ".exclude", []any{operator("a,b c", "b")}}}, want: []string{"spec.ocpOperators.exclude[0].name: " + invalidOperator}},
		"excluded operator, namespace":        {edits: []edit{{operators + ".exclude", []any{operator("a", "b c,d")}}}, want: []string{"spec.ocpOperators.exclude[0].namespace: " + invalidOperators}},
		"100 operators in each":               {edits: []edit{{operators + ".include", many(100, func(i int) any { return operator(fmt.Sprint("i", i), "b") })}, {operators + ".exclude", many(100, func(i int) any { return operator(fmt.Sprint("e", i), "b") })}}},
		"101 operators":                       {edits: []edit{{operators + ".include", many(101, func(i int) any { return operator(fmt.Sprint("i", i), "b") })}}, want: []string{"spec.ocpOperators.include: must have at most 100 items"}},
		"approveAllUpgrades as printed":       {edits: []edit{{operators + ".approveAllUpgrades", "false/true"}}, want: []string{"spec.ocpOperators.approveAllUpgrades: must be of type boolean"}},
		"approveAllUpgrades and include":      {edits: []edit{{operators + ".approveAllUpgrades", true}, {operators + ".exclude", nil}}},
	}
}

func strategyCases() map[string]testCase {
	const strategy = "spec.upgradeStrategy"
	table := map[string]testCase{
		"no strategy":         {edits: []edit{{strategy, nil}}},
		"empty strategy":      {edits: []edit{{strategy, map[string]any{}}}},
		"no canaries":         {edits: []edit{{strategy + ".canaryClusters", nil}}},
		"canaries, no labels": {edits: []edit{{strategy + ".canaryClusters.clusterSelector", map[string]any{}}}, want: []string{strategy + ".canaryClusters.clusterSelector: " + emptyCanaries}},
		"canaries, empty labels": {
			edits: []edit{{strategy + ".canaryClusters.clusterSelector", map[string]any{"matchLabels": map[string]any{}, "matchExpressions": []any{}}}},
			want:  []string{strategy + ".canaryClusters.clusterSelector: " + emptyCanaries},
		},
		"canaries by labels":    {edits: []edit{{strategy + ".canaryClusters.clusterSelector", map[string]any{"matchLabels": map[string]any{"canary": "true"}}}}},
		"canaries, no selector": {edits: []edit{{strategy + ".canaryClusters", map[string]any{}}}, want: []string{strategy + ".canaryClusters.clusterSelector: Required value"}},
		"canaries, operator": {
			edits: []edit{{strategy + ".canaryClusters.clusterSelector.matchExpressions.0.operator", "Near"}},
			want:  []string{strategy + ".canaryClusters.clusterSelector: " + invalidSelector},
		},
		"unknown rollout type": {edits: []edit{{strategy + ".rolloutType", "Random"}}, want: []string{strategy + `.rolloutType: supported values: "All", "Progressive", "ProgressivePerGroup"`}},
		"decision groups": {edits: []edit{{strategy + ".decisionStrategy", map[string]any{"groupStrategy": map[string]any{
			"clustersPerDecisionGroup": "10%",
			"decisionGroups":           []any{map[string]any{"groupName": "eu", "groupClusterSelector": map[string]any{"labelSelector": map[string]any{"matchLabels": map[string]any{"region": "eu"}}}}},
		}}}}},
		"decision groups without a limit": {
			edits: []edit{{strategy + ".decisionStrategy", map[string]any{"groupStrategy": map[string]any{"clustersPerDecisionGroup": int64(1_000_001)}}}},
			want:  []string{strategy + ".decisionStrategy: groupStrategy.clustersPerDecisionGroup must be a percentage, or a number up to 1000000"},
		},
		"decision groups by number": {edits: []edit{{strategy + ".decisionStrategy", map[string]any{"groupStrategy": map[string]any{"clustersPerDecisionGroup": int64(20)}}}}},
		"9 windows":                 {edits: []edit{{strategy + ".windows", many(9, func(int) any { return map[string]any{"cron": "0 22 * * 2", "duration": "4h"} })}}, want: []string{strategy + ".windows: must have at most 8 items"}},
		"window":                    {edits: []edit{{strategy + ".windows", []any{map[string]any{"cron": "0 22 * * TUE", "isoWeek": "@odd", "location": "Europe/Zurich", "duration": "4h30m"}}}}},
		"window without a duration": {
			edits: []edit{{strategy + ".windows", []any{map[string]any{"cron": "0 22 * * 2"}}}},
			want:  []string{strategy + ".windows[0].duration: Required value"},
		},
		"window, long duration": {
			edits: []edit{{strategy + ".windows", []any{map[string]any{"cron": "0 22 * * 2", "duration": "169h"}}}},
			want:  []string{strategy + ".windows[0].duration: " + durationRange},
		},
		"window, invalid duration": {
			edits: []edit{{strategy + ".windows", []any{map[string]any{"cron": "0 22 * * 2", "duration": "4"}}}},
			want:  []string{strategy + ".windows[0].duration: " + invalidDuration},
		},
		"window without a cron expression": {
			edits: []edit{{strategy + ".windows", []any{map[string]any{"duration": "4h"}}}},
			want:  []string{strategy + ".windows[0].cron: Required value"},
		},
	}
	for _, rolloutType := range []string{"All", "Progressive", "ProgressivePerGroup"} {
		table["rollout type "+rolloutType] = testCase{edits: []edit{{strategy + ".rolloutType", rolloutType}}}
	}
	number := func(field string, valid []any, invalid map[any][]string) {
		for _, value := range valid {
			table[fmt.Sprintf("%s %#v", field, value)] = testCase{edits: []edit{{strategy + "." + field, value}}}
		}
		for value, want := range invalid {
			table[fmt.Sprintf("%s %#v", field, value)] = testCase{edits: []edit{{strategy + "." + field, value}}, want: want}
		}
	}
	at := func(field, message string) []string { return []string{strategy + "." + field + ": " + message} }
	notScale := func(field, kind string) []string {
		return append(at(field, `must be of type integer: "`+kind), append(at(field, `must be of type integer,string: "`+kind), at(field, "must validate at least one schema (anyOf)")...)...)
	}
	notInteger := func(field string) []string {
		return append(notScale(field, "number"), "Checked value must be of type integer (default format) in "+strategy+"."+field)
	}
	number("maxConcurrency", []any{int64(1), int64(500), int64(1_000_000), "1%", "10%", "99%", "100%"}, map[any][]string{
		int64(0): at("maxConcurrency", concurrency), int64(-1): at("maxConcurrency", concurrency), int64(1_000_001): at("maxConcurrency", concurrency),
		int64(1) << 40: at("maxConcurrency", concurrency), "0%": at("maxConcurrency", concurrency), "101%": at("maxConcurrency", concurrency),
		"2": at("maxConcurrency", concurrency), "": at("maxConcurrency", concurrency), "10": at("maxConcurrency", concurrency), "all": at("maxConcurrency", concurrency),
		"-1%": at("maxConcurrency", concurrency), "010%": at("maxConcurrency", concurrency), "1.5%": at("maxConcurrency", concurrency),
		1.5: notInteger("maxConcurrency"), true: notScale("maxConcurrency", "boolean"),
	})
	number("maxFailures", []any{int64(0), int64(14), int64(1_000_000), "0%", "5%", "100%"}, map[any][]string{
		int64(-1): at("maxFailures", failures), int64(1_000_001): at("maxFailures", failures), "101%": at("maxFailures", failures),
		"5": at("maxFailures", failures), "": at("maxFailures", failures), "00%": at("maxFailures", failures), 0.5: notInteger("maxFailures"),
	})
	for _, field := range []string{"clusterUpgradeTimeout", "operatorsUpgradeTimeout", "applyTimeout", "actionTimeout", "failingTimeout", "stallTimeout", "minSuccessTime"} {
		number(field, []any{"1s", "2h", "1h30m", "168h", "604800s", "10080m", "167h59m60s", "30m1h"}, map[any][]string{
			"0s": at(field, durationRange), "0h0m0s": at(field, durationRange), "168h1s": at(field, durationRange), "604801s": at(field, durationRange),
			"999999h999999h": at(field, durationRange), "2": at(field, invalidDuration), "2d": at(field, invalidDuration), "-1h": at(field, invalidDuration),
			"1.5h": at(field, invalidDuration), "1h 30m": at(field, invalidDuration), "500ms": at(field, invalidDuration), "1000000s": at(field, invalidDuration),
			"": append(at(field, "should be at least 1 chars long"), at(field, invalidDuration)...), "1h1h1h1h1h1h1h1h1h1h1h": at(field, "may not be more than 20 bytes"), int64(7200): at(field, "must be of type string"),
		})
	}
	return table
}

func actionCases() map[string]testCase {
	const work = "spec.preUpgradeAction.manifestWork"
	manifest := func(i int) any {
		return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint("c", i), "namespace": "default"}, "data": map[string]any{"a": "b"}}
	}
	table := map[string]testCase{
		"action without a work": {edits: []edit{{"spec.preUpgradeAction", map[string]any{}}}, want: []string{"spec.preUpgradeAction.manifestWork: Required value"}},
		"50 manifests":          {edits: []edit{{work + ".workload.manifests", many(50, manifest)}}},
		"manifest without kind": {edits: []edit{{work + ".workload.manifests", []any{map[string]any{"apiVersion": "v1", "metadata": map[string]any{"name": "a"}}}}}, want: []string{work + ".workload.manifests[0].kind: Required value"}},
		"own delete option":     {edits: []edit{{work + ".deleteOption", map[string]any{"propagationPolicy": "Orphan"}}}},
		"unknown delete option": {edits: []edit{{work + ".deleteOption", map[string]any{"propagationPolicy": "Sometimes", "now": true}}}, want: []string{`strict decoding error: unknown field "spec.preUpgradeAction.manifestWork.deleteOption.now"`}},
		"executor":              {edits: []edit{{work + ".executor", map[string]any{"subject": map[string]any{"type": "ServiceAccount", "serviceAccount": map[string]any{"namespace": "backup", "name": "backup"}}}}}},
		"condition rule": {edits: []edit{{work + ".manifestConfigs", []any{map[string]any{
			"resourceIdentifier": map[string]any{"group": "", "resource": "configmaps", "name": "c", "namespace": "default"},
			"conditionRules":     []any{map[string]any{"condition": "Complete", "type": "CEL", "celExpressions": []any{"object.data.done == 'true'"}, "message": "", "messageExpression": ""}},
		}}}}},
	}
	for name, edits := range map[string][]edit{
		"no workload": {{work + ".workload", nil}}, "empty work": {{work, map[string]any{}}}, "no manifests": {{work + ".workload", map[string]any{}}},
		"empty manifests": {{work + ".workload.manifests", []any{}}}, "51 manifests": {{work + ".workload.manifests", many(51, manifest)}},
	} {
		table[name] = testCase{edits: edits, want: []string{work + ": " + manifestCount}}
	}
	const after = "spec.postUpgradeAction.manifestWork"
	table["no manifests afterward"] = testCase{edits: []edit{{after + ".workload", nil}}, want: []string{after + ": " + manifestCount}}
	return table
}

func additionCases() map[string]testCase {
	template := map[string]any{"type": "OSD", "PDBForceDrainTimeout": int64(60)}
	return map[string]testCase{
		"paused":                        {edits: []edit{{"spec.paused", true}}},
		"cancelled":                     {edits: []edit{{"spec.cancelled", true}}},
		"dry run":                       {edits: []edit{{"spec.dryRun", true}}},
		"dry run of claims":             {edits: []edit{{"spec.dryRun", true}, {"spec.claimsOnly", true}}},
		"claims without a dry run":      {edits: []edit{{"spec.claimsOnly", true}}, want: []string{"spec.claimsOnly: " + needsDryRun}},
		"claims, dry run is false":      {edits: []edit{{"spec.dryRun", false}, {"spec.claimsOnly", true}}, want: []string{"spec.claimsOnly: " + needsDryRun}},
		"no claims, no dry run":         {edits: []edit{{"spec.claimsOnly", false}}},
		"attempt 0":                     {edits: []edit{{"spec.attempt", int64(0)}}, want: []string{"spec.attempt: should be greater than or equal to 1"}},
		"attempt 1000001":               {edits: []edit{{"spec.attempt", int64(1_000_001)}}, want: []string{"spec.attempt: should be less than or equal to 1000000"}},
		"dependencies":                  {edits: []edit{{"spec.dependsOn", []any{map[string]any{"name": "a", "perCluster": true}, map[string]any{"name": "b"}}}}},
		"dependency twice":              {edits: []edit{{"spec.dependsOn", named("a", "a")}}, want: []string{`spec.dependsOn[1]: Duplicate value: {"name":"a"}`}},
		"dependency, empty name":        {edits: []edit{{"spec.dependsOn", named("")}}, want: []string{"spec.dependsOn[0].name: should be at least 1 chars long"}},
		"17 dependencies":               {edits: []edit{{"spec.dependsOn", many(17, func(i int) any { return map[string]any{"name": fmt.Sprint("d", i)} })}}, want: []string{"spec.dependsOn: must have at most 16 items"}},
		"upgrade config":                {edits: []edit{{"spec.upgradeConfig", template}, {"spec.upgradeConfig.capacityReservation", true}, {"spec.upgradeConfig.namespace", "upgrades"}}},
		"upgrade config, no type":       {edits: []edit{{"spec.upgradeConfig", map[string]any{"PDBForceDrainTimeout": int64(60)}}}, want: []string{"spec.upgradeConfig.type: Required value"}},
		"upgrade config, no drain":      {edits: []edit{{"spec.upgradeConfig", map[string]any{"type": "OSD"}}}, want: []string{"spec.upgradeConfig.PDBForceDrainTimeout: Required value"}},
		"upgrade config, drain at once": {edits: []edit{{"spec.upgradeConfig", map[string]any{"type": "OSD", "PDBForceDrainTimeout": int64(0)}}}},
		"upgrade config, drain -1":      {edits: []edit{{"spec.upgradeConfig", template}, {"spec.upgradeConfig.PDBForceDrainTimeout", int64(-1)}}, want: []string{"spec.upgradeConfig.PDBForceDrainTimeout: " + invalidDrain}},
		"upgrade config, namespace":     {edits: []edit{{"spec.upgradeConfig", template}, {"spec.upgradeConfig.namespace", "Home"}}, want: []string{"spec.upgradeConfig.namespace: " + invalidHome}},
		"upgrade config, no release":    {edits: []edit{{"spec.upgradeConfig", template}, {"spec.clusterVersion", nil}}, want: []string{"spec.upgradeConfig: " + noRelease}},
		"upgrade config, no channel":    {edits: []edit{{"spec.upgradeConfig", template}, {"spec.clusterVersion.channel", ""}}, want: []string{"spec.upgradeConfig: " + noRelease}},
		"upgrade config, no version": {
			edits: []edit{{"spec.upgradeConfig", template}, {"spec.clusterVersion", map[string]any{"channel": "stable-4.12", "image": "a@sha256:" + strings.Repeat("0a", 32)}}},
			want:  []string{"spec.upgradeConfig: " + noRelease},
		},
	}
}

func runCases() map[string]testCase {
	outcome := func(state string) any {
		return map[string]any{"state": state, "reason": "AlreadyAtTarget", "message": "4.12.0 is installed"}
	}
	table := map[string]testCase{
		"sample":            {},
		"no release":        {edits: []edit{{"spec.clusterVersion", nil}}},
		"no group":          {edits: []edit{{"spec.group", nil}, {"spec.canary", nil}, {"spec.timeouts", nil}}},
		"outcome complete":  {edits: []edit{{"spec.outcome", outcome("Complete")}}},
		"outcome failed":    {edits: []edit{{"spec.outcome", outcome("Failed")}}},
		"outcome pending":   {edits: []edit{{"spec.outcome", outcome("Initialized")}}, want: []string{"spec.outcome.state: " + invalidOutcome}},
		"outcome unknown":   {edits: []edit{{"spec.outcome", outcome("Lost")}}, want: []string{`spec.outcome.state: supported values`}},
		"no upgrade":        {edits: []edit{{"spec.managedClustersUpgrade", nil}}, want: []string{"spec.managedClustersUpgrade: Required value"}},
		"upgrade, no name":  {edits: []edit{{"spec.managedClustersUpgrade.name", ""}}, want: []string{"spec.managedClustersUpgrade.name: should be at least 1 chars long"}},
		"upgrade, no uid":   {edits: []edit{{"spec.managedClustersUpgrade.uid", nil}}, want: []string{"spec.managedClustersUpgrade.uid: Required value"}},
		"no attempt":        {edits: []edit{{"spec.attempt", nil}}, want: []string{"spec.attempt: Required value"}},
		"no admission time": {edits: []edit{{"spec.admissionTime", nil}}},
		"lower-case time":   {edits: []edit{{"spec.admissionTime", "2022-06-02t15:20:08z"}}, want: []string{"spec.admissionTime: should match"}},
		"group 0":           {edits: []edit{{"spec.group", int64(0)}}, want: []string{"spec.group: should be greater than or equal to 1"}},
	}
	for _, field := range []string{"clusterUpgrade", "operatorsUpgrade", "apply", "action", "failing", "stall", "soak"} {
		path := "spec.timeouts." + field
		table["timeout 0s "+field] = testCase{edits: []edit{{path, "0s"}}, want: []string{path + ": " + durationRange}}
		table["timeout 2 "+field] = testCase{edits: []edit{{path, "2"}}, want: []string{path + ": " + invalidDuration}}
	}
	const release = "spec.clusterVersion"
	for field, message := range map[string]string{"version": invalidVersion, "channel": invalidChannel, "upstream": invalidUpstream, "image": invalidImage} {
		table["invalid "+field] = testCase{edits: []edit{{release + "." + field, "no such thing"}}, want: []string{release + "." + field + ": " + message}}
	}
	table["empty release"] = testCase{edits: []edit{{release, map[string]any{"channel": "stable-4.12"}}}, want: []string{release + ": " + versionOrImage}}
	return table
}
