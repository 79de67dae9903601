// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e

package v1alpha1_test

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	upgradev1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/openshiftsim/manifests"
)

// Messages of the rules of the CRD.
const (
	invalidTime       = `must be a date and time with a zone as in RFC 3339, for example 2020-05-01T12:00:00Z`
	invalidDay        = `must be a day that its month has, for example 2020-05-01T12:00:00Z`
	invalidVersion    = `must be a semantic version without a leading v, for example 4.4.6`
	invalidMinutes    = `must be a number of minutes from 0 to 525600, which is a year, for example 120`
	invalidDigest     = `must be a pull spec by digest, for example quay.io/openshift-release-dev/ocp-release@sha256: and 64 hexadecimal digits`
	upgradeInProgress = `the upgrade is in progress: only paused, PDBForceDrainTimeout, and, until it has commenced, desired.channel, desired.image, and desired.acceptedRisks may change; to cancel it before it has commenced, delete this UpgradeConfig`
	upgradeCommenced  = `the upgrade has commenced: desired cannot change until it is finished`
	invalidChannel    = `must be the name of a channel, for example fast-4.4`
	digest            = `0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef`
	release           = `quay.io/openshift-release-dev/ocp-release`
	startTime         = `2020-07-05T01:35:36Z`
)

// edit changes one field; a nil value removes it.
type edit struct {
	path  string
	value any
}

func (e edit) apply(t *testing.T, object map[string]any) {
	t.Helper()
	path := strings.Split(e.path, ".")
	if e.value == nil {
		unstructured.RemoveNestedField(object, path...)
		return
	}
	if err := unstructured.SetNestedField(object, e.value, path...); err != nil {
		t.Fatal(err)
	}
}

func upgradeConfig(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": upgradev1alpha1.GroupVersion.String(), "kind": "UpgradeConfig",
		"metadata": map[string]any{"namespace": namespace, "name": name},
		"spec": map[string]any{
			"type": "OSD", "upgradeAt": "2020-06-20T12:00:00Z", "PDBForceDrainTimeout": int64(120),
			"desired": map[string]any{"channel": "fast-4.4", "version": "4.4.6"},
		},
	}}
}

