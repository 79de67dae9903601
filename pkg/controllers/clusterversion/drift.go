// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// differing returns the sorted names of the parameters that are missing from a spec or have another
// value there.
func (p parameters) differing(spec map[string]any) []string {
	var fields []string
	for _, field := range slices.Sorted(maps.Keys(p)) {
		if !contains(spec[field], p[field]) {
			fields = append(fields, field)
		}
	}
	return fields
}

// contains reports whether a value includes the applied one. As in server-side apply, other clients
// may add fields to an object and objects to a list of objects. All other values must be equal.
func contains(value, applied any) bool {
	switch applied := applied.(type) {
	case map[string]any:
		object, ok := value.(map[string]any)
		if !ok {
			return len(applied) == 0 && value == nil
		}
		return containsFields(object, applied)
	case []any:
		list, ok := value.([]any)
		if !ok {
			return len(applied) == 0 && value == nil
		}
		return containsElements(list, applied)
	}
	return reflect.DeepEqual(value, applied)
}

func containsFields(object, applied map[string]any) bool {
	for key := range applied {
		if !contains(object[key], applied[key]) {
			return false
		}
	}
	return true
}

func containsElements(list, applied []any) bool {
	if !ofObjects(applied) || !ofObjects(list) {
		return reflect.DeepEqual(list, applied)
	}
	return !slices.ContainsFunc(applied, func(element any) bool {
		return !slices.ContainsFunc(list, func(e any) bool { return contains(e, element) })
	})
}

func ofObjects(list []any) bool {
	return len(list) > 0 && !slices.ContainsFunc(list, func(e any) bool {
		_, isObject := e.(map[string]any)
		return !isObject
	})
}

// managerOf returns the last field manager, other than this controller, that changed a field of the
// spec. It returns "" if the manager is unknown, for example because the field was removed.
func managerOf(managed []metav1.ManagedFieldsEntry, field string) string {
	var manager string
	var latest time.Time
	for i := range managed {
		entry := &managed[i]
		if entry.Manager == string(fieldOwner) || entry.FieldsV1 == nil || entry.Subresource != "" {
			continue
		}
		var fields struct {
			Spec map[string]any `json:"f:spec"`
		}
		if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
			continue // it cannot name the field
		}
		if _, owns := fields.Spec["f:"+field]; !owns {
			continue
		}
		if at := entry.Time; manager == "" || at != nil && at.After(latest) {
			manager = entry.Manager
			if at != nil {
				latest = at.Time
			}
		}
	}
	return manager
}

// describeDrift describes the changed fields and the clients that changed them.
func describeDrift(fields []string, spec map[string]any, managed []metav1.ManagedFieldsEntry) string {
	changes := make([]string, 0, len(fields))
	for _, field := range fields {
		change := "spec." + field + " was changed"
		if value, set := spec[field]; !set {
			change = "spec." + field + " was removed"
		} else if short, ok := value.(string); ok {
			change += fmt.Sprintf(" to %q", text.Excerpt(short))
		}
		if manager := managerOf(managed, field); manager != "" {
			change += " by " + text.Excerpt(manager)
		}
		changes = append(changes, change)
	}
	return text.JoinNames(changes)
}

// Limits for corrections of a field that another client keeps changing.
const (
	// firstBackoff is the minimum time between the first two corrections. It doubles with each
	// correction, up to maxBackoff.
	firstBackoff = 10 * time.Second
	maxBackoff   = 5 * time.Minute
	// contestedAfter is the number of corrections that makes the parameters count as contested.
	contestedAfter = 3
	// maxCorrections is the number of corrections that raises the backoff to maxBackoff.
	maxCorrections = 6
	// calm is how long the parameters must stay uncorrected to no longer count as contested.
	calm = 2 * maxBackoff
)

// corrections counts the corrections since the parameters were last left alone for the time calm.
type corrections struct {
	count int
	last  time.Time
	// drift describes the latest change that was corrected.
	drift string
}

// next returns the earliest time for the next correction.
func (c corrections) next() time.Time {
	if c.count == 0 {
		return time.Time{}
	}
	return c.last.Add(backoffAfter(c.count))
}

// backoffAfter returns the minimum delay after a number of attempts.
func backoffAfter(count int) time.Duration {
	return min(firstBackoff<<min(count-1, maxCorrections), maxBackoff)
}

// contested reports whether another client keeps changing the parameters.
func (c corrections) contested() bool { return c.count >= contestedAfter }

// record counts a correction.
func (c *corrections) record(now time.Time, drift string) {
	c.count, c.last, c.drift = min(c.count+1, maxCorrections), now, drift
}

// settle resets the count if nothing was corrected for the time calm.
func (c *corrections) settle(now time.Time) {
	if c.count > 0 && (now.Before(c.last) || now.Sub(c.last) >= calm) {
		*c = corrections{}
	}
}

// message describes the conflict with the other client.
func (c corrections) message() string {
	return strings.Join([]string{
		"another client keeps changing the parameters", c.drift,
		"corrections are limited to one every " + maxBackoff.String() + "; stop that client, or change spec.template",
	}, "; ")
}
