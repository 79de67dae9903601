// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package clusterversion

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// Fields of the spec of OpenShift's ClusterVersion that get special treatment.
const (
	fieldChannel       = "channel"
	fieldClusterID     = "clusterID"
	fieldDesiredUpdate = "desiredUpdate"
)

// parameters are fields of the spec of OpenShift's ClusterVersion.
type parameters map[string]any

// overlay holds the parameters that apply from a point in time.
type overlay struct {
	from   time.Time
	merged parameters // the template with the overlay applied
}

// plan is the parsed spec.
type plan struct {
	// current holds the parameters that apply now.
	current parameters
	// applied is the time of the current overlay; zero if only the template applies.
	applied time.Time
	// upcoming lists the overlays that apply later, in order of time.
	upcoming []overlay
}

// newPlan parses a spec as of a point in time. It returns an error if the spec is invalid.
func newPlan(spec *maintenancev1beta1.ClusterVersionSpec, now time.Time) (plan, error) {
	template, err := decode(spec.Template.Spec)
	if err != nil {
		return plan{}, fmt.Errorf("spec.template.spec: %w", err)
	}
	var all []overlay
	for i := range spec.Overlays {
		from, err := maintenance.Time(spec.Overlays[i].From)
		if err != nil {
			return plan{}, fmt.Errorf("spec.overlays[%d].from: %w", i, err)
		}
		changes, err := decode(spec.Overlays[i].Overlay.Spec)
		if err != nil {
			return plan{}, fmt.Errorf("spec.overlays[%d].overlay.spec: %w", i, err)
		}
		all = append(all, overlay{from, merge(template, changes)})
	}
	slices.SortStableFunc(all, func(a, b overlay) int { return a.from.Compare(b.from) }) // of overlays with the same time, the last one applies
	p := plan{current: merge(nil, template)}
	for _, o := range all {
		if o.from.After(now) {
			p.upcoming = append(p.upcoming, o)
		} else {
			p.current, p.applied = o.merged, o.from
		}
	}
	return p, nil
}

// next returns when the parameters change next; zero if they do not.
func (p plan) next() time.Time {
	if len(p.upcoming) == 0 {
		return time.Time{}
	}
	return p.upcoming[0].from
}

// otherClusterID returns the first cluster ID in the plan that differs from id, and where it is
// set; both are empty if there is none.
func (p plan) otherClusterID(id string) (where, other string) {
	if other := p.current.otherClusterID(id); other != "" {
		return "the parameters that apply now", other
	}
	for _, o := range p.upcoming {
		if other := o.merged.otherClusterID(id); other != "" {
			return "the overlay from " + text.FormatTime(o.from), other
		}
	}
	return "", ""
}

func (p parameters) otherClusterID(id string) string {
	value, set := p[fieldClusterID]
	if other := fmt.Sprint(value); set && other != id {
		return cmp.Or(other, "an empty one")
	}
	return ""
}

// decode returns the parameters in a template, without desiredUpdate.
func decode(raw runtime.RawExtension) (parameters, error) {
	if len(raw.Raw) == 0 {
		return parameters{}, nil
	}
	var fields map[string]any
	if err := json.Unmarshal(raw.Raw, &fields); err != nil {
		return nil, errors.New("is not a JSON object")
	}
	delete(fields, fieldDesiredUpdate)
	return fields, nil
}

// merge applies changes to parameters as a JSON merge patch (RFC 7386): objects are merged, null
// removes a field, and any other value replaces the field.
func merge(into, changes map[string]any) parameters {
	merged := runtime.DeepCopyJSON(into)
	if merged == nil {
		merged = map[string]any{}
	}
	for key, change := range changes {
		fields, isObject := change.(map[string]any)
		switch {
		case change == nil:
			delete(merged, key)
		case isObject:
			former, _ := merged[key].(map[string]any)
			merged[key] = map[string]any(merge(former, fields))
		default:
			merged[key] = runtime.DeepCopyJSONValue(change)
		}
	}
	return merged
}

// encode returns the parameters in the format of the status.
func (p parameters) encode() (maintenancev1beta1.ClusterVersionTemplate, error) {
	raw, err := json.Marshal(map[string]any(p))
	if err != nil {
		return maintenancev1beta1.ClusterVersionTemplate{}, fmt.Errorf("encoding parameters: %w", err)
	}
	return maintenancev1beta1.ClusterVersionTemplate{Spec: runtime.RawExtension{Raw: raw}}, nil
}

// maxPreviews limits the total size of the previews in a status, in bytes.
const maxPreviews = 128 << 10

// previews returns the upcoming overlays for the status, in order of time, up to maxPreviews bytes.
func (p plan) previews() ([]maintenancev1beta1.ClusterVersionOverlayPreview, error) {
	var all []maintenancev1beta1.ClusterVersionOverlayPreview
	size := 0
	for _, o := range p.upcoming {
		preview, err := o.merged.encode()
		if err != nil {
			return nil, err
		}
		if size += len(preview.Spec.Raw); size > maxPreviews {
			break
		}
		all = append(all, maintenancev1beta1.ClusterVersionOverlayPreview{From: metav1.NewTime(o.from), Preview: preview})
	}
	return all, nil
}
