// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package spoke

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/jsonpath"
	workv1 "open-cluster-management.io/api/work/v1"
)

// feedbackSynced is the type of the condition that tells whether all values could be read.
const feedbackSynced = "StatusFeedbackSynced"

// maxRawJSON is the maximum length of JSON that the agent reports.
const maxRawJSON = 1024

// wellKnown lists the paths of the WellKnownStatus rule by kind.
var wellKnown = map[string][]workv1.JsonPath{
	"Job": {
		{Name: "JobComplete", Path: ".status.conditions[?(@.type==\"Complete\")].status"},
		{Name: "JobSucceeded", Path: ".status.succeeded"},
	},
	"Deployment": {
		{Name: "ReadyReplicas", Path: ".status.readyReplicas"},
		{Name: "Replicas", Path: ".status.replicas"},
		{Name: "AvailableReplicas", Path: ".status.availableReplicas"},
	},
	"DaemonSet": {
		{Name: "NumberReady", Path: ".status.numberReady"},
		{Name: "DesiredNumberScheduled", Path: ".status.desiredNumberScheduled"},
		{Name: "NumberAvailable", Path: ".status.numberAvailable"},
	},
	"Pod": {
		{Name: "PodReady", Path: ".status.conditions[?(@.type==\"Ready\")].status"},
		{Name: "PodPhase", Path: ".status.phase"},
	},
}

// feedback evaluates the feedback rules of a configuration, or no rules if it is nil. It returns the
// values and the feedback condition. A path that fails does not keep others from being reported.
func (c *Cluster) feedback(of *unstructured.Unstructured, option *workv1.ManifestConfigOption) ([]workv1.FeedbackValue, metav1.Condition) {
	about := metav1.Condition{Type: feedbackSynced, Status: metav1.ConditionTrue, Reason: "StatusFeedbackSynced"}
	if option == nil {
		about.Reason = "NoStatusFeedbackSynced"
		return nil, about
	}
	var all []workv1.FeedbackValue
	var errs []error
	for i := range option.FeedbackRules {
		paths := option.FeedbackRules[i].JsonPaths
		if option.FeedbackRules[i].Type == workv1.WellKnownStatusType {
			if paths = wellKnown[of.GetKind()]; paths == nil {
				errs = append(errs, fmt.Errorf("cannot find the wellknown statuses for resource with gvk %s", of.GroupVersionKind()))
			}
		}
		for _, path := range paths {
			value, err := Evaluate(of.Object, path, c.RawJSON)
			if err != nil {
				errs = append(errs, err)
			} else if value != nil {
				all = append(all, *value)
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		about.Status, about.Reason = metav1.ConditionFalse, "StatusFeedbackSyncFailed"
		about.Message = fmt.Sprintf("Sync status feedback failed with error %v", err)
	}
	return all, about
}

// Evaluate returns the value of an object at a path as the work agent of Open Cluster Management
// v1.2.0 would report it, or nil for no value. A missing key yields no value, and an index outside a list an
// error. If the path matches several values, the first one counts. With rawJSON (the feature gate
// RawFeedbackJsonString), all matches count, and values of any type are reported as JSON.
func Evaluate(object map[string]any, path workv1.JsonPath, rawJSON bool) (*workv1.FeedbackValue, error) {
	parsed := jsonpath.New(path.Name).AllowMissingKeys(true)
	if err := parsed.Parse("{" + path.Path + "}"); err != nil {
		return nil, fmt.Errorf("failed to parse json path %s of %s with error: %w", path.Path, path.Name, err)
	}
	results, err := parsed.FindResults(object)
	switch {
	case err != nil:
		return nil, fmt.Errorf("failed to find value for %s with error: %w", path.Name, err)
	case len(results) == 0 || len(results[0]) == 0:
		return nil, nil
	}
	found := results[0][0].Interface()
	if rawJSON && len(results[0]) > 1 {
		all := make([]any, len(results[0]))
		for i, r := range results[0] {
			all[i] = r.Interface()
		}
		found = all
	}
	value := &workv1.FeedbackValue{Name: path.Name}
	switch v := found.(type) {
	case nil:
		return nil, nil
	case int64:
		value.Value = workv1.FieldValue{Type: workv1.Integer, Integer: &v}
	case string:
		value.Value = workv1.FieldValue{Type: workv1.String, String: &v}
	case bool:
		value.Value = workv1.FieldValue{Type: workv1.Boolean, Boolean: &v}
	default:
		data, err := json.Marshal(v)
		switch {
		case err != nil || !rawJSON:
			return nil, fmt.Errorf("the type %T of the value for %s is not found", v, path.Name)
		case len(data) > maxRawJSON:
			return nil, fmt.Errorf("the length of returned json raw string for name %s is larger than the maximum length %d", path.Name, maxRawJSON)
		}
		value.Value = workv1.FieldValue{Type: workv1.JsonRaw, JsonRaw: new(string(data))}
	}
	return value, nil
}
