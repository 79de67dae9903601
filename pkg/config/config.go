// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

// Package config defines the operator's configuration: a single typed and versioned file in which
// every key has a default. Each key is a line in a table (Settings) that documents the key, its
// default, and its valid values.
//
// The package does not know where the file comes from or how the settings are used.
//
// Stability: Custom.Decode and the keys of the file are stable within a major version, but new keys
// may be added. The Go types of the sections may change in minor versions.
package config

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config/strict"
)

// API version and kind of the file.
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

	PreChecks            PreChecks            `json:"preChecks"`
	Alerts               Alerts               `json:"alerts"`
	ExternalDependencies ExternalDependencies `json:"externalDependencies"`
	Alertmanager         Alertmanager         `json:"alertmanager"`
	Silences             Silences             `json:"maintenance"`
	Notifications        Notifications        `json:"notifications"`
	Webhook              Webhook              `json:"webhook"`
	TrustedCAFile        string               `json:"trustedCAFile"`
	PostUpgrade          PostUpgrade          `json:"postUpgrade"`
	NodeDrain            NodeDrain            `json:"nodeDrain"`
	HealthCheck          HealthCheck          `json:"healthCheck"`
	Hooks                Hooks                `json:"hooks"`
	Custom               Custom               `json:"custom"`
}

// SlowThreshold configures when a step counts as slow.
type SlowThreshold struct {
	SlowAfter Duration `json:"slowAfter"`
}

// PostHealthCheck configures the health check after an upgrade.
type PostHealthCheck struct {
	Timeout Duration `json:"timeout"`
}

// Cleanup configures the cleanup after a failed upgrade.
type Cleanup struct {
	SettleTimeout Duration `json:"settleTimeout"`
}

// Cancellation configures the deletion of an UpgradeConfig.
type Cancellation struct {
	Timeout Duration `json:"timeout"`
}

// Scale configures the extra nodes of an upgrade.
type Scale struct {
	Timeout Duration `json:"timeout"`
}

// PreChecks configures the checks that run ahead of an upgrade.
type PreChecks struct {
	LeadTime Duration `json:"leadTime"`
	Mode     string   `json:"mode"`
}

// Modes of PreChecks.
const (
	// PreChecksIgnore makes upgrades independent of UpdatePlans.
	PreChecksIgnore = "Ignore"
	// PreChecksRequire allows upgrades only while the UpdatePlan of the version is startable.
	PreChecksRequire = "Require"
)

// Alerts configures the query for firing alerts and the selection of those that block an upgrade.
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

// ExternalDependencies configures the dependencies of an upgrade outside the cluster.
type ExternalDependencies struct {
	URLs    []string `json:"urls"`
	CAFile  string   `json:"caFile"`
	Timeout Duration `json:"timeout"`
}

// Alertmanager configures the Alertmanager that silences alerts.
type Alertmanager struct {
	URL       string   `json:"url"`
	CAFile    string   `json:"caFile"`
	TokenFile string   `json:"tokenFile"`
	Timeout   Duration `json:"timeout"`
}

// Silences configures the silences during an upgrade: the alerts and the duration. The
// section is called maintenance, as in the former operator.
type Silences struct {
	Lease              Duration `json:"lease"`
	Timeout            Duration `json:"timeout"`
	Severities         []string `json:"severities"`
	Namespaces         []string `json:"namespaces"`
	ControlPlaneAlerts []string `json:"controlPlaneAlerts"`
}

// Notifications configures the notifications of slow upgrades.
type Notifications struct {
	DelayedAfter Duration `json:"delayedAfter"`
}

// Webhook configures the receiver of CloudEvents.
type Webhook struct {
	URL       string   `json:"url"`
	CAFile    string   `json:"caFile"`
	TokenFile string   `json:"tokenFile"`
	Timeout   Duration `json:"timeout"`
}

// PostUpgrade configures the procedures after an upgrade.
type PostUpgrade struct {
	Procedures []string `json:"procedures"`
}

// HealthCheck configures the health checks before and after an upgrade.
type HealthCheck struct {
	IgnoreNodes   []string `json:"ignoreNodes"`
	PDBNamespaces []string `json:"pdbNamespaces"`
	IgnorePDBs    []string `json:"ignorePDBs"`
	// Objects are conditions that objects must meet.
	Objects []ObjectCheck `json:"objects"`
}

// ObjectCheck is a condition that objects of a kind must meet, as in UpgradeJobs.
type ObjectCheck struct {
	APIVersion string                `json:"apiVersion"`
	Kind       string                `json:"kind"`
	Namespace  string                `json:"namespace"`
	Name       string                `json:"name"`
	Selector   *metav1.LabelSelector `json:"selector"`
	Expr       string                `json:"expr"`
}

