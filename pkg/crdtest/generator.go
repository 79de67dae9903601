// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crdtest

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// texts lists string values by kind, valid ones first.
var texts = map[string][]string{
	"duration": {"1h", "2h", "90m", "1h30m", "168h", "0s", "1d", "1.5h", "", "-1h", "1h1h", "5", "999999h"},
	"time":     {"2027-03-02T21:00:00Z", "2027-03-02T22:00:00+01:00", "2027-03-02T21:00:00.5Z", "2027-03-02t21:00:00Z", "2027-03-02T21:00:00z", "2027-02-30T00:00:00Z", "2027-03-02T21:00:60Z", "0000-01-01T00:00:00Z"},
	"instant":  {"2026-03-01T12:10:00Z", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z", "2026-03-01T12:20:00+01:00", "0001-01-01T00:00:00Z", "0000-01-01T00:00:00+12:00"},
	"late":     {"2028-01-01T00:00:00.5Z", "2028-02-29T24:00:00Z", "2027-03-02T21:00:00Z"},
	"cron":     {"0 22 * * 2", "*/15 0-5 1,15 JAN *", "0 22 * * TUE", "0 24 * * *", "@daily"},
	"isoWeek":  {"", "@odd", "7,10-20", "*/4", "54", "20-10"},
	"location": {"UTC", "Europe/Zurich", "Local", "+01:00", "Europe/Atlantis"},
	"version":  {"4.20.6", "4.20.0-rc.1", "v4"},
	"image":    {"example.com/release@sha256:" + strings.Repeat("0a", 32), "", "example.com/release:latest"},
	"upstream": {"https://example.com/graph", "", "example.com"},
	"channel":  {"stable-4.20", "", "fast 4"},
	"operator": {"In", "NotIn", "Exists", "DoesNotExist", "Gt"},
	"scale":    {"10%", "100%", "1%", "0%", "101%", "5", "", "many"},
	"name":     {"version", "worker", "openshift-gitops-operator", "Dev", "a,b", ""},
	"reason":   {"Valid", "AsExpected", "not valid"},
	"alert":    {"KubePodCrashLooping"},
	"any":      {"a", "b", "x-app-night-maintenance", "", "Zürich\u0000\U0001f600", "\"}{", strings.Repeat("y", 300), "null"},
}

// Generator creates objects that a schema mostly accepts. It infers from the name of a field what
// the rules require of a string.
type Generator struct {
	*rand.Rand

	// Kinds map field names to kinds of strings: duration, time, late (a time after most others),
	// instant (a time in a status), cron, isoWeek, location, version, image, upstream, channel,
	// operator, scale, name, reason, alert, any. Other fields get names or arbitrary strings, or times
	// if their pattern requires one.
	Kinds map[string]string
	// Required lists fields that rules almost always require; Seldom lists fields that require many
	// others.
	Required, Seldom []string
	// Parts creates the values of fields whose parts depend on each other.
	Parts map[string]func(*Generator) any
}

// Text returns a string of a kind, usually a valid one.
func (g *Generator) Text(kind string) string {
	from := texts[kind]
	if !g.oneIn(20) {
		from = from[:1+len(from)/3]
	}
	return pick(g, from)
}

// Value returns a value for a field of a schema.
func (g *Generator) Value(field string, schema *apiextensionsv1.JSONSchemaProps) any {
	if g.oneIn(300) {
		return pick(g, []any{nil, int64(1), "text", []any{}, map[string]any{}, 0.5, true})
	}
	switch {
	case schema.XIntOrString:
		return pick(g, []any{g.Text("scale"), int64(1), int64(2), int64(0), int64(1) << 40, g.Text("scale")})
	case schema.XPreserveUnknownFields != nil && *schema.XPreserveUnknownFields && g.Parts[field] == nil:
		return g.anything(schema, 2)
	case len(schema.Enum) > 0:
		var value any
		if err := json.Unmarshal(pick(g, schema.Enum).Raw, &value); err != nil {
			panic(err)
		}
		return value
	}
	switch schema.Type {
	case "object":
		return g.object(field, schema)
	case "array":
		items := []any{}
		for range pick(g, []int{0, 1, 1, 1, 1, 1, 2}) {
			items = append(items, g.Value(field, schema.Items.Schema))
		}
		return items
	case "integer":
		if !g.oneIn(20) {
			return int64(1 + g.IntN(100))
		}
		return pick(g, []any{float64(4), int64(0), int64(-1), int64(1)<<31 - 1, int64(1) << 31, int64(1) << 40, 1e30})
	case "boolean":
		return g.oneIn(2)
	default:
		return g.Text(g.kindOf(field, schema.Pattern))
	}
}

func (g *Generator) kindOf(field, pattern string) string {
	switch kind, known := g.Kinds[field]; {
	case g.oneIn(60):
		return pick(g, slices.Sorted(maps.Keys(texts)))
	case known:
		return kind
	case strings.Contains(pattern, "[0-5][0-9]:[0-5][0-9]"):
		return "time"
	default:
		return pick(g, []string{"any", "name"})
	}
}

// anything returns an arbitrary JSON object, or one that an embedded resource accepts.
func (g *Generator) anything(schema *apiextensionsv1.JSONSchemaProps, depth int) any {
	object := map[string]any{}
	if schema.XEmbeddedResource {
		object = map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}
	}
	for range g.IntN(4) {
		value := pick(g, []any{"text", int64(1), 1.5, true, nil, []any{int64(1), "a", nil}, map[string]any{}})
		if depth > 0 && g.oneIn(3) {
			value = g.anything(&apiextensionsv1.JSONSchemaProps{}, depth-1)
		}
		object["x"+g.Text("any")] = value
	}
	return object
}

