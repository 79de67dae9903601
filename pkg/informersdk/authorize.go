// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package informersdk

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	"k8s.io/utils/clock"
)

var (
	// ErrUnauthenticated is returned for a missing or invalid token, or a token for another audience.
	ErrUnauthenticated = errors.New("the request has no bearer token that is valid for this informer")
	// ErrForbidden is returned for the token of a user who may not query the informer.
	ErrForbidden = errors.New("the user of the token may not query this informer")
)

// StatusControllerUser is the user of the Update Status Controller as installed by
// deploy/update-status.
const StatusControllerUser = "system:serviceaccount:managed-upgrade-operator:update-status-controller"

const (
	acceptedFor  = time.Minute
	rejectedFor  = 10 * time.Second
	maxDecisions = 256
)

// TokenReview authorizes requests by creating TokenReviews for their tokens. It caches results for
// a minute if the token is valid and for ten seconds if it is not.
type TokenReview struct {
	// Reviews creates reviews.
	Reviews authenticationclient.TokenReviewInterface
	// Audience is the required audience of tokens (see v1alpha.Audience).
	Audience string
	// Users are the users who may query the informer. It defaults to StatusControllerUser.
	Users []string
	// Clock defaults to the real clock.
	Clock clock.PassiveClock

	mu        sync.Mutex
	decisions map[[sha256.Size]byte]decision
}

// decision is the result of a review until it expires.
type decision struct {
	err     error
	expires time.Time
}

// Authorize returns nil if a token authorizes a request (see HandlerOptions).
func (t *TokenReview) Authorize(ctx context.Context, token string) error {
	key := sha256.Sum256([]byte(token))
	now := t.now()
	if known, found := t.lookUp(key, now); found {
		return known.err
	}
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{t.Audience}}}
	review, err := t.Reviews.Create(ctx, review, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("creating a TokenReview: %w", err)
	}
	err = t.decide(review.Status)
	t.keep(key, now, err)
	return err
}

func (t *TokenReview) decide(status authenticationv1.TokenReviewStatus) error {
	users := t.Users
	if len(users) == 0 {
		users = []string{StatusControllerUser}
	}
	switch {
	case !status.Authenticated || !slices.Contains(status.Audiences, t.Audience):
		return ErrUnauthenticated
	case !slices.Contains(users, status.User.Username):
		return fmt.Errorf("%w: %s", ErrForbidden, status.User.Username)
	}
	return nil
}

func (t *TokenReview) now() time.Time {
	if t.Clock == nil {
		return clock.RealClock{}.Now()
	}
	return t.Clock.Now()
}

func (t *TokenReview) lookUp(key [sha256.Size]byte, now time.Time) (known decision, found bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known, found = t.decisions[key]
	return known, found && now.Before(known.expires)
}

func (t *TokenReview) keep(key [sha256.Size]byte, now time.Time, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.decisions) >= maxDecisions || t.decisions == nil {
		t.decisions = map[[sha256.Size]byte]decision{}
	}
	lifetime := acceptedFor
	if err != nil {
		lifetime = rejectedFor
	}
	t.decisions[key] = decision{err: err, expires: now.Add(lifetime)}
}
