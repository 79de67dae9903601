// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package managedclustersupgrade

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cloudevents/sdk-go/v2/event"
	"github.com/go-logr/logr"
	"github.com/google/go-cmp/cmp"
	clocktesting "k8s.io/utils/clock/testing"

	fleetv1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/cluster/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation"
)

// receiver keeps the CloudEvents that are sent to it, each once.
type receiver struct {
	t     testing.TB
	ids   map[string]bool
	texts []string // "type reason version"
}

func (r *receiver) Do(_ context.Context, request httpclient.Request) ([]byte, error) {
	var e event.Event
	var data webhook.Data
	if err := errors.Join(e.UnmarshalJSON(request.Body), e.DataAs(&data)); err != nil {
		r.t.Error(err)
	}
	if !r.ids[e.ID()] {
		r.texts = append(r.texts, e.Type()+" "+data.Reason+" "+data.Version)
	}
	r.ids[e.ID()] = true
	return nil, nil
}

// newWebhook returns a webhook of a process of the hub, whose queue is empty.
func (r *receiver) newWebhook() *webhook.Webhook {
	w := webhook.New(webhook.Options{
		Source: func(context.Context) (string, error) { return "urn:uuid:hub", nil },
		Clock:  clocktesting.NewFakeClock(time.Date(2027, 3, 2, 12, 0, 0, 0, time.UTC)), Log: logr.Discard(),
	})
	w.SetSender(r)
	return w
}

// The receiver of the webhook hears of each milestone once, also if the process ends before it has sent them.
func TestWebhook_milestones(t *testing.T) {
	t.Parallel()
	want := []string{
		webhook.TypeNotice + " ManagedClustersSelected 4.20.6", webhook.TypeNotice + " ManagedClustersUpgradeApplied 4.20.6",
		webhook.TypeStarted + " ManagedClustersUpgradeInProgress 4.20.6", webhook.TypeCompleted + " ManagedClustersUpgradeComplete 4.20.6",
	}
	for name, tc := range map[string]struct {
		lost bool
		want []string
	}{
		"the process goes on":             {false, want},
		"the process ends without a word": {true, want[3:]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := &receiver{t: t, ids: map[string]bool{}}
			w := newWorld(t, 2, concurrency(2))
			w.Process.Kill()
			sent := got.newWebhook()
			w.webhook = sent
			w.Begin()
			w.RunFor(hours)
			w.expect("2/0/0/2/0/0", fleetv1beta1.ReasonFinished)
			if tc.lost {
				w.Process.Kill()
				sent = got.newWebhook()
				w.webhook = sent
				w.Begin()
				w.RunFor(time.Hour)
			}
			if err := sent.Flush(t.Context()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got.texts); diff != "" {
				t.Errorf("CloudEvents (-want +got):\n%s", diff)
			}
		})
	}
}

// A failure of the Events repeats nothing at the receiver, and a stop is sent with its reason.
func TestWebhook_stop(t *testing.T) {
	t.Parallel()
	got := &receiver{t: t, ids: map[string]bool{}}
	w := newWorld(t, 3, concurrency(3), canary)
	w.Process.Kill()
	sent := got.newWebhook()
	w.webhook = sent
	w.Begin()
	w.makeCanary("c0002")
	w.fails["c0002"] = 1
	w.Writes = simulation.Fault{Outcome: simulation.Refuse, Err: errors.New("no quota")}.If(func(r simulation.Request) bool {
		return r.Kind == "Event"
	})
	w.RunFor(hours)
	if err := sent.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{
		webhook.TypeNotice + " ManagedClustersSelected 4.20.6", webhook.TypeNotice + " ManagedClustersUpgradeApplied 4.20.6",
		webhook.TypeStarted + " ManagedClustersUpgradeInProgress 4.20.6",
		webhook.TypeFailed + " CanaryFailed 4.20.6", webhook.TypeNotice + " CanaryFailed 4.20.6",
	}
	if diff := cmp.Diff(want, got.texts); diff != "" {
		t.Errorf("CloudEvents (-want +got):\n%s", diff)
	}
}
