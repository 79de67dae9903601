// Copyright The Managed Upgrade Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package hooks

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/managed-upgrade/managed-upgrade-operator/api/history"
	maintenancev1beta1 "github.com/managed-upgrade/managed-upgrade-operator/api/managedupgrade/v1beta1"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/config"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/engine"
	"github.com/managed-upgrade/managed-upgrade-operator/pkg/maintenance"
)

// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobs,namespace=managed-upgrade-operator,verbs=get
// +kubebuilder:rbac:groups=upgrade.managed.openshift.io,resources=upgradeconfigs,namespace=managed-upgrade-operator,verbs=get
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobhooks,namespace=managed-upgrade-operator,verbs=get;list;watch
// +kubebuilder:rbac:groups=managedupgrade.appuio.io,resources=upgradejobhooks/status,namespace=managed-upgrade-operator,verbs=patch
// +kubebuilder:rbac:groups=batch,resources=jobs,namespace=managed-upgrade-operator,verbs=create;get;list;watch;patch
// +kubebuilder:rbac:groups="",resources=pods,verbs=list
// +kubebuilder:rbac:groups="",resources=serviceaccounts,namespace=managed-upgrade-operator,verbs=list

// Event is something that happens to an upgrade and triggers its hooks.
type Event struct {
	Name maintenancev1beta1.HookEvent
	// Reason is one CamelCase word, and Message is for humans. Hooks get both.
	Reason, Message string
	// Pool is the machine config pool of the event; empty if it has none.
	Pool string
}

// Publisher publishes the outcomes of hooks.
type Publisher interface {
	Publish(ctx context.Context, ref corev1.ObjectReference, n engine.Notification) error
}

// Metrics counts the outcomes of hooks.
type Metrics interface {
	// IncHookRuns counts the end of a hook.
	IncHookRuns(namespace, hook string, event maintenancev1beta1.HookEvent, succeeded bool)
}

// Runner runs the hooks of upgrades. It lives as long as the process.
type Runner struct {
	// Client reads Jobs and UpgradeJobHooks from the cache; see StripJob and StripHook.
	Client client.Client
	// Live reads from the API server.
	Live client.Reader
	// Config returns the configuration in effect.
	Config func() config.Hooks
	// Publisher publishes the outcomes of hooks. Optional.
	Publisher Publisher
	// Metrics counts the outcomes of hooks. Optional.
	Metrics Metrics

	mu sync.Mutex
	// outcomes holds observed items that may not yet be in the record, by upgrade and item.
	outcomes map[types.UID]map[string]history.StepItem
	pods     map[types.UID]podProblem // by Job
}

// Statuses of items. All except Running are final.
const (
	statusRunning   = history.ItemRunning
	statusSucceeded = "Succeeded"
	statusFailed    = "Failed"
	// statusRemoved marks a hook that was deleted before its Job was created.
	statusRemoved = "Removed"
	// statusCompleted marks an event of a pool whose hooks have ended.
	statusCompleted = "Completed"
	// statusNoHooks marks an event without hooks, and statusBegun an event whose first Job may
	// exist. Neither is ever recorded.
	statusNoHooks = "NoHooks"
	statusBegun   = "Begun"
)

// Event returns the step that runs the hooks for an event, once each in an attempt. The step is
// skipped if no hook selects the event. Its items are the hooks of this event. For an event of a
// pool, a single item replaces them once all hooks have ended. A step that runs several events
// keeps the items of all of them in its results, and may call events again that have ended.
//
// If a hook with the policy Abort fails, the step fails, unless the outcome of the upgrade is
// already decided. Before the point of no return, the window limits the wait. Pools limit the wait
// for their events. All other events end after hooks.timeout, and Jobs that are still running then
// count as failed.
func (r *Runner) Event(owner maintenance.Owner, record history.Record, event Event) engine.UpgradeStep {
	return func(ctx context.Context, run engine.Run) (engine.Result, error) {
		e := &eventRun{Runner: r, owner: owner, record: record, event: event, run: run}
		return e.step(ctx)
	}
}

// Forget drops the in-memory state of an upgrade.
func (r *Runner) Forget(upgrade types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.outcomes, upgrade)
}

// observed returns the observed item; the zero item if there is none.
func (e *eventRun) observed(item string) history.StepItem {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.outcomes[e.owner.UID][e.attemptKey(item)]
}

func (e *eventRun) observe(item history.StepItem) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.outcomes == nil {
		e.outcomes = map[types.UID]map[string]history.StepItem{}
	}
	if e.outcomes[e.owner.UID] == nil {
		e.outcomes[e.owner.UID] = map[string]history.StepItem{}
	}
	e.outcomes[e.owner.UID][e.attemptKey(item.Name)] = item
}

func (e *eventRun) attemptKey(item string) string {
	return fmt.Sprintf("%d/%s", e.owner.Attempt, item)
}

// report publishes and counts the end of a hook, once in the life of the process. If publishing the
// Event fails, the upgrade still continues, because the record has the outcome.
func (e *eventRun) report(ctx context.Context, hook string, item history.StepItem) {
	e.observe(item)
	if item.Status != statusSucceeded && item.Status != statusFailed {
		return
	}
	succeeded := item.Status == statusSucceeded
	if _, err := e.cachedHook(ctx, hook); err == nil && e.Metrics != nil { // the metrics of a deleted hook are gone
		e.Metrics.IncHookRuns(e.owner.Namespace, hook, e.event.Name, succeeded)
	}
	if e.Publisher == nil {
		return
	}
	n := engine.Notification{
		ID:      engine.NotificationID(string(e.owner.UID), engine.AttemptKey(e.record), item.Name, item.Status),
		Version: e.record.Version, Attempt: e.record.Attempt,
		Type: corev1.EventTypeNormal, Reason: "HookSucceeded", Message: fmt.Sprintf("hook %s succeeded: %s", item.Name, item.Message),
	}
	if !succeeded {
		n.Type, n.Reason, n.Message = corev1.EventTypeWarning, maintenance.ReasonHookFailed, fmt.Sprintf("hook %s failed: %s", item.Name, item.Message)
	}
	ref := corev1.ObjectReference{
		APIVersion: e.owner.GroupVersion().String(), Kind: e.owner.Kind,
		Namespace: e.owner.Namespace, Name: e.owner.Name, UID: e.owner.UID,
	}
	if err := e.Publisher.Publish(ctx, ref, n); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "publishing the outcome of a hook", "hook", hook)
	}
}
