// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// maxDepth bounds the nesting of a response.
	maxDepth = 16
	// maxValues bounds the values of a response: as objects, they need many times the memory.
	maxValues = 1 << 16
	// maxCallTimeout bounds the time that an informer may request for an answer.
	maxCallTimeout = v1alpha.MaxTimeoutSeconds * time.Second
	// defaultCallTimeout is the time for an answer if the informer requests none.
	defaultCallTimeout = v1alpha.DefaultTimeoutSeconds * time.Second
)

// errUnsupported is an informer that does not serve the level of the protocol.
var errUnsupported = errors.New("the informer does not support " + v1alpha.HooksAPIVersion)

// decode decodes one JSON document of bounded depth and with a bounded number of values. Field names are case-sensitive.
func decode(body []byte, into any) error {
	if err := checkShape(body); err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, into); err != nil {
		return fmt.Errorf("the response is not one JSON document of the expected form: %s", text.Excerpt(err.Error()))
	}
	return nil
}

// checkShape returns an error if the brackets outside of strings are nested too deeply, or if there are
// too many values.
func checkShape(body []byte) error {
	depth, values, inString, escaped := 0, 0, false, false
	for _, c := range body {
		if !inString && (c == ',' || c == '{' || c == '[') {
			if values++; values > maxValues {
				return fmt.Errorf("the response has more than %d values", maxValues)
			}
		}
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped, inString = c == '\\', c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			if depth++; depth > maxDepth {
				return fmt.Errorf("the response is nested more than %d levels deep", maxDepth)
			}
		case c == '}' || c == ']':
			depth--
		}
	}
	return nil
}

// decodeDiscovery returns the handlers of an informer.
func decodeDiscovery(body []byte) ([]v1beta1.InformerHandler, error) {
	var response v1alpha.DiscoveryResponse
	if err := decode(body, &response); err != nil {
		return nil, err
	}
	if !slices.Contains(response.Spec.APIVersions, v1alpha.HooksAPIVersion) {
		return nil, errUnsupported
	}
	var handlers []v1beta1.InformerHandler
	for _, h := range response.Spec.Handlers {
		known := slices.ContainsFunc(handlers, func(other v1beta1.InformerHandler) bool { return other.Name == h.Name })
		if known || h.Name != v1alpha.HandlerStatus && h.Name != v1alpha.HandlerPlan {
			continue // a later level of the protocol may have others
		}
		handler := v1beta1.InformerHandler{Name: h.Name, TimeoutSeconds: min(max(h.TimeoutSeconds, 0), v1alpha.MaxTimeoutSeconds)}
		for _, method := range []string{"GET", "POST"} {
			if slices.Contains(h.Methods, method) {
				handler.Methods = append(handler.Methods, method)
			}
		}
		handlers = append(handlers, handler)
	}
	if len(handlers) == 0 {
		return nil, fmt.Errorf("the discovery lists no handler %s or %s", v1alpha.HandlerStatus, v1alpha.HandlerPlan)
	}
	return handlers, nil
}

// insightsResponse is an UpdateInsightsResponse whose insights are not decoded.
type insightsResponse struct {
	metav1.TypeMeta `json:",inline"`

	Spec struct {
		Insights json.RawMessage `json:"insights"`
	} `json:"spec"`
	Status v1alpha.ResponseStatus `json:"status"`
}

// decodeList decodes the first elements of a JSON list. A list that is missing or null is empty.
func decodeList(list []byte, most int) ([]v1alpha.Insight, error) {
	if len(list) == 0 {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(list))
	switch first, err := decoder.Token(); {
	case err != nil:
		return nil, fmt.Errorf("decoding spec.insights: %s", text.Excerpt(err.Error()))
	case first == nil:
		return nil, nil
	case first != json.Delim('['):
		return nil, errors.New("spec.insights must be a list")
	}
	var insights []v1alpha.Insight
	for len(insights) < most && decoder.More() {
		var element json.RawMessage
		var decoded v1alpha.Insight
		err := decoder.Decode(&element)
		if err == nil {
			err = kjson.UnmarshalCaseSensitivePreserveInts(element, &decoded)
		}
		if err != nil {
			return nil, fmt.Errorf("decoding an insight: %s", text.Excerpt(err.Error()))
		}
		insights = append(insights, decoded)
	}
	return insights, nil
}

// decodeInsights returns the answer of a handler. Both requests have responses of the same form, which
// differ in their kind. The insights are as the informer reported them.
func decodeInsights(kind string, body []byte) (v1alpha.ResponseStatus, []v1beta1.Insight, error) {
	var decoded insightsResponse
	if err := decode(body, &decoded); err != nil {
		return v1alpha.ResponseStatus{}, nil, err
	}
	if decoded.APIVersion != v1alpha.APIVersion || decoded.Kind != kind {
		return v1alpha.ResponseStatus{}, nil, fmt.Errorf("the response must be %s %s, and is %q %q", v1alpha.APIVersion, kind,
			text.Excerpt(decoded.APIVersion), text.Excerpt(decoded.Kind))
	}
	switch decoded.Status.Response {
	case v1alpha.ResponseSuccess, v1alpha.ResponseFailure, v1alpha.ResponseWait:
	default:
		return v1alpha.ResponseStatus{}, nil, fmt.Errorf("status.response must be Success, Failure, or Wait, and is %q", text.Excerpt(string(decoded.Status.Response)))
	}
	// One more than the limit shows that there were more.
	reported, err := decodeList(decoded.Spec.Insights, v1alpha.MaxInsights+1)
	if err != nil {
		return v1alpha.ResponseStatus{}, nil, err
	}
	insights := make([]v1beta1.Insight, 0, len(reported))
	for _, i := range reported {
		insights = append(insights, v1beta1.Insight{
			UID: i.UID, AcquisitionTime: i.AcquisitionTime, Scope: i.Scope, Impact: i.Impact, Remediation: i.Remediation,
		})
	}
	return v1alpha.ResponseStatus{Response: decoded.Status.Response, Message: text.Excerpt(decoded.Status.Message)}, insights, nil
}
