// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/schedule"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// accepts returns the error of the schema for a schedule, and the error of package schedule.
func accepts(config *simulation.Definition, cron, week, location string) (bySchema, byParser error) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "any", "namespace": namespace},
		"spec":     map[string]any{"schedule": map[string]any{"cron": cron, "isoWeek": week, "location": location}},
	}}
	_, byParser = schedule.Parse(cron, week, location)
	return config.Admit(nil, object), byParser
}

// The parser rejects a step that is not shorter than its range; the schema does not compare the
// two. Such a schedule is reported in a condition.
func knownDifference(byParser error) bool {
	return strings.Contains(byParser.Error(), "must be less than range size")
}

func TestSchemaAndParserAcceptTheSameSchedules(t *testing.T) {
	t.Parallel()
	config := crdtest.Validators(t, definitionsFolder, maintenancev1beta1.GroupVersion.Group)["UpgradeConfig"]
	for name, tc := range scheduleCases() {
		for _, e := range tc.edits {
			text, ok := e.value.(string)
			if !ok || len(text) > 256 {
				continue
			}
			values := map[string]string{"cron": "0 22 * * 2", "isoWeek": "", "location": "UTC"}
			field := strings.TrimPrefix(e.path, schedulePath)
			if _, ok := values[field]; !ok {
				continue
			}
			values[field] = text
			bySchema, byParser := accepts(config, values["cron"], values["isoWeek"], values["location"])
			// The schema is stricter where the meaning is not obvious, and about white space.
			stricter := slices.Contains([]string{`cron "*-5 22 * * 2"`, `cron "+5 22 * * 2"`, `cron "0 22 * * 2\n"`, `cron "0 22 * * 2\t"`}, name)
			if (bySchema == nil) != (byParser == nil) && !stricter {
				t.Errorf("%s: the schema: %v, the parser: %v", name, bySchema, byParser)
			}
		}
	}
}

// randomCron returns five fields. Their numbers are valid, or at most spread beyond what is.
func randomCron(rng *rand.Rand, spread int) string {
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	number := func(least, most int) string {
		n := max(0, least-spread+rng.IntN(most-least+1+2*spread))
		return pick(strconv.Itoa(n), fmt.Sprintf("%02d", n))
	}
	field := func(least, most int, names ...string) string {
		one := func() string {
			if len(names) > 0 && rng.IntN(3) == 0 {
				return pick(names...)
			}
			return number(least, most)
		}
		item := func() string {
			text := pick("*", "?", one(), one(), one()+"-"+one())
			if rng.IntN(3) == 0 {
				text += "/" + number(1, most)
			}
			return text
		}
		items := []string{item()}
		for rng.IntN(3) == 0 {
			items = append(items, item())
		}
		return strings.Join(items, ",")
	}
	return strings.Join([]string{
		field(0, 59), field(0, 23), field(1, 31), field(1, 12, "JAN", "feb", "Dec"), field(0, 7, "SUN", "mon", "Sat"),
	}, pick(" ", "  "))
}

func randomWeeks(rng *rand.Rand) string {
	number := func() string { return strconv.Itoa(rng.IntN(55)) }
	var items []string
	for range 1 + rng.IntN(3) {
		item := []string{"*", number(), number() + "-" + number()}[rng.IntN(3)]
		if rng.IntN(3) == 0 {
			item += "/" + number()
		}
		items = append(items, item)
	}
	return strings.Join(items, ",")
}

func TestSchemaAndParserAcceptTheSameRandomSchedules(t *testing.T) {
	t.Parallel()
	config := crdtest.Validators(t, definitionsFolder, maintenancev1beta1.GroupVersion.Group)["UpgradeConfig"]
	rng := rand.New(rand.NewPCG(2027, 9))
	accepted := 0
	const all = 600
	for i := range all {
		inRange := i%2 == 0
		cron, weeks := randomCron(rng, map[bool]int{true: 0, false: 1}[inRange]), randomWeeks(rng)
		bySchema, byParser := accepts(config, cron, weeks, "Europe/Zurich")
		if bySchema == nil {
			accepted++
		}
		switch {
		case bySchema == nil && byParser != nil && !knownDifference(byParser):
			t.Errorf("%q in weeks %q: the schema accepts what the parser does not: %v", cron, weeks, byParser)
		case bySchema != nil && byParser == nil && inRange: // the parser accepts some numbers that are out of range
			t.Errorf("%q in weeks %q: the parser accepts what the schema does not: %v", cron, weeks, bySchema)
		}
	}
	if accepted < all/10 || accepted > all*9/10 {
		t.Errorf("the schema accepts %d of %d schedules: the test compares little", accepted, all)
	}
}
