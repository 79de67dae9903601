// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/intstr"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	fleetv1alpha1 "github.com/managed-upgrade/managed-upgrade-operator/api/fleet/v1alpha1"
)

// texts are values of texts by their kind: the valid ones come first.
var texts = map[string][]string{
	"duration": {"1h", "2h", "90m", "1h30m", "168h", "0s", "1d", "1.5h", "", "-1h", "999999h"},
	"time":     {"2027-03-02T21:00:00Z", "2027-03-02T22:00:00+01:00", "2027-03-02T21:00:00.5Z", "2027-03-02t21:00:00Z", "2027-03-02T21:00:00z", "2027-02-30T00:00:00Z", "2027-03-02T21:00:60Z"},
	"cron":     {"0 22 * * 2", "*/15 0-5 1,15 JAN *", "0 24 * * *"},
	"isoWeek":  {"", "@odd", "7,10-20", "54"},
	"location": {"UTC", "Europe/Zurich", "Local"},
	"version":  {"4.20.6", "4.20.0-rc.1", "v4"},
	"image":    {"", "example.com/release@sha256:" + strings.Repeat("0a", 32), "example.com/release:latest"},
	"upstream": {"", "https://example.com/graph", "example.com"},
	"channel":  {"stable-4.20", "", "fast 4"},
	"operator": {"In", "NotIn", "Exists", "Gt"},
	"scale":    {"10%", "100%", "1%", "0%", "101%", "5", "", "many"},
	"name":     {"a", "dev", "openshift-gitops-operator", "Dev", "a,b", ""},
	"reason":   {"Valid", "AsExpected", "not valid"},
	"any":      {"a", "b", "x-app-night-maintenance", "", "Zürich\u0000\U0001f600", "\"}{", strings.Repeat("y", 300), "null"},
}

// kindsOfText map names of fields to a kind of texts.
var kindsOfText = map[string]string{
	"minSuccessTime": "duration", "duration": "duration", "clusterUpgrade": "duration", "operatorsUpgrade": "duration", "apply": "duration",
	"action": "duration", "failing": "duration", "stall": "duration", "soak": "duration", "admissionTime": "time",
	"cron": "cron", "isoWeek": "isoWeek", "location": "location", "version": "version", "image": "image", "upstream": "upstream", "channel": "channel",
	"operator": "operator", "name": "name", "namespace": "name", "reason": "reason", "uid": "name", "clusterSets": "name",
}

// Rules make some fields nearly required, and others, or their parts, need much else.
var (
	nearlyRequired = []string{"version", "placement", "workload", "manifests"}
	seldom         = []string{"claimsOnly", "manifestConfigs", "executor", "upgradeConfig", "decisionStrategy", "outcome"}
)

// generator makes objects that a schema accepts, mostly.
type generator struct{ *rand.Rand }

func (g generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g generator, from []T) T { return from[g.IntN(len(from))] }

func (g generator) text(name, pattern string) string {
	kind := kindsOfText[name]
	switch {
	case strings.Contains(pattern, "[0-5][0-9]:[0-5][0-9]"):
		kind = "time"
	case strings.HasSuffix(name, "Timeout"):
		kind = "duration"
	case kind == "":
		kind = pick(g, []string{"any", "name"})
	}
	if g.oneIn(60) {
		kind = pick(g, slices.Sorted(maps.Keys(texts)))
	}
	from := texts[kind]
	if !g.oneIn(20) {
		from = from[:1+len(from)/3]
	}
	return pick(g, from)
}

// raw returns any JSON object.
func (g generator) raw(depth int) any {
	object := map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	for range g.IntN(4) {
		value := pick(g, []any{"text", int64(1), 1.5, true, nil, []any{int64(1), "a", nil}, map[string]any{}})
		if depth > 0 && g.oneIn(3) {
			value = g.raw(depth - 1)
		}
		object["x"+g.text("any", "")] = value
	}
	return object
}

