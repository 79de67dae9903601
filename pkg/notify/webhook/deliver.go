// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
)

// Limits of the backoff after a failed attempt. It doubles each time, and is never less than the
// delay that the receiver requests.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// Start delivers the queued notifications until the context ends.
func (w *Webhook) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if n, to := w.peek(); n != nil {
			w.deliver(ctx, n, to)
			continue
		}
		select {
		case <-ctx.Done():
		case <-w.wake:
		}
	}
	return nil
}

// Flush delivers queued notifications until one fails with a retryable error, and returns that
// error. It is for callers that do not run Start, for example in virtual time.
func (w *Webhook) Flush(ctx context.Context) error {
	for {
		n, to := w.peek()
		if n == nil {
			return nil
		}
		if err := w.send(ctx, n, to); !w.recordAttempt(n, to, err) {
			return err
		}
	}
}

// peek returns the next notification and its receiver, or nil if the queue is empty.
func (w *Webhook) peek() (*notification, *receiver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, nil
	}
	return w.queue[0], w.receiver
}

// deliver retries the first notification until the receiver accepts it or rejects it permanently,
// because the others wait for it. It returns early if the receiver is replaced or the context ends.
func (w *Webhook) deliver(ctx context.Context, n *notification, to *receiver) {
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := w.send(ctx, n, to)
		if ctx.Err() != nil || w.recordAttempt(n, to, err) {
			return
		}
		timer := w.clock.NewTimer(max(backoff, min(retryAfter(err), maxBackoff)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-to.superseded:
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// send makes one delivery attempt.
func (w *Webhook) send(ctx context.Context, n *notification, to *receiver) error {
	source, err := w.source(ctx)
	if err != nil {
		return fmt.Errorf("determining the source of the event: %w", err)
	}
	cluster := ""
	if w.cluster != nil {
		cluster = w.cluster(ctx, n.data.Object)
	}
	body, err := n.encode(source, cluster)
	if err != nil {
		return err
	}
	_, err = to.Do(ctx, httpclient.Request{
		Method: http.MethodPost, ContentType: event.ApplicationCloudEventsJSON + "; charset=UTF-8", Body: body,
		StatusOnly: true, // an invalid response body must not fail an accepted event
	})
	return err
}

// recordAttempt records the result of an attempt, and reports whether the notification is done with
// this receiver. Errors of a replaced receiver are ignored.
func (w *Webhook) recordAttempt(n *notification, to *receiver, err error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	dropped := len(w.queue) == 0 || w.queue[0] != n
	if dropped || err != nil && w.receiver != to {
		return true
	}
	before := w.err
	w.err = err
	switch {
	case err == nil:
		w.counters.delivered++
		if before != nil {
			w.log.Info("the receiver accepts notifications again")
		}
	case isPermanent(err):
		w.counters.failures++
		w.counters.refused++
		w.log.Error(err, "a notification was rejected for good, and is not sent again", "type", n.eventType, "id", n.id, "reason", n.data.Reason)
	default:
		w.counters.failures++
		if before == nil || before.Error() != err.Error() {
			w.log.Error(err, "delivering notifications, will be retried", "waiting", len(w.queue))
		}
		return false
	}
	w.queue[0] = nil // releases its memory
	w.queue = w.queue[1:]
	return true
}

// isPermanent reports whether the receiver would always reject this notification.
func isPermanent(err error) bool {
	var statusErr *httpclient.StatusError
	if !errors.As(err, &statusErr) {
		return false
	}
	switch statusErr.Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// retryAfter returns the delay that the receiver requested.
func retryAfter(err error) time.Duration {
	var statusErr *httpclient.StatusError
	if errors.As(err, &statusErr) {
		return statusErr.RetryAfter
	}
	return 0
}
