// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

const (
	definitionsFolder = "../../../deploy/crds"
	samplesFolder     = "testdata/proposal"
)

// The messages of the rules.
const (
	invalidName         = `metadata.name must be version: a cluster has one ClusterVersion`
	invalidTime         = `must be a date and time with an offset as in RFC 3339, in upper case, for example 2027-03-02T21:00:00Z or 2027-03-02T22:00:00+01:00`
	invalidDay          = `must be a day that its month has, for example 2027-02-28T21:00:00Z`
	invalidDuration     = `must be hours, minutes, and seconds in this order, each with at most 5 digits, for example 1h30m, or 24h for a day`
	zeroDelay           = `must be longer than 0s, for example 1h`
	zeroUpgradeTimeout  = `must be longer than 0s, for example 2h`
	zeroHealthTimeout   = `must be longer than 0s, for example 30m`
	invalidCron         = `must have five fields, separated by spaces: minute, hour, day, month, and weekday, for example 0 22 * * 2; a time zone belongs in location`
	invalidMinute       = `the minute (first field) must be *, or a list of minutes from 0 to 59 and ranges of them, with steps of at most 59, for example 0, 0,30, or */15`
	invalidHour         = `the hour (second field) must be *, or a list of hours from 0 to 23 and ranges of them, with steps of at most 23, for example 22 or 20-23`
	invalidDayOfMonth   = `the day of the month (third field) must be *, or a list of days from 1 to 31 and ranges of them, with steps of at most 30, for example 1-7`
	invalidMonth        = `the month (fourth field) must be *, or a list of months from 1 to 12 or JAN to DEC and ranges of them, with steps of at most 11, for example 1-6`
	invalidWeekday      = `the day of the week (fifth field) must be *, or a list of days from 0 to 7 (Sunday is 0 or 7) or SUN to SAT and ranges of them, with steps of at most 7, for example 2 or MON-FRI`
	zeroStep            = `a step must be at least 1, for example */15`
	missingCron         = `set cron, for example 0 22 * * 2 for 22:00 on Tuesdays, or rhythm: UpdateAvailable`
	invalidWeek         = `must be @odd, @even, or a list of weeks from 1 to 53, ranges, and steps, for example 7,10-20,*/4`
	invalidWeekRange    = `a range of weeks must not end before it starts; write 50-53,1-2 instead of 50-2`
	invalidLocation     = `must be a name of the IANA time zone database, for example Europe/Zurich or UTC; an offset is written as Etc/GMT-1, which is one hour ahead of UTC`
	unknownLocation     = `evaluating rule: must be a name of the IANA time zone database, for example Europe/Zurich or UTC`
	unchangeable        = `cannot change: delete this UpgradeJob, which cancels it if it has not commenced, and create another one; UpgradeJobs of later windows follow their UpgradeConfig`
	emptyJobWindow      = `must be after startAfter, for example one hour later`
	invalidVersion      = `must be a semantic version without a leading v, for example 4.20.6`
	invalidImage        = `must be a pull spec by digest, for example quay.io/openshift-release-dev/ocp-release@sha256: and hexadecimal digits`
	lateDelayMin        = `each delayUpgrade.delayMin of machineConfigPools must be shorter than upgradeTimeout, which defaults to 12h: the timeout continues while pools wait`
	lateStartAfter      = `each delayUpgrade.startAfter of machineConfigPools must be shorter than upgradeTimeout, which defaults to 12h: the timeout continues while pools wait`
	invalidDelayPair    = `set delayMin and delayMax, or startAfter and startBefore, and not both pairs, for example delayMin: 1h and delayMax: 2h`
	delayMaxTooShort    = `must not be shorter than delayMin`
	startBeforeTooShort = `must not be shorter than startAfter`
	emptyPoolLabels     = `set labels, matchLabels, or matchExpressions: without them every machine config pool would be selected, master included`
	emptyPoolSelector   = `set matchLabels or matchExpressions: without them every machine config pool would be selected, master included`
	invalidOperator     = `each operator of matchExpressions must be In or NotIn with values, or Exists or DoesNotExist without values`
	emptyWindow         = `must be after start, for example one day later`
)

// testCase is an edited sample, and the rejections by the API server: each a field, a colon, and
// the end of a message.
type testCase struct {
	edits []edit
	want  []string
}

// edit changes one field; a nil value removes it. Numbers in the path are positions in lists.
type edit struct {
	path  string
	value any
}

func (e edit) apply(t *testing.T, object map[string]any) {
	t.Helper()
	crdtest.SetField(t, object, e.path, e.value)
}

// sample returns the object of a sample.
func sample(t *testing.T, file string) *unstructured.Unstructured {
	t.Helper()
	object := crdtest.Sample(t, filepath.Join(samplesFolder, file))
	object.SetNamespace(namespace)
	return object
}

