// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/endpoint"
)

// strict is an api.Client that takes nothing for an answer but a success. It hands
// out no failed response, so nothing is asked for a second time by other means.
type strict struct{ *endpoint.Endpoint }

// URL is where something is below the endpoint.
func (s strict) URL(path string, _ map[string]string) *url.URL { return &url.URL{Path: path} }

// Do asks the endpoint.
func (s strict) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	question, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, nil, err
	}
	body, err := s.Endpoint.Do(ctx, endpoint.Request{
		Method: req.Method, Path: strings.Split(strings.Trim(req.URL.Path, "/"), "/"),
		ContentType: req.Header.Get("Content-Type"), Body: question,
	})
	if err != nil {
		return nil, nil, err
	}
	var answer struct{ Status, Error string }
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, nil, fmt.Errorf("the answer is not JSON: %w", err)
	}
	if answer.Status != "success" {
		return nil, nil, fmt.Errorf("the answer has status %q: %s", endpoint.Printable(answer.Status), endpoint.Printable(answer.Error))
	}
	return &http.Response{StatusCode: http.StatusOK}, body, nil
}
