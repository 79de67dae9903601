// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// cases returns the cases of each kind.
func cases() map[string]map[string]testCase {
	return map[string]map[string]testCase{
		"ClusterVersion": group(map[string]map[string]testCase{
			"object": clusterVersionCases(),
			"from":   overlayTimeCases(),
		}),
		"UpgradeConfig": group(map[string]map[string]testCase{
			"object":               upgradeConfigCases(),
			"schedule":             scheduleCases(),
			"pinVersionWindow":     durationCases("spec.pinVersionWindow", ""),
			"maxUpgradeStartDelay": durationCases("spec.maxUpgradeStartDelay", zeroDelay),
			"config":               configCases("spec.jobTemplate.spec.config"),
		}),
		"UpgradeJob": group(map[string]map[string]testCase{
			"object":      upgradeJobCases(),
			"startAfter":  startAfterCases(),
			"startBefore": startBeforeCases(),
			"config":      configCases("spec.config"),
		}),
		"UpgradeJobHook": group(map[string]map[string]testCase{
			"object":   hookCases(),
			"selector": selectorCases("spec.selector"),
		}),
		"UpgradeSuspensionWindow": group(map[string]map[string]testCase{
			"object":         windowCases(),
			"start":          before("spec.start", "spec.end", "2998-01-01T00:00:00Z"),
			"end":            after("spec.end", "spec.start", "1000-01-01T00:00:00Z"),
			"configSelector": selectorCases("spec.configSelector"),
			"jobSelector":    selectorCases("spec.jobSelector"),
		}),
	}
}

// before returns the cases of a time, with an end that is later.
func before(field, end, late string) map[string]testCase {
	cases := timeCases(field)
	for name, tc := range cases {
		cases[name] = testCase{edits: append([]edit{{end, late}}, tc.edits...), want: tc.want}
	}
	cases["impossible day"] = testCase{
		edits: []edit{{end, late}, {field, "2026-02-30T12:00:00Z"}},
		want:  []string{field + ": " + invalidDay},
	}
	cases["29 February of a common year"] = testCase{
		edits: []edit{{end, late}, {field, "2027-02-29T12:00:00Z"}},
		want:  []string{field + ": " + invalidDay},
	}
	return cases
}

// after returns the cases of a time, with a start that is earlier.
func after(field, start, early string) map[string]testCase { return before(field, start, early) }

func startAfterCases() map[string]testCase {
	return before("spec.startAfter", "spec.startBefore", "2998-01-01T00:00:00Z")
}

func startBeforeCases() map[string]testCase {
	return after("spec.startBefore", "spec.startAfter", "1000-01-01T00:00:00Z")
}

func overlayTimeCases() map[string]testCase {
	overlay := edit{"spec.overlays", []any{map[string]any{"from": "x", "overlay": map[string]any{"spec": map[string]any{"channel": "stable-4.12"}}}}}
	cases := map[string]testCase{}
	for name, tc := range timeCases("spec.overlays.0.from") {
		var want []string
		for _, rejection := range tc.want {
			want = append(want, strings.Replace(rejection, "overlays.0.", "overlays[0].", 1))
		}
		cases[name] = testCase{edits: append([]edit{overlay}, tc.edits...), want: want}
	}
	cases["impossible day"] = testCase{
		edits: []edit{overlay, {"spec.overlays.0.from", "2026-11-31T12:00:00Z"}}, want: []string{"spec.overlays[0].from: " + invalidDay},
	}
	return cases
}

func clusterVersionCases() map[string]testCase {
	overlay := func(i int) any {
		return map[string]any{"from": fmt.Sprintf("2027-01-01T00:00:%02dZ", i), "overlay": map[string]any{"spec": map[string]any{}}}
	}
	return map[string]testCase{
		"sample":                   {},
		"another name":             {edits: []edit{{"metadata.name", "versions"}}, want: []string{"<nil>: " + invalidName}},
		"no spec":                  {edits: []edit{{"spec", nil}}, want: []string{"spec: Required value"}},
		"no template":              {edits: []edit{{"spec.template", nil}}, want: []string{"spec.template: Required value"}},
		"no spec in the template":  {edits: []edit{{"spec.template.spec", nil}}, want: []string{"spec.template.spec: Required value"}},
		"empty template":           {edits: []edit{{"spec.template.spec", map[string]any{}}}},
		"fields of later releases": {edits: []edit{{"spec.template.spec.signatureStores", []any{map[string]any{"url": "https://example.com"}}}, {"spec.template.spec.new", int64(1)}}},
		"template that is a list":  {edits: []edit{{"spec.template.spec", []any{}}}, want: []string{`spec.template.spec: must be of type object: "array"`}},
		"template that is a text":  {edits: []edit{{"spec.template.spec", "stable"}}, want: []string{`spec.template.spec: must be of type object: "string"`}},
		"32 overlays":              {edits: []edit{{"spec.overlays", many(32, overlay)}}},
		"33 overlays":              {edits: []edit{{"spec.overlays", many(33, overlay)}}, want: []string{"spec.overlays: must have at most 32 items"}},
		"two overlays at a time":   {edits: []edit{{"spec.overlays", []any{overlay(1), overlay(1)}}}, want: []string{`spec.overlays[1]: Duplicate value: {"from":"2027-01-01T00:00:01Z"}`}},
		"overlay without a spec":   {edits: []edit{{"spec.overlays", []any{map[string]any{"from": "2027-01-01T00:00:00Z", "overlay": map[string]any{}}}}}, want: []string{"spec.overlays[0].overlay.spec: Required value"}},
		"overlay without content":  {edits: []edit{{"spec.overlays", []any{map[string]any{"from": "2027-01-01T00:00:00Z"}}}}, want: []string{"spec.overlays[0].overlay: Required value"}},
		"unknown field":            {edits: []edit{{"spec.channel", "stable-4.11"}}, want: []string{`strict decoding error: unknown field "spec.channel"`}},
	}
}

