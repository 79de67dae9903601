// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build e2e || cvo

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/cloudevents/sdk-go/v2/event"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
)

// Invariants of every scenario outside of the API server: in Alertmanager, in the metrics of the
// operator, and at the receiver of its webhook.

// checkSilences returns an error that names the silences in effect without an upgrade in progress.
// It ignores those that the history reports as not ended.
func checkSilences(ctx context.Context, cluster *devcluster.Cluster, upgrades []upgradeState) error {
	if cluster.Monitoring == nil {
		return nil
	}
	c, err := alertmanager.New(httpclient.Options{URL: cluster.Monitoring.AlertmanagerURL()})
	if err != nil {
		return err
	}
	all, err := c.Silences(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, silence := range all {
		i := slices.IndexFunc(silence.Matchers, func(m alertmanager.Matcher) bool { return m.Name == "managed_upgrade_uid" })
		if i < 0 || !silence.InEffect() {
			continue
		}
		of := slices.IndexFunc(upgrades, func(c upgradeState) bool { return string(c.UID) == silence.Matchers[i].Value })
		if of < 0 || inProgress(&upgrades[of]) == nil && !leftToExpire(&upgrades[of]) {
			errs = append(errs, fmt.Errorf("the silence %s is in force until %s: %s", silence.ID, silence.EndsAt, silence.Comment))
		}
	}
	return errors.Join(errs...)
}

func leftToExpire(upgrade *upgradeState) bool {
	return slices.ContainsFunc(upgrade.history, func(h history.Record) bool {
		return slices.ContainsFunc(h.Conditions, func(c history.StepCondition) bool { return c.Reason == "NotEnded" })
	})
}

// checkSeries returns an error that names the gauges that differ from the state of their upgrade.
func checkSeries(ctx context.Context, userClient client.Client, operator *devcluster.Operator, upgrades []upgradeState) error {
	var schedules v1beta1.UpgradeConfigList
	if err := userClient.List(ctx, &schedules); err != nil {
		return err
	}
	var errs []error
	for _, replica := range operator.Replicas() {
		if leads, err := replica.IsLeader(ctx); !replica.Running() || len(operator.Replicas()) > 1 && (err != nil || !leads) {
			continue // not the leader: it shows no series, or outdated ones
		}
		text, err := replica.Metrics(ctx)
		if err != nil {
			return err
		}
		parser := expfmt.NewTextParser(model.LegacyValidation)
		families, err := parser.TextToMetricFamilies(strings.NewReader(text))
		if err != nil {
			return err
		}
		shown := map[string]bool{}
		for name, family := range families {
			if !strings.HasPrefix(name, "managed_upgrade_") || family.GetType() != dto.MetricType_GAUGE {
				continue
			}
			for _, series := range family.GetMetric() {
				labels := map[string]string{}
				for _, label := range series.GetLabel() {
					labels[label.GetName()] = label.GetValue()
				}
				shown[name+" "+labels["kind"]+" "+labels["namespace"]+"/"+labels["name"]] = true
				if labels["kind"] == "UpgradeConfig."+v1beta1.GroupVersion.Group {
					errs = append(errs, checkSchedule(name, labels, schedules.Items))
				} else {
					errs = append(errs, checkGauge(name, labels, upgrades))
				}
			}
		}
		for i := range upgrades {
			if of := "managed_upgrade_phase " + upgrades[i].kind + "." + upgrades[i].group + " " + upgrades[i].Namespace + "/" + upgrades[i].Name; !shown[of] {
				errs = append(errs, fmt.Errorf("no series %s", of))
			}
		}
	}
	return errors.Join(errs...)
}

// checkSchedule returns an error if a gauge is about an UpgradeConfig that was deleted.
func checkSchedule(name string, labels map[string]string, schedules []v1beta1.UpgradeConfig) error {
	if slices.ContainsFunc(schedules, func(c v1beta1.UpgradeConfig) bool {
		return c.Namespace == labels["namespace"] && c.Name == labels["name"]
	}) {
		return nil
	}
	return fmt.Errorf("%s%v is about a deleted UpgradeConfig", name, labels)
}

func checkGauge(name string, labels map[string]string, upgrades []upgradeState) error {
	if labels["node"] != "" && !slices.ContainsFunc(upgrades, func(c upgradeState) bool { return inProgress(&c) != nil }) {
		return fmt.Errorf("%s%v is about a node that is not being upgraded", name, labels)
	}
	if labels["name"] == "" {
		return nil // a series without an upgrade
	}
	i := slices.IndexFunc(upgrades, func(c upgradeState) bool {
		return c.Namespace == labels["namespace"] && c.Name == labels["name"] && c.kind+"."+c.group == labels["kind"]
	})
	if i < 0 {
		return fmt.Errorf("%s%v is about a deleted upgrade", name, labels)
	}
	upgrade := &upgrades[i]
	if len(upgrade.history) == 0 {
		return fmt.Errorf("%s%v is about an upgrade without a history", name, labels)
	}
	newest := &upgrade.history[0]
	truth := map[string]string{"kind": upgrade.kind + "." + upgrade.group, "version": newest.Version, "phase": string(newest.Phase)}
	for _, c := range newest.Conditions {
		if c.StartTime != nil && c.CompleteTime == nil {
			truth["step"] = c.Type
		}
	}
	if c := meta.FindStatusCondition(upgrade.conditions, labels["condition"]); c != nil {
		truth["condition"], truth["status"], truth["reason"] = c.Type, string(c.Status), c.Reason
	}
	for label, value := range labels {
		if label != "namespace" && label != "name" && value != truth[label] {
			return fmt.Errorf("%s%v is stale: its %s is %q", name, labels, label, truth[label])
		}
	}
	if name == "managed_upgrade_last_sync_timestamp_seconds" && newest.CompleteTime != nil {
		return fmt.Errorf("%s%v is about an upgrade that is over", name, labels)
	}
	return nil
}

// checkDelivery compares the events at the receiver with the history, as checkNotifications does
// with Events, and checks their order.
func checkDelivery(cluster *devcluster.Cluster, upgrades []upgradeState) error {
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
		if data.Version == "" || data.Attempt == 0 {
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
		case webhook.TypeCompleted, webhook.TypeFailed, webhook.TypeCancelled:
			begun[uid] = false
		case webhook.TypeStepWaiting, webhook.TypeStepUnknown, webhook.TypeStepDone, webhook.TypeStepSkipped, webhook.TypeStepFailed:
			if !begun[uid] && data.Object.Kind != "UpgradeJob" {
				return fmt.Errorf("the receiver got %s of %s while no upgrade was under way, by what it had got before", one.Type(), data.Step)
			}
		}
	}
	return nil
}
