// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package prometheus

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/text"
)

// strictClient is an api.Client that returns only complete and successful responses. It turns
// warnings into errors, because they indicate incomplete results and name the store that failed. It
// does not fall back to another HTTP method after an error.
type strictClient struct{ *httpclient.Client }

// URL returns the path below the endpoint.
func (s strictClient) URL(path string, _ map[string]string) *url.URL { return &url.URL{Path: path} }

// Do sends the request to the endpoint.
func (s strictClient) Do(ctx context.Context, req *http.Request) (*http.Response, []byte, error) {
	var query []byte
	if req.Body != nil {
		var err error
		if query, err = io.ReadAll(req.Body); err != nil {
			return nil, nil, err
		}
	}
	body, err := s.Client.Do(ctx, httpclient.Request{
		Method: req.Method, Path: strings.Split(strings.Trim(req.URL.Path, "/"), "/"),
		ContentType: req.Header.Get("Content-Type"), Body: query,
	})
	if err != nil {
		return nil, nil, err
	}
	var response struct {
		Status, Error string
		Warnings      []string
	}
	if err := json.Unmarshal(body, &response); err != nil {
		return nil, nil, fmt.Errorf("the response is not JSON: %w", err)
	}
	if response.Status != "success" {
		return nil, nil, fmt.Errorf("the response has status %q: %s", text.Excerpt(response.Status), text.Excerpt(response.Error))
	}
	if len(response.Warnings) > 0 {
		return nil, nil, fmt.Errorf("the response has warnings: %s", text.Excerpt(strings.Join(response.Warnings, "; ")))
	}
	return &http.Response{StatusCode: http.StatusOK}, body, nil
}
