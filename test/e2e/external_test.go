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

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	"github.com/managed-upgrade/managed-upgrade-operator/api/upgrade/v1alpha1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/devcluster"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/httpclient"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/monitoring/alertmanager"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/notify/webhook"
)

// Invariants of every scenario outside of the API server: in Alertmanager, in the metrics of the
// operator, and at the receiver of its webhook.

// checkSilences returns an error that names the silences in effect without an upgrade in progress.
// It ignores those that the history reports as not ended.
func checkSilences(ctx context.Context, cluster *devcluster.Cluster, configs []v1alpha1.UpgradeConfig) error {
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
		of := slices.IndexFunc(configs, func(c v1alpha1.UpgradeConfig) bool { return string(c.UID) == silence.Matchers[i].Value })
		if of < 0 || inProgress(&configs[of]) == nil && !leftToExpire(&configs[of]) {
			errs = append(errs, fmt.Errorf("the silence %s is in force until %s: %s", silence.ID, silence.EndsAt, silence.Comment))
		}
	}
	return errors.Join(errs...)
}

func leftToExpire(config *v1alpha1.UpgradeConfig) bool {
	return slices.ContainsFunc(config.Status.History, func(h history.Record) bool {
		return slices.ContainsFunc(h.Conditions, func(c history.StepCondition) bool { return c.Reason == "NotEnded" })
	})
}

// checkSeries returns an error that names the gauges that differ from the state of their upgrade.
func checkSeries(ctx context.Context, operator *devcluster.Operator, configs []v1alpha1.UpgradeConfig) error {
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
				shown[name+" "+labels["namespace"]+"/"+labels["name"]] = true
				errs = append(errs, checkGauge(name, labels, configs))
			}
		}
		for i := range configs {
			if of := "managed_upgrade_phase " + configs[i].Namespace + "/" + configs[i].Name; !shown[of] {
				errs = append(errs, fmt.Errorf("no series %s", of))
			}
		}
	}
	return errors.Join(errs...)
}

func checkGauge(name string, labels map[string]string, configs []v1alpha1.UpgradeConfig) error {
	if labels["node"] != "" && !slices.ContainsFunc(configs, func(c v1alpha1.UpgradeConfig) bool { return inProgress(&c) != nil }) {
		return fmt.Errorf("%s%v is about a node that is not being upgraded", name, labels)
	}
	if labels["name"] == "" {
		return nil // a series without an upgrade
	}
	i := slices.IndexFunc(configs, func(c v1alpha1.UpgradeConfig) bool {
		return c.Namespace == labels["namespace"] && c.Name == labels["name"]
	})
	if i < 0 {
		return fmt.Errorf("%s%v is about a deleted UpgradeConfig", name, labels)
	}
	config := &configs[i]
	if len(config.Status.History) == 0 {
		return fmt.Errorf("%s%v is about an UpgradeConfig without a history", name, labels)
	}
	newest := &config.Status.History[0]
	truth := map[string]string{"kind": "UpgradeConfig." + v1alpha1.GroupVersion.Group, "version": newest.Version, "phase": string(newest.Phase)}
	for _, c := range newest.Conditions {
		if c.StartTime != nil && c.CompleteTime == nil {
			truth["step"] = c.Type
		}
	}
	if c := meta.FindStatusCondition(config.Status.Conditions, labels["condition"]); c != nil {
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
func checkDelivery(cluster *devcluster.Cluster, configs []v1alpha1.UpgradeConfig) error {
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
	for i := range configs {
		if err := checkNotifications(&configs[i], published); err != nil {
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
// upgrade, or after the end. Another attempt or version starts anew.
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
			if !begun[uid] {
				return fmt.Errorf("the receiver got %s of %s while no upgrade was under way, by what it had got before", one.Type(), data.Step)
			}
		}
	}
	return nil
}
