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

// How long the receiver is left alone after a try that failed: twice as long
// each time, and no less than it asks for.
const (
	minBackoff = time.Second
	maxBackoff = 5 * time.Minute
)

// Start delivers what is queued until the context ends.
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

// NeedLeaderElection says that only the leader delivers: it is the one who tells.
func (w *Webhook) NeedLeaderElection() bool { return true }

// peek is what is to be delivered next, and to whom; nil if there is nothing.
func (w *Webhook) peek() (*notification, *receiver) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil, nil
	}
	return w.queue[0], w.receiver
}

// deliver tries until the receiver has taken the first notification, or has
// refused it in a way that will not change: then the next ones must not wait
// for it. It ends early if another receiver is to be told, or the context has ended.
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

// send tries once.
func (w *Webhook) send(ctx context.Context, n *notification, to *receiver) error {
	source, err := w.source(ctx)
	if err != nil {
		return fmt.Errorf("finding out from which cluster the event comes: %w", err)
	}
	body, err := n.encode(source)
	if err != nil {
		return err
	}
	_, err = to.Do(ctx, httpclient.Request{
		Method: http.MethodPost, ContentType: event.ApplicationCloudEventsJSON + "; charset=UTF-8", Body: body,
		StatusOnly: true, // else what was taken would be sent again, and again
	})
	return err
}

// recordAttempt takes note of what came of a try, and says whether there is nothing
// more to try with this receiver. What one says who is replaced is not held
// against the new one.
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
			w.log.Info("the receiver takes notifications again")
		}
	case isPermanent(err):
		w.counters.failures++
		w.counters.refused++
		w.log.Error(err, "a notification was refused for good, and is not sent again", "type", n.eventType, "id", n.id, "reason", n.data.Reason)
	default:
		w.counters.failures++
		if before == nil || before.Error() != err.Error() {
			w.log.Error(err, "notifications are not delivered, it is tried again", "waiting", len(w.queue))
		}
		return false
	}
	w.queue[0] = nil // the texts are not held any longer
	w.queue = w.queue[1:]
	return true
}

// isPermanent says whether the receiver would refuse this notification each time.
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

// retryAfter is how long the receiver wants to be left alone.
func retryAfter(err error) time.Duration {
	var statusErr *httpclient.StatusError
	if errors.As(err, &statusErr) {
		return statusErr.RetryAfter
	}
	return 0
}