func upgradeConfigCases() map[string]testCase {
	const config = "spec.jobTemplate.spec.config"
	return map[string]testCase{
		"sample":                        {},
		"only a schedule":               {edits: []edit{{"spec", map[string]any{"schedule": map[string]any{"cron": "0 22 * * 2"}}}}},
		"no spec":                       {edits: []edit{{"spec", nil}}, want: []string{"spec: Required value"}},
		"no window to pin":              {edits: []edit{{"spec.pinVersionWindow", nil}}},
		"empty window to pin":           {edits: []edit{{"spec.pinVersionWindow", ""}}},
		"only patches":                  {edits: []edit{{"spec.updatePolicy", "PatchOnly"}}},
		"newest":                        {edits: []edit{{"spec.updatePolicy", "Newest"}}},
		"unknown policy":                {edits: []edit{{"spec.updatePolicy", "Latest"}}, want: []string{`spec.updatePolicy: supported values: "Newest", "PatchOnly"`}},
		"hooks without an update":       {edits: []edit{{"spec.whenNoUpdate", "RunHooks"}}},
		"skip without an update":        {edits: []edit{{"spec.whenNoUpdate", "Skip"}}},
		"unknown action":                {edits: []edit{{"spec.whenNoUpdate", "Wait"}}, want: []string{`spec.whenNoUpdate: supported values: "Skip", "RunHooks"`}},
		"no ended jobs":                 {edits: []edit{{"spec.successfulJobsHistoryLimit", int64(0)}, {"spec.failedJobsHistoryLimit", int64(0)}}},
		"100 ended jobs":                {edits: []edit{{"spec.successfulJobsHistoryLimit", int64(100)}, {"spec.failedJobsHistoryLimit", int64(100)}}},
		"-1 successful jobs":            {edits: []edit{{"spec.successfulJobsHistoryLimit", int64(-1)}}, want: []string{"spec.successfulJobsHistoryLimit: should be greater than or equal to 0"}},
		"101 successful jobs":           {edits: []edit{{"spec.successfulJobsHistoryLimit", int64(101)}}, want: []string{"spec.successfulJobsHistoryLimit: should be less than or equal to 100"}},
		"-1 failed jobs":                {edits: []edit{{"spec.failedJobsHistoryLimit", int64(-1)}}, want: []string{"spec.failedJobsHistoryLimit: should be greater than or equal to 0"}},
		"101 failed jobs":               {edits: []edit{{"spec.failedJobsHistoryLimit", int64(101)}}, want: []string{"spec.failedJobsHistoryLimit: should be less than or equal to 100"}},
		"failed jobs as a text":         {edits: []edit{{"spec.failedJobsHistoryLimit", "5"}}, want: []string{`spec.failedJobsHistoryLimit: must be of type integer: "string"`}},
		"no template":                   {edits: []edit{{"spec.jobTemplate", nil}}},
		"empty template":                {edits: []edit{{"spec.jobTemplate", map[string]any{}}}},
		"empty config":                  {edits: []edit{{config, map[string]any{}}}},
		"labels and annotations":        {edits: []edit{{"spec.jobTemplate.metadata.annotations", map[string]any{"a": "b"}}}},
		"65 labels":                     {edits: []edit{{"spec.jobTemplate.metadata.labels", labels(65)}}, want: []string{"spec.jobTemplate.metadata.labels: must have at most 64 items"}},
		"65 annotations":                {edits: []edit{{"spec.jobTemplate.metadata.annotations", labels(65)}}, want: []string{"spec.jobTemplate.metadata.annotations: must have at most 64 items"}},
		"label that is a number":        {edits: []edit{{"spec.jobTemplate.metadata.labels.a", int64(1)}}, want: []string{`spec.jobTemplate.metadata.labels.a: must be of type string: "integer"`}},
		"name in the template":          {edits: []edit{{"spec.jobTemplate.metadata.name", "job"}}, want: []string{`strict decoding error: unknown field "spec.jobTemplate.metadata.name"`}},
		"time in the template":          {edits: []edit{{"spec.jobTemplate.spec.startAfter", "2027-03-02T21:00:00Z"}}, want: []string{`strict decoding error: unknown field "spec.jobTemplate.spec.startAfter"`}},
		"schedule with changes":         {edits: []edit{{"metadata.labels", map[string]any{"a": "b"}}, {"metadata.annotations", map[string]any{"managedupgrade.appuio.io/run-now": "2027-03-02"}}}},
		"status is dropped at creation": {edits: []edit{{"status.lastSlot.result", "JobCreated"}}},
	}
}

