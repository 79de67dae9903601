// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook_test

import (
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
)

// newReceiver starts a new receiver.
func (w *world) newReceiver() (*receiver, *httpclient.Options) {
	w.t.Helper()
	r := &receiver{}
	server := httptest.NewServer(r)
	w.t.Cleanup(server.Close)
	return r, &httpclient.Options{URL: server.URL, Timeout: time.Second}
}

func (w *world) setReceiver(to *httpclient.Options) {
	w.t.Helper()
	if err := w.hook.SetReceiver(to); err != nil {
		w.t.Fatal(err)
	}
}

func unavailable(_ int, rw http.ResponseWriter) bool {
	rw.WriteHeader(http.StatusServiceUnavailable)
	return true
}

func TestWebhook_without_a_receiver_queues_nothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.hook = webhook.New(webhook.Options{Source: w.source, Clock: w.clock})
	w.start()
	w.publish(1, 2)
	if err := w.hook.PublishSteps(t.Context(), subject, record); err != nil {
		t.Error(err)
	}
	if err := w.hook.PendingError("u-1"); err != nil {
		t.Errorf("pending without a receiver: %v", err)
	}
	checkMetrics(t, w.hook, 0, 0, 0, 0)

	t.Log("once there is one, it hears all that the record says")
	w.setReceiver(&httpclient.Options{URL: w.url})
	w.publish(1)
	if err := w.hook.PublishSteps(t.Context(), subject, record); err != nil {
		t.Error(err)
	}
	w.awaitDelivery()
	checkMetrics(t, w.hook, 9, 0, 0, 0)
}

func TestReceiver_removed_drops_the_queue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answer = unavailable
	w.start()
	w.publish(1, 2)
	w.eventually("it was tried", func() bool { return w.hook.LastError() != nil })
	w.setReceiver(nil)
	if err := w.hook.PendingError("u-1"); err != nil || w.hook.LastError() != nil {
		t.Errorf("errors without a receiver: %v, %v", err, w.hook.LastError())
	}
	w.publish(3)
	next, to := w.newReceiver()
	w.setReceiver(to)
	w.publish(4, 1)
	w.awaitDelivery()
	if diff := cmp.Diff([]string{"R4", "R1"}, next.reasons()); diff != "" {
		t.Errorf("the next receiver got (-want +got):\n%s", diff)
	}
}

func TestReceiver_replaced_gets_the_queue_at_once(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.receiver.answer = func(try int, rw http.ResponseWriter) bool {
		return try > 1 && unavailable(try, rw)
	}
	w.publish(1, 2, 3)
	w.start()
	w.eventually("it was left alone for long", func() bool { return w.receiver.attempts() >= 8 })
	since := w.clock.Now()
	next, to := w.newReceiver()
	w.setReceiver(to)
	for w.hook.PendingError("u-1") != nil { // no time passes
		wall.Sleep(time.Millisecond)
	}
	if took := w.clock.Now().Sub(since); took != 0 {
		t.Errorf("the next receiver got it after %s", took)
	}
	if diff := cmp.Diff([]string{"R2", "R3"}, next.reasons()); diff != "" {
		t.Errorf("the next receiver got (-want +got):\n%s", diff)
	}
}

func TestReceiver_with_invalid_options_changes_nothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(1)
	const want = `is "ftp://x", must begin with https:// or http:// and a host`
	if err := w.hook.SetReceiver(&httpclient.Options{URL: "ftp://x"}); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	w.start()
	w.awaitDelivery()
	if diff := cmp.Diff([]string{"R1"}, w.receiver.reasons()); diff != "" {
		t.Errorf("published (-want +got):\n%s", diff)
	}
}

func TestAttempt_in_progress_belongs_to_its_receiver(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code   int
		direct func(*world) *receiver
		want   []string // received by the last receiver
	}{
		"accepted, then no receiver": {http.StatusOK, func(w *world) *receiver { w.setReceiver(nil); return &receiver{} }, nil},
		"accepted, then no receiver, then another": {http.StatusOK, func(w *world) *receiver {
			w.setReceiver(nil)
			next, to := w.newReceiver()
			w.setReceiver(to)
			w.publish(1)
			return next
		}, []string{"R1"}},
		"accepted, then another receiver":          {http.StatusOK, func(w *world) *receiver { next, to := w.newReceiver(); w.setReceiver(to); return next }, []string{"R2"}},
		"rejected, then another receiver":          {http.StatusBadGateway, func(w *world) *receiver { next, to := w.newReceiver(); w.setReceiver(to); return next }, []string{"R1", "R2"}},
		"rejected for good, then another receiver": {http.StatusBadRequest, func(w *world) *receiver { next, to := w.newReceiver(); w.setReceiver(to); return next }, []string{"R1", "R2"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			received, answer := make(chan struct{}), make(chan struct{})
			w.receiver.answer = func(try int, rw http.ResponseWriter) bool {
				if try == 1 {
					close(received)
					<-answer
				}
				rw.WriteHeader(tc.code)
				return true
			}
			w.publish(1, 2)
			w.start()
			<-received
			next := tc.direct(w)
			close(answer)
			w.eventually("the try came to its end", func() bool { return w.receiver.attempts() > 0 && w.hook.PendingError("u-1") == nil })
			w.stop()
			if diff := cmp.Diff(tc.want, next.reasons()); diff != "" {
				t.Errorf("received at the end (-want +got):\n%s", diff)
			}
			if w.receiver.attempts() != 1 {
				t.Errorf("the first receiver was tried %d times", w.receiver.attempts())
			}
		})
	}
}

func TestReceiver_may_change_at_any_time(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.start()
	_, to := w.newReceiver()
	var all sync.WaitGroup
	for _, options := range []*httpclient.Options{to, nil, {URL: w.url}} {
		all.Go(func() {
			for range 50 {
				w.setReceiver(options)
			}
		})
	}
	all.Go(func() {
		for i := range 50 {
			w.publish(i)
		}
	})
	all.Wait()
	w.setReceiver(to)
	w.publish(100)
	w.awaitDelivery()
}
