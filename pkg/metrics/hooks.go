// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
)

// Hooks contains the metrics about UpgradeJobHooks.
type Hooks struct {
	runs *prometheus.CounterVec
}

// NewHooks creates and registers the metrics.
func NewHooks(registry prometheus.Registerer) (*Hooks, error) {
	h := &Hooks{runs: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "managed_upgrade_hook_runs_total",
		Help: "Number of completed hook runs, by event and outcome (Succeeded or Failed).",
	}, []string{"namespace", "hook", "event", "outcome"})}
	if err := registry.Register(h.runs); err != nil {
		return nil, err
	}
	return h, nil
}

// Values of the label outcome.
const (
	hookSucceeded = "Succeeded"
	hookFailed    = "Failed"
)

// IncHookRuns counts the end of a hook.
func (h *Hooks) IncHookRuns(namespace, hook string, event maintenancev1beta1.HookEvent, succeeded bool) {
	outcome := hookFailed
	if succeeded {
		outcome = hookSucceeded
	}
	h.runs.WithLabelValues(namespace, hook, string(event), outcome).Inc()
}

// SetHook creates the series of a hook, because rate() needs an initial sample.
func (h *Hooks) SetHook(namespace, hook string, events []maintenancev1beta1.HookEvent) {
	for _, event := range events {
		for _, outcome := range []string{hookSucceeded, hookFailed} {
			h.runs.WithLabelValues(namespace, hook, string(event), outcome)
		}
	}
}

// DeleteHook removes the series of a hook.
func (h *Hooks) DeleteHook(namespace, hook string) {
	h.runs.DeletePartialMatch(prometheus.Labels{"namespace": namespace, "hook": hook})
}
