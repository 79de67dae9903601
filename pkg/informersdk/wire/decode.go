// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

const (
	// maxDepth is the maximum nesting depth of a response.
	maxDepth = 16
	// maxValues is the maximum number of values in a response. Decoded objects need many times the
	// memory of their JSON.
	maxValues = 1 << 16
)

// ErrUnsupported is returned if an informer does not support the protocol level.
var ErrUnsupported = errors.New("the informer does not support " + hooksv1alpha.HooksAPIVersion)

// decode decodes a single JSON document with limited depth and number of values. Field names are
// case-sensitive.
func decode(body []byte, into any) error {
	if err := checkShape(body); err != nil {
		return err
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(body, into); err != nil {
		return fmt.Errorf("the response is not one JSON document of the expected form: %s", text.Excerpt(err.Error()))
	}
	return nil
}

// checkShape returns an error if brackets outside strings are nested too deeply, or if there are
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

// DecodeDiscovery decodes a discovery response. It also returns the effective handlers: the first
// one for each known name. Later protocol levels may have other names.
func DecodeDiscovery(body []byte) (hooksv1alpha.DiscoveryResponse, []hooksv1alpha.Handler, error) {
	var response hooksv1alpha.DiscoveryResponse
	if err := decode(body, &response); err != nil {
		return response, nil, err
	}
	if !slices.Contains(response.Spec.APIVersions, hooksv1alpha.HooksAPIVersion) {
		return response, nil, fmt.Errorf("%w: spec.apiVersions is %s", ErrUnsupported, text.Excerpt(fmt.Sprintf("%q", response.Spec.APIVersions)))
	}
	var handlers []hooksv1alpha.Handler
	for _, h := range response.Spec.Handlers {
		known := slices.ContainsFunc(handlers, func(other hooksv1alpha.Handler) bool { return other.Name == h.Name })
		if !known && (h.Name == hooksv1alpha.HandlerStatus || h.Name == hooksv1alpha.HandlerPlan) {
			handlers = append(handlers, h)
		}
	}
	if len(handlers) == 0 {
		return response, nil, fmt.Errorf("spec.handlers lists no handler %s or %s", hooksv1alpha.HandlerStatus, hooksv1alpha.HandlerPlan)
	}
	return response, handlers, nil
}

// insightsResponse is an UpdateInsightsResponse whose insights have not been decoded.
type insightsResponse struct {
	metav1.TypeMeta `json:",inline"`

	Spec struct {
		Insights json.RawMessage `json:"insights"`
	} `json:"spec"`
	Status hooksv1alpha.ResponseStatus `json:"status"`
}

// decodeList decodes the first elements of a JSON list. A missing list, or null, is empty.
func decodeList(list []byte, most int) ([]hooksv1alpha.Insight, error) {
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
	var insights []hooksv1alpha.Insight
	for len(insights) < most && decoder.More() {
		var element json.RawMessage
		var decoded hooksv1alpha.Insight
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

// DecodeInsights decodes the response of a handler. The responses to both requests differ only in
// their kind. The insights are unmodified. If there are more than the limit, one more than the
// limit is returned.
func DecodeInsights(kind string, body []byte) (hooksv1alpha.ResponseStatus, []hooksv1alpha.Insight, error) {
	var decoded insightsResponse
	if err := decode(body, &decoded); err != nil {
		return hooksv1alpha.ResponseStatus{}, nil, err
	}
	if decoded.APIVersion != hooksv1alpha.APIVersion || decoded.Kind != kind {
		return hooksv1alpha.ResponseStatus{}, nil, fmt.Errorf("the response must be %s %s, and is %q %q", hooksv1alpha.APIVersion, kind,
			text.Excerpt(decoded.APIVersion), text.Excerpt(decoded.Kind))
	}
	switch decoded.Status.Response {
	case hooksv1alpha.ResponseSuccess, hooksv1alpha.ResponseFailure, hooksv1alpha.ResponseWait:
	default:
		return hooksv1alpha.ResponseStatus{}, nil, fmt.Errorf("status.response must be Success, Failure, or Wait, and is %q", text.Excerpt(string(decoded.Status.Response)))
	}
	insights, err := decodeList(decoded.Spec.Insights, hooksv1alpha.MaxInsights+1)
	if err != nil {
		return hooksv1alpha.ResponseStatus{}, nil, err
	}
	return hooksv1alpha.ResponseStatus{Response: decoded.Status.Response, Message: text.Excerpt(text.Redact(decoded.Status.Message))}, insights, nil
}
