// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e || cvo

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/simulation/aftermath"
)

// Invariants of every scenario outside of the API server: in Alertmanager, in the metrics of the
// operator, and at the receiver of its webhook.

// checkSilences returns an error that names the silences in effect without an upgrade in progress.
// It ignores silences that the history reports as not ended.
func checkSilences(ctx context.Context, cluster *devcluster.Cluster, upgrades []aftermath.Upgrade) error {
	if cluster.Monitoring == nil {
		return nil
	}
	c, err := alertmanager.New(httpclient.Options{URL: cluster.Monitoring.AlertmanagerURL()})
	if err != nil {
		return err
	}
	all, _, err := c.Silences(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, silence := range all {
		i := slices.IndexFunc(silence.Matchers, func(m alertmanager.Matcher) bool { return m.Name == "managed_upgrade_uid" })
		if i < 0 || !silence.InEffect() {
			continue
		}
		of := slices.IndexFunc(upgrades, func(c aftermath.Upgrade) bool { return string(c.UID) == silence.Matchers[i].Value })
		if of < 0 || upgrades[of].InProgress() == nil && !leftToExpire(&upgrades[of]) {
			errs = append(errs, fmt.Errorf("the silence %s is in force until %s: %s", silence.ID, silence.EndsAt, silence.Comment))
		}
	}
	return errors.Join(errs...)
}

func leftToExpire(upgrade *aftermath.Upgrade) bool {
	return slices.ContainsFunc(upgrade.History, func(h history.Record) bool {
		return slices.ContainsFunc(h.Conditions, func(c history.StepCondition) bool { return c.Reason == "NotEnded" })
	})
}

// seriesOfLeader returns the metrics of the replica that leads; none if no one does.
func seriesOfLeader(ctx context.Context, operator *devcluster.Operator) ([]*dto.MetricFamily, error) {
	for _, replica := range operator.Replicas() {
		if leads, err := replica.IsLeader(ctx); !replica.Running() || len(operator.Replicas()) > 1 && (err != nil || !leads) {
			continue // it shows no series, or outdated ones
		}
		text, err := replica.Metrics(ctx)
		if err != nil {
			return nil, err
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		return slices.Collect(maps.Values(families)), err
	}
	return nil, nil
}

// checkDelivery compares the events at the receiver with the history, as checkNotifications does
// with Events, and checks their order.
func checkDelivery(cluster *devcluster.Cluster, upgrades []aftermath.Upgrade) error {
	if !cluster.Sink.Running() {
		return nil
	}
	var errs []error
	for _, rejected := range cluster.Sink.Refused() {
		errs = append(errs, fmt.Errorf("the receiver was sent what is no CloudEvent: %s", rejected))
	}
	received := cluster.Sink.Events()
	published := make([]corev1.Event, len(received))
	for i, one := range received {
		data, err := dataOf(one)
		if err != nil {
			return err
		}
		if ofSchedule := strings.HasPrefix(data.Object.APIVersion, "managedupgrade.appuio.io/") && data.Object.Kind == "UpgradeConfig"; !ofSchedule && (data.Version == "" || data.Attempt == 0) {
			errs = append(errs, fmt.Errorf("the event does not name its attempt: %s", one))
		}
		published[i] = corev1.Event{Reason: data.Reason, Message: data.Message, InvolvedObject: corev1.ObjectReference{UID: types.UID(data.Object.UID)}}
	}
	for i := range upgrades {
		if err := checkNotifications(&upgrades[i], published); err != nil {
			errs = append(errs, fmt.Errorf("at the receiver: %w", err))
		}
	}
	return errors.Join(append(errs, checkOrder(received))...)
}

func dataOf(one event.Event) (webhook.Data, error) {
	var data webhook.Data
	return data, one.DataAs(&data)
}

// checkOrder returns an error that names an event about a step that arrived before the start of its
// upgrade, or after the end. Another attempt or version starts anew. An UpgradeJob has steps before
// its start and after its end: it runs hooks then.
func checkOrder(received []event.Event) error {
	begun := map[string]bool{} // by the UID of the UpgradeConfig
	for _, one := range received {
		data, err := dataOf(one)
		if err != nil {
			return err
		}
		uid := data.Object.UID
		switch one.Type() {
		case webhook.TypeStarted:
			begun[uid] = true
		case webhook.TypeCompleted, webhook.TypeFailed, webhook.TypeCancelled, webhook.TypeSkipped:
			begun[uid] = false
		case webhook.TypeStepWaiting, webhook.TypeStepUnknown, webhook.TypeStepDone, webhook.TypeStepSkipped, webhook.TypeStepFailed:
			if !begun[uid] && data.Object.Kind != "UpgradeJob" {
				return fmt.Errorf("the receiver got %s of %s while no upgrade was under way, by what it had got before", one.Type(), data.Step)
			}
		}
	}
	return nil
}