func upgradeJobCases() map[string]testCase {
	const release = "quay.io/openshift-release-dev/ocp-release"
	return map[string]testCase{
		"sample":                          {},
		"no spec":                         {edits: []edit{{"spec", nil}}, want: []string{"spec: Required value"}},
		"hooks only":                      {edits: []edit{{"spec.desiredVersion", nil}}},
		"no config":                       {edits: []edit{{"spec.config", nil}}},
		"version without an image":        {edits: []edit{{"spec.desiredVersion.image", nil}}},
		"availability is not checked":     {edits: []edit{{"spec.desiredVersionCheckAvailability", false}}},
		"availability by a word":          {edits: []edit{{"spec.desiredVersionCheckAvailability", "no"}}, want: []string{`spec.desiredVersionCheckAvailability: must be of type boolean: "string"`}},
		"window of an instant":            {edits: []edit{{"spec.startBefore", "2027-03-02T21:00:00Z"}}, want: []string{"spec.startBefore: " + emptyJobWindow}},
		"window that ends early":          {edits: []edit{{"spec.startBefore", "2027-03-02T22:59:00+02:00"}}, want: []string{"spec.startBefore: " + emptyJobWindow}},
		"window of a second":              {edits: []edit{{"spec.startBefore", "2027-03-02T21:00:01Z"}}},
		"window in two offsets":           {edits: []edit{{"spec.startAfter", "2027-03-02T21:00:00Z"}, {"spec.startBefore", "2027-03-02T20:00:01-02:00"}}},
		"empty version":                   {edits: []edit{{"spec.desiredVersion", map[string]any{}}}, want: []string{"spec.desiredVersion.version: Required value"}},
		"version that is empty":           {edits: []edit{{"spec.desiredVersion.version", ""}}, want: []string{"spec.desiredVersion.version: should be at least 1 chars long", "spec.desiredVersion.version: " + invalidVersion}},
		"image that is empty":             {edits: []edit{{"spec.desiredVersion.image", ""}}, want: []string{"spec.desiredVersion.image: should be at least 1 chars long", "spec.desiredVersion.image: " + invalidImage}},
		"prerelease":                      {edits: []edit{{"spec.desiredVersion.version", "4.20.0-rc.1"}}},
		"version of two numbers":          {edits: []edit{{"spec.desiredVersion.version", "4.20"}}, want: []string{"spec.desiredVersion.version: " + invalidVersion}},
		"version with a leading v":        {edits: []edit{{"spec.desiredVersion.version", "v4.20.6"}}, want: []string{"spec.desiredVersion.version: " + invalidVersion}},
		"version with a leading zero":     {edits: []edit{{"spec.desiredVersion.version", "4.020.6"}}, want: []string{"spec.desiredVersion.version: " + invalidVersion}},
		"version of 129 characters":       {edits: []edit{{"spec.desiredVersion.version", "4.4.6-" + strings.Repeat("a", 123)}}, want: []string{"spec.desiredVersion.version: may not be more than 128 bytes"}},
		"version that is a number":        {edits: []edit{{"spec.desiredVersion.version", 4.2}}, want: []string{`spec.desiredVersion.version: must be of type string: "number"`}},
		"image by tag and digest":         {edits: []edit{{"spec.desiredVersion.image", release + ":4.6.1@sha256:" + strings.Repeat("0", 64)}}},
		"image by tag":                    {edits: []edit{{"spec.desiredVersion.image", release + ":4.6.1"}}, want: []string{"spec.desiredVersion.image: " + invalidImage}},
		"image by a digest in upper case": {edits: []edit{{"spec.desiredVersion.image", release + "@sha256:ABCDEF"}}, want: []string{"spec.desiredVersion.image: " + invalidImage}},
		"image of 513 characters":         {edits: []edit{{"spec.desiredVersion.image", release + "@sha256:" + strings.Repeat("0", 465)}}, want: []string{"spec.desiredVersion.image: may not be more than 512 bytes"}},
		"unknown field":                   {edits: []edit{{"spec.timeout", "2h"}}, want: []string{`strict decoding error: unknown field "spec.timeout"`}},
	}
}