// NodeDrain configures when pods are force-deleted from draining nodes.
type NodeDrain struct {
	TimeOut          Duration `json:"timeOut"`
	IgnoreNamespaces []string `json:"ignoreNamespaces"`
}

// Hooks configures the Jobs of UpgradeJobHooks.
type Hooks struct {
	Timeout         Duration `json:"timeout"`
	ServiceAccounts []string `json:"serviceAccounts"`
}

// Setting documents one key of the file and validates its value.
type Setting struct {
	Path  string // for example upgradeWindow or controlPlane.slowAfter
	Doc   string
	Value Value
}

// Limits of strings and lists, in bytes and items.
const (
	maxURLLen  = 2048
	maxPathLen = 4096
	maxNameLen = 253
	maxNames   = 100
)

// Documentation shared by several keys.
const (
	caFileDoc    = "Path to a PEM bundle of trusted CAs, a regular file of at most 64 KiB. Empty means the system CAs and those in trustedCAFile."
	tokenFileDoc = "Path to the bearer token, a regular file of at most 64 KiB, sent over https only. Empty means no token. The token of a ServiceAccount is sent to services of the cluster only."
)

// Settings returns all keys in the order of the file.
func (c *Config) Settings() []Setting {
	const day = 24 * time.Hour
	return []Setting{
		{"upgradeWindow", "How long after upgradeAt an upgrade may commence.", DurationSetting{&c.UpgradeWindow, 30 * time.Minute, time.Second, 7 * day}},
		{"controlPlane.slowAfter", "How long the control plane upgrade may take before it is reported as slow.", DurationSetting{&c.ControlPlane.SlowAfter, 2 * time.Hour, time.Second, 7 * day}},
		{"workers.slowAfter", "How long the worker upgrade may take before it is reported as slow.", DurationSetting{&c.Workers.SlowAfter, 4 * time.Hour, time.Second, 14 * day}},
		{"postHealthCheck.timeout", "How long the cluster may take to become healthy after its upgrade before the upgrade fails.", DurationSetting{&c.PostHealthCheck.Timeout, 2 * time.Hour, time.Second, 7 * day}},
		{"cleanup.settleTimeout", "How long a failed upgrade that had commenced blocks other upgrades while the cluster settles.", DurationSetting{&c.Cleanup.SettleTimeout, 12 * time.Hour, time.Second, 7 * day}},
		{"cancellation.timeout", "How long the deletion of an UpgradeConfig or UpgradeJob waits for its cleanup.", DurationSetting{&c.Cancellation.Timeout, 10 * time.Minute, time.Second, day}},
		{"scale.timeout", "How long an upgrade waits for the extra nodes of spec.capacityReservation before it continues without them, and a cleanup for their removal. An upgrade stops waiting ten minutes before its window closes. Must be shorter than upgradeWindow. The default is reduced to half of upgradeWindow if that is shorter.", DurationSetting{&c.Scale.Timeout, 15 * time.Minute, time.Second, day}},
		{"preChecks.leadTime", "How long before upgradeAt to run pre-checks and report blockers. 0s disables pre-checks.", DurationSetting{&c.PreChecks.LeadTime, 2 * time.Hour, 0, 7 * day}},
		{"preChecks.mode", "Whether an upgrade waits until each risk that the UpdatePlan of its version reports is accepted. Require needs the Update Status Controller, see deploy/update-status.", EnumSetting{&c.PreChecks.Mode, PreChecksIgnore, []string{PreChecksIgnore, PreChecksRequire}}},
		{"alerts.url", "URL of the Prometheus API that is queried for firing alerts. Empty disables the check of alerts.", StringSetting{&c.Alerts.URL, "https://thanos-querier.openshift-monitoring.svc:9091", maxURLLen}},
		{"alerts.caFile", caFileDoc, StringSetting{&c.Alerts.CAFile, "/etc/service-ca/service-ca.crt", maxPathLen}},
		{"alerts.tokenFile", tokenFileDoc, StringSetting{&c.Alerts.TokenFile, "/var/run/secrets/kubernetes.io/serviceaccount/token", maxPathLen}},
		{"alerts.timeout", "Timeout of one query.", DurationSetting{&c.Alerts.Timeout, 10 * time.Second, time.Second, 30 * time.Second}},
		{"alerts.interval", "Minimum time between two queries.", DurationSetting{&c.Alerts.Interval, time.Minute, time.Second, 5 * time.Minute}},
		{"alerts.watchdog", "Name of an alert that always fires; a result without it is not trusted. Empty means none.", StringSetting{&c.Alerts.Watchdog, "Watchdog", maxNameLen}},
		{"alerts.namespaces", "Namespaces whose critical alerts block upgrades, beside alerts without a namespace; an asterisk matches any characters. Empty means all namespaces.", StringListSetting{&c.Alerts.Namespaces, []string{"default", "kube-*", "openshift-*"}, maxNames, maxNameLen}},
		{"alerts.ignoreAlerts", "Names of alerts that do not block upgrades; an asterisk matches any characters.", StringListSetting{&c.Alerts.IgnoreAlerts, nil, maxNames, maxNameLen}},
		{"alerts.ignoreNamespaces", "Namespaces whose alerts do not block upgrades; an asterisk matches any characters.", StringListSetting{&c.Alerts.IgnoreNamespaces, nil, maxNames, maxNameLen}},
		{"externalDependencies.urls", "URLs that must respond with a status below 400 before an upgrade commences.", StringListSetting{&c.ExternalDependencies.URLs, nil, 20, maxURLLen}},
		{"externalDependencies.caFile", caFileDoc, StringSetting{&c.ExternalDependencies.CAFile, "", maxPathLen}},
		{"externalDependencies.timeout", "Timeout of each of three attempts to reach a URL.", DurationSetting{&c.ExternalDependencies.Timeout, 5 * time.Second, time.Second, 15 * time.Second}},
		{"alertmanager.url", "URL of the Alertmanager that silences alerts. Empty disables silences.", StringSetting{&c.Alertmanager.URL, "https://alertmanager-main.openshift-monitoring.svc:9094", maxURLLen}},
		{"alertmanager.caFile", caFileDoc, StringSetting{&c.Alertmanager.CAFile, "/etc/service-ca/service-ca.crt", maxPathLen}},
		{"alertmanager.tokenFile", tokenFileDoc, StringSetting{&c.Alertmanager.TokenFile, "/var/run/secrets/kubernetes.io/serviceaccount/token", maxPathLen}},
		{"alertmanager.timeout", "Timeout of one request.", DurationSetting{&c.Alertmanager.Timeout, 10 * time.Second, time.Second, 30 * time.Second}},
		{"maintenance.lease", "How long alerts stay silenced after the operator stops. Silences are renewed when half of it has passed.", DurationSetting{&c.Silences.Lease, 30 * time.Minute, 2 * time.Minute, 4 * time.Hour}},
		{"maintenance.timeout", "How long an upgrade waits for an unavailable Alertmanager before it continues without silences.", DurationSetting{&c.Silences.Timeout, 2 * time.Minute, time.Second, 30 * time.Minute}},
		{"maintenance.severities", "Severities of the alerts that are silenced during an upgrade.", StringListSetting{&c.Silences.Severities, []string{"info", "warning"}, maxNames, maxNameLen}},
		{"maintenance.namespaces", "Namespaces of these alerts; an asterisk matches any characters. Empty means all namespaces.", StringListSetting{&c.Silences.Namespaces, []string{"default", "kube-*", "openshift-*"}, maxNames, maxNameLen}},
		{"maintenance.controlPlaneAlerts", "Names of alerts that are silenced regardless of severity while the control plane is upgraded; an asterisk matches any characters.", StringListSetting{&c.Silences.ControlPlaneAlerts, nil, maxNames, maxNameLen}},
		{"notifications.delayedAfter", "How long after its start an upgrade that has not commenced is reported as delayed.", DurationSetting{&c.Notifications.DelayedAfter, 15 * time.Minute, time.Second, 7 * day}},
		{"webhook.url", "URL of the receiver of CloudEvents. Empty disables the webhook.", StringSetting{&c.Webhook.URL, "", maxURLLen}},
		{"webhook.caFile", caFileDoc, StringSetting{&c.Webhook.CAFile, "", maxPathLen}},
		{"webhook.tokenFile", tokenFileDoc, StringSetting{&c.Webhook.TokenFile, "", maxPathLen}},
		{"webhook.timeout", "Timeout of one request.", DurationSetting{&c.Webhook.Timeout, 10 * time.Second, time.Second, 30 * time.Second}},
		{"trustedCAFile", "Path to a PEM bundle of at most 1 MiB. Its CAs are trusted beside the system CAs where no caFile is set. It may be missing, and is read again for each request.", StringSetting{&c.TrustedCAFile, "/etc/trusted-ca/ca-bundle.crt", maxPathLen}},
		{"postUpgrade.procedures", "Procedures that run after an upgrade, in this order. FileIntegrityReinit requires the permissions in deploy/file-integrity.", EnumListSetting{&c.PostUpgrade.Procedures, []string{"FileIntegrityReinit"}}},
		{"nodeDrain.timeOut", "How long after the start of a drain pods that nothing guards are evicted, and deleted if that has no effect. The UpgradeConfig sets the time for pods with a PodDisruptionBudget, and for pods whose eviction the API server refuses.", DurationSetting{&c.NodeDrain.TimeOut, 45 * time.Minute, time.Second, day}},
		{"nodeDrain.ignoreNamespaces", "Namespaces whose pods are never deleted by force; an asterisk matches any characters.", StringListSetting{&c.NodeDrain.IgnoreNamespaces, []string{"default", "kube-*", "openshift-*"}, maxNames, maxNameLen}},
		{"healthCheck.ignoreNodes", "Names of nodes whose state does not block upgrades; an asterisk matches any characters.", StringListSetting{&c.HealthCheck.IgnoreNodes, nil, maxNames, maxNameLen}},
		{"healthCheck.pdbNamespaces", "Namespaces in which a PodDisruptionBudget that allows no disruption blocks upgrades; an asterisk matches any characters. Set it together with nodeDrain.ignoreNamespaces: in these namespaces drains are never forced.", StringListSetting{&c.HealthCheck.PDBNamespaces, []string{"default", "kube-*", "openshift-*"}, maxNames, maxNameLen}},
		{"healthCheck.ignorePDBs", "PodDisruptionBudgets, as namespace/name, that do not block upgrades; an asterisk matches any characters. Together with a budget that is not listed, such a budget blocks the eviction of a pod that both select, and blocks upgrades. The defaults are budgets of operators that move their pods when a node is cordoned: KubeVirt and CloudNativePG.", StringListSetting{&c.HealthCheck.IgnorePDBs, []string{"*/kubevirt-disruption-budget-*", "*/*-primary"}, maxNames, maxNameLen}},
		{"healthCheck.objects", "Conditions on objects, each with apiVersion, kind, namespace, name or selector, and expr. See [conditions on objects](../concepts/object-conditions.md).", ObjectsSetting{&c.HealthCheck.Objects, 16}},
		{"hooks.timeout", "How long an upgrade that has commenced or ended waits for the hooks of an event. A Job that takes longer counts as failed; it is not stopped.", DurationSetting{&c.Hooks.Timeout, time.Hour, time.Second, day}},
		{"hooks.serviceAccounts", "Names of the ServiceAccounts that templates of UpgradeJobHooks may use. That of the operator is never allowed. A template that names none has no token.", StringListSetting{&c.Hooks.ServiceAccounts, nil, maxNames, maxNameLen}},
		{"custom", "Settings of upgraders that are not part of this project. An operator without such upgraders accepts none.", CustomSetting{&c.Custom}},
	}
}

