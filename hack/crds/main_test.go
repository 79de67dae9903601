// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

const definition = `
spec:
  names: {kind: UpgradeJob}
  versions:
  - schema:
      openAPIV3Schema:
        properties:
          status:
            properties:
              nextTime: {type: string, format: date-time}
              labels: {properties: {matchLabels: {type: object}}}
              pools: {properties: {matchLabels: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
              generation: {type: integer, format: int64}
              history:
                items:
                  required: [version]
                  properties:
                    phase: {enum: [New]}
                    previousAttempts: {items: {properties: {phase: {enum: [New]}}}}
`

func TestComplete(t *testing.T) {
	t.Parallel()
	for kind, changes := range map[string][]string{
		"UpgradeJob":        {"{type: string, format: date-time}", "{type: string, pattern: '" + rfc3339 + "'}", "[version]", "[attempt]", "[New]", "[New, Skipped]"},
		"ClusterUpgradeRun": {"{type: string, format: date-time}", "{type: string, pattern: '" + rfc3339 + "'}", "[version]", "[attempt]"},
		"UpgradeConfig":     {"{type: string, format: date-time}", "{type: string, pattern: '" + rfc3339 + "'}"},
	} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			before := strings.Replace(definition, "UpgradeJob", kind, 1)
			completed, err := complete([]byte(before))
			if err != nil {
				t.Fatal(err)
			}
			var want, got any
			changes := append(changes, "fields: true}", "fields: true, minProperties: 1, maxProperties: 16}")
			if err := yaml.Unmarshal([]byte(strings.NewReplacer(changes...).Replace(before)), &want); err != nil {
				t.Fatal(err)
			}
			if err := yaml.Unmarshal(completed, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("completed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCompleteNamesWhatIsMissing(t *testing.T) {
	t.Parallel()
	for _, missing := range []string{"versions", "kind", "history", "phase", "previousAttempts"} {
		if _, err := complete([]byte(strings.ReplaceAll(definition, missing+":", "other:"))); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("without %s: %v", missing, err)
		}
	}
}

// The pattern matches exactly the days that Go can decode.
func TestPatternMatchesEachDay(t *testing.T) {
	t.Parallel()
	pattern := regexp.MustCompile(rfc3339)
	for _, year := range []int{0, 1, 1600, 1900, 2000, 2023, 2024, 2027, 2028, 2096, 2100, 2400, 9999} {
		for month := range 14 {
			for day := range 33 {
				text := fmt.Sprintf("%04d-%02d-%02dT21:00:00Z", year, month, day)
				if _, err := time.Parse(time.RFC3339, text); (err == nil) != pattern.MatchString(text) {
					t.Errorf("%s: the pattern matches: %t, Go: %v", text, pattern.MatchString(text), err)
				}
			}
		}
	}
	for _, text := range []string{"2027-03-02t21:00:00Z", "2027-03-02T21:00:00z", "2027-03-02T24:00:00Z", "2027-03-02T21:00:60Z", "2027-03-02T21:00:00,5Z", "2027-03-02T21:00:00+24:00", "2027-03-02T21:00Z", "12027-03-02T21:00:00Z", "2027-03-02T21:00:00Z\n"} {
		if pattern.MatchString(text) {
			t.Errorf("the pattern matches %q", text)
		}
	}
	encoded, err := json.Marshal(metav1.Now())
	if err != nil || !pattern.MatchString(strings.Trim(string(encoded), `"`)) {
		t.Errorf("the pattern does not match %s, %v", encoded, err)
	}
}
