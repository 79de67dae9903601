// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"

	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// texts are values of texts by the name of the field: most are valid, some nearly.
var texts = map[string][]string{
	"duration":   {"1h", "2h", "90m", "1h30m", "99999h", "0s", "1d", "1.5h", "", "-1h", "1h1h", "5"},
	"time":       {"2027-03-02T21:00:00Z", "2027-03-02T22:00:00+01:00", "2027-03-02T21:00:00.5Z", "2027-03-02t21:00:00Z", "2027-03-02T21:00:00z", "2027-02-30T00:00:00Z", "2027-03-02T21:00:60Z", "0000-01-01T00:00:00Z"},
	"late":       {"2028-01-01T00:00:00.5Z", "2028-02-29T24:00:00Z", "2027-03-02T21:00:00Z"},
	"cron":       {"0 22 * * 2", "*/15 0-5 1,15 JAN *", "0 22 * * TUE", "0 24 * * *", "@daily"},
	"isoWeek":    {"", "@odd", "7,10-20", "*/4", "54", "20-10"},
	"location":   {"UTC", "Europe/Zurich", "Local", "+01:00", "Europe/Atlantis"},
	"version":    {"4.20.6", "4.20.0-rc.1", "v4"},
	"image":      {"example.com/release@sha256:0123456789abcdef", "example.com/release:latest"},
	"operator":   {"In", "NotIn", "Exists", "DoesNotExist", "Gt"},
	"name":       {"version", "night", "worker"},
	"any":        {"a", "b", "x-app-night-maintenance", "", "Zürich\u0000\U0001f600", "\"}{", strings.Repeat("y", 300), "null"},
	"alertname":  {"KubePodCrashLooping"},
	"conditions": {"Valid"},
}

// kindsOfText map names of fields to a list of texts.
var kindsOfText = map[string]string{
	"pinVersionWindow": "duration", "maxUpgradeStartDelay": "duration", "upgradeTimeout": "duration", "timeout": "duration", "forceDrainAfter": "duration",
	"delayMin": "duration", "delayMax": "duration", "startAfter": "time", "startBefore": "late", "start": "time", "end": "late", "from": "time",
	"cron": "cron", "isoWeek": "isoWeek", "location": "location", "version": "version", "image": "image", "operator": "operator", "reason": "conditions",
	"alertname": "alertname",
}

// generator makes objects that a schema accepts, mostly.
type generator struct{ *rand.Rand }

func (g generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g generator, from []T) T { return from[g.IntN(len(from))] }

func (g generator) text(name, pattern string) string {
	kind := kindsOfText[name]
	switch {
	case strings.Contains(pattern, "[0-5][0-9]:[0-5][0-9]"):
		kind = "time"
	case kind == "":
		kind = pick(g, []string{"any", "name"})
	}
	if g.oneIn(40) {
		kind = pick(g, slices.Sorted(maps.Keys(texts)))
	}
	from := texts[kind]
	if !g.oneIn(12) {
		from = from[:1+len(from)/3] // the valid ones come first
	}
	return pick(g, from)
}

// raw returns any JSON object.
func (g generator) raw(depth int) any {
	object := map[string]any{}
	for range g.IntN(4) {
		value := pick(g, []any{"text", int64(1), 1.5, true, nil, []any{int64(1), "a", nil}, map[string]any{}})
		if depth > 0 && g.oneIn(3) {
			value = g.raw(depth - 1)
		}
		object[g.text("any", "")] = value
	}
	return object
}

// value returns a value of a schema. Objects below a pool's delayUpgrade have lengths of time where
// others have times.
func (g generator) value(name string, schema *apiextensionsv1.JSONSchemaProps) any {
	if g.oneIn(150) {
		return pick(g, []any{nil, int64(1), "text", []any{}, map[string]any{}, 0.5, true})
	}
	switch {
	case schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields:
		return g.raw(2)
	case len(schema.Enum) > 0:
		var value any
		if err := json.Unmarshal(pick(g, schema.Enum).Raw, &value); err != nil {
			panic(err)
		}
		return value
	}
	switch schema.Type {
	case "object":
		return g.object(name, schema)
	case "array":
		items := []any{}
		for range g.IntN(3) {
			items = append(items, g.value(name, schema.Items.Schema))
		}
		return items
	case "integer":
		return pick(g, []any{int64(1), int64(2), int64(3), int64(100), float64(4), int64(1), int64(0), int64(-1), int64(1) << 31, int64(1) << 40, 1e30})
	case "boolean":
		return g.oneIn(2)
	default:
		return g.text(name, schema.Pattern)
	}
}