// configCases are cases of an UpgradeJob's config at a path.
func configCases(path string) map[string]testCase {
	pools := path + ".machineConfigPools"
	pool := func(i int) any {
		return map[string]any{"matchLabels": map[string]any{"name": strconv.Itoa(i)}, "delayUpgrade": map[string]any{"delayMin": "1h", "delayMax": "2h"}}
	}
	first := edit{pools, []any{pool(0)}}
	delay := pools + ".0.delayUpgrade"
	at := func(field string) string { return strings.Replace(field, ".0.", "[0].", 1) }
	table := map[string]testCase{
		"empty":                            {edits: []edit{{path, map[string]any{}}}},
		"no timeout":                       {edits: []edit{{path + ".upgradeTimeout", nil}}},
		"forced drains":                    {edits: []edit{{path + ".forceDrainAfter", "2h"}}},
		"pools paused on failure":          {edits: []edit{{path + ".pauseMachineConfigPoolsOnFailure", map[string]any{"matchLabels": map[string]any{"a": "b"}}}}},
		"all pools paused on failure":      {edits: []edit{{path + ".pauseMachineConfigPoolsOnFailure", map[string]any{}}}, want: []string{path + ".pauseMachineConfigPoolsOnFailure: " + emptyPoolSelector}},
		"no pools":                         {edits: []edit{{pools, nil}}},
		"16 pools":                         {edits: []edit{{pools, many(16, pool)}}},
		"17 pools":                         {edits: []edit{{pools, many(17, pool)}}, want: []string{pools + ": must have at most 16 items"}},
		"pool by expressions":              {edits: []edit{first, {pools + ".0.matchLabels", nil}, {pools + ".0.matchExpressions", []any{map[string]any{"key": "a", "operator": "Exists"}}}}},
		"pool without a selector":          {edits: []edit{first, {pools + ".0.matchLabels", nil}}, want: []string{pools + "[0]: " + emptyPoolSelector}},
		"pool with empty selectors":        {edits: []edit{first, {pools + ".0.matchLabels", map[string]any{}}, {pools + ".0.matchExpressions", []any{}}}, want: []string{pools + "[0].matchLabels: should have at least 1 properties"}},
		"pool without a delay":             {edits: []edit{first, {delay, nil}}, want: []string{at(delay) + ": Required value"}},
		"pool with an empty delay":         {edits: []edit{first, {delay, map[string]any{}}}, want: []string{at(delay) + ": should have at least 1 properties", at(delay) + ": " + invalidDelayPair}},
		"delayMin alone":                   {edits: []edit{first, {delay, map[string]any{"delayMin": "1h"}}}, want: []string{at(delay) + ": " + invalidDelayPair}},
		"delayMax alone":                   {edits: []edit{first, {delay, map[string]any{"delayMax": "1h"}}}, want: []string{at(delay) + ": " + invalidDelayPair}},
		"startAfter and startBefore":       {edits: []edit{first, {delay, map[string]any{"startAfter": "1h", "startBefore": "2h"}}}},
		"delayMin and startBefore":         {edits: []edit{first, {delay, map[string]any{"delayMin": "1h", "startBefore": "2h"}}}, want: []string{at(delay) + ": " + invalidDelayPair}},
		"both pairs":                       {edits: []edit{first, {delay, map[string]any{"delayMin": "1h", "delayMax": "2h", "startAfter": "1h", "startBefore": "2h"}}}, want: []string{at(delay) + ": " + invalidDelayPair}},
		"delays that are equal":            {edits: []edit{first, {delay, map[string]any{"delayMin": "60m", "delayMax": "1h"}}}},
		"delays that are 0":                {edits: []edit{first, {delay, map[string]any{"delayMin": "0s", "delayMax": "0s"}}}},
		"delayMax shorter than delayMin":   {edits: []edit{first, {delay, map[string]any{"delayMin": "61m", "delayMax": "1h"}}}, want: []string{at(delay) + ".delayMax: " + delayMaxTooShort}},
		"startBefore before startAfter":    {edits: []edit{first, {delay, map[string]any{"startAfter": "61m", "startBefore": "1h"}}}, want: []string{at(delay) + ".startBefore: " + startBeforeTooShort}},
		"delayMin of the timeout":          {edits: []edit{first, {path + ".upgradeTimeout", "60m"}}, want: []string{path + ": " + lateDelayMin}},
		"delayMin just before the timeout": {edits: []edit{first, {path + ".upgradeTimeout", "1h1s"}}},
		"delayMin of the default timeout":  {edits: []edit{first, {path + ".upgradeTimeout", nil}, {delay, map[string]any{"delayMin": "12h", "delayMax": "13h"}}}, want: []string{path + ": " + lateDelayMin}},
		"startAfter of the timeout":        {edits: []edit{first, {path + ".upgradeTimeout", "1h"}, {delay, map[string]any{"startAfter": "1h", "startBefore": "2h"}}}, want: []string{path + ": " + lateStartAfter}},
		"delayMin in days":                 {edits: []edit{first, {delay + ".delayMin", "1d"}}, want: []string{at(delay) + ".delayMin: " + invalidDuration}},
		"startBefore in days":              {edits: []edit{first, {delay, map[string]any{"startAfter": "1h", "startBefore": "1d"}}}, want: []string{at(delay) + ".startBefore: " + invalidDuration}},
		"timeout in days with a delay":     {edits: []edit{first, {path + ".upgradeTimeout", "1d"}}, want: []string{path + ".upgradeTimeout: " + invalidDuration}},
		"unknown field":                    {edits: []edit{{path + ".timeout", "2h"}}, want: []string{`strict decoding error: unknown field "` + path + `.timeout"`}},
		"unknown field of a delay":         {edits: []edit{first, {delay + ".min", "2h"}}, want: []string{`strict decoding error: unknown field "` + at(delay) + `.min"`}},
	}
	for name, tc := range selectorCases(path + ".pauseMachineConfigPoolsOnFailure") {
		if name != "empty" && name != "no" && name != schemalessLabel {
			table["pools paused on failure: "+name] = tc
		}
	}
	maps.Copy(table, nestedSelectorCases(path+".pauseMachineConfigPoolsOnFailure", map[string]any{}))
	// Without pools, whose delays depend on the timeout.
	for name, tc := range durationCases(path+".upgradeTimeout", zeroUpgradeTimeout) {
		table["upgradeTimeout: "+name] = testCase{edits: append([]edit{{pools, nil}}, tc.edits...), want: tc.want}
	}
	for name, tc := range durationCases(path+".forceDrainAfter", "") {
		table["forceDrainAfter: "+name] = tc
	}
	for _, checks := range []string{"preUpgradeHealthChecks", "postUpgradeHealthChecks"} {
		maps.Copy(table, healthCheckCases(path, checks))
	}
	maps.Copy(table, poolCases(pools))
	table["everything at its maximum"] = maximum(path)
	return table
}

