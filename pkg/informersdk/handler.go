// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informersdk

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	hooksv1alpha "github.com/managed-upgrade/managed-upgrade-operator/api/updatehooks/v1alpha"
)

// HealthPath responds to every GET request with status 200 and needs no token. It is for probes.
const HealthPath = "/healthz"

const (
	maxRequestBytes      = 64 << 10
	defaultTimeout       = 8 * time.Second // the caller waits for ten seconds
	defaultMaxConcurrent = 4
)

// HandlerOptions configure a handler.
type HandlerOptions struct {
	// UpdateInsights finds insights about the update in progress. It may be nil.
	UpdateInsights Find
	// PlanInsights finds problems that an update would encounter if it were started. It may be nil.
	PlanInsights Find
	// Authorize returns nil if the bearer token of a request is authorized, ErrUnauthenticated or
	// ErrForbidden if it is not, and any other error if that cannot be determined. TokenReview
	// implements it.
	Authorize func(ctx context.Context, token string) error
	// Timeout limits the duration of a function call. It defaults to 8 seconds.
	Timeout time.Duration
	// MaxConcurrent limits the number of concurrent requests. It defaults to 4. Additional requests
	// get status 503.
	MaxConcurrent int
	// Clock defaults to the real clock.
	Clock clock.PassiveClock
	// Log receives details that callers do not see. By default, they are discarded.
	Log logr.Logger
}

// handler handles requests.
type handler struct {
	authorize func(context.Context, string) error
	discovery []byte
	slots     chan struct{}
	log       logr.Logger
}

// NewHandler returns the handler of an informer. It serves the paths of the protocol with GET and
// POST, and HealthPath.
func NewHandler(o HandlerOptions) (http.Handler, error) {
	if o.UpdateInsights == nil && o.PlanInsights == nil {
		return nil, errors.New("setting up the informer: set UpdateInsights, PlanInsights, or both")
	}
	if o.Authorize == nil {
		return nil, errors.New("setting up the informer: set Authorize, for example to the method of TokenReview")
	}
	if o.Log.GetSink() == nil {
		o.Log = logr.Discard()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	timeout := cmp.Or(o.Timeout, defaultTimeout)
	h := &handler{authorize: o.Authorize, slots: make(chan struct{}, cmp.Or(o.MaxConcurrent, defaultMaxConcurrent)), log: o.Log}
	mux := http.NewServeMux()
	var handlers []hooksv1alpha.Handler
	for _, served := range []struct {
		name, path, request, response string
		find                          Find
		needsBody                     bool
	}{
		{hooksv1alpha.HandlerStatus, hooksv1alpha.UpdateInsightsPath, hooksv1alpha.UpdateInsightsRequestKind, hooksv1alpha.UpdateInsightsResponseKind, o.UpdateInsights, false},
		{hooksv1alpha.HandlerPlan, hooksv1alpha.UpdatePlanInsightsPath, hooksv1alpha.UpdatePlanInsightsRequestKind, hooksv1alpha.UpdatePlanInsightsResponseKind, o.PlanInsights, true},
	} {
		if served.find == nil {
			continue
		}
		handlers = append(handlers, hooksv1alpha.Handler{
			Name: served.name, Methods: []string{http.MethodGet, http.MethodPost}, TimeoutSeconds: int32(math.Ceil(timeout.Seconds())),
		})
		e := &endpoint{
			handler: h, requestKind: served.request, responseKind: served.response, needsBody: served.needsBody,
			finder: finder{find: served.find, timeout: timeout, clock: o.Clock, log: o.Log},
		}
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			mux.HandleFunc(method+" "+served.path, h.authorized(e.serve))
		}
	}
	var err error
	if h.discovery, err = json.Marshal(hooksv1alpha.DiscoveryResponse{
		TypeMeta: metav1.TypeMeta{APIVersion: hooksv1alpha.APIVersion, Kind: hooksv1alpha.DiscoveryResponseKind},
		Spec:     hooksv1alpha.DiscoverySpec{APIVersions: []string{hooksv1alpha.HooksAPIVersion}, Handlers: handlers},
	}); err != nil {
		return nil, fmt.Errorf("encoding the discovery response: %w", err)
	}
	mux.HandleFunc("GET "+hooksv1alpha.DiscoveryPath, h.authorized(func(w http.ResponseWriter, _ *http.Request) { h.write(w, h.discovery) }))
	mux.HandleFunc("GET "+HealthPath, func(w http.ResponseWriter, _ *http.Request) { h.write(w, []byte("{}")) })
	return mux, nil
}

