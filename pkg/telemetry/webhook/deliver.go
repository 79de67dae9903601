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

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/endpoint"
)

// How long the receiver is left alone after a try that failed: twice as long
// each time, and no less than it asks for.
const (
	shortestPause = time.Second
	longestPause  = 5 * time.Minute
)

// Start delivers what is queued until the context ends.
func (w *Webhook) Start(ctx context.Context) error {
	for ctx.Err() == nil {
		if n, to := w.first(); n != nil {
			w.deliver(ctx, n, to)
			continue
		}
		select {
		case <-ctx.Done():
		case <-w.woken:
		}
	}
	return nil
}

// NeedLeaderElection says that only the leader delivers: it is the one who tells.
func (w *Webhook) NeedLeaderElection() bool { return true }

// first is what is to be delivered next, and to whom; nil if there is nothing.
func (w *Webhook) first() (*notification, *receiver) {
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
	for pause := shortestPause; ; pause = min(2*pause, longestPause) {
		err := w.post(ctx, n, to)
		if ctx.Err() != nil || w.tried(n, to, err) {
			return
		}
		timer := w.clock.NewTimer(max(pause, min(asksFor(err), longestPause)))
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-to.replaced:
			timer.Stop()
			return
		case <-timer.C():
		}
	}
}

// post tries once.
func (w *Webhook) post(ctx context.Context, n *notification, to *receiver) error {
	source, err := w.source(ctx)
	if err != nil {
		return fmt.Errorf("finding out from which cluster the event comes: %w", err)
	}
	body, err := n.encode(source)
	if err != nil {
		return err
	}
	_, err = to.Do(ctx, endpoint.Request{
		Method: http.MethodPost, ContentType: event.ApplicationCloudEventsJSON + "; charset=UTF-8", Body: body,
		StatusOnly: true, // else what was taken would be sent again, and again
	})
	return err
}

// tried takes note of what came of a try, and says whether there is nothing
// more to try with this receiver. What one says who is replaced is not held
// against the new one.
func (w *Webhook) tried(n *notification, to *receiver, err error) bool {
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
		w.count.delivered++
		if before != nil {
			w.log.Info("the receiver takes notifications again")
		}
	case hopeless(err):
		w.count.failures++
		w.count.refused++
		w.log.Error(err, "a notification was refused for good, and is not sent again", "type", n.eventType, "id", n.id, "reason", n.data.Reason)
	default:
		w.count.failures++
		if before == nil || before.Error() != err.Error() {
			w.log.Error(err, "notifications are not delivered, it is tried again", "waiting", len(w.queue))
		}
		return false
	}
	w.queue[0] = nil // the texts are not held any longer
	w.queue = w.queue[1:]
	return true
}

// hopeless says whether the receiver would refuse this notification each time.
func hopeless(err error) bool {
	var refused *endpoint.StatusError
	if !errors.As(err, &refused) {
		return false
	}
	switch refused.Code {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnsupportedMediaType, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// asksFor is how long the receiver wants to be left alone.
func asksFor(err error) time.Duration {
	var refused *endpoint.StatusError
	if errors.As(err, &refused) {
		return refused.RetryAfter
	}
	return 0
}
