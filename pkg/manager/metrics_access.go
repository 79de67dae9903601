// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package manager

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

// Limits for the cost of metrics requests.
const (
	decisionTTL     = time.Minute // of a cached decision
	trustTTL        = time.Hour   // how long reviews of a previously allowed token are not limited
	maxDecisions    = 256
	maxTokenBytes   = 8 << 10
	reviewsPerMin   = 30 // of tokens that were not previously allowed
	reviewTimeout   = 10 * time.Second
	bearerPrefix    = "bearer "
	retryAfterLimit = "60" // seconds
)

// metricsAccess serves the metrics to clients that may get /metrics. A request without a token
// causes no request to the API server. Tokens cause at most two requests per minute each, and
// tokens that were not previously allowed at most reviewsPerMin requests per minute in total.
type metricsAccess struct {
	// review returns the status code for a request with this token: 200, 401, or 403.
	review func(ctx context.Context, token, verb, path string) (int, error)
	clock  clock.PassiveClock
	log    logr.Logger

	mu        sync.Mutex
	decisions map[decisionKey]decision
	window    time.Time // start of the minute in which reviews are being counted
	reviews   int
}

type decisionKey struct {
	token      [sha256.Size]byte
	verb, path string
}

type decision struct {
	status int
	at     time.Time
}

// newMetricsAccess returns the metrics server's filter.
func newMetricsAccess(clk clock.PassiveClock) func(*rest.Config, *http.Client) (metricsserver.Filter, error) {
	return func(config *rest.Config, httpClient *http.Client) (metricsserver.Filter, error) {
		authentication, err := authenticationclient.NewForConfigAndClient(config, httpClient)
		if err != nil {
			return nil, fmt.Errorf("setting up the authentication of metrics clients: %w", err)
		}
		authorization, err := authorizationclient.NewForConfigAndClient(config, httpClient)
		if err != nil {
			return nil, fmt.Errorf("setting up the authorization of metrics clients: %w", err)
		}
		access := &metricsAccess{review: reviewer(authentication, authorization), clock: clk}
		return func(log logr.Logger, next http.Handler) (http.Handler, error) {
			access.log = log
			return access.wrap(next), nil
		}, nil
	}
}

func reviewer(authentication authenticationclient.TokenReviewsGetter, authorization authorizationclient.SubjectAccessReviewsGetter) func(context.Context, string, string, string) (int, error) {
	return func(ctx context.Context, token, verb, path string) (int, error) {
		review, err := authentication.TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
		if err != nil {
			return 0, fmt.Errorf("reviewing a token: %w", err)
		}
		if !review.Status.Authenticated || review.Status.Error != "" {
			return http.StatusUnauthorized, nil
		}
		user := review.Status.User
		extra := map[string]authorizationv1.ExtraValue{}
		for key, values := range user.Extra {
			extra[key] = authorizationv1.ExtraValue(values)
		}
		access, err := authorization.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: verb},
		}}, metav1.CreateOptions{})
		if err != nil {
			return 0, fmt.Errorf("reviewing the access of a client: %w", err)
		}
		if !access.Status.Allowed || access.Status.Denied {
			return http.StatusForbidden, nil
		}
		return http.StatusOK, nil
	}
}

func (a *metricsAccess) wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token := bearerToken(r)
		if token == "" {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		status, err := a.decide(r.Context(), token, strings.ToLower(r.Method), r.URL.Path)
		switch {
		case err != nil:
			a.log.Error(err, "cannot authorize a metrics client")
			http.Error(w, "Authorization failed", http.StatusInternalServerError)
		case status == http.StatusOK:
			next.ServeHTTP(w, r)
		case status == http.StatusTooManyRequests:
			w.Header().Set("Retry-After", retryAfterLimit)
			http.Error(w, http.StatusText(status), status)
		default:
			http.Error(w, http.StatusText(status), status)
		}
	})
}

// bearerToken returns the token of a request, or an empty string if there is none that the API
// server could accept.
func bearerToken(r *http.Request) string {
	header := r.Header.Values("Authorization")
	if len(header) != 1 || len(header[0]) <= len(bearerPrefix) || !strings.EqualFold(header[0][:len(bearerPrefix)], bearerPrefix) {
		return ""
	}
	token := strings.TrimSpace(header[0][len(bearerPrefix):])
	if len(token) > maxTokenBytes || strings.ContainsFunc(token, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return ""
	}
	return token
}

// decide returns the status code for a request. It caches decisions but not errors.
func (a *metricsAccess) decide(ctx context.Context, token, verb, path string) (int, error) {
	key := decisionKey{sha256.Sum256([]byte(token)), verb, path}
	if status := a.cached(key); status != 0 {
		return status, nil
	}
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	status, err := a.review(ctx, token, verb, path)
	if err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.decisions[key] = decision{status: status, at: a.clock.Now()}
	return status, nil
}

// cached returns the status code if no review is needed: the status of a recent decision, or 429 if
// too many tokens have been reviewed. It returns 0 if a review is needed.
func (a *metricsAccess) cached(key decisionKey) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.clock.Now()
	known, found := a.decisions[key]
	if age := now.Sub(known.at); found && age >= 0 && age < decisionTTL {
		return known.status
	}
	if found && known.status == http.StatusOK && now.Sub(known.at) < trustTTL {
		return 0
	}
	if age := now.Sub(a.window); age < 0 || age >= time.Minute {
		a.window, a.reviews = now, 0
	}
	if a.reviews >= reviewsPerMin {
		return http.StatusTooManyRequests
	}
	a.reviews++
	a.expire(now)
	return 0
}

// expire drops expired decisions. If too many are left, it drops all denials, since only few tokens
// are allowed.
func (a *metricsAccess) expire(now time.Time) {
	if a.decisions == nil {
		a.decisions = map[decisionKey]decision{}
	}
	full := len(a.decisions) >= maxDecisions
	for key, d := range a.decisions {
		age := now.Sub(d.at)
		if age < 0 || age >= trustTTL || d.status != http.StatusOK && (full || age >= decisionTTL) {
			delete(a.decisions, key)
		}
	}
}
