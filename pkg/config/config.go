// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config is the operator's configuration: one typed file with a version,
// in which everything has a default. Each key is one line in a table that says
// what it is for, what it is unless set, and what it may be.
//
// It does not know where the file comes from, nor what the settings are used for.
package config

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// The version of the file.
const (
	APIVersion = "config.upgrade.managed.openshift.io/v1alpha1"
	Kind       = "OperatorConfig"
)

// Config is the configuration of the operator.
type Config struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`

	UpgradeWindow   Duration        `json:"upgradeWindow"`
	ControlPlane    SlowThreshold   `json:"controlPlane"`
	Workers         SlowThreshold   `json:"workers"`
	PostHealthCheck PostHealthCheck `json:"postHealthCheck"`
	Cleanup         Cleanup         `json:"cleanup"`
	Cancellation    Cancellation    `json:"cancellation"`
	Scale           Scale           `json:"scale"`

	PreChecks            PreChecks            `json:"earlyCheck"`
	Alerts               Alerts               `json:"alerts"`
	ExternalDependencies ExternalDependencies `json:"externalDependencies"`
	Alertmanager         Alertmanager         `json:"alertmanager"`
	Maintenance          Maintenance          `json:"maintenance"`
	Notifications        Notifications        `json:"notifications"`
	Webhook              Webhook              `json:"webhook"`
	PostUpgrade          PostUpgrade          `json:"postUpgrade"`
	NodeDrain            NodeDrain            `json:"nodeDrain"`
	HealthCheck          HealthCheck          `json:"healthCheck"`
}

// SlowThreshold is how long a step may take before people are told.
type SlowThreshold struct {
	SlowAfter Duration `json:"slowAfter"`
}

// PostHealthCheck is how long a cluster may take to be healthy after its upgrade.
type PostHealthCheck struct {
	Timeout Duration `json:"timeout"`
}

// Cleanup is how long cleaning up after an upgrade that was given up may take.
type Cleanup struct {
	SettleTimeout Duration `json:"settleTimeout"`
}

// Cancellation is how long deleting an UpgradeConfig may take.
type Cancellation struct {
	Timeout Duration `json:"timeout"`
}

// Scale is how long the extra nodes of an upgrade may take.
type Scale struct {
	Timeout Duration `json:"timeout"`
}

// PreChecks is how long before an upgrade people are told what is in its way.
type PreChecks struct {
	LeadTime Duration `json:"leadTime"`
}

// Alerts is where firing alerts are asked for, and which of them count.
type Alerts struct {
	URL              string   `json:"url"`
	CAFile           string   `json:"caFile"`
	TokenFile        string   `json:"tokenFile"`
	Timeout          Duration `json:"timeout"`
	Interval         Duration `json:"interval"`
	Watchdog         string   `json:"watchdog"`
	Namespaces       []string `json:"namespaces"`
	IgnoreAlerts     []string `json:"ignoreAlerts"`
	IgnoreNamespaces []string `json:"ignoreNamespaces"`
}

// ExternalDependencies are what an upgrade needs outside of the cluster.
type ExternalDependencies struct {
	URLs    []string `json:"urls"`
	Timeout Duration `json:"timeout"`
}

// Alertmanager is where alerts are silenced.
type Alertmanager struct {
	URL       string   `json:"url"`
	CAFile    string   `json:"caFile"`
	TokenFile string   `json:"tokenFile"`
	Timeout   Duration `json:"timeout"`
}

// Maintenance is which alerts are silenced while a cluster is upgraded, and how.
type Maintenance struct {
	Lease              Duration `json:"lease"`
	Timeout            Duration `json:"patience"`
	Severities         []string `json:"severities"`
	Namespaces         []string `json:"namespaces"`
	ControlPlaneAlerts []string `json:"controlPlaneAlerts"`
}

// Notifications is when people are told of what takes long.
type Notifications struct {
	DelayedAfter Duration `json:"delayedAfter"`
}

// Webhook is who is told of upgrades beside the cluster's Events.
type Webhook struct {
	URL       string   `json:"url"`
	CAFile    string   `json:"caFile"`
	TokenFile string   `json:"tokenFile"`
	Timeout   Duration `json:"timeout"`
}

// PostUpgrade is what is left to do once a cluster has been upgraded.
type PostUpgrade struct {
	Procedures []string `json:"procedures"`
}

// HealthCheck are settings of the health checks before and after an upgrade.
type HealthCheck struct {
	IgnoreNodes   []string `json:"ignoreNodes"`
	PDBNamespaces []string `json:"pdbNamespaces"`
	IgnorePDBs    []string `json:"ignorePDBs"`
}

// NodeDrain is when pods are forced off nodes that are being drained.
type NodeDrain struct {
	TimeOut          Duration `json:"timeOut"`
	IgnoreNamespaces []string `json:"ignoreNamespaces"`
}

// Setting is one key of the file.
type Setting struct {
	Path  string // as in upgradeWindow or controlPlane.slowAfter
	Doc   string
	Value Value
}

// Bounds of texts and lists, in bytes and items.
const (
	maxURLLen  = 2048
	maxPathLen = 4096
	maxNameLen = 253
	maxNames   = 100
)

// Settings are all keys of the file, in its order.
func (c *Config) Settings() []Setting {
	const day = 24 * time.Hour
	return []Setting{
		{"upgradeWindow", "How long after upgradeAt an upgrade may commence.", DurationSetting{&c.UpgradeWindow, 30 * time.Minute, time.Second, 7 * day}},
		{"controlPlane.slowAfter", "How long the control plane may take before people are told.", DurationSetting{&c.ControlPlane.SlowAfter, 2 * time.Hour, time.Second, 7 * day}},
		{"workers.slowAfter", "How long the worker nodes may take before people are told.", DurationSetting{&c.Workers.SlowAfter, 4 * time.Hour, time.Second, 14 * day}},
		{"postHealthCheck.timeout", "How long the cluster may take to be healthy after its upgrade before the upgrade counts as failed.", DurationSetting{&c.PostHealthCheck.Timeout, 2 * time.Hour, time.Second, 7 * day}},
		{"cleanup.settleTimeout", "For how long an upgrade that was given up after it had commenced keeps other upgrades waiting until the cluster has settled.", DurationSetting{&c.Cleanup.SettleTimeout, 12 * time.Hour, time.Second, 7 * day}},
		{"cancellation.timeout", "How long the deletion of an UpgradeConfig waits for its clean-up.", DurationSetting{&c.Cancellation.Timeout, 10 * time.Minute, time.Second, day}},
		{"scale.timeout", "How long the extra nodes that spec.capacityReservation asks for may take to be ready before an upgrade goes on without, and to be gone before a clean-up does. It must be shorter than upgradeWindow; unless set, it is half of that at most.", DurationSetting{&c.Scale.Timeout, 15 * time.Minute, time.Second, day}},
		{"earlyCheck.leadTime", "How long before upgradeAt the cluster is checked and people are told what would be in the way. 0s: it is not.", DurationSetting{&c.PreChecks.LeadTime, 2 * time.Hour, 0, 7 * day}},
		{"alerts.url", "Where the API of Prometheus is that is asked for firing alerts. Empty: alerts are not checked.", StringSetting{&c.Alerts.URL, "https://thanos-querier.openshift-monitoring.svc:9091", maxURLLen}},
		{"alerts.caFile", "The file with the authorities that may vouch for it. Empty: those of the system.", StringSetting{&c.Alerts.CAFile, "/etc/service-ca/service-ca.crt", maxPathLen}},
		{"alerts.tokenFile", "The file with the bearer token that it is asked with, over https only. Empty: none is sent.", StringSetting{&c.Alerts.TokenFile, "/var/run/secrets/kubernetes.io/serviceaccount/token", maxPathLen}},
		{"alerts.timeout", "How long its answer may take.", DurationSetting{&c.Alerts.Timeout, 10 * time.Second, time.Second, 30 * time.Second}},
		{"alerts.interval", "How long it is not asked again.", DurationSetting{&c.Alerts.Interval, time.Minute, time.Second, 5 * time.Minute}},
		{"alerts.watchdog", "An alert that always fires, without which an answer is not believed. Empty: there is none.", StringSetting{&c.Alerts.Watchdog, "Watchdog", maxNameLen}},
		{"alerts.namespaces", "Namespaces whose critical alerts block upgrades, beside alerts without a namespace; an asterisk matches any characters. Empty means all namespaces.", StringListSetting{&c.Alerts.Namespaces, []string{"default", "kube-*", "openshift-*"}, maxNames, maxNameLen}},
		{"alerts.ignoreAlerts", "Names of alerts that do not block upgrades; an asterisk matches any characters.", StringListSetting{&c.Alerts.IgnoreAlerts, nil, maxNames, maxNameLen}},
		{"alerts.ignoreNamespaces", "Namespaces whose alerts do not block upgrades; an asterisk matches any characters.", StringListSetting{&c.Alerts.IgnoreNamespaces, nil, maxNames, maxNameLen}},
		{"externalDependencies.urls", "What must answer before an upgrade commences, with a status below 400.", StringListSetting{&c.ExternalDependencies.URLs, nil, 20, maxURLLen}},
		{"externalDependencies.timeout", "How long each of three tries to reach one may take.", DurationSetting{&c.ExternalDependencies.Timeout, 5 * time.Second, time.Second, 15 * time.Second}},
		{"alertmanager.url", "Where the Alertmanager is that is asked to silence alerts. Empty: none are silenced.", StringSetting{&c.Alertmanager.URL, "https://alertmanager-main.openshift-monitoring.svc:9094", maxURLLen}},
		{"alertmanager.caFile", "The file with the authorities that may vouch for it. Empty: those of the system.", StringSetting{&c.Alertmanager.CAFile, "/etc/service-ca/service-ca.crt", maxPathLen}},
		{"alertmanager.tokenFile", "The file with the bearer token that it is asked with, over https only. Empty: none is sent.", StringSetting{&c.Alertmanager.TokenFile, "/var/run/secrets/kubernetes.io/serviceaccount/token", maxPathLen}},
		{"alertmanager.timeout", "How long its answer may take.", DurationSetting{&c.Alertmanager.Timeout, 10 * time.Second, time.Second, 30 * time.Second}},
		{"maintenance.lease", "How long alerts stay silenced if the operator is gone. A silence is prolonged when half of it is over.", DurationSetting{&c.Maintenance.Lease, 30 * time.Minute, 2 * time.Minute, 4 * time.Hour}},
		{"maintenance.patience", "For how long an upgrade waits for an Alertmanager that does not answer, before it goes on without.", DurationSetting{&c.Maintenance.Timeout, 2 * time.Minute, time.Second, 30 * time.Minute}},
		{"maintenance.severities", "Severities of the alerts that are silenced while a cluster is upgraded.", StringListSetting{&c.Maintenance.Severities, []string{"info", "warning"}, maxNames, maxNameLen}},
		{"maintenance.namespaces", "Namespaces of these alerts; an asterisk stands for any characters. Empty: every one.", StringListSetting{&c.Maintenance.Namespaces, []string{"default", "kube-*", "openshift-*"}, maxNames, maxNameLen}},
		{"maintenance.controlPlaneAlerts", "Names of alerts that are silenced whatever their severity while the control plane is upgraded.", StringListSetting{&c.Maintenance.ControlPlaneAlerts, nil, maxNames, maxNameLen}},
		{"notifications.delayedAfter", "How long after its beginning people are told that an upgrade has not commenced.", DurationSetting{&c.Notifications.DelayedAfter, 15 * time.Minute, time.Second, 7 * day}},
		{"webhook.url", "Who is told of upgrades by CloudEvents. Empty: nobody is.", StringSetting{&c.Webhook.URL, "", maxURLLen}},
		{"webhook.caFile", "The file with the authorities that may vouch for the receiver. Empty: those of the system.", StringSetting{&c.Webhook.CAFile, "", maxPathLen}},
		{"webhook.tokenFile", "The file with the bearer token for the receiver, sent over https only. Empty: none is sent.", StringSetting{&c.Webhook.TokenFile, "", maxPathLen}},
		{"webhook.timeout", "How long the receiver's answer may take.", DurationSetting{&c.Webhook.Timeout, 10 * time.Second, time.Second, 30 * time.Second}},
		{"postUpgrade.procedures", "What is done once a cluster has been upgraded, in this order.", EnumListSetting{&c.PostUpgrade.Procedures, []string{"FileIntegrityReinit"}}},
		{"nodeDrain.timeOut", "How long after its drain has begun a node may keep pods that no disruption budget guards before they are forced. For others it is the UpgradeConfig that says how long.", DurationSetting{&c.NodeDrain.TimeOut, 45 * time.Minute, time.Second, day}},
		{"nodeDrain.ignoreNamespaces", "Namespaces whose pods are never forced; an asterisk stands for any characters.", StringListSetting{&c.NodeDrain.IgnoreNamespaces, []string{"default", "kube-*", "openshift-*"}, maxNames, maxNameLen}},
		{"healthCheck.ignoreNodes", "Names of nodes whose state does not block upgrades; an asterisk matches any characters.", StringListSetting{&c.HealthCheck.IgnoreNodes, nil, maxNames, maxNameLen}},
		{"healthCheck.pdbNamespaces", "Namespaces in which a PodDisruptionBudget that allows no disruption blocks upgrades; an asterisk matches any characters. Set it together with nodeDrain.ignoreNamespaces: in these namespaces drains are never forced.", StringListSetting{&c.HealthCheck.PDBNamespaces, []string{"default", "kube-*", "openshift-*"}, maxNames, maxNameLen}},
		{"healthCheck.ignorePDBs", "PodDisruptionBudgets, as namespace/name, that do not block upgrades; an asterisk matches any characters. The defaults are budgets of operators that move their pods when a node is cordoned: KubeVirt and CloudNativePG.", StringListSetting{&c.HealthCheck.IgnorePDBs, []string{"*/kubevirt-disruption-budget-*", "*/*-primary"}, maxNames, maxNameLen}},
	}
}

// Default is the configuration in which nothing is set.
func Default() Config {
	c := Config{APIVersion: APIVersion, Kind: Kind}
	for _, s := range c.Settings() {
		s.Value.reset()
	}
	return c
}

// maxErrors is how much is said of what is wrong with a file: whatever somebody
// has put there is to be shown in a condition and in the log.
const maxErrors = 10

// Parse reads a configuration. Everything that is wrong with it is said, or the
// first ten, each with the path of its key and what would be right.
func Parse(data []byte) (Config, error) {
	nodes, err := read(data)
	if err != nil {
		return Config{}, fmt.Errorf("reading the configuration: %w", err)
	}
	c := Default()
	lines := map[string]int{}
	var errs []error
	for _, e := range nodes {
		if len(errs) == maxErrors {
			return Config{}, invalidConfig(append(errs, errors.New("and perhaps more")))
		}
		if first, twice := lines[e.path]; twice {
			errs = append(errs, fmt.Errorf("%s: is in lines %d and %d, must be there once", e.path, first, e.line))
			continue
		}
		lines[e.path] = e.line
		if err := c.set(e); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", e.path, err))
		}
	}
	if lines["apiVersion"] == 0 {
		errs = append(errs, fmt.Errorf("apiVersion: is missing, must be %s", APIVersion))
	}
	if lines["kind"] == 0 {
		errs = append(errs, fmt.Errorf("kind: is missing, must be %s", Kind))
	}
	if err := c.validateScaleTimeout(lines["scale.timeout"] > 0); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return Config{}, invalidConfig(errs)
	}
	return c, nil
}

func invalidConfig(errs []error) error {
	return fmt.Errorf("checking the configuration: %w", errors.Join(errs...))
}

// validateScaleTimeout has extra nodes not take the whole window: they are waited for before
// an upgrade commences.
func (c *Config) validateScaleTimeout(set bool) error {
	window, timeout := c.UpgradeWindow, &c.Scale.Timeout
	if !set {
		timeout.Duration = min(timeout.Duration, window.Duration/2)
	}
	if timeout.Duration >= window.Duration {
		return fmt.Errorf("scale.timeout: is %s, must be shorter than upgradeWindow, which is %s", timeout, window)
	}
	return nil
}

// set sets what an entry sets.
func (c *Config) set(e node) error {
	switch e.path {
	case "apiVersion":
		return requireValue(e, APIVersion)
	case "kind":
		return requireValue(e, Kind)
	}
	section, paths := "", []string{"apiVersion", "kind"}
	for _, s := range c.Settings() {
		if s.Path == e.path {
			return s.Value.read(e)
		}
		if strings.HasPrefix(s.Path, e.path+".") {
			section = s.Path
		}
		paths = append(paths, s.Path)
	}
	switch {
	case section == "":
		return fmt.Errorf("there is no such key, must be one of %s", strings.Join(paths, ", "))
	case !e.empty:
		return fmt.Errorf("is %s, must hold keys, such as %s", e.quoted(), section)
	}
	return nil
}

func requireValue(e node, value string) error {
	if e.text != value {
		return fmt.Errorf("is %s, must be %s", e.quoted(), value)
	}
	return nil
}