func (g generator) object(name string, schema *apiextensionsv1.JSONSchemaProps) any {
	object := map[string]any{}
	if schema.AdditionalProperties != nil {
		for range g.IntN(3) {
			object[g.text("any", "")] = g.value(name, schema.AdditionalProperties.Schema)
		}
		return object
	}
	if name == "delayUpgrade" {
		pair := pick(g, [][]string{{"delayMin", "delayMax"}, {"startAfter", "startBefore"}})
		for _, field := range pair {
			object[field] = g.text("timeout", "")
		}
		return object
	}
	for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
		present := g.oneIn(2)
		if slices.Contains(schema.Required, field) {
			present = !g.oneIn(200)
		}
		if present {
			property := schema.Properties[field]
			object[field] = g.value(field, &property)
		}
	}
	if g.oneIn(50) {
		object["unknown"] = "field"
	}
	return object
}

// decoding is what the objects of a kind are decoded by.
type decoding struct {
	schema    *apiextensionsv1.JSONSchemaProps
	validator *simulation.Definition
	decoder   runtime.Decoder
}

func decodings(tb testing.TB) map[string]decoding {
	tb.Helper()
	scheme := runtime.NewScheme()
	if err := v1beta1.AddToScheme(scheme); err != nil {
		tb.Fatal(err)
	}
	decoder := serializer.NewCodecFactory(scheme).UniversalDeserializer()
	all := map[string]decoding{}
	validators := validators(tb)
	for kind, crd := range crds(tb) {
		all[kind] = decoding{schema: crd.Spec.Versions[0].Schema.OpenAPIV3Schema, validator: validators[kind], decoder: decoder}
	}
	return all
}

// try generates an object and reports whether the schema accepts it. If it does, the object
// decodes, its values convert, and its spec is encoded as it was.
func (d decoding) try(t *testing.T, kind string, g generator) bool {
	t.Helper()
	content := map[string]any{"apiVersion": v1beta1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": "version", "namespace": namespace}}
	for _, part := range []string{"spec", "status"} {
		schema := d.schema.Properties[part]
		content[part] = g.value(part, &schema)
	}
	object := &unstructured.Unstructured{Object: content}
	data, err := json.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	if err := object.UnmarshalJSON(data); err != nil {
		t.Fatalf("decoding %s: %v", data, err)
	}
	if err := d.validator.Admit(nil, object); err != nil {
		return false
	}
	stored, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	typed, _, err := d.decoder.Decode(stored, nil, nil)
	if err != nil {
		t.Fatalf("the schema accepts what does not decode: %v\n%s", err, stored)
	}
	convert(t, reflect.ValueOf(typed))
	encoded, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(spec(t, stored), spec(t, encoded)); diff != "" {
		t.Errorf("%s: decoding and encoding changes the spec (-stored +encoded):\n%s", kind, diff)
	}
	return true
}

// spec returns the spec of an object without empty lists and maps, which need not stay.
func spec(t *testing.T, data []byte) any {
	t.Helper()
	var object map[string]any
	if err := json.Unmarshal(data, &object); err != nil {
		t.Fatal(err)
	}
	return withoutEmpty(object["spec"])
}

func withoutEmpty(node any) any {
	switch node := node.(type) {
	case map[string]any:
		for name, value := range node {
			if node[name] = withoutEmpty(value); node[name] == nil {
				delete(node, name)
			}
		}
		if len(node) == 0 {
			return nil
		}
	case []any:
		for i := range node {
			node[i] = withoutEmpty(node[i])
		}
		if len(node) == 0 {
			return nil
		}
	}
	return node
}

// convert converts each Duration and Timestamp in a value.
func convert(t *testing.T, value reflect.Value) {
	t.Helper()
	switch v := value; v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			convert(t, v.Elem())
		}
	case reflect.Slice:
		for i := range v.Len() {
			convert(t, v.Index(i))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				convert(t, v.Field(i))
			}
		}
	default:
		var err error
		switch text := v.Interface().(type) {
		case v1beta1.Duration:
			_, err = maintenance.Duration(text)
		case v1beta1.Timestamp:
			_, err = maintenance.Time(text)
		}
		if err != nil {
			t.Errorf("the schema accepts a value that does not convert: %v", err)
		}
	}
}

func TestAcceptedObjectsDecode(t *testing.T) {
	t.Parallel()
	for kind, d := range decodings(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := generator{rand.New(rand.NewPCG(2027, 3))}
			accepted := 0
			const all = 400
			for range all {
				if d.try(t, kind, g) {
					accepted++
				}
			}
			t.Logf("%d of %d objects are accepted", accepted, all)
			if accepted < all/20 {
				t.Errorf("only %d of %d objects are accepted: the test decodes little", accepted, all)
			}
		})
	}
}

func FuzzAcceptedObjectsDecode(f *testing.F) {
	all := decodings(f)
	kinds := slices.Sorted(maps.Keys(all))
	for i := range uint64(len(kinds)) {
		f.Add(i, i)
	}
	f.Fuzz(func(t *testing.T, kind, seed uint64) {
		name := kinds[kind%uint64(len(kinds))]
		all[name].try(t, name, generator{rand.New(rand.NewPCG(seed, kind))})
	})
}