// authorized calls next for authorized requests and rejects all others.
func (h *handler) authorized(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		if !strings.EqualFold(scheme, "Bearer") {
			token = ""
		}
		err := ErrUnauthenticated
		if token = strings.TrimSpace(token); token != "" {
			err = h.authorize(r.Context(), token)
		}
		switch {
		case err == nil:
			next(w, r)
		case errors.Is(err, ErrUnauthenticated):
			w.Header().Set("WWW-Authenticate", "Bearer")
			http.Error(w, err.Error(), http.StatusUnauthorized)
		case errors.Is(err, ErrForbidden):
			http.Error(w, err.Error(), http.StatusForbidden)
		default:
			h.log.Error(err, "A token could not be reviewed.")
			http.Error(w, "the token could not be reviewed; the log of the informer has the details", http.StatusServiceUnavailable)
		}
	}
}

func (h *handler) write(w http.ResponseWriter, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	if _, err := w.Write(body); err != nil {
		h.log.V(1).Info("A caller did not read the answer.", "error", err.Error())
	}
}

// endpoint handles the requests for a path.
type endpoint struct {
	*handler

	requestKind, responseKind string
	needsBody                 bool
	finder                    finder
}

func (e *endpoint) serve(w http.ResponseWriter, r *http.Request) {
	request, code, err := e.decode(http.MaxBytesReader(w, r.Body, maxRequestBytes))
	if err != nil {
		http.Error(w, err.Error(), code)
		return
	}
	select {
	case e.slots <- struct{}{}:
	default:
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many requests are being answered", http.StatusServiceUnavailable)
		return
	}
	found := e.finder.answer(r.Context(), request.Spec, func() { <-e.slots })
	body, err := e.encode(found)
	if err == nil && len(body) > hooksv1alpha.MaxAnswerBytes {
		body, err = e.encode(e.finder.failure(nil, fmt.Errorf("the insights have %d bytes, more than %d: shorten the descriptions", len(body), hooksv1alpha.MaxAnswerBytes)))
	}
	if err != nil {
		e.log.Error(err, "An answer could not be encoded.")
		http.Error(w, "the answer could not be encoded", http.StatusInternalServerError)
		return
	}
	e.write(w, body)
}

// decode returns the request in a body, or a status code and an error. An empty body is a request
// about an unknown update.
func (e *endpoint) decode(body io.Reader) (request hooksv1alpha.UpdateInsightsRequest, code int, err error) {
	data, err := io.ReadAll(body)
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return request, http.StatusRequestEntityTooLarge, fmt.Errorf("the body has more than %d bytes", maxRequestBytes)
	case err != nil:
		return request, http.StatusBadRequest, fmt.Errorf("reading the body: %w", err)
	case len(data) == 0 && e.needsBody:
		return request, http.StatusBadRequest, fmt.Errorf("the body is empty: send an %s", e.requestKind)
	case len(data) == 0:
		return request, 0, nil
	}
	if err := json.Unmarshal(data, &request); err != nil {
		return request, http.StatusBadRequest, fmt.Errorf("the body is no %s in JSON: %w", e.requestKind, err)
	}
	if request.APIVersion != hooksv1alpha.APIVersion || request.Kind != e.requestKind {
		return request, http.StatusBadRequest, fmt.Errorf("the body is %q of %q: send an %s of %s", request.Kind, request.APIVersion, e.requestKind, hooksv1alpha.APIVersion)
	}
	return request, 0, nil
}

func (e *endpoint) encode(found answer) ([]byte, error) {
	insights := found.insights
	if insights == nil {
		insights = []hooksv1alpha.Insight{}
	}
	return json.Marshal(hooksv1alpha.UpdateInsightsResponse{
		TypeMeta: metav1.TypeMeta{APIVersion: hooksv1alpha.APIVersion, Kind: e.responseKind},
		Spec:     hooksv1alpha.ResponseSpec{Insights: insights},
		Status:   found.status,
	})
}
