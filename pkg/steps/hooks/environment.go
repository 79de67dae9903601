// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Limits of the environment, in bytes. Linux does not start a process with a variable of more than
// 128 KiB, and etcd does not store an object of more than 1.5 MiB.
const (
	maxJobVariable = 96 << 10
	maxEnvironment = 512 << 10 // total for all containers of a pod
)

// errEnvironmentTooLarge is returned if the upgrade object does not fit into the environment even
// without its annotations and status.
var errEnvironmentTooLarge = errors.New("the upgrade does not fit into the environment of the hook")

// variable is an environment variable of a container, as the kubelet reads it.
type variable struct{ name, value string }

// environment describes an event of an upgrade as variables. If a name is added twice, the first
// variable wins.
type environment struct {
	variables []variable
	names     map[string]bool
	size      int // of names and values, with one separator and one terminator each
}

// newEnvironment returns the variables that describe the event and the upgrade object, for a pod
// with that number of containers. Annotations and status are omitted if they do not fit.
func newEnvironment(event Event, at time.Time, kind maintenance.OwnerKind, upgrade client.Object, containers int) ([]variable, error) {
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(upgrade)
	if err != nil {
		return nil, fmt.Errorf("encoding the %s: %w", kind.Kind, err)
	}
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	spec, _ := reflect.TypeOf(upgrade).Elem().FieldByName("Spec")
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	for _, truncated := range []bool{false, true} {
		if truncated {
			unstructured.RemoveNestedField(content, "metadata", "annotations")
			delete(content, "status")
		}
		variables, err := describe(event.content(at), content, spec.Type, truncated, containers)
		if !errors.Is(err, errEnvironmentTooLarge) || truncated {
			return variables, err
		}
	}
	return nil, errEnvironmentTooLarge
}

// content returns the content of the event for encoding.
func (e Event) content(at time.Time) map[string]any {
	return map[string]any{
		"name": string(e.Name), "time": text.FormatTime(at),
		"reason": e.Reason, "message": e.Message, "pool": e.Pool,
	}
}

// describe returns the variables for an event and for the content of an object whose spec has that
// type.
func describe(event, job map[string]any, spec reflect.Type, truncated bool, containers int) ([]variable, error) {
	env := environment{names: map[string]bool{}}
	jobText, err := encode(job)
	if err != nil {
		return nil, err
	}
	if len("JOB=")+len(jobText) > maxJobVariable {
		return nil, errEnvironmentTooLarge
	}
	if err := errors.Join(env.add("EVENT", event), env.add("EVENT_NAME", event["name"]), env.flatten("EVENT", event)); err != nil {
		return nil, err
	}
	if truncated {
		if err := env.add("JOB_TRUNCATED", true); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(env.add("JOB", job), env.flatten("JOB", job)); err != nil {
		return nil, err
	}
	if err := env.nullAbsent("JOB_spec", spec, job["spec"]); err != nil {
		return nil, err
	}
	if env.size*max(containers, 1) > maxEnvironment {
		return nil, errEnvironmentTooLarge
	}
	return env.variables, nil
}

// add adds a variable with the JSON of a value. It doubles dollar signs, because the kubelet would
// otherwise expand $(NAME).
func (e *environment) add(name string, value any) error {
	if e.names[name] {
		return nil
	}
	text, err := encode(value)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", name, err)
	}
	text = strings.ReplaceAll(text, "$", "$$")
	e.names[name] = true
	e.variables = append(e.variables, variable{name, text})
	e.size += len(name) + len(text) + len("=\x00")
	return nil
}

// flatten adds a variable for each leaf value in an object or array, sorted by key. An empty object
// or array is a leaf.
func (e *environment) flatten(prefix string, value any) error {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			if err := e.flattenInto(prefix+"_"+cleanKey(key), v[key]); err != nil {
				return err
			}
		}
	case []any:
		for i := range v {
			if err := e.flattenInto(prefix+"_"+strconv.Itoa(i), v[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *environment) flattenInto(name string, value any) error {
	object, _ := value.(map[string]any)
	array, _ := value.([]any)
	if len(object) > 0 || len(array) > 0 {
		return e.flatten(name, value)
	}
	return e.add(name, value)
}

// nullAbsent adds null for each field that the type has but the value lacks, so $(NAME) expands to
// null.
func (e *environment) nullAbsent(name string, of reflect.Type, value any) error {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	var errs []error
	switch object, _ := value.(map[string]any); {
	case of.Kind() == reflect.Struct && !reflect.PointerTo(of).Implements(reflect.TypeFor[json.Marshaler]()): // not types with their own encoding, such as durations
		for field := range of.Fields() {
			key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			errs = append(errs, e.nullAbsent(name+"_"+cleanKey(key), field.Type, object[key]))
		}
	case value == nil:
		return e.add(name, nil)
	case of.Kind() == reflect.Slice:
		items, _ := value.([]any)
		for i := range items {
			errs = append(errs, e.nullAbsent(name+"_"+strconv.Itoa(i), of.Elem(), items[i]))
		}
	}
	return errors.Join(errs...)
}

// cleanKey converts a key to a part of a variable name.
func cleanKey(key string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, key)
}

// encode returns the JSON of a value without HTML escaping.
func encode(value any) (string, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return strings.TrimSuffix(buffer.String(), "\n"), nil
}