// poolCases are cases of the first of several machineConfigPools at a path.
func poolCases(pools string) map[string]testCase {
	table := map[string]testCase{}
	add := func(name string, first edit, tc testCase) {
		for i := range tc.want {
			tc.want[i] = strings.Replace(tc.want[i], ".0", "[0]", 1)
		}
		table["pool: "+name] = testCase{edits: append([]edit{first}, tc.edits...), want: tc.want}
	}
	for name, tc := range selectorCases(pools + ".0") {
		// A pool has other fields beside the selector, and may not select all pools.
		if tc.edits[0].path != pools+".0" || len(tc.want) > 0 && strings.Contains(tc.want[0], "must be of type object") || name == "empty" || name == "no" || name == schemalessLabel {
			continue
		}
		for i := range tc.edits {
			if selector, ok := tc.edits[i].value.(map[string]any); ok {
				selector["delayUpgrade"] = map[string]any{"delayMin": "0s", "delayMax": "1h"}
			}
		}
		add(name, edit{pools, []any{map[string]any{}}}, tc)
	}
	for name, tc := range nestedSelectorCases(pools+".0", map[string]any{"delayUpgrade": map[string]any{"delayMin": "0s", "delayMax": "1h"}}) {
		add(name, edit{pools, []any{map[string]any{}}}, tc)
	}
	for field, other := range map[string]string{"delayMin": "delayMax", "delayMax": "delayMin", "startAfter": "startBefore", "startBefore": "startAfter"} {
		delay := map[string]any{field: "1h", other: "0s"}
		if field == "delayMin" || field == "startAfter" {
			delay[other] = "99999h99999m99999s"
		}
		first := edit{pools, []any{map[string]any{"matchLabels": map[string]any{"a": "b"}, "delayUpgrade": delay}}}
		for name, tc := range durationCases(pools+".0.delayUpgrade."+field, "") {
			if name != "duration 99999h99999m99999s" && name != "duration 90m" && name != "duration 1h" { // the timeout is 2h
				add(field+" "+name, first, tc)
			}
		}
	}
	return table
}

// schemalessLabel is a case that the schema of a pool's labels does not have: they may be a label selector.
const schemalessLabel = "label that is a number"

// nestedSelectorCases are cases of a label selector in place of the labels of a selector at a path. The selector also
// has other fields.
func nestedSelectorCases(path string, others map[string]any) map[string]testCase {
	expression := func(operator string) map[string]any {
		return map[string]any{"matchExpressions": []any{map[string]any{"key": "a", "operator": operator}}}
	}
	table := map[string]testCase{}
	for name, tc := range map[string]struct {
		labels any
		want   string // after the path
	}{
		"labels":               {map[string]any{"matchLabels": map[string]any{"a": "b"}}, ""},
		"expressions":          {expression("Exists"), ""},
		"labels beside labels": {map[string]any{"a": "b", "matchLabels": map[string]any{"c": "d"}}, ""},
		"number":               {map[string]any{"a": int64(1)}, ""}, // the controller refuses it
		"no labels":            {map[string]any{"matchLabels": map[string]any{}}, ": " + emptyPoolLabels},
		"no expressions":       {map[string]any{"matchExpressions": []any{}}, ": " + emptyPoolLabels},
		"invalid operator":     {expression("In"), ": " + invalidOperator},
		"17 labels":            {map[string]any{"matchLabels": labels(17)}, ".matchLabels: must have at most 16 items"},
		"nested number":        {map[string]any{"matchLabels": map[string]any{"a": int64(1)}}, `.matchLabels.a: must be of type string: "integer"`},
	} {
		selector := maps.Clone(others)
		selector["matchLabels"] = tc.labels
		nested := testCase{edits: []edit{{path, selector}}}
		if tc.want != "" {
			nested.want = []string{path + ".matchLabels" + tc.want}
		}
		table[path+" nested "+name] = nested
	}
	return table
}