// specCases are valid and invalid specs. Each rejection is a field, a colon, and the end of its
// message.
var specCases = map[string]struct {
	edits []edit
	want  []string
}{
	"the design's example is accepted": {},

	"unknown type is accepted":            {edits: []edit{{"spec.type", "Homegrown"}}},
	"a type is required":                  {edits: []edit{{"spec.type", nil}}, want: []string{"spec.type: Required value"}},
	"an empty type is refused":            {edits: []edit{{"spec.type", ""}}, want: []string{"spec.type: should be at least 1 chars long"}},
	"a type of 63 characters is accepted": {edits: []edit{{"spec.type", strings.Repeat("a", 63)}}},
	"a type of 64 characters is refused":  {edits: []edit{{"spec.type", strings.Repeat("a", 64)}}, want: []string{"spec.type: may not be more than 63 bytes"}},
	"a type that is a number is refused":  {edits: []edit{{"spec.type", int64(1)}}, want: []string{`spec.type: must be of type string: "integer"`}},

	"a time with an offset is accepted":              {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:00+02:00"}}},
	"a time with a negative offset is accepted":      {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:00-09:30"}}},
	"a time with a fraction of a second is accepted": {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:00.123456789Z"}}},
	"29 February of a leap year is accepted":         {edits: []edit{{"spec.upgradeAt", "2024-02-29T12:00:00Z"}}},
	"29 February of the year 2000 is accepted":       {edits: []edit{{"spec.upgradeAt", "2000-02-29T12:00:00Z"}}},
	"31 December is accepted":                        {edits: []edit{{"spec.upgradeAt", "2020-12-31T23:59:59Z"}}},
	"a time is required":                             {edits: []edit{{"spec.upgradeAt", nil}}, want: []string{"spec.upgradeAt: Required value"}},
	"an empty time is refused":                       {edits: []edit{{"spec.upgradeAt", ""}}, want: []string{"spec.upgradeAt: should be at least 1 chars long", "spec.upgradeAt: " + invalidTime}},
	"a time without a zone is refused":               {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:00"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a date alone is refused":                        {edits: []edit{{"spec.upgradeAt", "2020-06-20"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a blank instead of the T is refused":            {edits: []edit{{"spec.upgradeAt", "2020-06-20 12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a lower case t is refused":                      {edits: []edit{{"spec.upgradeAt", "2020-06-20t12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a lower case z is refused":                      {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:00z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a month 13 is refused":                          {edits: []edit{{"spec.upgradeAt", "2020-13-20T12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a month 0 is refused":                           {edits: []edit{{"spec.upgradeAt", "2020-00-20T12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a day 0 is refused":                             {edits: []edit{{"spec.upgradeAt", "2020-06-00T12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a day 32 is refused":                            {edits: []edit{{"spec.upgradeAt", "2020-01-32T12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"an hour 24 is refused":                          {edits: []edit{{"spec.upgradeAt", "2020-06-20T24:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a minute 60 is refused":                         {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:60:00Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a second 60 is refused":                         {edits: []edit{{"spec.upgradeAt", "2016-12-31T23:59:60Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"an offset of 24 hours is refused":               {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:00+24:00"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"an offset without a colon is refused":           {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:00+0200"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a year 0 is refused":                            {edits: []edit{{"spec.upgradeAt", "0000-06-20T12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"a time with something after it is refused":      {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:00Z\n"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
	"30 February is refused":                         {edits: []edit{{"spec.upgradeAt", "2020-02-30T12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidDay}},
	"29 February of a common year is refused":        {edits: []edit{{"spec.upgradeAt", "2023-02-29T12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidDay}},
	"29 February of the year 2100 is refused":        {edits: []edit{{"spec.upgradeAt", "2100-02-29T12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidDay}},
	"31 November is refused":                         {edits: []edit{{"spec.upgradeAt", "2020-11-31T12:00:00Z"}}, want: []string{"spec.upgradeAt: " + invalidDay}},
	"a time of 65 characters is refused":             {edits: []edit{{"spec.upgradeAt", strings.Repeat("2", 65)}}, want: []string{"spec.upgradeAt: may not be more than 64 bytes"}},

	"a drain may be forced at once":                {edits: []edit{{"spec.PDBForceDrainTimeout", int64(0)}}},
	"a year to drain is accepted":                  {edits: []edit{{"spec.PDBForceDrainTimeout", int64(525600)}}},
	"more than a year to drain is refused":         {edits: []edit{{"spec.PDBForceDrainTimeout", int64(525601)}}, want: []string{"spec.PDBForceDrainTimeout: " + invalidMinutes}},
	"the largest number of 32 bits is refused":     {edits: []edit{{"spec.PDBForceDrainTimeout", int64(1<<31 - 1)}}, want: []string{"spec.PDBForceDrainTimeout: " + invalidMinutes}},
	"a time to drain is required":                  {edits: []edit{{"spec.PDBForceDrainTimeout", nil}}, want: []string{"spec.PDBForceDrainTimeout: Required value"}},
	"a negative time to drain is refused":          {edits: []edit{{"spec.PDBForceDrainTimeout", int64(-1)}}, want: []string{"spec.PDBForceDrainTimeout: " + invalidMinutes}},
	"a time to drain beyond 32 bits is refused":    {edits: []edit{{"spec.PDBForceDrainTimeout", int64(1 << 31)}}, want: []string{"spec.PDBForceDrainTimeout: must be of type integer with format int32", "spec.PDBForceDrainTimeout: " + invalidMinutes}},
	"a time to drain with its unit is refused":     {edits: []edit{{"spec.PDBForceDrainTimeout", "2h"}}, want: []string{`spec.PDBForceDrainTimeout: must be of type integer: "string"`}},
	"a time to drain with a fraction is refused":   {edits: []edit{{"spec.PDBForceDrainTimeout", 1.5}}, want: []string{"spec.PDBForceDrainTimeout: must be of type integer with format int32", "spec.PDBForceDrainTimeout: must be of type int32"}},
	"a time to drain in the wrong case is refused": {edits: []edit{{"spec.PDBForceDrainTimeout", nil}, {"spec.pdbForceDrainTimeout", int64(1)}}, want: []string{`strict decoding error: unknown field "spec.pdbForceDrainTimeout"`}},

	"a prerelease is accepted":                         {edits: []edit{{"spec.desired.version", "4.20.0-rc.1"}}},
	"build metadata are accepted":                      {edits: []edit{{"spec.desired.version", "4.20.0+build.5"}}},
	"a prerelease with build metadata is accepted":     {edits: []edit{{"spec.desired.version", "4.20.0-ec.3+amd64"}}},
	"zeros are accepted":                               {edits: []edit{{"spec.desired.version", "0.0.0"}}},
	"a version is required":                            {edits: []edit{{"spec.desired.version", nil}}, want: []string{"spec.desired.version: Required value"}},
	"an empty version is refused":                      {edits: []edit{{"spec.desired.version", ""}}, want: []string{"spec.desired.version: should be at least 1 chars long", "spec.desired.version: " + invalidVersion}},
	"a version with a leading v is refused":            {edits: []edit{{"spec.desired.version", "v4.4.6"}}, want: []string{"spec.desired.version: " + invalidVersion}},
	"a version of two numbers is refused":              {edits: []edit{{"spec.desired.version", "4.4"}}, want: []string{"spec.desired.version: " + invalidVersion}},
	"a version of four numbers is refused":             {edits: []edit{{"spec.desired.version", "4.4.6.1"}}, want: []string{"spec.desired.version: " + invalidVersion}},
	"a leading zero is refused":                        {edits: []edit{{"spec.desired.version", "4.04.6"}}, want: []string{"spec.desired.version: " + invalidVersion}},
	"a prerelease with a leading zero is refused":      {edits: []edit{{"spec.desired.version", "4.4.6-rc.01"}}, want: []string{"spec.desired.version: " + invalidVersion}},
	"an empty prerelease is refused":                   {edits: []edit{{"spec.desired.version", "4.4.6-"}}, want: []string{"spec.desired.version: " + invalidVersion}},
	"a blank around the version is refused":            {edits: []edit{{"spec.desired.version", " 4.4.6"}}, want: []string{"spec.desired.version: " + invalidVersion}},
	"a version written as a number is refused":         {edits: []edit{{"spec.desired.version", 4.4}}, want: []string{`spec.desired.version: must be of type string: "number"`}},
	"a version of 128 characters is accepted":          {edits: []edit{{"spec.desired.version", "4.4.6-" + strings.Repeat("a", 122)}}},
	"a version of 129 characters is refused":           {edits: []edit{{"spec.desired.version", "4.4.6-" + strings.Repeat("a", 123)}}, want: []string{"spec.desired.version: may not be more than 128 bytes"}},
	"a channel is required":                            {edits: []edit{{"spec.desired.channel", nil}}, want: []string{"spec.desired.channel: Required value"}},
	"an empty channel is refused":                      {edits: []edit{{"spec.desired.channel", ""}}, want: []string{"spec.desired.channel: should be at least 1 chars long", "spec.desired.channel: " + invalidChannel}},
	"a channel with a space is refused":                {edits: []edit{{"spec.desired.channel", "fast 4.4"}}, want: []string{"spec.desired.channel: " + invalidChannel}},
	"a channel with an underscore is accepted":         {edits: []edit{{"spec.desired.channel", "eus_4.4-a.b"}}},
	"a channel that ends with a hyphen is refused":     {edits: []edit{{"spec.desired.channel", "fast-4.4-"}}, want: []string{"spec.desired.channel: " + invalidChannel}},
	"a channel of 128 characters is accepted":          {edits: []edit{{"spec.desired.channel", strings.Repeat("a", 128)}}},
	"a channel of 129 characters is refused":           {edits: []edit{{"spec.desired.channel", strings.Repeat("a", 129)}}, want: []string{"spec.desired.channel: may not be more than 128 bytes"}},
	"a release is required":                            {edits: []edit{{"spec.desired", nil}}, want: []string{"spec.desired: Required value"}},
	"a spec is required":                               {edits: []edit{{"spec", nil}}, want: []string{"spec: Required value"}},
	"an image by digest is accepted":                   {edits: []edit{{"spec.desired.image", release + "@sha256:" + digest}}},
	"an image by tag and digest is accepted":           {edits: []edit{{"spec.desired.image", release + ":4.4.6@sha256:" + digest}}},
	"an image by tag is refused":                       {edits: []edit{{"spec.desired.image", release + ":4.4.6-x86_64"}}, want: []string{"spec.desired.image: " + invalidDigest}},
	"an image by a digest cut short is refused":        {edits: []edit{{"spec.desired.image", release + "@sha256:" + digest[:63]}}, want: []string{"spec.desired.image: " + invalidDigest}},
	"an image by a digest in upper case is refused":    {edits: []edit{{"spec.desired.image", release + "@sha256:" + strings.ToUpper(digest)}}, want: []string{"spec.desired.image: " + invalidDigest}},
	"a digest alone is refused":                        {edits: []edit{{"spec.desired.image", "sha256:" + digest}}, want: []string{"spec.desired.image: " + invalidDigest}},
	"an empty image is refused":                        {edits: []edit{{"spec.desired.image", ""}}, want: []string{"spec.desired.image: should be at least 1 chars long", "spec.desired.image: " + invalidDigest}},
	"an image of 513 characters is refused":            {edits: []edit{{"spec.desired.image", strings.Repeat("a", 441) + "@sha256:" + digest}}, want: []string{"spec.desired.image: may not be more than 512 bytes"}},
	"accepted risks are accepted":                      {edits: []edit{{"spec.desired.acceptedRisks", []any{"OneRisk", "AnotherRisk"}}}},
	"no accepted risks are accepted":                   {edits: []edit{{"spec.desired.acceptedRisks", []any{}}}},
	"a risk that is accepted twice is refused":         {edits: []edit{{"spec.desired.acceptedRisks", []any{"OneRisk", "OneRisk"}}}, want: []string{`spec.desired.acceptedRisks[1]: Duplicate value: "OneRisk"`}},
	"a risk without a name is refused":                 {edits: []edit{{"spec.desired.acceptedRisks", []any{""}}}, want: []string{"spec.desired.acceptedRisks[0]: should be at least 1 chars long"}},
	"a risk with a name of 257 characters is refused":  {edits: []edit{{"spec.desired.acceptedRisks", []any{strings.Repeat("a", 257)}}}, want: []string{"spec.desired.acceptedRisks[0]: may not be more than 256 bytes"}},
	"64 accepted risks are accepted":                   {edits: []edit{{"spec.desired.acceptedRisks", risks(64)}}},
	"65 accepted risks are refused":                    {edits: []edit{{"spec.desired.acceptedRisks", risks(65)}}, want: []string{"spec.desired.acceptedRisks: must have at most 64 items"}},
	"accepted risks that are no list are refused":      {edits: []edit{{"spec.desired.acceptedRisks", "OneRisk"}}, want: []string{`spec.desired.acceptedRisks: must be of type array: "string"`}},
	"a reservation of capacity is accepted":            {edits: []edit{{"spec.capacityReservation", true}}},
	"a reservation that is a word is refused":          {edits: []edit{{"spec.capacityReservation", "yes"}}, want: []string{`spec.capacityReservation: must be of type boolean: "string"`}},
	"a pause is accepted":                              {edits: []edit{{"spec.paused", true}}},
	"a pause that is a word is refused":                {edits: []edit{{"spec.paused", "yes"}}, want: []string{`spec.paused: must be of type boolean: "string"`}},
	"an unknown field of the spec is refused by name":  {edits: []edit{{"spec.upgradeat", "now"}}, want: []string{`strict decoding error: unknown field "spec.upgradeat"`}},
	"an unknown field of desired is refused by name":   {edits: []edit{{"spec.desired.force", true}}, want: []string{`strict decoding error: unknown field "spec.desired.force"`}},
	"an unknown field at the top is refused by name":   {edits: []edit{{"specification", "x"}}, want: []string{`strict decoding error: unknown field "specification"`}},
	"several wrong fields are refused all at once":     {edits: []edit{{"spec.upgradeAt", "noon"}, {"spec.desired.version", "v4"}, {"spec.PDBForceDrainTimeout", int64(-5)}}, want: []string{"spec.PDBForceDrainTimeout: " + invalidMinutes, "spec.desired.version: " + invalidVersion, "spec.upgradeAt: " + invalidTime}},
	"any name that Kubernetes takes is accepted":       {edits: []edit{{"metadata.name", "a.b-c." + strings.Repeat("x", 200)}}},
	"a name that Kubernetes does not take is refused":  {edits: []edit{{"metadata.name", "Upgrade_1"}}, want: []string{"metadata.name: "}},
	"a status in a request is dropped":                 {edits: []edit{{"status.history", []any{map[string]any{"version": "4.4.6", "phase": "Upgraded"}}}}},
	"labels and annotations of any kind are accepted":  {edits: []edit{{"metadata.labels", map[string]any{"a": "b"}}, {"metadata.annotations", map[string]any{"c": "d"}}}},
	"a version in another field's place is refused":    {edits: []edit{{"spec.version", "4.4.6"}}, want: []string{`strict decoding error: unknown field "spec.version"`}},
	"an object under another version is not known":     {edits: []edit{{"apiVersion", "upgrade.managed.openshift.io/v1"}}, want: []string{`no matches for kind "UpgradeConfig" in version "upgrade.managed.openshift.io/v1"`}},
	"a time with an offset beyond the hour is refused": {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:00+02:60"}}, want: []string{"spec.upgradeAt: " + invalidTime}},
}

func risks(n int) []any {
	var names []any
	for i := range n {
		names = append(names, fmt.Sprintf("Risk%d", i))
	}
	return names
}

func TestSpec(t *testing.T) {
	t.Parallel()
	for name, tc := range specCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := upgradeConfig("example")
			for _, e := range tc.edits {
				e.apply(t, object.Object)
			}
			err := server.Create(t.Context(), object, client.DryRunAll, client.FieldValidation("Strict"))
			crdtest.CompareRejections(t, tc.want, err)
		})
	}
}

func TestCRD_rules_are_all_tested(t *testing.T) {
	t.Parallel()
	objects, err := manifests.Read(os.DirFS("../../../deploy/crds"))
	if err != nil {
		t.Fatal(err)
	}
	tried := []string{upgradeInProgress, upgradeCommenced}
	for _, tc := range specCases {
		for _, want := range tc.want {
			_, message, _ := strings.Cut(want, ": ")
			tried = append(tried, message)
		}
	}
	rules := 0
	var walk func(any)
	walk = func(node any) {
		switch node := node.(type) {
		case map[string]any:
			for key, value := range node {
				if list, ok := value.([]any); ok && key == "x-kubernetes-validations" {
					for _, rule := range list {
						rules++
						if message := rule.(map[string]any)["message"].(string); !slices.Contains(tried, message) {
							t.Errorf("no case is refused because it %s", message)
						}
					}
				}
				walk(value)
			}
		case []any:
			for _, value := range node {
				walk(value)
			}
		}
	}
	for _, object := range objects {
		if object.GetName() == "upgradeconfigs.upgrade.managed.openshift.io" {
			walk(object.Object)
		}
	}
	if rules != 8 {
		t.Errorf("the CRD has %d rules, these tests know 8", rules)
	}
}

func status(history ...any) map[string]any { return map[string]any{"history": history} }

func historyRecord(fields map[string]any) map[string]any {
	whole := map[string]any{"version": "4.4.6", "phase": "Upgrading", "startTime": startTime}
	maps.Copy(whole, fields)
	return whole
}

func step(fields map[string]any) map[string]any {
	whole := map[string]any{"type": "PreHealthCheck", "status": "False"}
	maps.Copy(whole, fields)
	return historyRecord(map[string]any{"conditions": []any{whole}})
}

func summary(fields map[string]any) map[string]any {
	whole := map[string]any{"type": "Accepted", "status": "True", "reason": "Valid", "message": "", "lastTransitionTime": startTime}
	for name, value := range fields {
		if whole[name] = value; value == nil {
			delete(whole, name)
		}
	}
	return map[string]any{"conditions": []any{whole}}
}

func many(n int, one func(int) any) []any {
	var all []any
	for i := range n {
		all = append(all, one(i))
	}
	return all
}

func TestStatus(t *testing.T) {
	t.Parallel()
	object := upgradeConfig("status")
	if err := server.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	version := func(i int) any { return map[string]any{"version": fmt.Sprintf("4.4.%d", i)} }
	named := func(i int) any { return map[string]any{"type": fmt.Sprintf("Step%d", i), "status": "True"} }
	for name, tc := range map[string]struct {
		status any
		want   []string
	}{
		"an empty status is accepted":            {status: map[string]any{}},
		"no status is accepted":                  {status: nil},
		"the phase New is accepted":              {status: status(historyRecord(map[string]any{"phase": "New"}))},
		"the phase Pending is accepted":          {status: status(historyRecord(map[string]any{"phase": "Pending"}))},
		"the phase Upgrading is accepted":        {status: status(historyRecord(map[string]any{"phase": "Upgrading"}))},
		"the phase Upgraded is accepted":         {status: status(historyRecord(map[string]any{"phase": "Upgraded"}))},
		"the phase Failed is accepted":           {status: status(historyRecord(map[string]any{"phase": "Failed"}))},
		"the phase Unknown is accepted":          {status: status(historyRecord(map[string]any{"phase": "Unknown"}))},
		"the phase Paused is accepted":           {status: status(historyRecord(map[string]any{"phase": "Paused"}))},
		"an eighth phase is refused":             {status: status(historyRecord(map[string]any{"phase": "Waiting"})), want: []string{`status.history[0].phase: Unsupported value: "Waiting": supported values: "New", "Pending", "Upgrading", "Upgraded", "Failed", "Unknown", "Paused"`}},
		"an element without a phase is accepted": {status: status(version(6))},
		"an element without a version is refused": {
			status: status(map[string]any{"phase": "New"}), want: []string{"status.history[0].version: Required value"},
		},
		"an element with an empty version is refused": {status: status(map[string]any{"version": ""}), want: []string{"status.history[0].version: should be at least 1 chars long"}},
		"two elements for one version are refused":    {status: status(version(6), version(6)), want: []string{`status.history[1]: Duplicate value: {"version":"4.4.6"}`}},
		"16 elements are accepted":                    {status: status(many(16, version)...)},
		"17 elements are refused":                     {status: status(many(17, version)...), want: []string{"status.history: must have at most 16 items"}},
		"an attempt 1 is accepted":                    {status: status(historyRecord(map[string]any{"attempt": int64(1)}))},
		"an attempt 0 is refused":                     {status: status(historyRecord(map[string]any{"attempt": int64(0)})), want: []string{"status.history[0].attempt: should be greater than or equal to 1"}},
		"start that is not a time":                    {status: status(historyRecord(map[string]any{"startTime": "noon"})), want: []string{"status.history[0].startTime: should match"}},
		"a start that is a list is refused":           {status: status(historyRecord(map[string]any{"startTime": []any{}})), want: []string{"status.history[0].startTime: must be of type string"}},
		"a start with a lower-case t is refused":      {status: status(historyRecord(map[string]any{"startTime": "2020-02-20t00:00:00Z"})), want: []string{"status.history[0].startTime: should match"}},
		"a long preceding version is refused":         {status: status(historyRecord(map[string]any{"precedingVersion": strings.Repeat("4", 129)})), want: []string{"status.history[0].precedingVersion: may not be more than 128 bytes"}},
		"64 steps are accepted":                       {status: status(historyRecord(map[string]any{"conditions": many(64, named)}))},
		"65 steps are refused":                        {status: status(historyRecord(map[string]any{"conditions": many(65, named)})), want: []string{"status.history[0].conditions: must have at most 64 items"}},
		"a step that is there twice is refused":       {status: status(historyRecord(map[string]any{"conditions": []any{named(1), named(1)}})), want: []string{`status.history[0].conditions[1]: Duplicate value: {"type":"Step1"}`}},
		"a reason in free text is accepted":           {status: status(step(map[string]any{"reason": "Cluster has critical alerts"}))},
		"a step that is neither done nor not is refused": {
			status: status(step(map[string]any{"status": "Maybe"})), want: []string{`status.history[0].conditions[0].status: supported values: "True", "False", "Unknown"`},
		},
		"a step whose status is Unknown is accepted":   {status: status(step(map[string]any{"status": "Unknown"}))},
		"a step without a name is refused":             {status: status(step(map[string]any{"type": ""})), want: []string{"status.history[0].conditions[0].type: should be at least 1 chars long"}},
		"a step with a name without end is refused":    {status: status(step(map[string]any{"type": strings.Repeat("a", 129)})), want: []string{"status.history[0].conditions[0].type: may not be more than 128 bytes"}},
		"a step with a reason without end is refused":  {status: status(step(map[string]any{"reason": strings.Repeat("a", 1025)})), want: []string{"status.history[0].conditions[0].reason: may not be more than 1024 bytes"}},
		"a step with a message without end is refused": {status: status(step(map[string]any{"message": strings.Repeat("a", 32769)})), want: []string{"status.history[0].conditions[0].message: may not be more than 32768 bytes"}},
		"end of a step that is not a time":             {status: status(step(map[string]any{"completeTime": "2020-02-30T00:00:00Z"})), want: []string{"status.history[0].conditions[0].completeTime: should match"}},
		"a summary is accepted":                        {status: summary(nil)},
		"a summary without a reason is refused":        {status: summary(map[string]any{"reason": nil}), want: []string{"status.conditions[0].reason: Required value"}},
		"a summary with a reason in prose is refused":  {status: summary(map[string]any{"reason": "not valid"}), want: []string{"status.conditions[0].reason: should match"}},
		"a generation is accepted":                     {status: map[string]any{"observedGeneration": int64(3)}},
		"a generation before the first is refused":     {status: map[string]any{"observedGeneration": int64(0)}, want: []string{"status.observedGeneration: should be greater than or equal to 1"}},
		"a step with an empty reason is refused":       {status: status(step(map[string]any{"reason": ""})), want: []string{"status.history[0].conditions[0].reason: should be at least 1 chars long"}},
		"a step with an empty message is refused":      {status: status(step(map[string]any{"message": ""})), want: []string{"status.history[0].conditions[0].message: should be at least 1 chars long"}},
		"an empty preceding version is refused":        {status: status(historyRecord(map[string]any{"precedingVersion": ""})), want: []string{"status.history[0].precedingVersion: should be at least 1 chars long"}},
		"an unknown field is refused by name":          {status: map[string]any{"fase": "New"}, want: []string{`strict decoding error: unknown field "status.fase"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			changed := object.DeepCopy()
			if changed.Object["status"] = tc.status; tc.status == nil {
				delete(changed.Object, "status")
			}
			err := server.Status().Update(t.Context(), changed, client.DryRunAll, client.FieldValidation("Strict"))
			crdtest.CompareRejections(t, tc.want, err)
		})
	}
}

// wholeSpecChanged changes every field of the spec.
var wholeSpecChanged = []edit{
	{"spec.type", "ARO"},
	{"spec.upgradeAt", "2020-06-21T12:00:00Z"},
	{"spec.PDBForceDrainTimeout", int64(60)},
	{"spec.desired.version", "4.4.7"},
	{"spec.desired.channel", "stable-4.4"},
	{"spec.desired.image", release + "@sha256:" + digest},
	{"spec.desired.acceptedRisks", []any{"Other"}},
	{"spec.capacityReservation", true},
	{"spec.paused", true},
}

func TestSpec_while_an_upgrade_is_in_progress(t *testing.T) {
	t.Parallel()
	rejected := []string{"spec: " + upgradeInProgress}
	rejectedDesired := []string{"spec.desired: " + upgradeCommenced}
	for name, tc := range map[string]struct {
		edits     []edit
		want      []string
		committed []string // also, once the upgrade has commenced
	}{
		"an upgrade may be paused":                    {edits: []edit{{"spec.paused", true}}},
		"the time to drain may change":                {edits: []edit{{"spec.PDBForceDrainTimeout", int64(0)}}},
		"both may change at once":                     {edits: []edit{{"spec.paused", false}, {"spec.PDBForceDrainTimeout", int64(5)}}},
		"the metadata may change":                     {edits: []edit{{"metadata.labels", map[string]any{"a": "b"}}, {"metadata.annotations", map[string]any{"c": "d"}}, {"metadata.finalizers", []any{upgradev1alpha1.Finalizer}}}},
		"the risks may stand in another order":        {edits: []edit{{"spec.desired.acceptedRisks", []any{"Two", "One"}}}},
		"the type may not change":                     {edits: []edit{{"spec.type", "ARO"}}, want: rejected},
		"the time may not change":                     {edits: []edit{{"spec.upgradeAt", "2020-06-20T12:00:01Z"}}, want: rejected},
		"the version may not change":                  {edits: []edit{{"spec.desired.version", "4.4.7"}}, want: rejected, committed: rejectedDesired},
		"the channel may change until the commit":     {edits: []edit{{"spec.desired.channel", "stable-4.4"}}, committed: rejectedDesired},
		"an image may come until the commit":          {edits: []edit{{"spec.desired.image", release + "@sha256:" + digest}}, committed: rejectedDesired},
		"a risk may be accepted until the commit":     {edits: []edit{{"spec.desired.acceptedRisks", []any{"One", "Two", "Three"}}}, committed: rejectedDesired},
		"the risks may go until the commit":           {edits: []edit{{"spec.desired.acceptedRisks", nil}}, committed: rejectedDesired},
		"the reservation may not change":              {edits: []edit{{"spec.capacityReservation", false}}, want: rejected},
		"the reservation may not go":                  {edits: []edit{{"spec.capacityReservation", nil}}, want: rejected},
		"a pause does not smuggle in another version": {edits: []edit{{"spec.paused", true}, {"spec.desired.version", "4.4.7"}}, want: rejected, committed: rejectedDesired},
	} {
		for prefix, commenceTime := range map[string]any{"before-": nil, "after-": startTime} {
			t.Run(prefix+name, func(t *testing.T) {
				t.Parallel()
				object := upgradeConfig(prefix + strings.ReplaceAll(name, " ", "-"))
				edit{"spec.desired.acceptedRisks", []any{"One", "Two"}}.apply(t, object.Object)
				edit{"spec.capacityReservation", true}.apply(t, object.Object)
				server.MustCreate(t, object)
				record := historyRecord(map[string]any{"version": "4.4.6"})
				want := tc.want
				if commenceTime != nil {
					record["commenceTime"] = commenceTime
					want = append(slices.Clone(want), tc.committed...)
				}
				server.MustUpdateStatus(t, object, status(record, historyRecord(map[string]any{"version": "4.4.5", "completeTime": startTime})))
				for _, e := range tc.edits {
					e.apply(t, object.Object)
				}
				crdtest.CompareRejections(t, want, server.Update(t.Context(), object))
			})
		}
	}
}

func TestReservation_cannot_be_added_while_an_upgrade_is_in_progress(t *testing.T) {
	t.Parallel()
	object := upgradeConfig("reservation")
	server.MustCreate(t, object)
	server.MustUpdateStatus(t, object, status(historyRecord(nil)))
	edit{"spec.capacityReservation", true}.apply(t, object.Object)
	crdtest.CompareRejections(t, []string{"spec: " + upgradeInProgress}, server.Update(t.Context(), object))
}

func TestSpec_while_no_upgrade_is_in_progress(t *testing.T) {
	t.Parallel()
	for name, recorded := range map[string]any{
		"everything may change before there is a status": nil,
		"everything may change with an empty status":     map[string]any{},
		"everything may change without a history":        summary(nil),
		"everything may change before the first step":    status(map[string]any{"version": "4.4.6", "phase": "Pending"}),
		"everything may change after the end":            status(historyRecord(map[string]any{"phase": "Failed", "completeTime": startTime})),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := upgradeConfig(strings.ReplaceAll(name, " ", "-"))
			server.MustCreate(t, object)
			if recorded != nil {
				server.MustUpdateStatus(t, object, recorded)
			}
			for _, e := range wholeSpecChanged {
				e.apply(t, object.Object)
			}
			crdtest.CompareRejections(t, nil, server.Update(t.Context(), object))
		})
	}
}

func TestStatus_and_deletion_while_an_upgrade_is_in_progress(t *testing.T) {
	t.Parallel()
	object := upgradeConfig("goes-on")
	server.MustCreate(t, object)
	server.MustUpdateStatus(t, object, status(historyRecord(nil)))
	server.MustUpdateStatus(t, object, status(step(map[string]any{"status": "True"})))
	server.MustUpdateStatus(t, object, map[string]any{}) // wiped
	server.MustUpdateStatus(t, object, status(historyRecord(nil)))
	wipe := client.RawPatch(types.MergePatchType, []byte(`{"status":null}`))
	if err := server.Status().Patch(t.Context(), object, wipe); err != nil {
		t.Fatal(err)
	}
	if left, found := object.Object["status"]; found {
		t.Fatalf("a wiped status still has %v", left)
	}
	server.MustUpdateStatus(t, object, status(historyRecord(nil)))
	if err := server.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
		t.Errorf("it is still there: %v", err)
	}
}
