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

// The fields of the spec of OpenShift's ClusterVersion that are treated in a special way.
const (
	fieldChannel       = "channel"
	fieldClusterID     = "clusterID"
	fieldDesiredUpdate = "desiredUpdate"
)

// parameters are fields of the spec of OpenShift's ClusterVersion.
type parameters map[string]any

// overlay is a change of the parameters at a time.
type overlay struct {
	from   time.Time
	merged parameters // into the template
}

// plan holds what a spec requests.
type plan struct {
	// current are the parameters that apply now.
	current parameters
	// applied is the time of the overlay that applies now; zero if none does.
	applied time.Time
	// upcoming are the overlays that apply later, the next one first.
	upcoming []overlay
}

// newPlan returns what a spec requests at a time. An error means that the spec is invalid.
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
	slices.SortStableFunc(all, func(a, b overlay) int { return a.from.Compare(b.from) }) // of equal times the last one applies
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

// next returns the time at which the parameters change; zero means never.
func (p plan) next() time.Time {
	if len(p.upcoming) == 0 {
		return time.Time{}
	}
	return p.upcoming[0].from
}

// otherClusterID returns where parameters name another cluster than the one with the ID, and its
// ID; empty if none do.
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
		return nil, errors.New("is no JSON object")
	}
	delete(fields, fieldDesiredUpdate)
	return fields, nil
}

// merge returns the parameters with changes by a JSON merge patch (RFC 7386): objects are merged,
// null removes a field, and everything else replaces.
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

// encode returns the parameters as the status shows them.
func (p parameters) encode() (maintenancev1beta1.ClusterVersionTemplate, error) {
	raw, err := json.Marshal(map[string]any(p))
	if err != nil {
		return maintenancev1beta1.ClusterVersionTemplate{}, fmt.Errorf("encoding parameters: %w", err)
	}
	return maintenancev1beta1.ClusterVersionTemplate{Spec: runtime.RawExtension{Raw: raw}}, nil
}

// maxPreviews bounds the size of the previews in a status, in bytes.
const maxPreviews = 128 << 10

// previews returns the upcoming overlays as the status shows them, the next one first, as many as
// fit.
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