// maximum is a config in which each list and text is as long as it may be.
func maximum(path string) testCase {
	name := func(i int) any { return fmt.Sprintf("%0253d", i) }
	requirement := func(i int) any {
		return map[string]any{"key": name(i), "operator": "NotIn", "values": many(4, name)}
	}
	selector := func(int) any {
		return map[string]any{
			"matchLabels": labels(16), "matchExpressions": many(16, requirement),
			"delayUpgrade": map[string]any{"delayMin": "00000h00000m00001s", "delayMax": "99999h99999m99999s"},
		}
	}
	checks := map[string]any{
		"timeout":           "99999h99999m99999s",
		"excludeAlerts":     many(64, func(i int) any { return map[string]any{"alertname": name(i)} }),
		"excludeNamespaces": many(64, name), "excludeOperators": many(64, name),
		"customQueries": many(16, func(int) any { return map[string]any{"query": strings.Repeat("x", 4096)} }),
		"objects": many(16, func(int) any {
			return map[string]any{"apiVersion": "example.com/v1", "kind": "Toaster", "name": name(0), "expr": strings.Repeat("x", 1024)}
		}),
	}
	failed := map[string]any{"matchLabels": labels(16), "matchExpressions": many(16, requirement)}
	return testCase{edits: []edit{{path, map[string]any{
		"upgradeTimeout": "99999h99999m99999s", "forceDrainAfter": "99999h99999m99999s", "preUpgradeHealthChecks": checks,
		"postUpgradeHealthChecks": checks, "machineConfigPools": many(16, selector), "pauseMachineConfigPoolsOnFailure": failed,
	}}}}
}

func healthCheckCases(config, checks string) map[string]testCase {
	path := config + "." + checks
	long := strings.Repeat("x", 254)
	name := func(i int) any { return fmt.Sprintf("name-%d", i) }
	alert := func(i int) any { return map[string]any{"alertname": fmt.Sprintf("Alert%d", i)} }
	query := func(int) any { return map[string]any{"query": "up == 0"} }
	object := func(fields ...any) any {
		check := map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "expr": "object.status.readyReplicas > 0"}
		for i := 0; i < len(fields); i += 2 {
			check[fields[i].(string)] = fields[i+1]
		}
		return check
	}
	table := map[string]testCase{
		"none":                        {edits: []edit{{path, nil}}},
		"default":                     {edits: []edit{{path, map[string]any{}}}},
		"nothing is checked":          {edits: []edit{{path, map[string]any{"checkCriticalAlerts": false, "checkDegradedOperators": false}}}},
		"64 of each exclusion":        {edits: []edit{{path + ".excludeAlerts", many(64, alert)}, {path + ".excludeNamespaces", many(64, name)}, {path + ".excludeOperators", many(64, name)}}},
		"65 alerts":                   {edits: []edit{{path + ".excludeAlerts", many(65, alert)}}, want: []string{path + ".excludeAlerts: must have at most 64 items"}},
		"65 namespaces":               {edits: []edit{{path + ".excludeNamespaces", many(65, name)}}, want: []string{path + ".excludeNamespaces: must have at most 64 items"}},
		"65 operators":                {edits: []edit{{path + ".excludeOperators", many(65, name)}}, want: []string{path + ".excludeOperators: must have at most 64 items"}},
		"empty namespace":             {edits: []edit{{path + ".excludeNamespaces", []any{""}}}, want: []string{path + ".excludeNamespaces[0]: should be at least 1 chars long"}},
		"empty operator":              {edits: []edit{{path + ".excludeOperators", []any{""}}}, want: []string{path + ".excludeOperators[0]: should be at least 1 chars long"}},
		"alert by its name alone":     {edits: []edit{{path + ".excludeAlerts", []any{"KubePodCrashLooping"}}}, want: []string{path + `.excludeAlerts[0]: must be of type object: "string"`}},
		"alert without a name":        {edits: []edit{{path + ".excludeAlerts", []any{map[string]any{}}}}, want: []string{path + ".excludeAlerts[0].alertname: Required value"}},
		"alert with an empty name":    {edits: []edit{{path + ".excludeAlerts", []any{map[string]any{"alertname": ""}}}}, want: []string{path + ".excludeAlerts[0].alertname: should be at least 1 chars long"}},
		"alert with a long name":      {edits: []edit{{path + ".excludeAlerts", []any{map[string]any{"alertname": long}}}}, want: []string{path + ".excludeAlerts[0].alertname: may not be more than 253 bytes"}},
		"long namespace":              {edits: []edit{{path + ".excludeNamespaces", []any{long}}}, want: []string{path + ".excludeNamespaces[0]: may not be more than 253 bytes"}},
		"long operator":               {edits: []edit{{path + ".excludeOperators", []any{long}}}, want: []string{path + ".excludeOperators[0]: may not be more than 253 bytes"}},
		"empty query":                 {edits: []edit{{path + ".customQueries", []any{map[string]any{"query": ""}}}}, want: []string{path + ".customQueries[0].query: should be at least 1 chars long"}},
		"16 queries":                  {edits: []edit{{path + ".customQueries", many(16, query)}}},
		"17 queries":                  {edits: []edit{{path + ".customQueries", many(17, query)}}, want: []string{path + ".customQueries: must have at most 16 items"}},
		"query without an expression": {edits: []edit{{path + ".customQueries", []any{map[string]any{}}}}, want: []string{path + ".customQueries[0].query: Required value"}},
		"query of 4096 characters":    {edits: []edit{{path + ".customQueries", []any{map[string]any{"query": strings.Repeat("x", 4096)}}}}},
		"query of 4097 characters":    {edits: []edit{{path + ".customQueries", []any{map[string]any{"query": strings.Repeat("x", 4097)}}}}, want: []string{path + ".customQueries[0].query: may not be more than 4096 bytes"}},
		"object by its name":          {edits: []edit{{path + ".objects", []any{object("name", "api")}}}},
		"objects by labels":           {edits: []edit{{path + ".objects", []any{object("selector", map[string]any{"matchLabels": map[string]any{"app": "shop"}})}}}},
		"all objects of a kind":       {edits: []edit{{path + ".objects", []any{object("selector", map[string]any{})}}}},
		"16 objects":                  {edits: []edit{{path + ".objects", many(16, func(int) any { return object("name", "api") })}}},
		"17 objects":                  {edits: []edit{{path + ".objects", many(17, func(int) any { return object("name", "api") })}}, want: []string{path + ".objects: must have at most 16 items"}},
		"object without a name":       {edits: []edit{{path + ".objects", []any{object("namespace", "shop")}}}, want: []string{path + ".objects[0]: either name or selector is required"}},
		"object with two selections":  {edits: []edit{{path + ".objects", []any{object("name", "api", "selector", map[string]any{})}}}, want: []string{path + ".objects[0]: either name or selector is required"}},
		"Secret":                      {edits: []edit{{path + ".objects", []any{object("name", "api", "apiVersion", "v1", "kind", "Secret")}}}, want: []string{path + ".objects[0]: conditions on Secrets are not evaluated"}},
		"object without expression":   {edits: []edit{{path + ".objects", []any{object("name", "api", "expr", "")}}}, want: []string{path + ".objects[0].expr: should be at least 1 chars long"}},
		"expression of 1025 bytes":    {edits: []edit{{path + ".objects", []any{object("name", "api", "expr", strings.Repeat("x", 1025))}}}, want: []string{path + ".objects[0].expr: may not be more than 1024 bytes"}},
		"check by a word":             {edits: []edit{{path + ".checkCriticalAlerts", "yes"}}, want: []string{path + `.checkCriticalAlerts: must be of type boolean: "string"`}},
		"unknown field":               {edits: []edit{{path + ".checkAlerts", true}}, want: []string{`strict decoding error: unknown field "` + path + `.checkAlerts"`}},
	}
	maps.Copy(table, durationCases(path+".timeout", zeroHealthTimeout))
	prefixed := map[string]testCase{}
	for name, tc := range table {
		prefixed[checks+": "+name] = tc
	}
	return prefixed
}

