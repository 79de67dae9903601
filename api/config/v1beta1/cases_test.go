// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/crdtest"
)

const (
	definitionsFolder = "../../../deploy/update-status/crds"
	samplesFolder     = "testdata/proposal"
)

// samples are the manifests of the seed, which the cases edit, by kind.
var samples = map[string]string{
	"UpdateInformer": "updateinformer.yaml",
	"UpdatePlan":     "updateplan.yaml",
	"UpdateStatus":   "updatestatus.yaml",
}

// The messages of the rules.
const (
	reservedName     = `metadata.name must not be update-status-controller or start with builtin-: the Update Status Controller reports under these names`
	longName         = `metadata.name may have at most 63 characters`
	invalidNamespace = `must be the name of a namespace: lower-case letters, digits, and hyphens, for example openshift-machine-api`
	invalidService   = `must be the name of a Service, without its namespace: lower-case letters, digits, and hyphens, for example update-informer`
	invalidBundle    = `must contain certificates in PEM, encoded in base64, for example the output of base64 -w0 ca.crt`
	anotherSingleton = `metadata.name must be cluster: a cluster has one UpdateStatus`
	anotherPlanName  = `metadata.name must be update-plan- and spec.targetRelease, for example update-plan-4.20.6: there is one plan for each release`
	anotherHashName  = `metadata.name must be update-plan-, spec.targetRelease in lower case with - instead of +, -, and the first 8 digits of its SHA-256 hash, which printf %s RELEASE | sha256sum prints`
	invalidVersion   = `must be a semantic version without a leading v, for example 4.20.6`
	invalidPart      = `each part must start and end with a letter or a digit, for example 4.21.0-rc.1`
	unchangeable     = `cannot change: create another UpdatePlan for another release`
	invalidUUID      = `must be the uuid of an insight of status, 32 hexadecimal digits in lower case, or empty`
)

// testCase is an edited sample, and the rejections by the API server: each a field, a colon, and the
// end of a message.
type testCase struct {
	edits edits
	want  []string
}

// edits are new values by field; a nil value removes the field.
type edits map[string]any

func (e edits) apply(tb testing.TB, object *unstructured.Unstructured) {
	tb.Helper()
	for path, value := range e {
		crdtest.SetField(tb, object.Object, path, value)
	}
}

// sample returns the object of a sample, without its status, which the API server ignores.
func sample(tb testing.TB, kind string) *unstructured.Unstructured {
	tb.Helper()
	return crdtest.Sample(tb, filepath.Join(samplesFolder, samples[kind]))
}

// cases are the edits of each kind that the API server accepts or rejects.
func cases() map[string]map[string]testCase {
	return map[string]map[string]testCase{
		"UpdateInformer": informerCases(),
		"UpdatePlan":     planCases(),
		"UpdateStatus": {
			"sample":          {},
			"no spec":         {edits: edits{"spec": nil}},
			"empty spec":      {edits: edits{"spec": map[string]any{}}},
			"another name":    {edits: edits{"metadata.name": "version"}, want: []string{"<nil>: " + anotherSingleton}},
			"spec with field": {edits: edits{"spec": map[string]any{"paused": true}}, want: []string{`strict decoding error: unknown field "spec.paused"`}},
			"spec that is a text": {
				edits: edits{"spec": "cluster"}, want: []string{`spec: must be of type object: "string"`},
			},
		},
	}
}