func (g *Generator) object(field string, schema *apiextensionsv1.JSONSchemaProps) any {
	if parts, ok := g.Parts[field]; ok {
		return parts(g)
	}
	object := map[string]any{}
	if schema.AdditionalProperties != nil {
		for range g.IntN(3) {
			object[g.Text("any")] = g.Value(field, schema.AdditionalProperties.Schema)
		}
		return object
	}
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		present := g.oneIn(2)
		switch {
		case slices.Contains(g.Seldom, name):
			present = g.oneIn(8)
		case slices.Contains(schema.Required, name), slices.Contains(g.Required, name):
			present = !g.oneIn(300)
		}
		if present {
			property := schema.Properties[name]
			object[name] = g.Value(name, &property)
		}
	}
	if g.oneIn(100) {
		object["unknown"] = "field"
	}
	return object
}

func (g *Generator) oneIn(n int) bool { return g.IntN(n) == 0 }

func pick[T any](g *Generator, from []T) T { return from[g.IntN(len(from))] }

// Metadata adds labels, annotations, finalizers, and owners to an object as another client might
// have. known lists annotation keys that the program reads, finalizers those that it sets.
func (g *Generator) Metadata(object metav1.Object, known, finalizers []string) {
	values := []string{"", "true", "2027-03-02T21:00:00Z", "9999-12-31T23:59:59Z", "{}", "a,b", "Zürich\u202e\x00", strings.Repeat("y", 200_000)}
	annotations := map[string]string{}
	for _, key := range append(slices.Clone(known), "example.com/a", "kubectl.kubernetes.io/last-applied-configuration") {
		if g.oneIn(2) {
			annotations[key] = pick(g, values)
		}
		if size := len(strings.Join(slices.Collect(maps.Values(annotations)), "")); size > 250_000 {
			annotations[key] = "" // all annotations of an object together may have 256 KiB
		}
	}
	object.SetAnnotations(annotations)
	object.SetLabels(map[string]string{"example.com/a": pick(g, []string{"", "b", strings.Repeat("y", 63)})})
	var set []string
	for _, finalizer := range append(slices.Clone(finalizers), "example.com/keep", "example.com/"+strings.Repeat("y", 63)) {
		if g.oneIn(2) {
			set = append(set, finalizer)
		}
	}
	object.SetFinalizers(set)
	if g.oneIn(3) {
		object.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: "1", Controller: new(g.oneIn(2))}})
	}
}