const namespace = "upgrades"

// samples are the files of the samples that the cases edit, by kind.
var samples = map[string]string{
	"ClusterVersion":          "clusterversion.yaml",
	"UpgradeConfig":           "upgradeconfig.yaml",
	"UpgradeJob":              "upgradejob.yaml",
	"UpgradeJobHook":          "upgradejobhook.yaml",
	"UpgradeSuspensionWindow": "upgradesuspensionwindow.yaml",
}

func many[T any](n int, one func(int) T) []any {
	all := make([]any, n)
	for i := range n {
		all[i] = one(i)
	}
	return all
}

func labels(n int) map[string]any {
	all := map[string]any{}
	for i := range n {
		all[fmt.Sprintf("label-%d", i)] = "value"
	}
	return all
}

// timeCases returns cases of a field with a time.
func timeCases(field string) map[string]testCase {
	cases := map[string]testCase{}
	for _, valid := range []string{
		"2026-06-20T12:00:00Z", "2026-06-20T12:00:00+02:00", "2026-06-20T12:00:00-09:30",
		"2026-06-20T12:00:00.123456789Z", "2024-02-29T12:00:00Z", "2000-02-29T12:00:00Z",
	} {
		cases["time "+valid] = testCase{edits: []edit{{field, valid}}}
	}
	for _, invalid := range []string{
		"2026-06-20t12:00:00Z", "2026-06-20T12:00:00z", "2026-06-20T12:00:00", "2026-06-20", "2026-06-20 12:00:00Z",
		"2026-13-20T12:00:00Z", "2026-06-32T12:00:00Z", "2026-06-20T24:00:00Z", "2026-06-20T12:00:60Z", "0000-06-20T12:00:00Z",
		"2026-06-20T12:00:00+24:00", "2026-06-20T12:00:00+0200", "2026-06-20T12:00:00,5Z", "2026-06-20T12:00Z", "2026-06-20T12:00:00Z\n", "tomorrow",
	} {
		cases[fmt.Sprintf("time %q", invalid)] = testCase{edits: []edit{{field, invalid}}, want: []string{field + ": " + invalidTime}}
	}
	cases["empty time"] = testCase{edits: []edit{{field, ""}}, want: []string{field + ": should be at least 1 chars long", field + ": " + invalidTime}}
	cases["no time"] = testCase{edits: []edit{{field, nil}}, want: []string{field + ": Required value"}}
	cases["time that is too long"] = testCase{edits: []edit{{field, strings.Repeat("2", 36)}}, want: []string{field + ": may not be more than 35 bytes"}}
	cases["time that is a number"] = testCase{edits: []edit{{field, int64(20270302)}}, want: []string{field + `: must be of type string: "integer"`}}
	return cases
}

// durationCases returns cases of a field with a length of time. Zero is the message about a length
// of 0; empty means that it is valid.
func durationCases(field, zero string) map[string]testCase {
	cases := map[string]testCase{}
	for _, valid := range []string{"1h", "90m", "30s", "1h30m", "1h30m15s", "1h5s", "99999h99999m99999s"} {
		cases["duration "+valid] = testCase{edits: []edit{{field, valid}}}
	}
	for _, invalid := range []string{"1d", "1w", "2", "-1h", "+1h", "1.5h", "1h 30m", "30m1h", "1h1h", "100000h", "1ms", "1H", "h", "PT1H", "1h\n"} {
		cases[fmt.Sprintf("duration %q", invalid)] = testCase{edits: []edit{{field, invalid}}, want: []string{field + ": " + invalidDuration}}
	}
	cases["duration that is a number"] = testCase{edits: []edit{{field, int64(1)}}, want: []string{field + `: must be of type string: "integer"`}}
	cases["duration that is too long"] = testCase{edits: []edit{{field, strings.Repeat("1", 19)}}, want: []string{field + ": may not be more than 18 bytes"}}
	if field != "spec.pinVersionWindow" { // where it means 0s
		cases["empty duration"] = testCase{edits: []edit{{field, ""}}, want: []string{field + ": should be at least 1 chars long"}}
	}
	for _, none := range []string{"0s", "0h0m", "00000m"} {
		tc := testCase{edits: []edit{{field, none}}}
		if zero != "" {
			tc.want = []string{field + ": " + zero}
		}
		cases["duration "+none] = tc
	}
	return cases
}

// group returns the cases of all tables; the name of a table is the prefix of its cases.
func group(tables map[string]map[string]testCase) map[string]testCase {
	all := map[string]testCase{}
	for prefix, table := range tables {
		for name, tc := range table {
			if _, twice := all[prefix+" "+name]; twice {
				panic("two cases have the name " + prefix + " " + name)
			}
			all[prefix+" "+name] = tc
		}
	}
	return all
}