func informerCases() map[string]testCase {
	const (
		service = "spec.clientConfig.service."
		bundle  = "spec.clientConfig.caBundle"
	)
	pem := "-----BEGIN CERTIFICATE-----\n"
	encode := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	all := map[string]testCase{
		"sample":                     {},
		"only the service":           {edits: edits{"spec": map[string]any{"clientConfig": map[string]any{"service": map[string]any{"name": "a", "namespace": "b"}}}}},
		"enabled":                    {edits: edits{"spec.enabled": true}},
		"enabled as a text":          {edits: edits{"spec.enabled": "true"}, want: []string{`spec.enabled: must be of type boolean: "string"`}},
		"no spec":                    {edits: edits{"spec": nil}, want: []string{"spec: Required value"}},
		"no client config":           {edits: edits{"spec.clientConfig": nil}, want: []string{"spec.clientConfig: Required value"}},
		"no service":                 {edits: edits{"spec.clientConfig.service": nil}, want: []string{"spec.clientConfig.service: Required value"}},
		"URL instead of a service":   {edits: edits{"spec.clientConfig.url": "https://example.com"}, want: []string{`strict decoding error: unknown field "spec.clientConfig.url"`}},
		"port 1":                     {edits: edits{service + "port": int64(1)}},
		"port 65535":                 {edits: edits{service + "port": int64(65535)}},
		"port 0":                     {edits: edits{service + "port": int64(0)}, want: []string{service + "port: should be greater than or equal to 1"}},
		"port 65536":                 {edits: edits{service + "port": int64(65536)}, want: []string{service + "port: should be less than or equal to 65535"}},
		"name of a port":             {edits: edits{service + "port": "https"}, want: []string{service + `port: must be of type integer: "string"`}},
		"name of the controller":     {edits: edits{"metadata.name": "update-status-controller"}, want: []string{"<nil>: " + reservedName}},
		"name of a built-in":         {edits: edits{"metadata.name": "builtin-nodes"}, want: []string{"<nil>: " + reservedName}},
		"name like the controller":   {edits: edits{"metadata.name": "update-status-controller-2"}},
		"name like a built-in":       {edits: edits{"metadata.name": "my-builtin-nodes"}},
		"name of 63 characters":      {edits: edits{"metadata.name": strings.Repeat("a", 63)}},
		"name of 64 characters":      {edits: edits{"metadata.name": strings.Repeat("a", 64)}, want: []string{"<nil>: " + longName}},
		"bundle":                     {edits: edits{bundle: encode(pem)}},
		"empty bundle":               {edits: edits{bundle: ""}, want: []string{bundle + ": must be of type byte"}},
		"bundle with a comment":      {edits: edits{bundle: encode("# service CA\n" + pem)}},
		"bundle of 64 KiB":           {edits: edits{bundle: encode(pem + strings.Repeat("\n", 65536-len(pem)))}},
		"bundle of more than 64 KiB": {edits: edits{bundle: encode(pem + strings.Repeat("\n", 65536+3-len(pem)))}, want: []string{bundle + ": may not be more than 87384 bytes"}},
		"bundle that is a key":       {edits: edits{bundle: encode("-----BEGIN PRIVATE KEY-----\n")}, want: []string{bundle + ": " + invalidBundle}},
		"bundle not in base64":       {edits: edits{bundle: pem}, want: []string{bundle + ": must be of type byte"}},
	}
	for field, message := range map[string]string{"name": invalidService, "namespace": invalidNamespace} {
		path := service + field
		for _, valid := range []string{"a", "0", "a-b", strings.Repeat("a", 63)} {
			all[field+" "+valid] = testCase{edits: edits{path: valid}}
		}
		for _, invalid := range []string{"A", "a.b", "a_b", "-a", "a-", "a/b", "a\n", "ä", "a.b.svc", "127.0.0.1"} {
			all[fmt.Sprintf("%s %q", field, invalid)] = testCase{edits: edits{path: invalid}, want: []string{path + ": " + message}}
		}
		all[field+" missing"] = testCase{edits: edits{path: nil}, want: []string{path + ": Required value"}}
		all[field+" empty"] = testCase{edits: edits{path: ""}, want: []string{path + ": should be at least 1 chars long", path + ": " + message}}
		all[field+" too long"] = testCase{edits: edits{path: strings.Repeat("a", 64)}, want: []string{path + ": may not be more than 63 bytes"}}
	}
	return all
}

// plan returns the edits that make a plan of the sample for another release.
func plan(name, target string) edits {
	return edits{"metadata.name": name, "spec.targetRelease": target}
}

