// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	updatev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/config/v1beta1"
	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/informersdk/wire"
)

const (
	// maxCallTimeout limits the timeout that an informer may request.
	maxCallTimeout = hooksv1alpha.MaxTimeoutSeconds * time.Second
	// defaultCallTimeout is the timeout if the informer requests none.
	defaultCallTimeout = hooksv1alpha.DefaultTimeoutSeconds * time.Second
)

// dialTimeout limits how long opening a connection may take.
const dialTimeout = 3 * time.Second

// target holds the address of an informer and the facts that prove its identity. It is comparable:
// a different target needs a new connection.
type target struct {
	address, serverName, audience string
	port                          int32
	ca                            string
}

// connection is the connection to an informer. Only one reconcile at a time uses it.
type connection struct {
	target target
	client *httpclient.Client
	// token is the token of the latest request.
	token string
	// post holds the handlers that have rejected GET since the last discovery.
	post map[string]bool
}

// connect returns a connection. It sends no request.
func connect(t target, token func(ctx context.Context, audience string) (string, error)) (*connection, error) {
	c := &connection{target: t, post: map[string]bool{}}
	var err error
	c.client, err = httpclient.New(httpclient.Options{
		URL: fmt.Sprintf("https://%s:%d", t.serverName, t.port), DialAddress: t.address, ServerName: t.serverName, CA: []byte(t.ca),
		DialTimeout: dialTimeout, Timeout: maxCallTimeout, MaxBodyBytes: hooksv1alpha.MaxAnswerBytes,
		Token: func(ctx context.Context) (string, error) {
			value, err := token(ctx, t.audience)
			if err != nil {
				return "", &tokenError{err}
			}
			c.token = value
			return value, nil
		},
	})
	if err != nil {
		return nil, fmt.Errorf("the address of the informer: %w", err)
	}
	return c, nil
}

// tokenError is a failure to get a token. It is not the informer's fault.
type tokenError struct{ err error }

func (e *tokenError) Error() string { return e.err.Error() }

func (e *tokenError) Unwrap() error { return e.err }

// discover requests the list of handlers that the informer implements.
func (c *connection) discover(ctx context.Context) ([]updatev1beta1.InformerHandler, error) {
	clear(c.post)
	body, err := c.send(ctx, http.MethodGet, hooksv1alpha.DiscoveryPath, nil, defaultCallTimeout)
	var status *httpclient.StatusError
	switch {
	case errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusMethodNotAllowed):
		return nil, fmt.Errorf("%w: %w", wire.ErrUnsupported, err)
	case err != nil:
		return nil, err
	}
	_, listed, err := wire.DecodeDiscovery(body)
	return handlersOf(listed), err
}

// handlersOf converts handlers to their form in the status.
func handlersOf(listed []hooksv1alpha.Handler) []updatev1beta1.InformerHandler {
	var handlers []updatev1beta1.InformerHandler
	for _, h := range listed {
		handler := updatev1beta1.InformerHandler{Name: h.Name, TimeoutSeconds: min(max(h.TimeoutSeconds, 0), hooksv1alpha.MaxTimeoutSeconds)}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			if slices.Contains(h.Methods, method) {
				handler.Methods = append(handler.Methods, method)
			}
		}
		handlers = append(handlers, handler)
	}
	return handlers
}

// ask requests insights. The status handler is called by GET with a body, as the protocol defines,
// or by POST if the informer does not accept that.
func (c *connection) ask(ctx context.Context, handler updatev1beta1.InformerHandler, spec hooksv1alpha.RequestSpec) ([]byte, error) {
	method, path, kind := http.MethodGet, hooksv1alpha.UpdateInsightsPath, hooksv1alpha.UpdateInsightsRequestKind
	if handler.Name == hooksv1alpha.HandlerPlan {
		method, path, kind = http.MethodPost, hooksv1alpha.UpdatePlanInsightsPath, hooksv1alpha.UpdatePlanInsightsRequestKind
	}
	onlyPost := len(handler.Methods) > 0 && !slices.Contains(handler.Methods, http.MethodGet)
	if onlyPost || c.post[handler.Name] {
		method = http.MethodPost
	}
	request, err := json.Marshal(hooksv1alpha.UpdateInsightsRequest{TypeMeta: metav1.TypeMeta{APIVersion: hooksv1alpha.APIVersion, Kind: kind}, Spec: spec})
	if err != nil {
		return nil, fmt.Errorf("encoding the request: %w", err)
	}
	timeout := callTimeout(handler)
	body, err := c.send(ctx, method, path, request, timeout)
	if method == http.MethodGet && isMethodRejected(err) {
		if body, err = c.send(ctx, http.MethodPost, path, request, timeout); err == nil {
			c.post[handler.Name] = true
		}
	}
	return body, err
}

// callTimeout returns how long a response of a handler may take.
func callTimeout(handler updatev1beta1.InformerHandler) time.Duration {
	if handler.TimeoutSeconds <= 0 {
		return defaultCallTimeout
	}
	return min(time.Duration(handler.TimeoutSeconds)*time.Second, maxCallTimeout)
}

// isMethodRejected reports whether a server, or a proxy in front of it, may have rejected a GET
// request because of its body.
func isMethodRejected(err error) bool {
	var status *httpclient.StatusError
	return errors.As(err, &status) && slices.Contains([]int{
		http.StatusBadRequest, http.StatusMethodNotAllowed, http.StatusLengthRequired, http.StatusUnsupportedMediaType,
	}, status.Code)
}

func (c *connection) send(ctx context.Context, method, path string, body []byte, timeout time.Duration) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	request := httpclient.Request{Method: method, Path: strings.Split(strings.Trim(path, "/"), "/"), Body: body}
	if body != nil {
		request.ContentType = "application/json"
	}
	response, err := c.client.Do(ctx, request)
	var invalid *httpclient.ResponseError
	switch {
	case errors.As(err, &invalid): // the informer has answered
		return nil, err
	case err != nil:
		return nil, &requestError{err}
	}
	return c.redact(response), nil
}

// redact replaces the token of the request in a response. Informers may echo parts of a request,
// and more users can read the published response than may read the token.
func (c *connection) redact(response []byte) []byte {
	if c.token == "" {
		return response
	}
	return bytes.ReplaceAll(response, []byte(c.token), []byte("[redacted]"))
}

// requestError is a request that got no response or an error status.
type requestError struct{ err error }

func (e *requestError) Error() string { return e.err.Error() }

func (e *requestError) Unwrap() error { return e.err }

// close closes the idle connection.
func (c *connection) close() { c.client.Close() }