// Default returns the configuration with all defaults.
func Default() Config {
	c := Config{APIVersion: APIVersion, Kind: Kind}
	for _, s := range c.Settings() {
		s.Value.reset()
	}
	return c
}

// Parse decodes a configuration file. The error lists the first ten unknown keys and invalid values
// with their paths. A syntax error or a value of the wrong type may be reported alone.
func Parse(data []byte) (Config, error) {
	c := Default()
	c.APIVersion, c.Kind = "", ""
	for _, s := range c.Settings() {
		s.Value.clear()
	}
	errs, err := strict.Unmarshal(data, &c)
	if err != nil {
		return Config{}, fmt.Errorf("invalid configuration: %w", err)
	}
	scaleTimeoutUnset := c.Scale.Timeout.unset
	for _, s := range c.Settings() {
		s.Value.complete()
	}
	errs = append(errs, c.validate()...)
	if scaleTimeoutUnset {
		c.Scale.Timeout.Duration = min(c.Scale.Timeout.Duration, c.UpgradeWindow.Duration/2)
	} else if c.Scale.Timeout.Duration >= c.UpgradeWindow.Duration { // extra nodes are added within the window
		errs = append(errs, field.Invalid(newPath("scale.timeout"), c.Scale.Timeout.String(), fmt.Sprintf("must be shorter than upgradeWindow, which is %s", c.UpgradeWindow)))
	}
	if err := strict.Error(errs); err != nil {
		return Config{}, fmt.Errorf("invalid configuration: %w", err)
	}
	return c, nil
}

// validate returns all errors in the order of the file.
func (c *Config) validate() field.ErrorList {
	errs := requireValue("apiVersion", c.APIVersion, APIVersion)
	errs = append(errs, requireValue("kind", c.Kind, Kind)...)
	for _, s := range c.Settings() {
		errs = append(errs, s.Value.validate(newPath(s.Path))...)
	}
	return errs
}

func newPath(path string) *field.Path {
	keys := strings.Split(path, ".")
	return field.NewPath(keys[0], keys[1:]...)
}

func requireValue(key, value, want string) field.ErrorList {
	switch value {
	case want:
		return nil
	case "":
		return field.ErrorList{field.Required(field.NewPath(key), "must be "+want)}
	}
	return field.ErrorList{field.NotSupported(field.NewPath(key), strict.Sanitize(value), []string{want})}
}