// selectorCases are cases of a label selector at a path.
func selectorCases(path string) map[string]testCase {
	expressions := func(all ...any) []edit {
		return []edit{{path, map[string]any{"matchExpressions": all}}}
	}
	requirement := func(operator string, values ...any) map[string]any {
		r := map[string]any{"key": "a", "operator": operator}
		if values != nil {
			r["values"] = values
		}
		return r
	}
	invalid := []string{path + ": " + invalidOperator}
	return map[string]testCase{
		"no":                         {edits: []edit{{path, nil}}},
		"empty":                      {edits: []edit{{path, map[string]any{}}}},
		"by labels":                  {edits: []edit{{path, map[string]any{"matchLabels": map[string]any{"a": "b"}}}}},
		"of 16 labels":               {edits: []edit{{path, map[string]any{"matchLabels": labels(16)}}}},
		"of 17 labels":               {edits: []edit{{path, map[string]any{"matchLabels": labels(17)}}}, want: []string{path + ".matchLabels: must have at most 16 items"}},
		"by all operators":           {edits: expressions(requirement("In", "b"), requirement("NotIn", "b", "c"), requirement("Exists"), requirement("DoesNotExist"))},
		"of 17 expressions":          {edits: expressions(many(17, func(int) any { return requirement("Exists") })...), want: []string{path + ".matchExpressions: must have at most 16 items"}},
		"In without values":          {edits: expressions(requirement("In")), want: invalid},
		"NotIn with an empty list":   {edits: expressions(map[string]any{"key": "a", "operator": "NotIn", "values": []any{}}), want: invalid},
		"Exists with values":         {edits: expressions(requirement("Exists"), requirement("Exists", "b")), want: invalid},
		"Exists with an empty list":  {edits: expressions(map[string]any{"key": "a", "operator": "Exists", "values": []any{}})},
		"operator in lower case":     {edits: expressions(requirement("in", "b")), want: invalid},
		"unknown operator":           {edits: expressions(requirement("Gt", "1")), want: invalid},
		"requirement without a key":  {edits: expressions(map[string]any{"operator": "Exists"}), want: []string{path + ".matchExpressions[0].key: Required value"}},
		"label that is a number":     {edits: []edit{{path, map[string]any{"matchLabels": map[string]any{"a": int64(1)}}}}, want: []string{path + `.matchLabels.a: must be of type string: "integer"`}},
		"unknown field":              {edits: []edit{{path, map[string]any{"matchLabels": map[string]any{"a": "b"}, "matchName": "a"}}}, want: []string{`strict decoding error: unknown field "` + path + `.matchName"`}},
		"labels outside matchLabels": {edits: []edit{{path, "a=b"}}, want: []string{path + `: must be of type object: "string"`}},
	}
}