// value returns a value of a schema.
func (g generator) value(name string, schema *apiextensionsv1.JSONSchemaProps) any {
	if g.oneIn(300) {
		return pick(g, []any{nil, int64(1), "text", []any{}, map[string]any{}, 0.5, true})
	}
	switch {
	case schema.XIntOrString:
		return pick(g, []any{g.text("scale", ""), int64(1), int64(2), int64(0), int64(1) << 40, texts["scale"][g.IntN(3)]})
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
		items = append(items, g.value(name, schema.Items.Schema))
		if g.oneIn(8) {
			items = append(items, g.value(name, schema.Items.Schema))
		}
		return items
	case "integer":
		if !g.oneIn(20) {
			return int64(1 + g.IntN(100))
		}
		return pick(g, []any{float64(4), int64(0), int64(-1), int64(1) << 31, int64(1) << 40, 1e30})
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
	if name == "matchExpressions" {
		return pick(g, []any{map[string]any{"key": "region", "operator": "In", "values": []any{"eu"}}, map[string]any{"key": "region", "operator": "Exists"}})
	}
	for _, field := range slices.Sorted(maps.Keys(schema.Properties)) {
		present := g.oneIn(2)
		switch {
		case slices.Contains(seldom, field):
			present = g.oneIn(8)
		case slices.Contains(schema.Required, field), slices.Contains(nearlyRequired, field):
			present = !g.oneIn(300)
		}
		if present {
			property := schema.Properties[field]
			object[field] = g.value(field, &property)
		}
	}
	if g.oneIn(100) {
		object["unknown"] = "field"
	}
	return object
}

var groupVersions = map[string]string{"ManagedClustersUpgrade": fleetv1beta1.GroupVersion.String(), "ClusterUpgradeRun": fleetv1alpha1.GroupVersion.String()}

// decoder returns a decoder of both kinds that accepts known fields only.
func decoder(tb testing.TB) runtime.Decoder {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{fleetv1beta1.AddToScheme, fleetv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	return serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()
}

func decodeStrict(t *testing.T, data []byte) runtime.Object {
	t.Helper()
	typed, _, err := decoder(t).Decode(data, nil, nil)
	if err != nil {
		t.Fatalf("the schema accepts what does not decode: %v\n%s", err, data)
	}
	return typed
}

// A random object that the schema accepts decodes without loss, and its values convert. One that does
// not decode would stop the informers of all objects of its kind.
func TestAcceptedObjectsDecode(t *testing.T) {
	t.Parallel()
	validators := validators(t)
	for kind, crd := range definitions(t) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			g := generator{rand.New(rand.NewPCG(2027, 3))}
			const all = 600
			accepted := 0
			for range all {
				object := &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": groupVersions[kind], "kind": kind, "metadata": map[string]any{"name": "a", "namespace": namespace},
				}}
				for _, part := range []string{"spec", "status"} {
					schema := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties[part]
					object.Object[part] = g.value(part, &schema)
				}
				data, err := json.Marshal(object.Object)
				if err != nil {
					t.Fatal(err)
				}
				if err := object.UnmarshalJSON(data); err != nil {
					t.Fatalf("decoding %s: %v", data, err)
				}
				if validators[kind].Admit(nil, object) != nil {
					continue
				}
				accepted++
				checkDecoding(t, object)
			}
			t.Logf("%d of %d objects are accepted", accepted, all)
			if accepted < all/20 {
				t.Errorf("only %d of %d objects are accepted: the test decodes little", accepted, all)
			}
		})
	}
}

func checkDecoding(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	stored, err := object.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	typed := decodeStrict(t, stored)
	convert(t, reflect.ValueOf(typed))
	encoded, err := json.Marshal(typed)
	if err != nil {
		t.Fatal(err)
	}
	var before, after map[string]any
	for from, data := range map[*map[string]any][]byte{&before: stored, &after: encoded} {
		if err := json.Unmarshal(data, from); err != nil {
			t.Fatal(err)
		}
	}
	for _, part := range []string{"spec", "status"} {
		checkContains(t, part, after[part], withoutEmpty(before[part]))
	}
}

// checkContains reports values that were lost. Types of Open Cluster Management add zero values.
func checkContains(t *testing.T, path string, whole, part any) {
	t.Helper()
	switch part := part.(type) {
	case nil:
	case map[string]any:
		object, _ := whole.(map[string]any)
		for name, value := range part {
			checkContains(t, path+"."+name, object[name], value)
		}
	case []any:
		list, _ := whole.([]any)
		if len(list) != len(part) {
			t.Errorf("%s has %d items, want %d", path, len(list), len(part))
			return
		}
		for i := range part {
			checkContains(t, fmt.Sprint(path, "[", i, "]"), list[i], part[i])
		}
	case bool:
		if got, _ := whole.(bool); got != part {
			t.Errorf("%s is %v, want %v", path, whole, part)
		}
	case float64:
		if got, _ := whole.(float64); got != part {
			t.Errorf("%s is %v, want %v", path, whole, part)
		}
	default:
		if got, _ := whole.(string); got != part && !isTime(part) {
			t.Errorf("%s is %v, want %v", path, whole, part)
		}
	}
}

// isTime reports whether a value is a time, which is encoded in seconds and in UTC.
func isTime(value any) bool {
	text, _ := value.(string)
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil
}

// withoutEmpty returns a value without the empty lists, maps, and texts in it, which need not stay.
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
	case string:
		if node == "" {
			return nil
		}
	case bool:
		if !node {
			return nil
		}
	}
	return node
}

// convert converts each Duration and each number or percentage of a strategy in a value.
func convert(t *testing.T, value reflect.Value) {
	t.Helper()
	switch v := value; v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if scale, ok := v.Interface().(*intstr.IntOrString); ok && scale != nil {
			if n, err := intstr.GetScaledValueFromIntOrPercent(scale, 1000, true); err != nil || n < 0 {
				t.Errorf("the schema accepts %v: %d, %v", scale, n, err)
			}
		} else if !v.IsNil() {
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
		if text, ok := v.Interface().(fleetv1beta1.Duration); ok && text != "" {
			if d, err := time.ParseDuration(string(text)); err != nil || d <= 0 || d > 168*time.Hour {
				t.Errorf("the schema accepts the duration %q: %v, %v", text, d, err)
			}
		}
	}
}
