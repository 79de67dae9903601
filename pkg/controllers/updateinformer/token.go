// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package updateinformer

import (
	"context"
	"fmt"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// tokenLifetime is how long a token is valid. It is the shortest time that the API server
	// grants.
	tokenLifetime = 10 * time.Minute
	// tokenMargin is how long before its expiry a token is replaced.
	tokenMargin = 2 * time.Minute
)

// +kubebuilder:rbac:groups="",resources=serviceaccounts/token,namespace=managed-upgrade-operator,resourceNames=update-status-controller,verbs=create

// Tokens requests tokens of a ServiceAccount, one for each audience, and keeps them until shortly
// before they expire. An informer cannot use its token elsewhere.
type Tokens struct {
	// Client creates the requests.
	Client client.Client
	Clock  clock.PassiveClock
	// ServiceAccount is the ServiceAccount of the program.
	ServiceAccount types.NamespacedName

	mu     sync.Mutex
	tokens map[string]token // by audience
}

type token struct {
	value   string
	expires time.Time
}

// Token returns a token for the audience.
func (t *Tokens) Token(ctx context.Context, audience string) (string, error) {
	if value := t.cached(audience); value != "" {
		return value, nil
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: t.ServiceAccount.Namespace, Name: t.ServiceAccount.Name}}
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{audience}, ExpirationSeconds: new(int64(tokenLifetime / time.Second)),
	}}
	if err := t.Client.SubResource("token").Create(ctx, account, request); err != nil {
		return "", fmt.Errorf("requesting a token of ServiceAccount %s: %w", t.ServiceAccount, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	// The lifetime counts from the time of the request, because the clock of the API server may
	// differ.
	t.tokens[audience] = token{request.Status.Token, t.Clock.Now().Add(tokenLifetime - tokenMargin)}
	return request.Status.Token, nil
}

// cached returns a token that stays valid for a while; empty if there is none.
func (t *Tokens) cached(audience string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tokens == nil {
		t.tokens = map[string]token{}
	}
	now := t.Clock.Now()
	for other, known := range t.tokens {
		if !now.Before(known.expires) || known.expires.Sub(now) > tokenLifetime { // expired, or the clock was set back
			delete(t.tokens, other)
		}
	}
	return t.tokens[audience].value
}