func planCases() map[string]testCase {
	all := map[string]testCase{
		"sample":                   {},
		"no spec":                  {edits: edits{"spec": nil}, want: []string{"spec: Required value"}},
		"only a target":            {edits: edits{"spec": map[string]any{"targetRelease": "4.14.4"}}},
		"no target":                {edits: edits{"spec.targetRelease": nil}, want: []string{"spec.targetRelease: Required value"}},
		"reviewed version as int":  {edits: edits{"spec.updatePlanResourceVersion": int64(43980)}, want: []string{`spec.updatePlanResourceVersion: must be of type string: "integer"`}},
		"long reviewed version":    {edits: edits{"spec.updatePlanResourceVersion": strings.Repeat("1", 65)}, want: []string{"spec.updatePlanResourceVersion: may not be more than 64 bytes"}},
		"name of another release":  {edits: plan("update-plan-4.14.5", "4.14.4"), want: []string{"<nil>: " + anotherPlanName}},
		"name with a suffix":       {edits: plan("update-plan-4.14.4-2", "4.14.4"), want: []string{"<nil>: " + anotherPlanName}},
		"name without the prefix":  {edits: plan("4.14.4", "4.14.4"), want: []string{"<nil>: " + anotherPlanName}},
		"release candidate":        {edits: plan("update-plan-4.15.0-rc.1", "4.15.0-rc.1")},
		"nightly":                  {edits: plan("update-plan-4.15.0-0.nightly-2026-11-22-031415", "4.15.0-0.nightly-2026-11-22-031415")},
		"build":                    {edits: plan("update-plan-4.15.0-rc.1-build.5-0a1b2c3d", "4.15.0-rc.1+build.5")},
		"upper case":               {edits: plan("update-plan-4.15.0-rc1-0a1b2c3d", "4.15.0-RC1")},
		"build without a hash":     {edits: plan("update-plan-4.15.0-build", "4.15.0+build"), want: []string{"<nil>: " + anotherHashName}},
		"upper case with no hash":  {edits: plan("update-plan-4.15.0-rc1", "4.15.0-RC1"), want: []string{"<nil>: " + anotherHashName}},
		"hash of 7 digits":         {edits: plan("update-plan-4.15.0-rc1-0a1b2c3", "4.15.0-RC1"), want: []string{"<nil>: " + anotherHashName}},
		"hash of 9 digits":         {edits: plan("update-plan-4.15.0-rc1-0a1b2c3d4", "4.15.0-RC1"), want: []string{"<nil>: " + anotherHashName}},
		"hash with another letter": {edits: plan("update-plan-4.15.0-rc1-0a1b2c3g", "4.15.0-RC1"), want: []string{"<nil>: " + anotherHashName}},
		"hash of another release":  {edits: plan("update-plan-4.15.1-rc1-0a1b2c3d", "4.15.0-RC1"), want: []string{"<nil>: " + anotherHashName}},
		"unknown field":            {edits: edits{"spec.targetVersion": "4.14.4"}, want: []string{`strict decoding error: unknown field "spec.targetVersion"`}},
	}
	for _, invalid := range []string{"4.14", "v4.14.4", "4.14.04", "4.14.4.1", "latest", "4.14.4-", "4.14.4+", "4.14.4-rc..1", "4.14.4-01", "4.14.4 ", "4.14.4\n"} {
		all[fmt.Sprintf("release %q", invalid)] = testCase{
			edits: edits{"spec.targetRelease": invalid}, want: nameless("spec.targetRelease: "+invalidVersion, invalid),
		}
	}
	for _, invalid := range []string{"4.14.4--a", "4.14.4-a-", "4.14.4-a.-b", "4.14.4-a-.b", "4.14.4-a+-b", "4.14.4-a-+b"} {
		all["release "+invalid] = testCase{edits: edits{"spec.targetRelease": invalid}, want: nameless("spec.targetRelease: "+invalidPart, invalid)}
	}
	all["empty release"] = testCase{edits: edits{"spec.targetRelease": ""}, want: []string{"spec.targetRelease: should be at least 1 chars long", "spec.targetRelease: " + invalidVersion, "<nil>: " + anotherHashName}}
	all["long release"] = testCase{edits: edits{"spec.targetRelease": "4.14.4-" + strings.Repeat("a", 122)}, want: []string{"spec.targetRelease: may not be more than 128 bytes"}}
	for name, tc := range acceptanceCases() {
		all["acceptance "+name] = tc
	}
	return all
}