func hookCases() map[string]testCase {
	events := []any{"Create", "Start", "UpgradeStart", "UpgradeComplete", "MachineConfigPoolUnpause", "MachineConfigPoolUpdated", "Success", "Failure", "Skip", "Finish"}
	const supported = `supported values: "Create", "Start", "UpgradeStart", "UpgradeComplete", "MachineConfigPoolUnpause", "MachineConfigPoolUpdated", "Success", "Failure", "Skip", "Finish"`
	return map[string]testCase{
		"sample":                    {},
		"no spec":                   {edits: []edit{{"spec", nil}}, want: []string{"spec: Required value"}},
		"all events":                {edits: []edit{{"spec.events", events}}},
		"no events":                 {edits: []edit{{"spec.events", nil}}, want: []string{"spec.events: Required value"}},
		"empty list of events":      {edits: []edit{{"spec.events", []any{}}}, want: []string{"spec.events: should have at least 1 items"}},
		"event twice":               {edits: []edit{{"spec.events", []any{"Start", "Start"}}}, want: []string{`spec.events[1]: Duplicate value: "Start"`}},
		"11 events":                 {edits: []edit{{"spec.events", append(slices.Clone(events), "Start")}}, want: []string{"spec.events: must have at most 10 items", `spec.events[10]: Duplicate value: "Start"`}},
		"65 labels of the Job":      {edits: []edit{{"spec.template.metadata", map[string]any{"labels": labels(65)}}}, want: []string{"spec.template.metadata.labels: must have at most 64 items"}},
		"65 annotations of the Job": {edits: []edit{{"spec.template.metadata", map[string]any{"annotations": labels(65)}}}, want: []string{"spec.template.metadata.annotations: must have at most 64 items"}},
		"unknown event":             {edits: []edit{{"spec.events", []any{"Start", "Started"}}}, want: []string{"spec.events[1]: " + supported}},
		"defaults":                  {edits: []edit{{"spec.run", nil}, {"spec.failurePolicy", nil}, {"spec.selector", nil}}},
		"run for all":               {edits: []edit{{"spec.run", "All"}}},
		"run for none":              {edits: []edit{{"spec.run", "Never"}}, want: []string{`spec.run: supported values: "Next", "All"`}},
		"abort":                     {edits: []edit{{"spec.failurePolicy", "Abort"}}},
		"unknown failure policy":    {edits: []edit{{"spec.failurePolicy", "Fail"}}, want: []string{`spec.failurePolicy: supported values: "Abort", "Ignore"`}},
		"no template":               {edits: []edit{{"spec.template", nil}}, want: []string{"spec.template: Required value"}},
		"no spec in the template":   {edits: []edit{{"spec.template.spec", nil}}, want: []string{"spec.template.spec: Required value"}},
		"labels of the Job":         {edits: []edit{{"spec.template.metadata", map[string]any{"labels": map[string]any{"a": "b"}, "annotations": map[string]any{"c": "d"}}}}},
		"name of the Job":           {edits: []edit{{"spec.template.metadata.name", "job"}}, want: []string{`strict decoding error: unknown field "spec.template.metadata.name"`}},
		"fields of later releases":  {edits: []edit{{"spec.template.spec.new", map[string]any{"a": []any{int64(1), "b", nil}}}}},
		"Job spec that is a text":   {edits: []edit{{"spec.template.spec", "job"}}, want: []string{`spec.template.spec: must be of type object: "string"`}},
		"Job spec beside the spec":  {edits: []edit{{"spec.template.backoffLimit", int64(1)}}, want: []string{`strict decoding error: unknown field "spec.template.backoffLimit"`}},
	}
}

func windowCases() map[string]testCase {
	return map[string]testCase{
		"sample":                    {},
		"no spec":                   {edits: []edit{{"spec", nil}}, want: []string{"spec: Required value"}},
		"no reason":                 {edits: []edit{{"spec.reason", nil}}},
		"empty reason":              {edits: []edit{{"spec.reason", ""}}, want: []string{"spec.reason: should be at least 1 chars long"}},
		"reason of 1025 characters": {edits: []edit{{"spec.reason", strings.Repeat("x", 1025)}}, want: []string{"spec.reason: may not be more than 1024 bytes"}},
		"window of an instant":      {edits: []edit{{"spec.end", "2027-12-19T23:00:00Z"}}, want: []string{"spec.end: " + emptyWindow}},
		"window that ends early":    {edits: []edit{{"spec.end", "2027-12-19T22:59:59Z"}}, want: []string{"spec.end: " + emptyWindow}},
		"unknown field":             {edits: []edit{{"spec.selector", map[string]any{}}}, want: []string{`strict decoding error: unknown field "spec.selector"`}},
	}
}