// nameless adds what is wrong with the name of the sample for another release.
func nameless(rejection, target string) []string {
	message := anotherHashName
	if !strings.ContainsFunc(target, func(r rune) bool { return !strings.ContainsRune("-.0123456789abcdefghijklmnopqrstuvwxyz", r) }) {
		message = anotherPlanName
	}
	want := []string{rejection, "<nil>: " + message}
	if strings.HasSuffix(target, "-") || strings.HasSuffix(target, "+") { // no part follows
		if strings.HasSuffix(target, "-") && !strings.Contains(rejection, invalidPart) {
			want = append(want, "spec.targetRelease: "+invalidPart)
		}
	}
	return want
}

func acceptanceCases() map[string]testCase {
	const list = "spec.acceptedInsights"
	one := func(fields map[string]any) map[string]any {
		acceptance := map[string]any{"updateInformer": "a", "uid": "b", "accepted": true}
		for name, value := range fields {
			if acceptance[name] = value; value == nil {
				delete(acceptance, name)
			}
		}
		return acceptance
	}
	uuid := strings.Repeat("0a", 16)
	of := func(want string, acceptances ...any) testCase {
		tc := testCase{edits: edits{list: acceptances}}
		if want != "" {
			tc.want = []string{want}
		}
		return tc
	}
	count := func(n int) []any {
		var all []any
		for i := range n {
			all = append(all, one(map[string]any{"uid": fmt.Sprintf("uid-%d", i)}))
		}
		return all
	}
	return map[string]testCase{
		"none":                    of(""),
		"not accepted":            of("", one(map[string]any{"accepted": false})),
		"of two informers":        of("", one(nil), one(map[string]any{"updateInformer": "b"})),
		"of two uids":             of("", one(nil), one(map[string]any{"uid": "c"})),
		"of two uuids":            of("", one(nil), one(map[string]any{"uuid": uuid})),
		"twice":                   of(list+`[1]: Duplicate value: {"uid":"b","updateInformer":"a","uuid":""}`, one(nil), one(map[string]any{"accepted": false})),
		"with all fields":         of("", one(map[string]any{"uuid": uuid, "reason": "known", "acceptedBy": "system:admin", "acceptedTime": "2026-11-22T17:00:00Z"})),
		"without an informer":     of(list+"[0].updateInformer: Required value", one(map[string]any{"updateInformer": nil})),
		"without a uid":           of(list+"[0].uid: Required value", one(map[string]any{"uid": nil})),
		"without the answer":      of(list+"[0].accepted: Required value", one(map[string]any{"accepted": nil})),
		"with an empty informer":  of(list+"[0].updateInformer: should be at least 1 chars long", one(map[string]any{"updateInformer": ""})),
		"with an empty uid":       of(list+"[0].uid: should be at least 1 chars long", one(map[string]any{"uid": ""})),
		"with a long uid":         of(list+"[0].uid: may not be more than 253 bytes", one(map[string]any{"uid": strings.Repeat("a", 254)})),
		"with a long reason":      of(list+"[0].reason: may not be more than 1024 bytes", one(map[string]any{"reason": strings.Repeat("a", 1025)})),
		"with a short uuid":       of(list+"[0].uuid: "+invalidUUID, one(map[string]any{"uuid": uuid[1:]})),
		"with a uuid in upper":    of(list+"[0].uuid: "+invalidUUID, one(map[string]any{"uuid": strings.ToUpper(uuid)})),
		"with a uuid with dashes": of(list+"[0].uuid: "+invalidUUID, one(map[string]any{"uuid": "0b5d5ad4-0b5d-0b5d-0b5d-0b5d5ad40b5d"})),
		"at no time":              of(list+"[0].acceptedTime: should match", one(map[string]any{"acceptedTime": "yesterday"})),
		"of 512 insights":         of("", count(512)...),
		"of 513 insights":         of(list+": must have at most 512 items", count(513)...),
	}
}
